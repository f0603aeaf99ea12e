// Head, figures, comparison, constraints, guards, rules, events: few elements, whose texts change.
import { byId, change, clock, count, element, epoch, seconds, setText } from "./format.js";
import { HOST, isHeard, now, state, treatedWord } from "./state.js";

const FIGURES = [
  ["hosts", (o) => o.hosts], ["treated", (o) => o.treated], ["control", (o) => o.hosts - o.treated], ["on the bus", (o) => o.agents],
  ["rules on", (o) => o.rules.filter((rule) => rule.on > 0 && !rule.withheld).length], ["withheld", () => state.open.filter((span) => span.state === "withheld").length, "warn"],
  ["guard trips", (o) => o.guard_trips, "bad"], ["not as set", (o) => o.differing, "bad"], ["outliers", (o) => o.outliers, "warn"],
  ["refused", (o) => o.refused.reduce((sum, [, n]) => sum + n, 0), "warn"],
];
const HINTS = {
  "on the bus": "agents, and other processes, that are connected", "guard trips": "rules that agents have reverted since the Oracle began",
  "not as set": "hosts on which some connections do not have what was set", outliers: "hosts that report what no other does", refused: "messages and processes that were turned away",
};
const figures = [];
let said = "";

export function makePanels() {
  for (const [name, value, tone] of FIGURES) {
    const box = element("div"), number = element("dd", "", "–");
    box.append(element("dt", "", name), number);
    if (HINTS[name]) box.title = HINTS[name];
    byId("figures").append(box);
    figures.push({ name, label: box.firstChild, number, value, tone });
  }
}

/** Who decides, and how old that is. */
export function drawHead() {
  const o = state.overview, line = byId("state");
  setText(byId("policy"), o?.policy || "no policy yet");
  document.title = o?.policy ? `${o.policy} · OpenTCP` : "OpenTCP";
  const trouble = !isHeard() ? "The dashboard’s server does not answer: what is shown is old. It is looked for."
    : state.trouble ? `The Oracle does not answer${state.answered ? ` since ${clock(state.answered)}` : ""}: what is shown is old. ${state.trouble}` : "";
  const alert = byId("trouble");
  alert.hidden = !trouble;
  setText(alert, trouble);
  document.body.classList.toggle("old", Boolean(trouble));
  byId("note").hidden = !state.note;
  setText(byId("note"), state.note ?? "");
  byId("actions").hidden = !state.acts;
  byId("readonly").hidden = state.acts || !state.connected;
  if (!o) return;
  const [word, tone] = !o.leads ? ["another Oracle decides", "warn"] : o.paused ? ["paused by an operator", "bad"]
    : state.decided === null ? ["nothing decided yet", "warn"] : o.mode === "enforce" ? ["enforcing", "good"] : ["observing", "warn"];
  const age = state.decided === null ? null : Math.max(0, now() - state.decided);
  const isLate = age !== null && age > 2 * o.period_s + 1;
  const parts = [
    [word, `badge ${tone}`], [`epoch ${epoch(o.epoch)}`, "fact"], [`T = ${o.period || seconds(o.period_s)}`, "fact"],
    [age === null ? "" : `decided ${age < 1 ? "just now" : `${seconds(Math.floor(age))} ago`}`, isLate ? "fact late" : "fact"],
    [o.hash ? `policy ${o.hash.slice(0, 8)}` : "", "fact"],
  ];
  while (line.children.length < parts.length) line.append(element("span"));
  parts.forEach(([text, name], i) => {
    setText(line.children[i], text);
    if (line.children[i].className !== name) line.children[i].className = name;
  });
  const news = `${word}; comparison: ${JUDGED[o.verdict.judgement] ?? o.verdict.judgement}`;
  if (said !== news) {
    // a screen reader hears of it once
    if (said) setText(byId("live"), news);
    said = news;
  }
}

export function drawFigures() {
  const o = state.overview;
  if (!o) return;
  for (const { name, label, number, value, tone } of figures) {
    if (name === "treated") setText(label, treatedWord());
    const n = value(o), shade = tone && n > 0 ? tone : "";
    setText(number, count(n));
    if (number.className !== shade) number.className = shade;
  }
}

const JUDGED = { helping: "▲ helping", hurting: "▼ hurting", unclear: "● unclear", none: "no verdict" };

/** Rows of a table body, made and removed as needed; `fill(row, entry)` writes into them. */
function rows(body, entries, make, fill) {
  while (body.children.length > entries.length) body.lastChild.remove();
  while (body.children.length < entries.length) body.append(make());
  entries.forEach((entry, i) => fill(body.children[i], entry));
}

function tableRow(labels, numbers = []) {
  const row = element("tr");
  labels.forEach((label, i) => {
    const cell = element(i ? "td" : "th", numbers.includes(i) ? "n" : "");
    if (!i) cell.scope = "row";
    else cell.dataset.label = label;
    row.append(cell);
  });
  return row;
}

