// The network as a picture whose queues fill: a cable has a line and, in front of a switch's port, a tank for each direction.
import { count, element, setText, share } from "../js/format.js";

const SVG = "http://www.w3.org/2000/svg";
const STEPS = [0.01, 0.25, 0.5, 0.75, 0.95];
/** Of a picture with few cables, and of one with more than `FEW`. */
const SPACIOUS = { long: 66, wide: 9, from: 24, apart: 7.5, lines: 2.2, share: 0.38 };
const DENSE = { long: 34, wide: 5, from: 26, apart: 4.2, lines: 1.3, share: 0.2 };
const FEW = 16;
/** Numbers that a frame has for a link. */
const FIELDS = 5;
/** A dropped packet is shown for so many frames. */
const FLASH = 8;

export class Network {
  /** Draws into `place`; words about what is pointed at go to `said`. */
  constructor(place, said) {
    Object.assign(this, { place, said, stage: null, ways: [], pointed: null });
    const point = (event) => {
      const way = event.target.closest?.("[data-way]")?.dataset.way;
      this.pointed = way === undefined ? null : this.ways[way];
      this.say();
    };
    place.addEventListener("pointerover", point);
    place.addEventListener("pointerdown", point);
  }

  show(stage) {
    this.stage = stage;
    this.pointed = null;
    this.ways = [];
    this.of = new Map();
    const { map } = stage;
    if (!map) {
      this.place.replaceChildren(element("p", "quiet", `${stage.size}: too many switches for a picture.`));
      return;
    }
    this.size = map.cables.length > FEW ? DENSE : SPACIOUS;
    const svg = node("svg", { viewBox: `0 0 ${map.width} ${map.height}`, role: "img", "aria-label": `${stage.name}: ${stage.size}` });
    const lines = svg.appendChild(node("g")), tanks = svg.appendChild(node("g")), spots = svg.appendChild(node("g"));
    for (const cable of map.cables) {
      const [a, b] = cable.ends.map((end) => map.spots[end]);
      this.way(cable.there, a, b, map, lines, tanks);
      this.way(cable.back, b, a, map, lines, tanks);
    }
    for (const spot of map.spots) spots.append(...drawSpot(spot));
    this.place.replaceChildren(svg);
    this.place.style.setProperty("--widest", `${map.width * 1.35}px`);
    this.say();
  }

  /** The links of one direction, with what shows them. */
  way(links, from, to, map, lines, tanks) {
    if (links.length === 0) return;
    const { wide } = this.size, path = route(from, to, map, this.size);
    const number = this.ways.length;
    const line = lines.appendChild(node("path", { class: "way", d: path.line, "data-way": number }));
    const specs = links.map((link) => this.stage.links[link]);
    const limited = specs.filter((spec) => spec.limit !== null);
    const way = { links, line, step: null, full: 0, flash: 0, tank: null, limit: limited[0]?.limit };
    if (limited.length > 0) {
      const { x, y, angle, long } = path.tank;
      const group = node("g", { class: "tank", transform: `translate(${x} ${y}) rotate(${angle})`, "data-way": number });
      group.append(node("rect", { class: "case", x: 0, y: -wide / 2, width: long, height: wide, rx: 2 }));
      way.fill = group.appendChild(node("rect", { class: "fill", x: 0, y: -wide / 2, width: long, height: wide, rx: 2 }));
      way.fill.style.transform = "scaleX(0)";
      way.fill.style.transformOrigin = `${long}px 0`;
      const mark = limited[0].mark;
      way.mark = mark === null ? 0.9 : mark / limited[0].limit;
      if (mark !== null) {
        const at = long * (1 - way.mark);
        group.append(node("line", { class: "mark", x1: at, x2: at, y1: -wide / 2 - 2, y2: wide / 2 + 2 }));
      }
      way.tank = tanks.appendChild(group);
    }
    this.ways.push(way);
    for (const link of links) this.of.set(link, way);
  }

