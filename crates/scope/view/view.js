// A run as people watch it: figures, the network, series, and its outcome. Frames come from anywhere: crates/scope/src/frame.rs says what is in them.
import { byId, count, element, rate, seconds, setText } from "../js/format.js";
import { Network } from "./network.js";
import { addParts } from "./parts.js";
import { Chart, Series } from "./series.js";

const FIELDS = 5;
/** Queues that were never longer than this are not drawn over time. */
const QUEUE_LEAST = 2;
/** Charts and the table are drawn so often: the picture shows more. */
const CHARTS_MS = 90;
const STATES = ["Open", "Disorder", "CWR", "Recovery", "Loss"];

export class View {
  constructor(place) {
    addParts(place);
    this.network = new Network(byId("network"), byId("network-said"));
    const link = (key) => this.stage.links[key].name.replace("->", " → ");
    this.queues = new Chart(byId("chart-queue"), {
      title: "Queues", unit: "packets", empty: "Switch ports appear here as their queues grow.", name: link,
      choose: (lines) => this.fullest(lines), level: () => 4,
    });
    const flow = (key) => this.ends(key);
    const name = (key) => `${flow(key).src} → ${flow(key).dst}, ${flow(key).algorithm}`;
    this.windows = new Chart(byId("chart-cwnd"), {
      title: "Congestion windows", unit: "segments", empty: "Flows appear here as they start.", name,
      owner: (key) => flow(key).algorithm, choose: longest, level: () => 4,
    });
    this.trips = new Chart(byId("chart-rtt"), {
      title: "Smoothed round-trip times", unit: "ms", empty: "Flows appear here as they start.", name,
      owner: (key) => flow(key).algorithm, choose: longest, level: () => 0,
    });
    Object.assign(this, { last: null, waiting: [], timer: null });
  }

  /** A flow's ends; a stream that began late may not have them. */
  ends(flow) {
    return this.flows.get(flow) ?? { src: `flow ${flow}`, dst: "?", algorithm: "?" };
  }

  /** A run begins. */
  begin(stage) {
    clearTimeout(this.timer);
    Object.assign(this, { stage, last: null, waiting: [], timer: null, flows: new Map() });
    this.series = { queue: new Series(), cwnd: new Series(), rtt: new Series() };
    this.network.show(stage);
    for (const chart of [this.queues, this.windows, this.trips]) chart.begin(stage.duration_ns / 1e9);
    this.figures({ t: 0, drops: 0, marks: 0, hops: 0, opened: 0 });
    byId("states").replaceChildren();
    byId("outcome").hidden = true;
  }

  /** Moments of the run, in order; they are drawn with the next picture of the screen. */
  add(frames) {
    if (!this.stage || frames.length === 0) return;
    if (this.waiting.length === 0) requestAnimationFrame(() => this.draw());
    this.waiting.push(...frames);
  }

  draw() {
    const frames = this.waiting;
    this.waiting = [];
    if (frames.length === 0) return;
    for (const frame of frames) this.keep(frame);
    this.last = frames.at(-1);
    this.network.draw(frames);
    this.figures(this.last);
    this.timer ??= setTimeout(() => this.drawSeries(), CHARTS_MS);
  }