export function drawVerdict() {
  const o = state.overview;
  if (!o) return;
  const { judgement, reason, roll_back: over, quantities } = o.verdict;
  const lead = byId("verdict");
  setText(lead, `${JUDGED[judgement] ?? judgement}${over ? " (the rollout is over)" : ""}${reason ? `: ${reason}` : ""}`);
  lead.className = `lead ${judgement}`;
  const bounds = quantities.flatMap((q) => [...(q.interval ?? []), q.change ?? 0]).map(Math.abs);
  const most = Math.max(0.02, ...bounds.map((bound) => Math.min(bound, 5)));
  const make = () => {
    const row = tableRow(["quantity", "change", "95 % interval", "pairs"], [1, 3]);
    const bar = element("div", "bar"), range = element("i", "range"), mark = element("i", "mark"), text = element("span", "words");
    bar.setAttribute("aria-hidden", "true");
    bar.append(element("i", "zero"), range, mark);
    row.children[2].append(bar, text);
    Object.assign(row, { range, mark, words: text });
    return row;
  };
  rows(byId("quantities").tBodies[0], quantities, make, (row, q) => {
    row.className = q.judgement;
    setText(row.children[0], q.name);
    setText(row.children[1], change(q.change));
    setText(row.children[3], count(q.pairs));
    setText(row.words, q.interval ? `${change(q.interval[0])} to ${change(q.interval[1])}` : "no bound yet");
    const at = (value) => 50 + 50 * Math.max(-1, Math.min(1, value / most));
    row.range.hidden = !q.interval;
    row.mark.hidden = q.change === null;
    if (q.interval) {
      row.range.style.left = `${at(q.interval[0])}%`;
      row.range.style.width = `${Math.max(1, at(q.interval[1]) - at(q.interval[0]))}%`;
    }
    if (q.change !== null) row.mark.style.left = `${at(q.change)}%`;
  });
  const holds = [[true, "✓ holds", "good"], [false, "✗ does not hold", "bad"], [null, "? not known", "warn"]];
  const constraints = o.constraints.length ? o.constraints : [["The policy has none.", undefined]];
  rows(byId("constraints"), constraints, () => element("li"), (item, [name, value]) => {
    const found = holds.find(([key]) => key === value);
    setText(item, found ? `${found[1]}: ${name}` : name);
    item.className = found?.[2] ?? "quiet";
  });
}

const lines = element("ul", "plain");

export function drawGuards() {
  const o = state.overview;
  if (!o) return;
  if (!lines.isConnected) byId("guards").append(lines);
  const tripped = state.hosts.live.map((live, i) => [live[HOST.trips], i]).filter(([trips]) => trips > 0);
  tripped.sort((a, b) => b[0] - a[0]);
  const guarded = o.rules.filter((rule) => rule.guard).length;
  const words = [[`${guarded} of ${o.rules.length} rules have a guard; ${count(o.guard_trips)} reverts since the Oracle began`, ""]];
  for (const [trips, i] of tripped.slice(0, 4)) {
    words.push([`✗ ${state.hosts.fixed[i][0]} has reverted rules ${count(trips)} time${trips === 1 ? "" : "s"}`, "bad"]);
  }
  if (tripped.length > 4) words.push([`and ${tripped.length - 4} more hosts; sort hosts by guards`, "quiet"]);
  if (!tripped.length) words.push(["✓ no agent has reverted a rule", "good"]);
  if (o.expired + o.rejected > 0) words.push([`${count(o.expired)} CUEs expired on agents, ${count(o.rejected)} were rejected`, "quiet"]);
  rows(lines, words, () => element("li"), (item, [text, tone]) => {
    setText(item, text);
    item.className = tone;
  });
}

export function drawRules() {
  const o = state.overview;
  if (!o) return;
  const now = new Map(state.open.map((span) => [span.rule, span]));
  const make = () => tableRow(["rule", "now", "hosts", "sets", "why", "guard"], [2]);
  rows(byId("rules").tBodies[0], o.rules, make, (row, rule) => {
    const became = rule.withheld ? "withheld" : now.get(rule.name)?.state ?? (rule.on > 0 ? "on" : "off");
    const since = now.get(rule.name)?.from_unix_s;
    setText(row.children[0], rule.name);
    setText(row.children[1], became + (since ? ` since ${clock(since)}` : ""));
    row.children[1].className = `chip is-${became}`;
    setText(row.children[2], `${count(rule.on)} of ${count(rule.matched)}`);
    setText(row.children[3], rule.set || "–");
    setText(row.children[4], rule.withheld ?? (rule.why || "–"));
    setText(row.children[5], rule.guard || "none");
  });
}

let events = -1;

export function drawEvents() {
  if (events === state.eventsVersion) return;
  events = state.eventsVersion;
  const list = state.events.length ? state.events.slice().reverse() : [{ unix_s: null, kind: "", words: "Nothing has happened yet." }];
  const make = () => {
    const item = element("li");
    item.append(element("time"), element("span", "kind"), element("span"));
    return item;
  };
  rows(byId("events"), list, make, (item, event) => {
    setText(item.children[0], event.unix_s === null ? "" : clock(event.unix_s));
    setText(item.children[1], event.kind);
    setText(item.children[2], event.words);
  });
}
