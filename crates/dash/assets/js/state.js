// What the server has said: everything once, then what has changed.

/** As src/model.rs has it: the places of a host's and a link's values. */
export const HOST = { treated: 0, flows: 1, retransmits: 2, sent: 3, rules: 4, trips: 5, differ: 6, notes: 7, heard: 8, used: 9 };
export const LINK = { used: 0, drops: 1, marks: 2, queue: 3, up: 4 };

/** Without a word for so long, the dashboard's server counts as gone, milliseconds. */
const SILENT = 6000;

export const state = {
  overview: null, hosts: { fixed: [], live: [], total: 0 }, links: { fixed: [], live: [], total: 0 },
  over: [], open: [], events: [], series: [], trouble: null, note: null, answered: null, decided: null, acts: false,
  /** What the server's clock is ahead of this one, seconds. */
  ahead: 0,
  /** Counts lists that were replaced as a whole: what was made of their names is made anew. */
  hostsVersion: 0, linksVersion: 0, spansVersion: 0, eventsVersion: 0,
  connected: false,
};

let heard = performance.now();

/** The server's time, seconds since the Unix epoch. */
export const now = () => Date.now() / 1000 + state.ahead;

/** Whether the server is there. */
export const isHeard = () => state.connected && performance.now() - heard < SILENT;

/** What treated hosts are: of an Oracle that sends nothing nobody is. */
export const treatedWord = () => (state.overview?.mode === "enforce" && !state.overview.paused ? "treated" : "would be treated");

/** How many rules of the first 64 are in force on a host. */
export function rulesOf(bits, rules) {
  const names = [];
  rules.forEach((rule, i) => {
    if (i < 64 && (bits[i >> 5] >>> (i & 31)) & 1) names.push(rule.name);
  });
  return names;
}

const RENEWED = { over: "spansVersion", open: "spansVersion", events: "eventsVersion", hosts: "hostsVersion", links: "linksVersion" };

function take(message) {
  heard = performance.now();
  state.connected = true;
  state.ahead = message.now - Date.now() / 1000;
  for (const field of ["overview", "hosts", "links", "over", "open", "events", "series", "trouble", "note", "answered", "decided", "acts"]) {
    if (!(field in message)) continue;
    state[field] = message[field];
    if (field in RENEWED) state[RENEWED[field]] += 1;
  }
  for (const [i, row] of message.host_rows ?? []) state.hosts.live[i] = row;
  for (const [i, row] of message.link_rows ?? []) state.links.live[i] = row;
  if (message.point) {
    state.series.push(message.point);
    if (state.series.length > 720) state.series.shift();
  }
}

/** Follows the server; `changed` is called after each message, and when it is lost. */
export function follow(changed) {
  const source = new EventSource("/events");
  for (const name of ["full", "delta"]) {
    source.addEventListener(name, (event) => {
      take(JSON.parse(event.data));
      changed();
    });
  }
  source.addEventListener("error", () => {
    state.connected = false;
    changed();
    // a refused stream is not looked for again by the browser
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(changed), 3000);
  });
}
