// The simulation, off the page's thread. Messages to it: {do: "check" | "open" | "play" | "pause" | "speed" | "stop"}; from it: see `say`.
import { Refused, Simulator } from "./simulator.js";

/** A run has about so many frames, and more where time goes slowly. */
const FRAMES = 1500;
/** Wall-clock time of a turn and between turns, ms. */
const BUSY = 24;
const TURN = 33;
/** Packet-hops between two looks at the clock. */
const HOPS = 60_000;

const say = (what, more = {}) => postMessage({ what, ...more });
let simulator = null, bytes = null, run = null;

const ready = (async () => {
  const response = await fetch(new URL("playground.wasm", import.meta.url));
  if (!response.ok) throw new Error(`the simulator cannot be loaded: ${response.status} ${response.statusText}`);
  bytes = await response.arrayBuffer();
  simulator = await Simulator.load(bytes);
  say("ready", { algorithms: simulator.algorithms() });
})();
ready.catch((error) => say("failed", { why: error.message }));

onmessage = async ({ data }) => {
  await ready;
  try {
    await TASKS[data.do](data);
  } catch (error) {
    if (error instanceof Refused) return say("refused", { mistakes: error.mistakes, asked: data.asked });
    run = null;
    say("failed", { why: error.message });
    // what is left of a module that stopped is not to be used
    simulator = await Simulator.load(bytes);
  }
};

const TASKS = {
  check: ({ name, text, number, asked }) => {
    const runs = simulator.check(name, text);
    // the network of what would run, unless something does
    const stage = run ? null : simulator.open(name, text, Math.min(number, runs.length - 1));
    say("checked", { runs, stage, asked });
  },
  open: ({ name, text, number, speed, asked }) => {
    // of a text with mistakes nothing is opened, and what runs goes on
    const runs = simulator.check(name, text);
    clearTimeout(run?.timer);
    run = null;
    const stage = simulator.open(name, text, Math.min(number, runs.length - 1));
    run = { end: stage.duration_ns, grid: stage.duration_ns / FRAMES, at: 0, plays: true, began: performance.now(), worked: 0, hops: 0 };
    say("stage", { stage, runs, asked });
    TASKS.speed({ speed });
    turn();
  },
  play: () => set(true),
  pause: () => set(false),
  speed: ({ speed }) => {
    if (!run) return;
    // ns a ms
    run.speed = speed === "max" ? Infinity : speed === "auto" ? run.end / 20_000 : Number(speed) * 1e6;
    run.last = performance.now();
  },
  stop: () => {
    clearTimeout(run?.timer);
    run = null;
  },
};

function set(plays) {
  if (!run || run.plays === plays) return;
  run.plays = plays;
  clearTimeout(run.timer);
  run.last = performance.now();
  say(plays ? "plays" : "pauses");
  if (plays) turn();
}

/** Some milliseconds of work. */
function turn() {
  try {
    const began = performance.now();
    const until = Math.min(run.end, run.at + run.speed * Math.min(began - run.last, 4 * TURN));
    run.last = began;
    const frames = [];
    do {
      const next = Math.min(until, (Math.floor(run.at / run.grid + 1e-9) + 1) * run.grid);
      run.hops += simulator.advance(Math.round(next), HOPS);
      const now = simulator.now();
      if (now >= Math.round(next)) {
        run.at = next;
        frames.push(simulator.frame());
      } else run.at = now;
    } while (run.at < until && performance.now() - began < BUSY);
    run.worked += performance.now() - began;
    say("frames", { frames, hops: run.hops, worked: run.worked });
    if (run.at >= run.end) {
      const { hops, worked } = run;
      run = null;
      return say("outcome", { outcome: simulator.finish(), hops, worked });
    }
    run.timer = setTimeout(turn, run.speed === Infinity ? 0 : Math.max(0, TURN - (performance.now() - began)));
  } catch (error) {
    run = null;
    say("failed", { why: error.message });
    Simulator.load(bytes).then((fresh) => { simulator = fresh; });
  }
}
