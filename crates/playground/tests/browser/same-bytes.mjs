// The module in node: for each scenario on stdin, a line of JSON `{name, text}`, the bytes of its summary, as a line of JSON.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { Simulator } = await import(pathToFileURL(`${folder}/simulator.js`));
const simulator = await Simulator.load(readFileSync(`${folder}/playground.wasm`));
for await (const line of createInterface({ input: process.stdin })) {
  const { name, text } = JSON.parse(line);
  const stage = simulator.open(name, text);
  const began = performance.now();
  let hops = 0;
  // odd steps: where they end changes nothing
  while (simulator.now() < stage.duration_ns) {
    hops += simulator.advance(simulator.now() + 7_654_321, 500_000);
    simulator.frame();
  }
  const took = performance.now() - began;
  console.log(JSON.stringify({ summary: simulator.finish().summary, hops, per_s: hops / took * 1000 }));
}
