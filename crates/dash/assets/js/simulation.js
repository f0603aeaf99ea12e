// A simulation that the server runs: its stream feeds the view, buttons set its pace.
import { byId, setText } from "./format.js";
import { View } from "../view/view.js";

const view = new View(byId("view"));
let standing = { plays: false, done: false };

function status(words, aloud = false) {
  setText(byId("status"), words);
  if (aloud) setText(byId("live"), words);
}

function trouble(words) {
  byId("trouble").hidden = !words;
  setText(byId("trouble"), words);
}

async function ask(what) {
  try {
    const response = await fetch("/api/run", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what) });
    if (!response.ok) trouble((await response.json()).why);
  } catch {
    trouble("The simulator does not answer.");
  }
}

const HEARD = {
  stage: (stage) => {
    trouble("");
    setText(byId("title"), stage.title);
    document.title = `${stage.title} – OpenTCP`;
    view.begin(stage);
  },
  frames: (frames) => view.add(frames),
  standing: (now) => {
    standing = now;
    byId("restart").disabled = false;
    byId("pause").disabled = now.done;
    setText(byId("pause"), now.plays || now.done ? "Pause" : "Resume");
    const name = view.stage.name;
    status(now.done ? `${name} is done: the results are below the charts.` : now.plays ? `${name} runs.` : `${name} is paused.`, true);
  },
  outcome: (outcome) => {
    view.end(outcome);
    const old = byId("outcome-files").querySelector("a");
    if (old) URL.revokeObjectURL(old.href);
    const href = URL.createObjectURL(new Blob([outcome.summary], { type: "application/json" }));
    byId("outcome-files").replaceChildren(Object.assign(document.createElement("a"), { href, download: "summary.json", textContent: "summary.json" }));
  },
};

const stream = new EventSource("/events");
for (const [what, hear] of Object.entries(HEARD)) stream.addEventListener(what, (event) => hear(JSON.parse(event.data)));
stream.addEventListener("error", () => trouble("The simulator does not answer; what is shown is old."));
byId("pause").addEventListener("click", () => ask(standing.plays ? "pause" : "play"));
byId("restart").addEventListener("click", () => ask("restart"));
byId("speed").addEventListener("change", ({ target: { value } }) => ask(value === "max" ? "max" : { pace: value ? Number(value) : null }));
addEventListener("keydown", (event) => {
  if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey && !standing.done) ask(standing.plays ? "pause" : "play");
});
