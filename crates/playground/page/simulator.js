// The simulator in WebAssembly: crates/playground/src/lib.rs is the other side of these calls.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Simulator {
  // `bytes` is the module, or a response that brings it.
  static async load(bytes) {
    const made =
      bytes instanceof Response
        ? await WebAssembly.instantiateStreaming(bytes, {})
        : await WebAssembly.instantiate(bytes, {});
    return new Simulator(made.instance.exports);
  }

  constructor(wasm) {
    this.wasm = wasm;
    wasm.begin();
  }

  // The algorithms of cc/: name, title, category.
  algorithms() {
    this.wasm.algorithms();
    return this.answer();
  }

  // The names of a scenario's runs; `name` is a file's.
  check(name, text) {
    this.write(name, text);
    return this.call(() => this.wasm.check());
  }

  // Sets a run up; its stage.
  open(name, text, run = 0) {
    this.write(name, text);
    return this.call(() => this.wasm.open(run));
  }

  // Runs up to `until` ns, or until about `hops` packet-hops are done; how many were.
  advance(until, hops) {
    return this.guard(() => this.wasm.advance(until, hops));
  }

  now() {
    return this.wasm.now();
  }

  frame() {
    return this.call(() => this.wasm.frame());
  }

  // Runs what is left; the outcome.
  finish() {
    return this.call(() => this.wasm.finish());
  }

  write(name, text) {
    const bytes = encoder.encode(`${name.replaceAll("\n", " ")}\n${text}`);
    const place = this.wasm.text_of(bytes.length);
    new Uint8Array(this.wasm.memory.buffer, place, bytes.length).set(bytes);
  }

  answer() {
    const place = this.wasm.answer();
    const bytes = new Uint8Array(this.wasm.memory.buffer, place, this.wasm.answer_bytes());
    return JSON.parse(decoder.decode(bytes));
  }

  call(work) {
    this.guard(work);
    const answer = this.answer();
    if (answer.mistakes) throw new Refused(answer.mistakes);
    if (answer.failure) throw new Error(answer.failure);
    return answer.ok;
  }

  // A panic leaves its words as the answer, and ends the module.
  guard(work) {
    try {
      return work();
    } catch (trap) {
      let words;
      try {
        words = this.answer().failure;
      } catch {}
      throw new Error(words ?? `the simulator stopped: ${trap.message}`);
    }
  }
}

// A scenario with mistakes: line, column, message, help.
export class Refused extends Error {
  constructor(mistakes) {
    super(mistakes[0].message);
    this.mistakes = mistakes;
  }
}
