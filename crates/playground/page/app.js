// The page: a scenario is edited, checked while it is typed, run in a worker, and watched.
import { showChoices } from "./choices.js";
import { Editor } from "./editor.js";
import { byId, count, element, setText } from "./js/format.js";
import { address, asked } from "./link.js";
import { View } from "./view/view.js";

/** From the last key to the check, ms. */
const PATIENCE = 250;

if (new URLSearchParams(location.search).has("embed")) document.documentElement.classList.add("embed");

const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
const editor = new Editor(changed);
const view = new View(byId("view"));
let name = "scenario.toml", algorithms = [], questions = 0, state = "loading", wanted = 0, examples = [], waiting = null, playsAtOnce = false;

const ask = (what, more = {}) => worker.postMessage({ do: what, ...more });
const speed = () => byId("speed").value;

/** A line about the run; `aloud` for those who do not see it. */
function status(words, aloud = false) {
  setText(byId("status"), words);
  if (aloud) setText(byId("live"), words);
}

function become(next) {
  state = next;
  const runs = ["plays", "pauses"].includes(state);
  byId("run").disabled = state === "loading";
  setText(byId("run"), runs ? "Run anew" : "Run");
  byId("pause").disabled = byId("stop").disabled = !runs;
  setText(byId("pause"), state === "pauses" ? "Resume" : "Pause");
}

function changed() {
  if (algorithms.length) showChoices(byId("choices"), editor, algorithms);
  clearTimeout(waiting);
  waiting = setTimeout(check, PATIENCE);
}

function check() {
  questions += 1;
  ask("check", { name, text: editor.text, number: chosenRun(), asked: questions });
}

function run() {
  clearTimeout(waiting);
  questions += 1;
  setText(byId("trouble"), "");
  byId("trouble").hidden = true;
  ask("open", { name, text: editor.text, number: chosenRun(), speed: speed(), asked: questions });
}

function pause() {
  if (state === "plays") ask("pause");
  else if (state === "pauses") ask("play");
}

/** The number of the run that is chosen, from 0; an address may ask for one before the runs are known. */
const chosenRun = () => (byId("runs").options.length ? byId("runs").selectedIndex : wanted);

function stop() {
  ask("stop");
  become("ready");
  status("Stopped.", true);
}

/** How fast the simulator works. */
const pace = (hops, worked) => (worked > 50 ? `, ${(hops / worked / 1000).toFixed(1)} million packet-hops a second` : "");

const HEARD = {
  ready: (data) => {
    algorithms = data.algorithms;
    byId("algorithms").replaceChildren(...algorithms.flatMap(({ name: short, title, category }) => [element("dt", "", short), element("dd", "", `${title}, ${category}`)]));
    become("ready");
    status("Ready.");
    changed();
    if (playsAtOnce) run();
  },
  checked: (data) => {
    if (data.asked !== questions) return;
    editor.mark([]);
    showRuns(data.runs);
    // results stay until another run
    if (data.stage && state === "ready" && !view.last) view.begin(data.stage);
  },
  refused: (data) => {
    if (data.asked !== questions) return;
    editor.mark(data.mistakes);
    status(`${count(data.mistakes.length)} mistake${data.mistakes.length === 1 ? "" : "s"} in the scenario: see line ${data.mistakes[0].line}.`, true);
  },
  stage: (data) => {
    editor.mark([]);
    showRuns(data.runs);
    view.begin(data.stage);
    become("plays");
    status(`${data.stage.name} runs: ${data.stage.title}`, true);
  },
  frames: (data) => {
    if (state !== "plays" && state !== "pauses") return;
    view.add(data.frames);
    if (state === "plays") status(`${view.stage.name} runs${pace(data.hops, data.worked)}.`);
  },
  plays: () => become("plays"),
  pauses: () => {
    become("pauses");
    status("Paused.", true);
  },
  outcome: (data) => {
    view.end(data.outcome);
    files(data.outcome);
    become("ready");
    status(`Done: ${count(data.hops)} packet-hops in ${(data.worked / 1000).toFixed(1)} s of work${pace(data.hops, data.worked)}. Results are below the charts.`, true);
  },
  failed: (data) => {
    byId("trouble").hidden = false;
    setText(byId("trouble"), `${data.why[0].toUpperCase()}${data.why.slice(1)}`);
    become(algorithms.length ? "ready" : "loading");
    status("Failed.");
  },
};
worker.onmessage = ({ data }) => HEARD[data.what](data);
worker.onerror = () => HEARD.failed({ why: "the simulator cannot be loaded in this browser: it needs module workers and WebAssembly" });

