// Algorithms of the scenario, to be chosen: one choice for each place in the text that names one.
import { element } from "./js/format.js";

const PLACE = /^(\s*cc\s*=\s*)"([^"]*)"/;
const NAME = /^\s*name\s*=\s*"([^"]*)"/;
const SWEEP = /^(\s*"?tcp\.cc"?\s*=\s*)\[([^\]]*)\]/;
const HEAD = /^\s*\[+\s*([^\]]+?)\s*\]/;

/** The places: line from 1, what it is of, what it names, and the line with another algorithm. */
export function places(text) {
  const lines = text.split("\n"), found = [];
  let head = "", name = "";
  let hasTcp = 0;
  lines.forEach((line, i) => {
    const heads = line.match(HEAD);
    if (heads) [head, name] = [heads[1], ""];
    if (heads?.[1] === "tcp") hasTcp = i + 1;
    name = line.match(NAME)?.[1] ?? name;
    const place = line.match(PLACE), sweep = line.match(SWEEP);
    if (place) {
      const of = head === "tcp" ? "all flows" : name || head;
      found.push({ line: i + 1, of, now: place[2], with: (cc) => line.replace(PLACE, `$1"${cc}"`) });
    } else if (sweep) {
      found.push({ line: i + 1, of: "add to the sweep", now: "", with: (cc) => line.replace(SWEEP, `$1[${sweep[2]}, "${cc}"]`) });
    }
  });
  if (found.length > 0) return found;
  // no place yet: the settings of all flows
  if (hasTcp) return [{ line: hasTcp, of: "all flows", now: "", with: (cc) => `${lines[hasTcp - 1]}\ncc = "${cc}"` }];
  return [{ line: lines.length, of: "all flows", now: "", with: (cc) => `${lines.at(-1)}\n[tcp]\ncc = "${cc}"\n` }];
}

export function showChoices(place, editor, algorithms) {
  const all = places(editor.text);
  place.replaceChildren(...all.map((one, i) => {
    const label = element("label", "", `${one.of} `), choice = document.createElement("select");
    choice.id = `cc-${i}`;
    label.htmlFor = choice.id;
    if (!algorithms.some(({ name }) => name === one.now)) choice.append(new Option(one.now || "choose …", ""));
    for (const { name, title } of algorithms) choice.append(new Option(`${name} (${title})`, name, false, name === one.now));
    choice.addEventListener("change", () => {
      if (choice.value) editor.replaceLine(one.line, one.with(choice.value));
      document.getElementById(choice.id)?.focus();
    });
    label.append(choice);
    return label;
  }));
}
