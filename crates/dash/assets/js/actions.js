// What changes something: pause, resume, roll back. Each needs the token, which stays in this page's memory.
import { byId, clock, count, element, seconds, setText } from "./format.js";
import { state } from "./state.js";

let against = null;

export function makeActions() {
  const dialog = byId("acting");
  byId("actions").addEventListener("click", () => {
    against = null;
    byId("rollback").disabled = true;
    byId("compared").replaceChildren();
    setText(byId("acted"), "");
    show();
    dialog.showModal();
  });
  // Enter in a field is no command
  byId("acting-form").addEventListener("submit", (event) => {
    if (event.submitter?.value !== "close" || document.activeElement === byId("token")) event.preventDefault();
  });
  byId("pause").addEventListener("click", () => {
    const lasts = byId("pause-for").value;
    act("pause", lasts ? { seconds: Number(lasts) } : {}, (answer) => `Paused ${answer.until ? `until ${clock(Date.parse(answer.until) / 1000)}` : "until it is resumed"}.`);
  });
  byId("resume").addEventListener("click", () => act("resume", undefined, () => "Resumed: CUEs are sent."));
  byId("compare").addEventListener("click", () => act("compare", undefined, compared));
  byId("rollback").addEventListener("click", () => act("rollback", { against }, (answer) => {
    against = null;
    byId("rollback").disabled = true;
    return `Rolled back: ${answer.policy} decides within ${seconds(state.overview?.period_s)}.`;
  }));
}

export function show() {
  const o = state.overview;
  setText(byId("acting-now"), o ? `${o.policy} is in force, ${o.paused ? "paused" : o.mode === "enforce" ? "enforcing" : "observing"}, for ${count(o.hosts)} hosts.` : "");
}

function compared(answer) {
  const { comparison } = answer;
  against = answer.hash === answer.against ? null : answer.against;
  byId("rollback").disabled = !against;
  const list = element("ul", "plain"), places = { added: " comes", removed: " goes", both: "" };
  for (const rule of comparison.rules) {
    const sets = rule.settings.map(({ name, from, to }) => `${name}: ${from ?? "not set"} → ${to ?? "not set"}`);
    const hosts = [["get", rule.get], ["lose", rule.lose]].filter(([, some]) => some.count).map(([what, some]) => `${count(some.count)} hosts ${what} it`);
    list.append(element("li", "", `rule ${rule.name}${places[rule.place]}: ${[...sets, ...rule.changed, ...hosts].join(", ") || "as it is"}`));
  }
  byId("compared").replaceChildren(element("p", "", `${answer.policy} (${answer.file}) would be in force again.`), list);
  return against ? "Compared; look at it, then roll back." : "It is in force already.";
}

async function act(what, body, words) {
  const said = byId("acted"), token = byId("token").value.trim();
  said.className = "acted";
  if (!token) {
    said.className = "acted bad";
    setText(said, "This needs the token.");
    byId("token").focus();
    return;
  }
  setText(said, "The Oracle is asked …");
  try {
    const headers = { Authorization: `Bearer ${token}` };
    if (body) headers["Content-Type"] = "application/json";
    const response = await fetch(`/api/${what}`, { method: "POST", headers, body: body && JSON.stringify(body) });
    const answer = await response.json().catch(() => ({ why: response.statusText }));
    said.className = response.ok ? "acted good" : "acted bad";
    setText(said, response.ok ? words(answer.answer) : answer.why);
    if (response.status === 401) byId("token").focus();
  } catch {
    said.className = "acted bad";
    setText(said, "The dashboard’s server does not answer; it is not known whether this was done.");
  }
}