  /** The moment: the last of `frames`; drops of all of them. */
  draw(frames) {
    if (!this.stage?.map || frames.length === 0) return;
    for (const way of this.ways) Object.assign(way, { packets: 0, busy: 0, drops: 0, fullest: null, down: false });
    frames.forEach((frame, i) => {
      for (let at = 0; at < frame.links.length; at += FIELDS) {
        const [link, packets, , busy, drops] = frame.links.slice(at, at + FIELDS);
        const way = this.of.get(link);
        if (!way) continue;
        way.drops += drops;
        if (i < frames.length - 1) continue;
        if (packets >= way.packets) Object.assign(way, { packets, fullest: link });
        way.busy = Math.max(way.busy, busy / 1000);
      }
    });
    for (const link of frames.at(-1).down) if (this.of.has(link)) this.of.get(link).down = true;
    for (const way of this.ways) {
      const step = way.down ? "down" : `by${STEPS.findLastIndex((bound) => way.busy >= bound) + 1}`;
      if (step !== way.step) way.line.setAttribute("class", `way ${(way.step = step)}`);
      if (!way.tank) continue;
      const full = Math.min(1, way.packets / way.limit);
      if (full !== way.full) way.fill.style.transform = `scaleX(${full})`;
      way.full = full;
      way.flash = way.drops > 0 ? FLASH : Math.max(0, way.flash - 1);
      const look = `tank${full >= way.mark ? " high" : ""}${way.flash ? " drops" : ""}`;
      if (look !== way.look) way.tank.setAttribute("class", (way.look = look));
    }
    this.say();
  }

  /** About what is pointed at, or what there is to point at. */
  say() {
    const way = this.pointed;
    if (!way) {
      setText(this.said, this.stage?.map ? "Point at a cable or a queue." : "");
      return;
    }
    const link = way.fullest ?? way.links[0], spec = this.stage.links[link];
    const busy = way.down ? "down" : `${share(way.busy ?? 0)} busy`;
    const queue = spec.limit === null ? `${count(way.packets ?? 0)} packets wait` : `${count(way.packets ?? 0)} of ${count(spec.limit)} packets`;
    const among = way.links.length > 1 ? ` (the fullest of ${way.links.length})` : "";
    setText(this.said, `${spec.name.replace("->", " → ")}${among}: ${queue}, ${busy}`);
  }
}

/** A way's line, beside that of the other direction, and the place of its tank. */
function route(from, to, map, size) {
  const [dx, dy] = [to.x - from.x, to.y - from.y], far = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / far, dy / far], side = [-uy, ux];
  const at = (along, out) => [from.x + ux * along + side[0] * out, from.y + uy * along + side[1] * out];
  // switches of one column are joined by an arc, on its outer side
  const bends = Math.abs(dx) < 1 && from.hosts === 0 && to.hosts === 0 && map.cables.length > 1;
  if (bends) {
    const out = from.x - Math.min(110, from.x * 0.75);
    const [x1, y1] = at(0, size.lines), [x2, y2] = at(far, size.lines);
    const x = (from.x + 3 * out) / 4 + side[0] * size.apart, y = (from.y + to.y) / 2, long = Math.min(size.long, far * 0.3);
    return {
      line: `M${x1} ${y1}C${out} ${y1} ${out} ${y2} ${x2} ${y2}`,
      tank: { x, y: y - (Math.sign(dy) * long) / 2, angle: dy > 0 ? 90 : -90, long },
    };
  }
  const [x1, y1] = at(0, size.lines), [x2, y2] = at(far, size.lines);
  const long = Math.max(12, Math.min(size.long, far * size.share));
  // towards hosts, where the cables of a switch are apart
  const [x, y] = at(to.hosts > 0 ? far * 0.42 : Math.min(size.from, far * 0.2), size.apart);
  return { line: `M${x1} ${y1}L${x2} ${y2}`, tank: { x, y, angle: (Math.atan2(dy, dx) * 180) / Math.PI, long } };
}

function drawSpot(spot) {
  const width = Math.max(30, spot.name.length * 7 + 12);
  if (spot.hosts === 0) {
    return [
      node("rect", { class: "switch", x: spot.x - width / 2, y: spot.y - 10, width, height: 20, rx: 4 }),
      text(spot.name, { class: "mid", x: spot.x, y: spot.y + 4 }),
    ];
  }
  const side = spot.left ? -1 : 1;
  return [
    node("circle", { class: "host", cx: spot.x, cy: spot.y, r: spot.hosts > 1 ? 5.5 : 4 }),
    text(spot.name, { class: spot.left ? "end" : "", x: spot.x + side * 11, y: spot.y + 4 }),
  ];
}

function node(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function text(words, attributes) {
  const made = node("text", attributes);
  made.textContent = words;
  return made;
}
