// The network: switches by tier, racks below them with a cell for each host, and a strip with a cell for each link of a switch.
// Drawn on a canvas, of which an update touches only the cells whose colour is another; racks and switches are buttons above it.
import { byId, colour, count, element, setText, share } from "./format.js";
import { HOST, LINK, state, treatedWord } from "./state.js";

/** Upper bounds of the steps of colour; above the last one a link is hot. */
export const STEPS = [0.1, 0.3, 0.5, 0.7, 0.9];
const GAP = 10, PAD = 6, TITLE = 17, STRIP = 9, BOX_LEAST = 64, NAMED = 176, NAMED_ROW = 20, TIER = 46;
/** Up to so many hosts are named, and up to so many links are drawn as lines. */
const NAMED_MOST = 48, LINES_MOST = 300;
const HEIGHT_MOST = 460;

/** How hosts are coloured: the step of a host, and what steps mean. A step is a place in `tones`. */
const BY = {
  used: { tones: ["--u0", "--u1", "--u2", "--u3", "--u4", "--hot"], step: (live) => stepOf(live[HOST.used]), words: (live) => share(live[HOST.used]) },
  retransmits: {
    tones: ["--u0", "--u1", "--u2", "--u3", "--u4", "--hot"], bounds: [0.0001, 0.0005, 0.001, 0.005, 0.01],
    step: (live) => stepOf(live[HOST.retransmits], BY.retransmits.bounds), words: (live) => share(live[HOST.retransmits]),
  },
  arm: { tones: ["--c5", "--c0"], names: ["control", "treated"], step: (live) => live[HOST.treated], words: (live) => (live[HOST.treated] ? treatedWord() : "control") },
  rules: {
    tones: ["--u0", "--u2", "--u3", "--u4"], names: ["no rule", "1 rule", "2 rules", "3 and more"],
    step: (live) => Math.min(3, ones(live[HOST.rules])), words: (live) => `${ones(live[HOST.rules])} rules`,
  },
};
const ones = ([low, high]) => bits(low) + bits(high);
function bits(word) {
  let n = 0;
  for (let rest = word >>> 0; rest; rest &= rest - 1) n += 1;
  return n;
}
function stepOf(value, bounds = STEPS) {
  if (value === null || value === undefined) return -1;
  const step = bounds.findIndex((bound) => value < bound);
  return step < 0 ? bounds.length : step;
}

let canvas, context, place, chosen, by = BY.used, palette = {}, layout = null, versions = "", onRack = () => {};

export function makeMap(onChosen) {
  canvas = byId("map-canvas");
  context = canvas.getContext("2d");
  place = byId("map");
  onRack = onChosen;
  byId("map-by").addEventListener("change", (event) => {
    by = BY[event.target.value];
    legend();
    drawMap(true);
  });
  new ResizeObserver(() => drawMap(true)).observe(place);
  addEventListener("theme", () => { palette = {}; legend(); drawMap(true); });
  place.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    setText(byId("map-said"), at(event.clientX - box.left, event.clientY - box.top) ?? chosen ?? hint());
  });
  byId("map-racks").addEventListener("keydown", keys);
  legend();
}

const hint = () => `Point at a host or a link, or choose a rack.${layout?.isNamed ? " Names in bold are treated hosts." : ""}`;

/** A colour of the page's, looked up once for each theme. */
const tone = (name) => (palette[name] ??= colour(name));

function legend() {
  const list = byId("map-legend"), items = [];
  const item = (name, words) => {
    const node = element("li"), key = element("span", "swatch");
    key.style.setProperty("--tone", `var(${name})`);
    node.append(key, words);
    items.push(node);
  };
  const bounds = by.bounds ?? STEPS;
  by.tones.forEach((name, i) => {
    if (by.names) item(name, by.names[i]);
    else item(name, i === 0 ? `under ${share(bounds[0])}` : i === bounds.length ? `${share(bounds[i - 1])} and more` : `to ${share(bounds[i])}`);
  });
  item("--un", "not known");
  if (by !== BY.used) items.push(element("li", "quiet", "links by utilization"));
  list.replaceChildren(...items);
}

