"""Record the campaign of the alignment method here: programs with phases, alone, in pairs, beside stressors.

    python -m studies.collect.alignment_campaign [FOLDER] [--own-cores] [--minutes 19] [--repeats 7]
        [--programs 20] [--interval 0.01] [--seed 0] [--scratch build/alignment-campaign]

Needs two cores that nothing else uses: on one of them programs that wait for different parts of their
time take turns (`_shared_core`), the other is the recorder's. With --own-cores sixteen programs with
phases have a core each. Every window is recorded equally often, once in each of several passes through
all of them in random order, so that its repeats lie minutes apart; cores are dealt anew in every window,
and who has ended begins again until both have ended once. After the first windows it says how many pairs
fit into the minutes: those that programs held out together need come first.

What was recorded lies in the scratch folder; run it again to go on after a break. When all is there it is
checked, reduced to the counters that are of use, and written to FOLDER, by default where
`python -m studies alignment --on campaign` reads it (with --own-cores to build/own-cores). At most 3 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.collect.shared_core import PROGRAMS as SHARED
from studies.collect.shared_core import shared_core_program, turns

if TYPE_CHECKING:
    from jostle.measure.workloads._program import TracedProgram
    from jostle.traces import Trace

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "studies" / "alignment" / "recorded"
SHARED_STRESSORS = ("core", "stream", "scatter")  # and turns
# Phases of some ten to fifty milliseconds, from compute-bound to memory-bound: (kernel, repetitions) in turn,
# some 0.2 seconds of one core in all.
PROGRAMS = {
    "hash-stream": "sha256-m*40+stream-l*60+sha256-m*40+stream-l*60",
    "sort-chase": "sort-m*40+chase-m*80",
    "fft-copy": "fft-m*80+copy-l*50+fft-m*80+copy-l*50",
    "matmul-bfs": "matmul-m*50+bfs-l*20+matmul-m*50+bfs-l*20",
    "vision": "disparity-m*100+sobel-m*75+copy-l*40",
    "solver": "lu-m*60+stencil-l*20+lu-m*60+stencil-l*20",
    "search-sieve": "search-m*110+sieve-l*26",
    "nbody-stream": "nbody-m*60+stream-l*40+nbody-m*40+stream-l*40",
    "crypto": "aes-m*70+chacha-m*70",
    "graph": "bfs-l*30+chase-l*6+bfs-l*20",
    "edit-sort": "edit-m*40+sort-l*14+edit-m*40+sort-l*14",
    "stencil-fft": "stencil-m*80+fft-l*15+copy-l*40",
    "pages": "pagerank-l*5+gemv-l*20",
    "buckets": "radix-l*8+heat-l*7",
    "waves": "wavelet-l*18+stream-l*50",
    "lists": "chase-l*12+copy-l*80+chase-l*12",
}
HELD = 4  # programs that are held out together, by the study's own folds
KEPT = (
    *("instructions", "loads", "stores", "branches", "calls", "float_operations", "bulk_bytes"),
    *("loaded_bytes", "stored_bytes", "working_set_byte_seconds", "run_delay_seconds"),
    *("perf_instructions", "perf_cycles", "perf_cache_misses", "perf_cache_references"),
    *("perf_llc_loads", "perf_llc_load_misses", "perf_branch_misses", "perf_dtlb_load_misses"),
)
BESIDE = ("instructions", "run_delay_seconds")  # all that is read of runs beside others
# Bits of a count and decimals of a time that are kept, as long as files are not too large: a count is known
# to a part in 2000 or 500, a time to 10 or 100 us.
DETAIL = ((10, 5), (8, 5), (8, 4))
MOST_BYTES = 3_000_000
Window = tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=19.0, help="to record in, at most")
    parser.add_argument("--repeats", type=int, default=7, help="of every window")
    parser.add_argument("--programs", type=int, help="of all, 3 at least")
    parser.add_argument("--own-cores", action="store_true", help="programs with a core each")
    parser.add_argument("--interval", type=float, default=0.01, help="seconds between samples")
    parser.add_argument("--seed", type=int, default=0, help="of the order of windows")
    parser.add_argument("--scratch", type=Path)
    options = parser.parse_args()
    if options.folder is None:
        options.folder = ROOT / "build" / "own-cores" if options.own_cores else FOLDER
    if options.scratch is None:
        options.scratch = ROOT / "build" / f"alignment-campaign-{options.folder.name}"
    options.text = PROGRAMS if options.own_cores else SHARED
    options.programs = options.programs or len(options.text)
    names = list(options.text)[: options.programs]
    if (
        not 3 <= options.programs <= len(options.text)
        or options.repeats < 1
        or options.minutes <= 0
    ):
        parser.error(f"3 to {len(options.text)} programs, one repeat or more, and some minutes")
    recorder = Recorder(options, names)
    if not recorder.record():
        sys.exit(
            f"{recorder.left} windows are left: run the same again to go on, with more --minutes"
        )
    write(options, recorder)


class Recorder:
    """Records windows into the scratch folder, and knows which are there. left: windows that are not."""

    def __init__(self, options: argparse.Namespace, names: list[str]) -> None:
        self.given, self.names, self.left = options, names, 0
        self.stressors = [program.name for program in stressors(options)]
        self.log = options.scratch / "windows.jsonl"
        self.until = time.monotonic() + 60 * options.minutes
        first: list[Window] = [(name,) for name in (*names, *self.stressors)]
        first += [(name, stressor) for name in names for stressor in self.stressors]
        self.first, self.pairs = first, ordered_pairs(names)
        self.state: dict[str, Any] = {}
        if (state := options.scratch / "state.json").is_file():
            self.state = json.loads(state.read_text())

    def record(self) -> bool:
        """Whether every window is there as often as it has to be."""
        asked = {k: getattr(self.given, k) for k in ("repeats", "programs", "interval")}
        if self.state.setdefault("asked", asked) != asked:
            sys.exit(f"{self.given.scratch} holds another campaign: {self.state['asked']}")
        for turn in range(self.given.repeats):
            order = random.Random(f"{self.given.seed}/{turn}")
            if turn == 0 and "pairs" not in self.state:
                began, todo = time.monotonic(), self._missing(self.first, turn)
                if not self._pass(order.sample(todo, len(todo)), turn):
                    return False
                each = (time.monotonic() - began) / len(todo) if todo else 0.5
                self._choose_pairs(each)
            todo = self._missing(self.first + self.pairs[: self.state["pairs"]], turn)
            if not self._pass(order.sample(todo, len(todo)), turn):
                return False
        return True

    def _choose_pairs(self, each: float) -> None:
        """As many as there is time for, if a window takes so many seconds."""
        repeats = self.given.repeats
        room = self.until - time.monotonic() - each * len(self.first) * (repeats - 1)
        fewest = min(len(self.pairs), needed(self.names))
        self.state["pairs"] = int(np.clip(0.8 * room / (each * repeats), fewest, len(self.pairs)))
        self.given.scratch.mkdir(parents=True, exist_ok=True)
        (self.given.scratch / "state.json").write_text(json.dumps(self.state))
        say(f"{each:.2f} s a window: {self.state['pairs']} of {len(self.pairs)} pairs")

    def _missing(self, windows: Sequence[Window], turn: int) -> list[Window]:
        count: dict[Window, int] = defaultdict(int)
        for label in self._done():
            count[label] += 1
        return [window for window in windows if count[window] <= turn]

    def _done(self) -> list[Window]:
        if not self.log.is_file():
            return []
        return [tuple(json.loads(line)["window"]) for line in self.log.read_text().splitlines()]

    def _pass(self, windows: Sequence[Window], turn: int) -> bool:
        """Record these in this order, a file of traces for some of them at a time."""
        from jostle.traces import Traces, write_traces

        for start in range(0, len(windows), 40):
            some, results, finished = windows[start : start + 40], [], []
            for number, window in enumerate(some):
                if time.monotonic() > self.until:
                    break
                results += self._window(window, 1000 * turn + start + number)
                finished.append(window)
            if finished:
                write_traces(self.given.scratch, Traces.from_traces(results))
                with self.log.open("a") as file:
                    for window in finished:
                        file.write(json.dumps({"window": window}) + "\n")
            self.left = len(windows) - start - len(finished)
            say(f"pass {turn + 1} of {self.given.repeats}: {self.left} windows left")
            if len(finished) < len(some):
                return False
        return True

    def _window(self, window: Window, number: int) -> list[Trace]:
        from jostle.measure.tracing._recording import TracedWindow

        programs = tuple(self.machine["programs"][name] for name in window)
        recording = TracedWindow(
            programs,
            self.machine["slots"][: len(window)],
            self.machine["engine"],
            self.machine["cores"],
            self.machine["options"],
            number,
            self.machine["platform"],
            f"{number}-{'-'.join(window)}-{time.time_ns()}",
        )
        return recording.record(None, 0)[0]

    @property
    def machine(self) -> dict[str, Any]:
        """Slots and all else that windows need, made once."""
        if not hasattr(self, "_machine"):
            self._machine = set_up(self.given, self.names)
        return self._machine


def set_up(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    from jostle.measure import TraceOptions, platform_name
    from jostle.measure.host._facts import chosen_cores, device_name
    from jostle.measure.host._variants import variant_of
    from jostle.measure.slots._available import find_engines
    from jostle.measure.slots._slots import Slot
    from jostle.measure.workloads._program import find_programs

    (engine,) = find_engines(["speed"])
    variant = variant_of(engine)
    cores = chosen_cores(None)[: variant.cpus]
    if len(cores) < 2:
        sys.exit("two cores are needed")
    if not options.own_cores:
        programs = tuple(shared_core_program(n, SHARED[n], options.scratch) for n in names)
    else:
        programs = find_programs([f"{name}={PROGRAMS[name]}" for name in names])
    if not options.own_cores:  # who records stays off the core that is recorded
        os.sched_setaffinity(0, set(cores[1:]))
    return {
        "engine": engine,
        "cores": tuple(cores[:2] if options.own_cores else cores[:1]),
        "programs": {one.name: one for one in (*programs, *stressors(options))},
        "slots": [Slot(variant=replace(variant, cpus=None)) for _ in range(2)],
        "platform": platform_name(engine, device_name(cores)),
        "options": TraceOptions(loop=True, seconds=0.3, interval_seconds=options.interval),
    }


def stressors(options: argparse.Namespace) -> tuple[TracedProgram, ...]:
    """Without end."""
    from jostle.measure.workloads._program import find_programs, probe_workloads

    if not options.own_cores:
        return (*find_programs(probe_workloads(SHARED_STRESSORS)), turns(options.scratch))
    return find_programs(probe_workloads())


def needed(names: Sequence[str]) -> int:
    """How many pairs programs that are held out together make."""
    from studies.alignment.folds import workload_folds

    if len(names) < HELD + 2:
        return len(names) * (len(names) - 1) // 2
    folds = workload_folds(names, HELD, None, 0)
    return sum(len(fold) * (len(fold) - 1) // 2 for fold in folds)


def ordered_pairs(names: Sequence[str]) -> list[Window]:
    """All, those first that are tested by the study's own folds."""
    from studies.alignment.folds import workload_folds

    every: list[Window] = list(combinations(names, 2))
    random.Random(1).shuffle(every)
    if len(names) < HELD + 2:
        return every
    together = [set(fold) for fold in workload_folds(names, HELD, None, 0)]
    return sorted(every, key=lambda pair: not any(fold.issuperset(pair) for fold in together))