/** The runs of a sweep, to choose one. */
function showRuns(runs) {
  const list = byId("runs"), chosen = Math.max(0, list.selectedIndex, wanted);
  wanted = 0;
  if ([...list.options].map((option) => option.value).join("\n") !== runs.join("\n")) list.replaceChildren(...runs.map((one) => new Option(one)));
  list.selectedIndex = Math.min(chosen, runs.length - 1);
  byId("runs-label").hidden = runs.length < 2;
  if (state === "ready") status(runs.length < 2 ? "Ready." : `Ready: one of ${count(runs.length)} runs.`);
}

/** What the command writes, to keep. */
function files({ summary, report }) {
  for (const old of byId("outcome-files").querySelectorAll("a")) URL.revokeObjectURL(old.href);
  const file = (label, text, type, download) => {
    const link = Object.assign(element("a", "", label), { href: URL.createObjectURL(new Blob([text], { type })), download: download ?? "", target: "_blank" });
    if (!download) link.removeAttribute("download");
    return link;
  };
  byId("outcome-files").replaceChildren(
    file("Open the report", report, "text/html"),
    file("summary.json", summary, "application/json", "summary.json"),
    file("scenario.toml", editor.text, "application/toml", name),
  );
}

/** The text of an example. */
async function loadExample(example, run) {
  const response = await fetch(new URL(`examples/${example.name}.toml`, import.meta.url));
  if (!response.ok) throw new Error(`${example.name} cannot be loaded`);
  byId("example").value = example.name;
  load(await response.text(), `${example.name}.toml`, run);
}

function load(text, as, run) {
  name = as;
  wanted = run;
  byId("runs").replaceChildren();
  if (state === "plays" || state === "pauses") stop();
  view.last = null;
  editor.text = text;
  changed();
}

async function start() {
  examples = await (await fetch(new URL("examples.json", import.meta.url))).json();
  byId("example").append(new Option("choose …", ""), ...examples.map((example) => new Option(example.title, example.name)));
  await follow();
}

/** Does what the address asks for. */
async function follow() {
  let link;
  try {
    link = await asked(location.hash);
  } catch {
    HEARD.failed({ why: "the scenario in this address cannot be read: the link was cut off" });
    link = { run: 0 };
  }
  if (link.text !== undefined) {
    byId("example").value = "";
    load(link.text, link.name, link.run);
  } else {
    const example = examples.find(({ name: one }) => one === link.example) ?? examples[0];
    await loadExample(example, link.run);
  }
  playsAtOnce = Boolean(link.play);
  if (playsAtOnce && state !== "loading") run();
}

byId("run").addEventListener("click", run);
byId("pause").addEventListener("click", pause);
byId("stop").addEventListener("click", stop);
byId("speed").addEventListener("change", () => ask("speed", { speed: speed() }));
byId("example").addEventListener("change", (event) => {
  const example = examples.find(({ name: one }) => one === event.target.value);
  if (!example) return;
  history.replaceState(null, "", `#example=${example.name}`);
  loadExample(example, 0).catch((error) => HEARD.failed({ why: error.message }));
});
byId("share").addEventListener("click", async () => {
  const href = await address(editor.text, name, chosenRun());
  history.replaceState(null, "", href);
  try {
    await navigator.clipboard.writeText(href);
    status("The link is copied; it holds the whole scenario.", true);
  } catch {
    status("The link is this page’s address now; it holds the whole scenario.", true);
  }
});
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (state !== "loading") run();
  } else if (event.key === "Escape" && event.target === byId("text")) pause();
});
addEventListener("hashchange", () => follow().catch((error) => HEARD.failed({ why: error.message })));
start().catch((error) => HEARD.failed({ why: `the examples cannot be loaded: ${error.message}` }));
