"""Record the campaign of the alignment method here: twelve programs with phases, alone and in all pairs.

    python benchmarks/alignment_campaign.py FOLDER [--interval 0.002] [--rounds 6] [--pairs 66]
        [--passes 2] [--alone-runs 5] [--pair-runs 3] [--attempts 1] [--dry-run]

Each window is one call of `jostle trace`; whoever has ended begins again until both have ended once. One
recording of a run tells little where unseen neighbours slow a core down for seconds: every window is recorded
several times, in passes through all of them, so that its repeats lie minutes apart, and run times are put
together of the quiet stretches. Evaluate it with

    jostle evaluate alignment --on campaign --data FOLDER --corunners loop --own-cores

Needs two cores that nothing else uses. Windows recorded already are not recorded again: run it again to go on
after a break.
"""

from __future__ import annotations

import argparse
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
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--interval", type=float, default=0.002, help="seconds, 0.001 to 0.01")
    parser.add_argument(
        "--rounds", type=int, default=6, help="times each program repeats its phases"
    )
    parser.add_argument("--passes", type=int, default=2, help="through all windows")
    parser.add_argument("--alone-runs", type=int, default=5, help="of a program, in each pass")
    parser.add_argument("--pair-runs", type=int, default=3, help="of a pair, in each pass")
    parser.add_argument(
        "--attempts", type=int, default=1, help="at a window that was disturbed (jostle trace)"
    )
    parser.add_argument("--pairs", type=int, default=66, help="of all 66, in a fixed order")
    parser.add_argument("--dry-run", action="store_true", help="print the commands only")
    given = parser.parse_args()
    programs = {
        name: f"{name}={'+'.join([text] * given.rounds)}" for name, text in PROGRAMS.items()
    }
    windows = [(name,) for name in programs] + list(combinations(programs, 2))[: given.pairs]
    done = given.folder / "windows-done.txt"
    known = set(done.read_text().splitlines()) if done.is_file() else set()
    turns = [(turn, members) for turn in range(given.passes) for members in windows]
    for number, (turn, members) in enumerate(turns, start=1):
        label = f"{turn}: {' + '.join(members)}"
        if label in known:
            continue
        command = [sys.executable, "-m", "jostle", "trace", "-o", str(given.folder)]
        command += ["--interval", f"{given.interval:g}", "--attempts", f"{given.attempts}"]
        command += ["--runs", f"{given.alone_runs if len(members) == 1 else given.pair_runs}"]
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
