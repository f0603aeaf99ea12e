// Series over simulated time: what frames bring, and charts of it.
import { element, setText } from "../js/format.js";

/** Points of a series; beyond, every other one is dropped. */
const POINTS = 4000;
const LINES = 10;
const HEIGHT = 190;
/** Colours that algorithms have in every report, in the order of the palette. */
const OWNERS = ["newreno", "vegas", "highspeed", "scalable", "westwood", "bic", "cubic", "yeah", "dctcp", "bbr"];

/** Values by key, over the same times. */
export class Series {
  constructor() {
    this.times = [];
    this.lines = new Map();
  }

  /** `values`: key and number; keys that are missing get `idle`. */
  add(time, values, idle) {
    this.times.push(time);
    for (const [key, value] of values) {
      let line = this.lines.get(key);
      if (!line) {
        line = { key, values: new Array(this.times.length - 1).fill(idle), most: 0, points: 0 };
        this.lines.set(key, line);
      }
      line.values[this.times.length - 1] = value;
      line.most = Math.max(line.most, value);
      line.points += 1;
    }
    for (const { values: own } of this.lines.values()) {
      while (own.length < this.times.length) own.push(idle);
    }
    if (this.times.length > POINTS) this.thin();
  }

  thin() {
    const half = (list) => list.filter((_, i) => i % 2 === 0);
    this.times = half(this.times);
    for (const line of this.lines.values()) line.values = half(line.values);
  }
}

/** A chart of the lines of a series that `choose` picks. */
export class Chart {
  constructor(figure, { title, unit, empty, name, owner, choose, level }) {
    Object.assign(this, { name, owner, choose, level, unit, empty, shown: "", plot: null, colours: new Map() });
    this.legend = element("ul", "legend");
    this.place = element("div", "plot");
    this.place.setAttribute("aria-hidden", "true");
    const caption = element("figcaption", "", title);
    caption.append(element("span", "quiet", ` ${unit}`));
    figure.replaceChildren(caption, this.legend, this.place);
    new ResizeObserver(() => this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT })).observe(this.place);
    addEventListener("theme", () => this.plot?.redraw(false, true));
  }

  /** A new run, until `end` in seconds. */
  begin(end) {
    this.plot?.destroy();
    Object.assign(this, { end, plot: null, shown: "", colours: new Map() });
    this.place.replaceChildren();
    this.legend.replaceChildren(element("li", "", this.empty));
  }

  draw(series) {
    if (series.times.length === 0) return;
    const lines = this.choose([...series.lines.values()]).slice(0, LINES);
    const shown = lines.map((line) => line.key).join();
    if (shown !== this.shown || !this.plot) this.make(lines, shown);
    this.plot.setData([series.times, ...lines.map((line) => line.values)], false);
    this.plot.setScale("x", { min: 0, max: this.end });
    lines.forEach((line, i) => setText(this.values[i], line.values.at(-1) ?? "–"));
  }

  make(lines, shown) {
    this.plot?.destroy();
    this.place.replaceChildren();
    this.shown = shown;
    const tones = lines.map((line) => this.tone(line.key));
    const axis = {
      stroke: () => colour("--dim"), font: "11px system-ui, sans-serif",
      grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false },
    };
    const top = (_, __, max) => [0, Math.max(this.level?.() ?? 0, max > 0 ? max * 1.05 : 1)];
    const drawn = lines.map((line, i) => ({
      label: this.name(line.key), stroke: () => colour(tones[i]), width: 1.4, points: { show: false }, spanGaps: false,
    }));
    this.plot = new globalThis.uPlot({
      width: this.place.clientWidth || 300, height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [8, 18, 0, 0],
      scales: { x: { time: false, auto: false }, y: { range: top } },
      axes: [{ ...axis, size: 26, space: 60, values: (_, ticks) => ticks.map((tick) => seconds(tick, this.end)) }, { ...axis, size: 46, space: 34 }],
      series: [{}, ...drawn],
    }, [[], ...lines.map(() => [])], this.place);
    this.values = [];
    this.legend.replaceChildren(...lines.map((line, i) => {
      const item = element("li"), key = element("span", "key"), value = element("span", "number");
      key.style.setProperty("--tone", `var(${tones[i]})`);
      item.append(key, `${this.name(line.key)} `, value);
      this.values.push(value);
      return item;
    }));
  }

  /** A key keeps its colour; an algorithm's first flow has the algorithm's. */
  tone(key) {
    let number = this.colours.get(key);
    if (number === undefined) {
      const taken = new Set(this.colours.values()), own = OWNERS.indexOf(this.owner?.(key));
      number = own >= 0 && !taken.has(own) ? own : [6, 0, 1, 3, 5, 2, 7, 4, 8, 9].find((i) => !taken.has(i)) ?? this.colours.size % 10;
      this.colours.set(key, number);
    }
    return `--s${number}`;
  }
}

/** A tick of an axis that ends at `end` seconds. */
function seconds(tick, end) {
  if (end >= 2) return `${tick} s`;
  return end >= 0.002 ? `${+(tick * 1e3).toFixed(3)} ms` : `${+(tick * 1e6).toFixed(1)} µs`;
}

let probe = null;
/** A custom property of the page as a colour. */
function colour(name) {
  probe ??= document.body.appendChild(Object.assign(element("span"), { hidden: true }));
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
