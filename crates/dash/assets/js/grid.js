// A table of which only the rows that are seen are in the page; a screen reader knows how many there are.
import { element, setText } from "./format.js";

const ROW = 28, MARGIN = 4;
let grids = 0;

export class Grid {
  /**
   * `columns`: { name, width, number, value(i) for sorting, text(i), tone(i), hint }. `chosen(i)` is called with Enter or a click.
   */
  constructor(place, { label, columns, sort, chosen }) {
    Object.assign(this, { columns, chosen, sort: sort ?? { column: 0, down: false }, order: [], active: 0, id: `grid${grids++}` });
    this.grid = element("div", "grid");
    Object.assign(this.grid, { tabIndex: 0 });
    this.grid.setAttribute("role", "grid");
    this.grid.setAttribute("aria-label", label);
    this.grid.setAttribute("aria-colcount", columns.length);
    this.grid.style.setProperty("--cols", columns.map((column) => column.width).join(" "));
    // head and rows are as wide as each other: the least of each column is its first number
    this.grid.style.setProperty("--least", `${columns.reduce((sum, { width }) => sum + parseFloat(width.replace("minmax(", "")), 0)}rem`);
    this.head();
    this.body = element("div", "rows");
    this.body.setAttribute("role", "rowgroup");
    this.grid.append(this.body);
    this.rows = [];
    this.grid.addEventListener("scroll", () => this.draw(), { passive: true });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("[role=row]");
      if (row) this.go(Number(row.dataset.at), true);
    });
    new ResizeObserver(() => this.draw()).observe(this.grid);
    place.append(this.grid);
  }

  head() {
    const group = element("div", "head"), row = element("div", "row");
    group.setAttribute("role", "rowgroup");
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", 1);
    this.heads = this.columns.map((column, i) => {
      const cell = element("div", column.number ? "cell n" : "cell");
      cell.setAttribute("role", "columnheader");
      const button = element("button", "sort", column.name);
      Object.assign(button, { type: "button", title: column.hint ?? `sort by ${column.name}` });
      button.addEventListener("click", () => {
        const down = this.sort.column === i ? !this.sort.down : Boolean(column.number);
        this.sort = { column: i, down };
        this.arrange();
      });
      cell.append(button);
      row.append(cell);
      return cell;
    });
    group.append(row);
    this.grid.append(group);
  }

  /** Shows these entries, by their numbers. */
  show(entries) {
    this.entries = entries;
    this.arrange();
  }

  /** Sorts anew. */
  arrange() {
    const { column, down } = this.sort, value = this.columns[column].value;
    this.heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : down ? "descending" : "ascending"));
    const keys = new Map((this.entries ?? []).map((i) => [i, value(i)]));
    const compare = (a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      // what is not known comes last
      if (x == null || y == null) return (x == null) - (y == null) || a - b;
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1) || a - b;
    };
    this.order = (this.entries ?? []).slice().sort(compare);
    this.active = Math.min(this.active, Math.max(0, this.order.length - 1));
    this.grid.setAttribute("aria-rowcount", this.order.length + 1);
    this.body.style.height = `${this.order.length * ROW}px`;
    // a short list takes no more room than it needs: its rows, the head, the borders and a bar to scroll
    this.grid.style.height = `min(var(--most), ${(Math.max(3, this.order.length) + 1) * ROW + 18}px)`;
    this.draw();
  }

  /** Draws the rows that are seen. */
  draw() {
    const first = Math.max(0, Math.floor(this.grid.scrollTop / ROW) - MARGIN);
    const seen = Math.ceil(this.grid.clientHeight / ROW) + 2 * MARGIN;
    const last = Math.min(this.order.length, first + seen);
    while (this.rows.length < last - first) this.rows.push(this.row());
    while (this.rows.length > last - first) this.rows.pop().node.remove();
    this.rows.forEach((row, n) => this.fill(row, first + n));
    const active = this.rows.find((row) => row.at === this.active);
    if (active) this.grid.setAttribute("aria-activedescendant", active.node.id);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  row() {
    const node = element("div", "row");
    node.setAttribute("role", "row");
    const cells = this.columns.map((column) => {
      const cell = element("div", column.number ? "cell n" : "cell");
      cell.setAttribute("role", "gridcell");
      node.append(cell);
      return cell;
    });
    this.body.append(node);
    return { node, cells, at: -1 };
  }

  fill(row, at) {
    const i = this.order[at];
    if (row.at !== at) {
      row.at = at;
      row.node.dataset.at = at;
      row.node.id = `${this.id}-${at}`;
      row.node.style.transform = `translateY(${at * ROW}px)`;
      row.node.setAttribute("aria-rowindex", at + 2);
    }
    row.node.classList.toggle("active", at === this.active);
    if (row.isActive !== (at === this.active)) {
      row.isActive = at === this.active;
      row.node.setAttribute("aria-selected", row.isActive);
    }
    this.columns.forEach((column, c) => {
      const cell = row.cells[c];
      setText(cell, column.text(i));
      const tone = column.tone?.(i) ?? "";
      if (cell.tone !== tone) {
        cell.tone = tone;
        cell.className = `${column.number ? "cell n" : "cell"}${tone && ` ${tone}`}`;
      }
    });
  }

  key(event) {
    if (event.target !== this.grid) return;
    const page = Math.max(1, Math.floor(this.grid.clientHeight / ROW) - 2);
    const to = {
      ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page,
      Home: 0, End: this.order.length - 1,
    }[event.key];
    if (to !== undefined) this.go(to, false);
    else if (event.key === "Enter" || event.key === " ") this.chosen?.(this.order[this.active]);
    else return;
    event.preventDefault();
  }

  go(to, isChosen) {
    this.active = Math.max(0, Math.min(this.order.length - 1, to));
    // the head covers the first row
    const top = this.active * ROW, room = this.grid.clientHeight - ROW;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    else if (top + ROW > this.grid.scrollTop + room) this.grid.scrollTop = top + ROW - room;
    this.draw();
    if (isChosen && this.order.length) this.chosen?.(this.order[this.active]);
  }
}