/** Racks with their hosts, switches by tier, and pairs of switches with the links between them. */
function topology() {
  const racks = new Map();
  state.hosts.fixed.forEach(([, rack, , leaf], i) => {
    const name = rack || (leaf && !leaf.startsWith("switch of ") ? leaf : "no rack");
    const one = racks.get(name) ?? { name, hosts: [], leaves: new Map(), pairs: [] };
    one.hosts.push(i);
    if (leaf) one.leaves.set(leaf, (one.leaves.get(leaf) ?? 0) + 1);
    racks.set(name, one);
  });
  const pairs = new Map();
  state.links.fixed.forEach(([, from, to, atHost], i) => {
    if (atHost || !from || !to) return;
    const key = [from, to].sort().join("\n");
    const pair = pairs.get(key) ?? { ends: [from, to].sort(), links: [] };
    pair.links.push(i);
    pairs.set(key, pair);
  });
  const ends = new Map();
  for (const pair of pairs.values()) {
    for (const end of pair.ends) ends.set(end, [...(ends.get(end) ?? []), pair]);
  }
  // a rack is drawn as its switch; switches without hosts are above, by their distance from racks
  const depth = new Map();
  for (const rack of racks.values()) {
    const leaf = [...rack.leaves].sort((a, b) => b[1] - a[1])[0]?.[0];
    rack.leaf = ends.has(leaf) ? leaf : ends.has(rack.name) ? rack.name : null;
    if (!rack.leaf || depth.has(rack.leaf)) continue;
    depth.set(rack.leaf, 0);
    rack.pairs = ends.get(rack.leaf);
  }
  let edge = [...depth.keys()];
  while (edge.length) {
    const next = [];
    for (const name of edge) {
      for (const pair of ends.get(name)) {
        for (const other of pair.ends) {
          if (depth.has(other)) continue;
          depth.set(other, depth.get(name) + 1);
          next.push(other);
        }
      }
    }
    edge = next;
  }
  const tiers = [];
  for (const name of [...ends.keys()].sort(byNumber)) {
    const tier = depth.get(name) ?? 1;
    if (tier > 0) (tiers[tier - 1] ??= []).push({ name, hosts: [], pairs: ends.get(name) });
  }
  return { racks: [...racks.values()].sort((a, b) => byNumber(a.name, b.name)), tiers: tiers.filter(Boolean).reverse(), pairs: [...pairs.values()] };
}

const collator = new Intl.Collator("en", { numeric: true });
const byNumber = collator.compare;

/** Where everything is. */
function arrange() {
  const { racks, tiers, pairs } = topology(), width = place.clientWidth, total = state.hosts.fixed.length;
  const isNamed = total <= NAMED_MOST, most = Math.max(1, ...racks.map((rack) => rack.hosts.length));
  const strip = pairs.length ? STRIP + 3 : 0;
  const boxes = [];
  let y = 2, top = null;
  for (const tier of tiers) {
    const wide = Math.max(24, Math.min(NAMED, (width - GAP * (tier.length - 1)) / tier.length));
    const perRow = Math.max(1, Math.floor((width + GAP) / (wide + GAP)));
    for (let i = 0; i < tier.length; i += perRow) {
      const row = tier.slice(i, i + perRow), left = (width - row.length * (wide + GAP) + GAP) / 2;
      row.forEach((node, n) => boxes.push({ ...node, x: left + n * (wide + GAP), y, w: wide, h: TITLE + strip + 2, cells: [] }));
      y += TITLE + strip + 2 + GAP;
    }
    y += (pairs.length <= LINES_MOST ? TIER : GAP) - GAP;
  }
  top = y;
  const fit = (cell) => {
    const cols = isNamed ? 1 : Math.max(3, Math.ceil(Math.sqrt(most * 1.7)));
    const high = isNamed ? NAMED_ROW : cell;
    const w = isNamed ? NAMED : Math.max(BOX_LEAST, cols * cell + 2 * PAD);
    const perRow = Math.max(1, Math.min(racks.length, Math.floor((width + GAP) / (w + GAP))));
    const h = TITLE + strip + Math.ceil(most / Math.max(1, Math.floor((w - 2 * PAD) / (isNamed ? w - 2 * PAD : cell)))) * high + PAD;
    return { cell, w, h, perRow, rows: Math.ceil(racks.length / perRow), high };
  };
  let best = fit(16);
  for (let cell = 15; cell >= 4 && !isNamed && top + best.rows * (best.h + GAP) > HEIGHT_MOST; cell -= 1) best = fit(cell);
  racks.forEach((rack, i) => {
    const inRow = Math.min(best.perRow, racks.length - Math.floor(i / best.perRow) * best.perRow);
    const left = (width - (isNamed ? inRow : best.perRow) * (best.w + GAP) + GAP) / 2;
    const x = left + (i % best.perRow) * (best.w + GAP), at = top + Math.floor(i / best.perRow) * (best.h + GAP);
    const across = isNamed ? 1 : Math.floor((best.w - 2 * PAD) / best.cell);
    const cells = rack.hosts.map((host, n) => ({
      host, x: x + PAD + (n % across) * best.cell, y: at + TITLE + strip + Math.floor(n / across) * best.high,
      w: isNamed ? best.w - 2 * PAD : best.cell - 1, h: best.high - (isNamed ? 3 : 1), step: null,
    }));
    boxes.push({ ...rack, isRack: true, x, y: at, w: best.w, h: best.h, cells });
  });
  for (const box of boxes) {
    const room = box.w - 2 * PAD, each = Math.max(2, Math.min(12, room / Math.max(1, box.pairs.length)));
    box.strip = box.pairs.slice(0, Math.floor(room / each)).map((pair, n) => ({ pair, x: box.x + PAD + n * each, y: box.y + TITLE, w: each - 1, h: STRIP, step: null }));
  }
  const named = new Map(boxes.map((box) => [box.isRack ? box.leaf : box.name, box]));
  const lines = best.rows === 1 && pairs.length <= LINES_MOST
    ? pairs.map((pair) => ({ pair, ends: pair.ends.map((end) => named.get(end)), step: null })).filter((line) => line.ends[0] && line.ends[1])
    : [];
  return { boxes, lines, isNamed, width, height: top + best.rows * (best.h + GAP) };
}

