// The editor: a text area, the same text painted behind it, and line numbers. A mistake is shown at its place and in words below.
import { byId, element } from "./js/format.js";

const TOKEN = /(#.*)|(^\s*\[\[?[^\]]*\]\]?)|("(?:[^"\\]|\\.)*"|'[^']*')|([A-Za-z_][\w.-]*(?=\s*=))|(\b\d[\d_.]*\b|\btrue\b|\bfalse\b)/g;
const CLASSES = ["t-comment", "t-head", "t-text", "t-key", "t-number"];

export class Editor {
  constructor(onChange) {
    Object.assign(this, { area: byId("text"), paint: byId("paint"), gutter: byId("gutter"), list: byId("mistakes"), mistakes: [] });
    this.area.addEventListener("input", () => {
      this.show();
      onChange();
    });
    this.area.addEventListener("scroll", () => this.scroll());
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.area.scrollTo(0, 0);
    this.mark([]);
  }

  /** Shows these mistakes, and no others. */
  mark(mistakes) {
    this.mistakes = mistakes;
    this.area.setAttribute("aria-invalid", mistakes.length > 0);
    this.show();
    this.list.replaceChildren(...mistakes.slice(0, 8).map((mistake) => {
      const line = element("p"), place = element("button", "", `line ${mistake.line}`);
      place.type = "button";
      place.addEventListener("click", () => this.go(mistake));
      line.append(place, `: ${mistake.message}`);
      if (mistake.help) line.append(element("span", "help", ` – ${mistake.help}`));
      return line;
    }));
  }

  /** Puts the caret at a mistake. */
  go({ line, column }) {
    const lines = this.text.split("\n"), before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const start = before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
    this.area.focus();
    this.area.setSelectionRange(start, start);
    const high = this.area.scrollHeight / lines.length;
    if ((line - 2) * high < this.area.scrollTop || (line + 1) * high > this.area.scrollTop + this.area.clientHeight) {
      this.area.scrollTop = Math.max(0, (line - 4) * high);
    }
  }

  /** Puts `text` in place of line number `line`, from 1, so that it can be undone. */
  replaceLine(line, text) {
    const lines = this.text.split("\n");
    lines[line - 1] = text;
    this.area.value = lines.join("\n");
    this.area.dispatchEvent(new Event("input"));
  }

  show() {
    const lines = this.text.split("\n"), wrong = new Map(this.mistakes.map((mistake) => [mistake.line, mistake]));
    this.paint.replaceChildren(...lines.flatMap((line, i) => [...painted(line, wrong.get(i + 1)), "\n"]));
    this.gutter.replaceChildren(...lines.map((_, i) => element("div", wrong.has(i + 1) ? "wrong" : "", String(i + 1))));
    this.scroll();
  }

  scroll() {
    this.paint.style.transform = `translate(${-this.area.scrollLeft}px, ${-this.area.scrollTop}px)`;
    this.gutter.scrollTop = this.area.scrollTop;
  }
}

/** A line in the colours of its parts. */
function painted(line, mistake) {
  const parts = [];
  let end = 0;
  for (const match of line.matchAll(TOKEN)) {
    if (match.index > end) parts.push(line.slice(end, match.index));
    parts.push(element("span", CLASSES[match.slice(1).findIndex((group) => group !== undefined)], match[0]));
    end = match.index + match[0].length;
  }
  if (end < line.length) parts.push(line.slice(end));
  if (!mistake) return parts;
  const whole = element("span", "t-wrong");
  whole.append(...(parts.length ? parts : [" "]));
  return [whole];
}
