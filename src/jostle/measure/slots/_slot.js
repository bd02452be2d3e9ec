// A slot (see _slot.py) in Node: the same lines in, the same lines out, kernels on V8.
"use strict";
const fs = require("fs");

const CAPACITY = 262143;
const times = new BigInt64Array(CAPACITY + 1);
const modules = new Map();
const nobody = new Int32Array(new SharedArrayBuffer(4));
let exports_ = null;

function say(answer) {
  fs.writeSync(1, JSON.stringify(answer) + "\n");
}

function sleepUntil(at) {
  for (;;) {
    const early = at - process.hrtime.bigint();
    if (early <= 0n) return;
    Atomics.wait(nobody, 0, 0, Number(early) / 1e6);
  }
}

function prepare(message) {
  const part = message.parts[0];
  if (!modules.has(part.digest)) modules.set(part.digest, new WebAssembly.Module(fs.readFileSync(part.module)));
  exports_ = null;
  exports_ = new WebAssembly.Instance(modules.get(part.digest), {}).exports;
  exports_.setup(part.argument);
  return { ready: true };
}

function usage() {
  let delay = null;
  try {
    delay = Number(fs.readFileSync("/proc/self/schedstat", "ascii").split(" ")[1]);
  } catch (error) {
    // a kernel without schedstat
  }
  return { delay, involuntary: process.resourceUsage().involuntaryContextSwitches };
}

function go(message) {
  const run = exports_.run, repeats = message.repeats;
  const start = BigInt(message.start_ns), until = BigInt(message.until_ns);
  const before = usage();
  sleepUntil(start);
  const now = process.hrtime.bigint;
  let count = 0;
  times[0] = now();
  do {
    run(repeats);
    times[++count] = now();
  } while (times[count] < until && count < CAPACITY);
  const after = usage();
  return {
    times: Buffer.from(times.buffer, 0, 8 * (count + 1)).toString("base64"),
    clock_offset_ns: 0,
    run_delay_seconds: before.delay === null ? null : (after.delay - before.delay) * 1e-9,
    involuntary_switches: after.involuntary - before.involuntary,
  };
}

function answerTo(message) {
  try {
    if (message.do === "prepare") return prepare(message);
    if (message.do === "go") return go(message);
    if (message.do === "checksum") {
      exports_.run(1);
      return { checksum: BigInt.asUintN(64, exports_.checksum()).toString() };
    }
    throw new Error("a slot in Node cannot " + message.do);
  } catch (error) {
    return { failed: String(error.message || error) };
  }
}

const chunk = Buffer.alloc(1 << 16);
let received = "";
// Whole numbers past 2^53 must stay exact: times are quoted before they are parsed.
const exact = (line) => JSON.parse(line.replace(/"(start_ns|until_ns)": ?(\d+)/g, '"$1":"$2"'));
for (;;) {
  let length;
  try {
    length = fs.readSync(0, chunk, 0, chunk.length, null);
  } catch (error) {
    if (error.code === "EAGAIN") continue;
    throw error;
  }
  if (length === 0) process.exit(0);
  received += chunk.toString("utf8", 0, length);
  for (let end; (end = received.indexOf("\n")) >= 0; received = received.slice(end + 1))
    say(answerTo(exact(received.slice(0, end))));
}
