// What became of each rule over time: a lane for each, and the same as a table.
import { byId, clock, count, element, seconds, setText } from "./format.js";
import { Grid } from "./grid.js";
import { now, state } from "./state.js";

export const STATES = {
  on: "on: CUEs are sent", withheld: "withheld, for a reason", paused: "paused by an operator", observed: "observed only",
  flapping: "changed too often", unknown: "not known", off: "off: its condition does not hold",
};
const WIDE = 90;
let lanes = new Map(), table, spans = [], version = -1, drawn = 0;

export function makeTimeline() {
  for (const [name, words] of Object.entries(STATES)) {
    const item = element("li"), key = element("span", `swatch ${name}`);
    item.append(key, words);
    byId("time-legend").append(item);
  }
  const span = (i) => spans[i];
  table = new Grid(byId("spans"), {
    label: "What became of rules",
    sort: { column: 2, down: true },
    columns: [
      { name: "rule", width: "minmax(7rem, 1fr)", value: (i) => span(i).rule, text: (i) => span(i).rule },
      { name: "state", width: "6.5rem", value: (i) => span(i).state, text: (i) => span(i).state, tone: (i) => `is-${span(i).state}` },
      { name: "since", width: "8rem", number: true, value: (i) => span(i).from_unix_s, text: (i) => clock(span(i).from_unix_s) },
      { name: "for", width: "5rem", number: true, value: lasts, text: (i) => seconds(lasts(i)) },
      { name: "decisions", width: "5.5rem", number: true, value: (i) => span(i).decisions, text: (i) => count(span(i).decisions) },
      { name: "hosts", width: "4.5rem", number: true, value: (i) => span(i).hosts, text: (i) => count(span(i).hosts) },
      { name: "why", width: "minmax(16rem, 4fr)", value: (i) => span(i).why, text: (i) => span(i).why || "–" },
    ],
  });
  byId("time-span").addEventListener("change", () => drawTimeline(true));
  byId("lanes").addEventListener("pointermove", (event) => tell(event.target.closest(".span")));
  byId("lanes").addEventListener("click", (event) => tell(event.target.closest(".span")));
}

const lasts = (i) => (spans[i].to_unix_s ?? now()) - spans[i].from_unix_s;

function tell(node) {
  if (!node?.span) return;
  const { rule, state: became, from_unix_s: from, to_unix_s: to, hosts, why } = node.span;
  const until = to ? `until ${clock(to)}` : "until now";
  setText(byId("time-said"), `${rule}: ${became}, ${clock(from)} ${until}, ${count(hosts)} hosts${why ? `: ${why}` : ""}`);
}

export function drawTimeline(force) {
  const end = state.overview?.decided_unix_s ?? 0;
  const isNew = version !== state.spansVersion;
  // a lane of an hour moves by a pixel in some seconds
  const first = Math.min(end - 60, ...[...state.over, ...state.open].map((span) => span.from_unix_s));
  const wide = Number(byId("time-span").value) || end - first, step = wide / 800;
  if (!force && !isNew && end - drawn < step) return;
  drawn = end;
  if (isNew) {
    version = state.spansVersion;
    spans = [...state.over, ...state.open];
    table.show(spans.map((_, i) => i));
  }
  const begin = end - wide, place = byId("lanes");
  const names = [...new Set([...state.open.map((span) => span.rule), ...spans.map((span) => span.rule)])].slice(0, 64);
  if (names.join("\n") !== [...lanes.keys()].join("\n")) {
    lanes = new Map(names.map((name) => [name, lane(name)]));
    place.replaceChildren(...[...lanes.values()].map((one) => one.row), ticks());
  }
  const marks = place.querySelectorAll(".ticks span");
  marks.forEach((mark, i) => setText(mark, end ? clock(begin + (wide * i) / (marks.length - 1)) : ""));
  const seen = new Map(names.map((name) => [name, []]));
  spans.forEach((span) => (span.to_unix_s ?? end) > begin && seen.get(span.rule)?.push(span));
  for (const [name, { track }] of lanes) {
    const mine = seen.get(name);
    while (track.children.length > mine.length) track.lastChild.remove();
    while (track.children.length < mine.length) track.append(element("div", "span"));
    mine.forEach((span, i) => set(track.children[i], span, begin, end, wide, track.clientWidth));
  }
}

function set(node, span, begin, end, wide, width) {
  const from = Math.max(0, (span.from_unix_s - begin) / wide), to = Math.min(1, ((span.to_unix_s ?? end) - begin) / wide);
  node.span = span;
  node.className = `span ${span.state}`;
  node.style.left = `${(from * 100).toFixed(2)}%`;
  node.style.width = `max(2px, ${((to - from) * 100).toFixed(2)}%)`;
  const room = (to - from) * width;
  const words = span.state === "on" || span.state === "observed" ? `${span.state} ${count(span.hosts)}` : span.why ? `${span.state}: ${span.why}` : span.state;
  setText(node, room > WIDE ? words : room > 56 ? span.state : "");
}

function lane(name) {
  const row = element("div", "lane"), track = element("div", "track");
  row.append(element("div", "name", name), track);
  return { row, track };
}

function ticks() {
  const row = element("div", "lane ticks"), track = element("div", "track");
  for (let i = 0; i < 5; i += 1) track.append(element("span"));
  row.append(element("div", "name"), track);
  return row;
}