/** Draws the network: all of it where its hosts, its size or the colours are others, else what has changed. */
export function drawMap(force) {
  const version = `${state.hostsVersion} ${state.linksVersion} ${place.clientWidth}`;
  byId("map-empty").hidden = state.hosts.fixed.length > 0;
  if (force || version !== versions) {
    versions = version;
    layout = arrange();
    const scale = globalThis.devicePixelRatio || 1;
    Object.assign(canvas, { width: Math.round(layout.width * scale), height: Math.round(layout.height * scale) });
    Object.assign(canvas.style, { width: `${layout.width}px`, height: `${layout.height}px` });
    context.setTransform(scale, 0, 0, scale, 0, 0);
    buttons();
    if (!chosen) setText(byId("map-said"), hint());
    all();
  } else if (layout.lines.some((line) => stepOf(usedOf(line.pair)) !== line.step)) all();
  else cells(false);
}

function usedOf(pair) {
  let most = null;
  for (const link of pair.links) {
    const used = state.links.live[link]?.[LINK.used];
    if (used !== null && used !== undefined && (most === null || used > most)) most = used;
  }
  return most;
}

function all() {
  context.clearRect(0, 0, layout.width, layout.height);
  // the busiest are drawn last, above the others
  const lines = layout.lines.map((line) => Object.assign(line, { step: stepOf(usedOf(line.pair)) }));
  for (const { ends, step } of lines.slice().sort((a, b) => a.step - b.step)) {
    const [upper, lower] = ends[0].y <= ends[1].y ? ends : [ends[1], ends[0]];
    context.strokeStyle = tone(step < 0 ? "--un" : BY.used.tones[step]);
    context.lineWidth = step < 0 ? 1 : 1 + step * 0.5;
    context.setLineDash(step < 0 ? [3, 3] : []);
    context.beginPath();
    context.moveTo(upper.x + upper.w / 2, upper.y + (upper.y === lower.y ? upper.h / 2 : upper.h));
    context.lineTo(lower.x + lower.w / 2, upper.y === lower.y ? lower.y + lower.h / 2 : lower.y);
    context.stroke();
  }
  context.setLineDash([]);
  context.textBaseline = "middle";
  for (const box of layout.boxes) {
    context.fillStyle = tone("--tint");
    context.strokeStyle = tone("--rule");
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(Math.round(box.x) + 0.5, Math.round(box.y) + 0.5, Math.round(box.w) - 1, Math.round(box.h) - 1, 4);
    context.fill();
    context.stroke();
    context.fillStyle = tone("--text");
    context.font = "600 11px system-ui, sans-serif";
    context.fillText(fitted(box.name, box.w - 2 * PAD), box.x + PAD, box.y + TITLE / 2 + 1);
  }
  cells(true);
}

function fitted(text, room) {
  if (context.measureText(text).width <= room) return text;
  let end = text.length - 1;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
  return `${text.slice(0, end)}…`;
}

function cells(force) {
  for (const box of layout.boxes) {
    for (const cell of box.strip) {
      const step = stepOf(usedOf(cell.pair));
      if (force || step !== cell.step) fill(cell, step, BY.used);
    }
    for (const cell of box.cells) {
      const live = state.hosts.live[cell.host];
      if (!live) continue;
      const step = by.step(live), mark = live[HOST.trips] > 0 || live[HOST.differ] > 0, words = layout.isNamed ? by.words(live) : "";
      if (!force && step === cell.step && mark === cell.mark && words === cell.words) continue;
      Object.assign(cell, { mark, words });
      if (layout.isNamed) named(cell, step, live);
      else fill(cell, step, by);
      if (mark && cell.h > 4) {
        context.strokeStyle = tone("--bad");
        context.lineWidth = 1.5;
        context.strokeRect(cell.x + 0.75, cell.y + 0.75, (layout.isNamed ? cell.h : cell.w) - 1.5, cell.h - 1.5);
      }
    }
  }
}

