"""Record the campaign of the alignment method here: sixteen programs with phases, alone and in all pairs.

    python benchmarks/alignment_campaign.py FOLDER [--interval 0.002] [--rounds 6] [--pairs 120]
        [--passes 2] [--repeats 3] [--probes] [--attempts 1] [--seed 0] [--dry-run]

Each window is one call of `jostle trace`; whoever has ended begins again until both have ended once. One
recording of a run tells little where unseen neighbours slow a core down for seconds: every window is recorded
several times, in passes through all of them in random order, so that its repeats lie minutes apart, and run
times are put together of the quiet stretches. Programs alone and pairs have equal numbers of repeats; from
pass to pass members change cores. With --probes every program is recorded beside four stressors too. Evaluate
it with

    jostle evaluate alignment --on campaign --data FOLDER --corunners loop --own-cores

Needs two cores that nothing else uses. Windows recorded already are not recorded again: run it again to go on
after a break.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from itertools import combinations
from pathlib import Path

# Phases of some ten to fifty milliseconds, from compute-bound to memory-bound: (kernel, repetitions) in turn.
PROGRAMS = {
    "hash-stream": "sha256-m*40+stream-l*60",
    "sort-chase": "sort-m*30+chase-m*60",
    "fft-copy": "fft-m*80+copy-l*50",
    "matmul-bfs": "matmul-m*50+bfs-l*20",
    "vision": "disparity-m*80+sobel-m*60+copy-l*30",
    "solver": "lu-m*60+stencil-l*20",
    "search-sieve": "search-m*80+sieve-l*20",
    "nbody-stream": "nbody-m*60+stream-l*30+nbody-m*20",
    "crypto": "aes-m*60+chacha-m*60",
    "graph": "bfs-l*30+chase-l*4",
    "edit-sort": "edit-m*40+sort-l*10",
    "stencil-fft": "stencil-m*80+fft-l*15+copy-l*20",
    "pages": "pagerank-l*12+gemv-l*40",
    "buckets": "radix-l*12+heat-l*10",
    "waves": "wavelet-l*20+stream-l*40",
    "lists": "chase-l*6+copy-l*40+chase-l*2",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--interval", type=float, default=0.002, help="seconds, 0.001 to 0.01")
    parser.add_argument(
        "--rounds", type=int, default=6, help="times each program repeats its phases"
    )
    parser.add_argument("--passes", type=int, default=2, help="through all windows")
    parser.add_argument("--repeats", type=int, default=3, help="of a window, in each pass")
    parser.add_argument("--probes", action="store_true", help="every program beside stressors too")
    parser.add_argument("--seed", type=int, default=0, help="of the order of windows")
    parser.add_argument(
        "--attempts", type=int, default=1, help="at a window that was disturbed (jostle trace)"
    )
    parser.add_argument("--pairs", type=int, default=120, help="of all 120, in a fixed order")
    parser.add_argument("--dry-run", action="store_true", help="print the commands only")
    given = parser.parse_args()
    programs = {
        name: f"{name}={'+'.join([text] * given.rounds)}" for name, text in PROGRAMS.items()
    }
    windows = [(name,) for name in programs] + list(combinations(programs, 2))[: given.pairs]
    done = given.folder / "windows-done.txt"
    known = set(done.read_text().splitlines()) if done.is_file() else set()
    turns: list[tuple[int, tuple[str, ...], bool]] = []
    order = random.Random(given.seed)
    for turn in range(given.passes):
        mine = [(turn, members[:: 1 if turn % 2 == 0 else -1], False) for members in windows]
        if given.probes:
            mine += [(turn, (name,), True) for name in programs]
        turns += order.sample(mine, len(mine))
    for number, (turn, members, probes) in enumerate(turns, start=1):
        label = f"{turn}: {' + '.join(members)}{' beside stressors' if probes else ''}"
        if label in known:
            continue
        command = [sys.executable, "-m", "jostle", "trace", "-o", str(given.folder)]
        command += ["--interval", f"{given.interval:g}", "--attempts", f"{given.attempts}"]
        command += ["--runs", f"{given.repeats}", *(["--probes"] if probes else [])]
        for name in members:
            command += ["-w", programs[name]]
        if len(members) > 1:
            command.append("--loop")
        print(f"{number}/{len(turns)} pass {label}", file=sys.stderr)
        if given.dry_run:
            print(" ".join(command))
            continue
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with done.open("a") as file:
            file.write(label + "\n")


if __name__ == "__main__":
    main()
