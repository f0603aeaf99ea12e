// Puts the parts together: what has changed is drawn once before the browser's next frame, tables and series twice a second.
import { makeActions, show } from "./actions.js";
import { drawCharts, makeCharts } from "./charts.js";
import { byId, bytes, count, element, known, rate, seconds, setText, share } from "./format.js";
import { Grid } from "./grid.js";
import { drawMap, makeMap } from "./map.js";
import { drawEvents, drawFigures, drawGuards, drawHead, drawRules, drawVerdict, makePanels } from "./panels.js";
import { HOST, LINK, follow, rulesOf, state, treatedWord } from "./state.js";
import { drawTimeline, makeTimeline } from "./timeline.js";

/** Between two looks at tables and series, milliseconds: nobody reads numbers that change faster. */
const SLOW = 500;

const fixed = (i) => state.hosts.fixed[i], live = (i) => state.hosts.live[i];
const rules = (i) => rulesOf(live(i)[HOST.rules], state.overview?.rules ?? []);
const of = (place) => (i) => live(i)[place];
const alarming = (place) => (i) => (live(i)[place] > 0 ? "bad" : "quiet");

const HOSTS = [
  { name: "host", width: "minmax(8rem, 2fr)", value: (i) => fixed(i)[0], text: (i) => fixed(i)[0] },
  { name: "rack", width: "minmax(5rem, 1fr)", value: (i) => fixed(i)[1], text: (i) => fixed(i)[1] || "–" },
  { name: "arm", width: "5rem", value: of(HOST.treated), text: (i) => (live(i)[HOST.treated] ? treatedWord() : "control"), tone: (i) => (live(i)[HOST.treated] ? "treated" : "") },
  { name: "rules in force", width: "minmax(9rem, 2fr)", value: (i) => rules(i).join(" "), text: (i) => rules(i).join(", ") || "none", tone: (i) => (rules(i).length ? "" : "quiet") },
  { name: "without a policy", width: "8rem", value: (i) => fixed(i)[2], text: (i) => fixed(i)[2] || "–", hint: "the congestion control that its connections have without a policy" },
  { name: "flows", width: "4.5rem", number: true, value: of(HOST.flows), text: (i) => count(live(i)[HOST.flows]) },
  { name: "retransm.", width: "6rem", number: true, value: of(HOST.retransmits), text: (i) => share(live(i)[HOST.retransmits]), tone: (i) => (live(i)[HOST.retransmits] > 0.01 ? "warn" : "") },
  { name: "sends", width: "6.5rem", number: true, value: of(HOST.sent), text: (i) => rate(live(i)[HOST.sent]) },
  { name: "link", width: "5rem", number: true, value: of(HOST.used), text: (i) => share(live(i)[HOST.used]), tone: (i) => (live(i)[HOST.used] >= 0.9 ? "warn" : "") },
  { name: "guards", width: "5rem", number: true, value: of(HOST.trips), text: (i) => count(live(i)[HOST.trips]), tone: alarming(HOST.trips), hint: "reverts by guards since its agent began" },
  { name: "not as set", width: "6rem", number: true, value: of(HOST.differ), text: (i) => count(live(i)[HOST.differ]), tone: alarming(HOST.differ), hint: "settings that some connections do not have" },
  { name: "heard", width: "5rem", number: true, value: of(HOST.heard), text: (i) => seconds(live(i)[HOST.heard]), hint: "how long before the decision its last report came" },
];
const link = (i) => state.links.live[i], ends = (i) => state.links.fixed[i];
const LINKS = [
  { name: "link", width: "minmax(11rem, 3fr)", value: (i) => ends(i)[0], text: (i) => ends(i)[0] },
  { name: "from", width: "minmax(6rem, 1fr)", value: (i) => ends(i)[1], text: (i) => ends(i)[1] || "–" },
  { name: "to", width: "minmax(6rem, 1fr)", value: (i) => ends(i)[2], text: (i) => ends(i)[2] || "–" },
  { name: "used", width: "4.5rem", number: true, value: (i) => link(i)[LINK.used], text: (i) => share(link(i)[LINK.used]), tone: (i) => (link(i)[LINK.used] >= 0.9 ? "warn" : "") },
  { name: "of", width: "6rem", number: true, value: (i) => ends(i)[4], text: (i) => rate(ends(i)[4]), hint: "capacity" },
  { name: "drops", width: "5rem", number: true, value: (i) => link(i)[LINK.drops], text: (i) => share(link(i)[LINK.drops]), tone: (i) => (link(i)[LINK.drops] > 0 ? "warn" : "") },
  { name: "marks", width: "5rem", number: true, value: (i) => link(i)[LINK.marks], text: (i) => share(link(i)[LINK.marks]) },
  { name: "queue", width: "5.5rem", number: true, value: (i) => link(i)[LINK.queue], text: (i) => bytes(link(i)[LINK.queue]) },
  { name: "state", width: "4.5rem", value: (i) => (link(i)[LINK.up] === false ? 0 : 1), text: (i) => (known(link(i)[LINK.up]) ? (link(i)[LINK.up] ? "up" : "down") : "–"), tone: (i) => (link(i)[LINK.up] === false ? "bad" : "") },
];