def write(options: argparse.Namespace, recorder: Recorder) -> None:
    """Check what was recorded and write it, reduced."""
    from jostle.alignment import equal_repeats
    from jostle.traces import Traces, read_traces, write_traces

    every = list(read_traces(options.scratch))
    kept = equally_often(every, options.repeats)
    programs = [one for one in kept if not one.workload.startswith("probe-")]
    beside = [one for one in programs if not any("probe-" in name for name in one.corunners)]
    if (least := equal_repeats(beside)) != options.repeats:
        sys.exit(f"windows were recorded {least} times, not {options.repeats}")
    if any(np.isnan(one.runtime_seconds) for one in programs):
        sys.exit("a program had not ended with its window")
    totals: dict[str, list[float]] = defaultdict(list)
    for one in programs:
        totals[one.workload].append(float(one["instructions"].sum()))
    for name, counts in totals.items():
        if max(counts) > 1.02 * min(counts):
            sys.exit(f"{name} executed from {min(counts):.4g} to {max(counts):.4g} instructions")
    fresh = options.folder.with_name(options.folder.name + ".new")
    about = {
        "programs": {name: options.text[name] for name in recorder.names},
        "platform": programs[0].platform,
        "repeats": options.repeats,
        "pairs": recorder.state["pairs"],
        "interval_seconds": options.interval,
        "corunners": "loop",
        "own_cores": options.own_cores,
    }
    size = MOST_BYTES + 1
    for bits, decimals in DETAIL:
        if size > MOST_BYTES:
            shutil.rmtree(fresh, ignore_errors=True)
            write_traces(fresh, Traces.from_traces([reduced(one, bits, decimals) for one in kept]))
            (fresh / "campaign.json").write_text(json.dumps(about, indent=1) + "\n")
            size = sum(file.stat().st_size for file in fresh.rglob("*") if file.is_file())
    if size > MOST_BYTES:
        sys.exit(f"{size} bytes are over {MOST_BYTES}: record with a longer --interval")
    shutil.rmtree(options.folder, ignore_errors=True)
    fresh.rename(options.folder)
    waited = sum(float(np.nansum(one["run_delay_seconds"])) for one in beside)
    took = sum(float(one.time_seconds[-1]) for one in beside)
    say(f"{options.folder}: {len(kept)} runs, {size / 1e6:.2f} MB; waited {waited / took:.1%}")


def equally_often(traces: Sequence[Trace], repeats: int) -> list[Trace]:
    """The first so many of every window: a break may have left one more."""
    windows: dict[tuple, dict[str, list[Trace]]] = defaultdict(dict)
    for one in sorted(traces, key=lambda one: int(one.run_id.split("-")[0])):
        key = tuple(sorted((one.workload, *one.corunners)))
        windows[key].setdefault(one.window_id or one.run_id, []).append(one)
    return [
        one
        for same in windows.values()
        for members in list(same.values())[:repeats]
        for one in members
    ]


def reduced(one: Trace, bits: int, decimals: int) -> Trace:
    """Without counters that nobody reads or that this host has not, counts and times rounded."""
    counters = {
        name: rounded(one[name], bits)
        for name in (KEPT if one.solo else BESIDE)
        if name in one.counters and np.isfinite(one[name]).any()
    }
    ends = np.round(one.time_seconds, decimals)
    steps = np.round(np.diff(ends, prepend=0.0), decimals)
    if ends[0] <= 0 or (steps <= 0).any():  # a last sample that is next to nothing
        return replace(one, counters=counters)
    return replace(one, time_seconds=ends, interval_seconds=steps, counters=counters)


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2.0**bits), exponent - bits)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