function fill(cell, step, how) {
  cell.step = step;
  context.fillStyle = tone("--tint");
  context.fillRect(cell.x, cell.y, cell.w, cell.h);
  context.fillStyle = tone(step < 0 ? "--un" : how.tones[step]);
  context.fillRect(cell.x, cell.y, cell.w, cell.h);
}

/** A host with its name: a square, the name, the value. */
function named(cell, step, live) {
  context.fillStyle = tone("--tint");
  context.fillRect(cell.x, cell.y - 1, cell.w, cell.h + 2);
  context.fillStyle = tone(step < 0 ? "--un" : by.tones[step]);
  context.fillRect(cell.x, cell.y, cell.h, cell.h);
  cell.step = step;
  context.font = `${live[HOST.treated] ? "600 " : ""}11px system-ui, sans-serif`;
  context.fillStyle = tone("--text");
  const value = context.measureText(cell.words).width;
  context.fillText(cell.words, cell.x + cell.w - value, cell.y + cell.h / 2 + 1);
  context.fillText(fitted(state.hosts.fixed[cell.host][0], cell.w - cell.h - value - 12), cell.x + cell.h + 6, cell.y + cell.h / 2 + 1);
}

const holds = (cell, x, y) => x >= cell.x && x <= cell.x + cell.w && y >= cell.y && y <= cell.y + cell.h;

/** What is at a place, in words. */
function at(x, y) {
  const box = layout?.boxes.find((one) => holds(one, x, y));
  if (!box) return null;
  const cell = box.cells.find((one) => holds(one, x, y));
  if (cell) return hostWords(cell.host);
  const link = box.strip.find((one) => holds(one, x, y));
  if (link) return link.pair.links.map((i) => `${state.links.fixed[i][1]} → ${state.links.fixed[i][2]}: ${share(state.links.live[i][LINK.used])}`).join(", ");
  return boxWords(box);
}

function hostWords(i) {
  const live = state.hosts.live[i], more = live[HOST.trips] ? `, guards reverted ${live[HOST.trips]} times` : "";
  return `${state.hosts.fixed[i][0]}: ${live[HOST.treated] ? treatedWord() : "control"}, ${share(live[HOST.used])} used, ${share(live[HOST.retransmits])} retransmitted, ${ones(live[HOST.rules])} rules in force${more}`;
}

function boxWords(box) {
  const most = (values) => values.filter((value) => value !== null && value !== undefined).reduce((a, b) => Math.max(a, b), -1);
  const links = most(box.pairs.map(usedOf)), words = [];
  if (box.isRack) {
    const live = box.hosts.map((i) => state.hosts.live[i]).filter(Boolean), busiest = most(live.map((host) => host[HOST.used]));
    words.push(`${count(live.length)} hosts, ${count(live.filter((host) => host[HOST.treated]).length)} ${treatedWord()}`);
    words.push(`the busiest host’s link ${busiest < 0 ? "not known" : share(busiest)}`);
  }
  if (box.pairs.length) words.push(`the busiest of ${box.pairs.length} links to switches ${links < 0 ? "not known" : share(links)}`);
  return `${box.name}: ${words.join(", ")}`;
}

/** A button above each rack and switch: the canvas alone would be out of reach for keys and screen readers. */
function buttons() {
  const group = byId("map-racks"), boxes = layout.boxes;
  while (group.children.length > boxes.length) group.lastChild.remove();
  while (group.children.length < boxes.length) {
    const button = element("button", "rack");
    button.type = "button";
    button.addEventListener("focus", () => {
      chosen = boxWords(button.box);
      button.setAttribute("aria-label", chosen);
      setText(byId("map-said"), chosen);
    });
    button.addEventListener("blur", () => { chosen = null; });
    button.addEventListener("click", () => button.box.isRack && onRack(button.box.name === "no rack" ? "" : button.box.name));
    group.append(button);
  }
  boxes.forEach((box, i) => {
    const button = group.children[i];
    button.box = box;
    button.tabIndex = i === 0 ? 0 : -1;
    button.setAttribute("aria-label", box.isRack ? `${box.name}, ${box.hosts.length} hosts` : `switch ${box.name}`);
    Object.assign(button.style, { left: `${box.x}px`, top: `${box.y}px`, width: `${box.w}px`, height: `${box.h}px` });
  });
}

function keys(event) {
  const all = [...event.currentTarget.children], i = all.indexOf(event.target);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const to = step ? i + step : { Home: 0, End: all.length - 1 }[event.key];
  if (i < 0 || to === undefined || !all[to]) return;
  all[i].tabIndex = -1;
  all[to].tabIndex = 0;
  all[to].focus();
  event.preventDefault();
}