  drawSeries() {
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.last) return;
    this.queues.draw(this.series.queue);
    this.windows.draw(this.series.cwnd);
    this.trips.draw(this.series.rtt);
    this.states(this.last);
  }

  keep(frame) {
    for (const ends of frame.new) this.flows.set(ends.flow, ends);
    const time = frame.t / 1e9, queues = [];
    for (let at = 0; at < frame.links.length; at += FIELDS) {
      const [link, packets] = [frame.links[at], frame.links[at + 1]];
      if (packets >= QUEUE_LEAST || this.series.queue.lines.has(link)) queues.push([link, packets]);
    }
    this.series.queue.add(time, queues.filter(([link]) => !this.stage.links[link].from_host), 0);
    this.series.cwnd.add(time, frame.flows.map(({ flow, cwnd }) => [flow, cwnd]), null);
    const known = frame.flows.filter(({ srtt_us }) => srtt_us !== null);
    this.series.rtt.add(time, known.map(({ flow, srtt_us }) => [flow, srtt_us / 1000]), null);
  }

  /** The queues that the scenario asks for; else those that were the longest. */
  fullest(lines) {
    const watched = lines.filter((line) => this.stage.watched.includes(line.key));
    if (watched.length > 0) return watched;
    return lines.sort((a, b) => b.most - a.most).slice(0, 6).sort((a, b) => a.key - b.key);
  }

  figures({ t, drops, marks, hops, opened }) {
    const span = this.stage.duration_ns / 1e9;
    setText(byId("at-time"), span >= 2 ? `${(t / 1e9).toFixed(2)} s` : `${(t / 1e6).toFixed(3)} ms`);
    setText(byId("of-time"), `of ${seconds(span)}`);
    setText(byId("at-drops"), count(drops));
    setText(byId("at-marks"), count(marks));
    setText(byId("at-flows"), count(opened));
    setText(byId("at-hops"), count(hops));
    byId("progress").value = t / this.stage.duration_ns;
  }

  /** Rows of a table: how each flow stands. */
  states({ flows }) {
    const body = byId("states");
    while (body.rows.length > flows.length) body.deleteRow(-1);
    flows.forEach(({ flow, cwnd, in_flight, ssthresh, srtt_us, state }, i) => {
      const row = body.rows[i] ?? body.insertRow();
      const ends = this.ends(flow);
      const cells = [
        `${ends.src} → ${ends.dst}`, ends.algorithm, STATES[state], cwnd, in_flight, ssthresh ?? "∞",
        srtt_us === null ? "–" : `${(srtt_us / 1000).toFixed(srtt_us < 1000 ? 3 : 1)} ms`,
      ];
      cells.forEach((words, n) => {
        const cell = row.cells[n] ?? row.appendChild(element(n ? "td" : "th", n > 2 ? "n" : ""));
        if (n === 0) cell.scope = "row";
        setText(cell, String(words));
      });
      row.cells[2].className = `state${state}`;
    });
  }

  /** The run has ended. */
  end(outcome) {
    this.draw();
    this.drawSeries();
    const { summary } = JSON.parse(outcome.summary);
    const known = (value, words) => (value === null || value === undefined ? "–" : words(value));
    const facts = [
      ["goodput, all flows", known(summary.goodput_bps, rate)],
      ["flows that ended", `${count(summary.flows_completed)} of ${count(summary.flows)}`],
      ["completion time, mean", known(summary.mean_fct_ns, (ns) => seconds(ns / 1e9))],
      ["completion time, 99th percentile", known(summary.p99_fct_ns, (ns) => seconds(ns / 1e9))],
      ["drops at switches", count(summary.drops_at_switches)],
      ["retransmits", count(summary.retransmits)],
      ["RTOs", count(summary.rtos)],
      ["longest queue at a switch", `${count(summary.max_switch_queue_packets)} packets`],
    ];
    byId("facts").replaceChildren(...facts.flatMap(([name, value]) => {
      const fact = element("div");
      fact.append(element("dt", "", name), element("dd", "", value));
      return fact;
    }));
    byId("rows").replaceChildren(...outcome.flows.map((flow) => {
      const row = document.createElement("tr");
      const ends = element("th", "", `${flow.src} → ${flow.dst}`);
      ends.scope = "row";
      const time = known(flow.fct_ns, (ns) => seconds(ns / 1e9)), srtt = known(flow.srtt_us, (us) => `${(us / 1000).toFixed(2)} ms`);
      row.append(ends, element("td", "", flow.algorithm));
      for (const words of [rate(flow.goodput_bps), time, count(flow.retransmits), count(flow.rtos), srtt]) row.append(element("td", "n", words));
      return row;
    }));
    setText(byId("rows-left"), outcome.opened > outcome.flows.length ? `The first ${outcome.flows.length} of ${count(outcome.opened)} flows; the report counts all.` : "");
    byId("outcome").hidden = false;
  }
}

/** The flows that were there for most of the time. */
function longest(lines) {
  return lines.sort((a, b) => b.points - a.points || a.key - b.key).slice(0, 8).sort((a, b) => a.key - b.key);
}
