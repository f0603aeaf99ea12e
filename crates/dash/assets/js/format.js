// Numbers and times as people read them, and elements with text in them.

export const known = (value) => value !== null && value !== undefined;

/** A share as a percentage: three digits where it is small. */
export function share(value) {
  if (!known(value)) return "–";
  const percent = value * 100;
  if (percent === 0) return "0 %";
  if (percent < 0.01) return "< 0.01 %";
  return `${percent < 1 ? percent.toFixed(2) : percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

/** A change as a percentage with its sign. */
export const change = (value) => (known(value) ? `${value < 0 ? "−" : "+"}${Math.abs(value * 100).toFixed(1)} %` : "–");

/** Bits a second. */
export function rate(bps) {
  if (!known(bps)) return "–";
  for (const [unit, name] of [[1e9, "Gb/s"], [1e6, "Mb/s"], [1e3, "kb/s"]]) {
    if (bps >= unit) return `${digits(bps / unit)} ${name}`;
  }
  return `${digits(bps)} b/s`;
}

/** Bytes. */
export function bytes(value) {
  if (!known(value)) return "–";
  for (const [unit, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (value >= unit) return `${digits(value / unit)} ${name}`;
  }
  return `${digits(value)} B`;
}

/** Three digits. */
const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : String(+value.toFixed(2)));

export const count = (value) => (known(value) ? Math.round(value).toLocaleString("en") : "–");

/** A length of time. */
export function seconds(s) {
  if (!known(s)) return "–";
  if (s < 0.95) return `${Math.round(s * 1000)} ms`;
  if (s < 10 && s % 1 > 0.05) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

/** The time of day, with the date where it is another one. */
export function clock(unix) {
  const date = new Date(unix * 1000), two = (n) => String(n).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return date.toDateString() === new Date().toDateString() ? time : `${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

/** An epoch; where there are several Oracles, its term as well. */
export const epoch = (value) => (value >= 2 ** 40 ? `${Math.floor(value / 2 ** 40)}.${value % 2 ** 32}` : String(value));

export const byId = (id) => document.getElementById(id);

/** An element with a class and text; what is shown never becomes markup. */
export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Changes a text only where it is another: the browser lays out what was touched. */
export function setText(node, text) {
  if (node.lastText === text) return;
  node.lastText = text;
  node.textContent = text;
}

/** A colour of the page's. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