let hosts, links, host = null, waits = false, slowly = 0, later = 0;

function made() {
  makePanels();
  makeMap((rack) => {
    byId("hosts-filter").value = rack;
    filter();
    byId("hosts-part").scrollIntoView({ block: "start" });
    hosts.grid.focus();
  });
  makeCharts();
  makeTimeline();
  makeActions();
  hosts = new Grid(byId("hosts"), { label: "Hosts", columns: HOSTS, chosen: choose });
  links = new Grid(byId("links"), { label: "Links", columns: LINKS, sort: { column: 3, down: true } });
  byId("hosts-filter").addEventListener("input", filter);
  byId("links-filter").addEventListener("input", filter);
}

/** Lists what contains what was typed. */
function filter() {
  const text = byId("hosts-filter").value.toLowerCase(), part = byId("links-filter").value.toLowerCase();
  const has = (words, typed) => !typed || words.some((word) => word.toLowerCase().includes(typed));
  const list = (all, typed, of) => all.map((_, i) => i).filter((i) => has(of(all[i]), typed));
  const some = list(state.hosts.fixed, text, ([name, rack]) => [name, rack]);
  hosts.show(some);
  setText(byId("hosts-count"), `${count(some.length)} of ${count(state.hosts.total)}`);
  const those = list(state.links.fixed, part, ([name, from, to]) => [name, from, to]);
  links.show(those);
  setText(byId("links-count"), `${count(those.length)} of ${count(state.links.total)}`);
}

/** Shows more of a host. */
function choose(i) {
  host = i === undefined ? null : fixed(i)?.[0];
  drawHost();
}

function drawHost() {
  const i = host === null ? -1 : state.hosts.fixed.findIndex(([name]) => name === host), box = byId("host");
  box.hidden = i < 0;
  if (i < 0) return;
  const names = new Set(rules(i)), row = live(i);
  const facts = `${fixed(i)[3] ? `at ${fixed(i)[3]}, ` : ""}${count(row[HOST.flows])} flows, sends ${rate(row[HOST.sent])}, ${count(row[HOST.notes])} notes of its agent`;
  const list = element("ul", "plain");
  for (const rule of state.overview?.rules ?? []) {
    const is = names.has(rule.name);
    const words = is ? `✓ ${rule.name} in force${rule.set ? `: ${rule.set}` : ""}${rule.guard ? `; reverted if ${rule.guard}` : ""}` : `– ${rule.name} not in force`;
    list.append(element("li", is ? "" : "quiet", words));
  }
  box.replaceChildren(element("h3", "", `${host} (${row[HOST.treated] ? treatedWord() : "control"})`), element("p", "quiet", facts), list);
}

let listed = "";

function draw() {
  waits = false;
  drawHead();
  if (!state.overview || document.hidden) return;
  drawFigures();
  drawMap(false);
  const time = performance.now();
  if (time - slowly < SLOW) {
    later ||= setTimeout(() => { later = 0; changed(); }, SLOW - (time - slowly));
    return;
  }
  slowly = time;
  drawVerdict();
  drawRules();
  drawGuards();
  drawCharts();
  drawTimeline(false);
  drawEvents();
  const version = `${state.hostsVersion} ${state.linksVersion}`;
  if (version !== listed) {
    listed = version;
    filter();
  } else {
    hosts.arrange();
    links.arrange();
  }
  if (host !== null) drawHost();
  if (byId("acting").open) show();
}

function changed() {
  if (waits) return;
  waits = true;
  requestAnimationFrame(draw);
}

made();
follow(changed);
// ages grow, and a server that is gone says nothing
setInterval(changed, 1000);
document.addEventListener("visibilitychange", changed);
