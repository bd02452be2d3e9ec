"""Killed writers, concurrent writers and flipped bits: whether data or a model is ever lost or unreadable.

    python benchmarks/kills.py [--rounds 200] [--bits 2000 | --every-bit] [--seed 0] [--folder FOLDER]

A round of kills: a process writes without pause and is killed at a random moment. A round of pairs: two
processes write at the same moment, in datasets with features and run_ids that contradict each other. All
the while another process reads. Then everything acknowledged must be there, everything readable, and
nothing left over after one more write. Ends with 1 where anything is not as it should be.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import numpy as np
from _writers import KINDS, Subject

from jostle.errors import JostleError

# Children begin with the libraries loaded, so that a round takes a moment.
PROCESSES = multiprocessing.get_context("forkserver")
LOADED = [
    "jostle.models",
    "jostle.learn.learners.latent_factors",
    "jostle.data.store._stored",
    "pyarrow.parquet",
]
FRESH = 20  # rounds of kills after which a new folder begins


@dataclass
class Tally:
    """What became of the rounds of one kind."""

    rounds: int = 0
    acknowledged: int = 0
    settled: int = 0
    lost: int = 0
    unreadable: int = 0
    leftovers: int = 0
    reads: int = 0
    failed_reads: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        return self.lost + self.unreadable + self.leftovers + self.failed_reads


def writing(
    kind: str, shared: Path, folder: Path, writer: str, told: Path, both: Barrier | None
) -> None:
    """A writer: one write after the other, each with a line in `told` once it is through. One of two writes
    five times, three of them at the same moment as the other; one alone until it is killed."""
    subject = KINDS[kind](shared)
    line = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for turn in range(1, 6 if both else 10**9):
        done = subject.write(folder, writer, turn, both.wait if both and turn % 2 else None)
        os.write(line, f"{done}\n".encode())


def reading(kind: str, shared: Path, folders: Path, told: Path, stop: Event) -> None:
    """A reader: the newest folder over and over, once it can be read at all; tells how often it failed. It
    reads at least once, however late it begins."""
    subject = KINDS[kind](shared)
    reads, failed, seen = 0, [], set()
    last = False
    while not last:
        last = stop.is_set()
        folder = max(folders.iterdir(), key=lambda path: int(path.name), default=None)
        if folder is None:
            continue
        try:
            subject.read(folder)
            seen.add(folder)
            reads += 1
        except JostleError as error:
            if folder in seen:  # before the first write there is nothing to read
                failed.append(str(error))
    told.write_text("\n".join([str(reads), *failed]))


def lines(path: Path) -> list[str]:
    """The complete lines of a file, none where there is no file."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def check(subject: Subject, folder: Path, acknowledged: list[list[str]], tally: Tally) -> None:
    """One folder after its rounds."""
    try:
        lost, settled = subject.lost(folder, acknowledged)
        tally.settled += settled
        tally.lost += len(lost)
        tally.examples += lost
    except JostleError as error:
        tally.unreadable += 1
        tally.examples.append(str(error))


def left_over(subject: Subject, folder: Path, tally: Tally) -> None:
    """What is left after one more write by somebody who lives."""
    subject.write(folder, "last", 10**6)
    left = subject.left(folder)
    tally.leftovers += len(left)
    tally.examples += map(str, left)


def kills(
    subject: Subject, place: Path, rounds: int, tally: Tally, random: Any, shared: Path
) -> None:
    """Rounds of one writer, killed; several rounds to a folder."""
    told: list[list[str]] = []
    folder = place / "folders" / "0"
    for number in range(rounds):
        if number % FRESH == 0:
            folder, told = place / "folders" / str(number), []
        acknowledged = place / f"told-{number}"
        arguments = (subject.name, shared, folder, f"k{number}", acknowledged, None)
        writer = PROCESSES.Process(target=writing, args=arguments)
        writer.start()
        while not lines(acknowledged) and writer.is_alive():
            time.sleep(0.001)
        time.sleep(float(random.uniform(0, 0.15)))
        writer.kill()
        writer.join()
        mine = lines(acknowledged)
        tally.rounds += 1
        tally.acknowledged += len(mine)
        # Of a model only the last word counts.
        told = [mine] if subject.name == "model" else [*told, mine]
        check(subject, folder, told, tally)
        if number % FRESH == FRESH - 1 or number == rounds - 1:
            left_over(subject, folder, tally)


def pairs(
    subject: Subject, place: Path, rounds: int, tally: Tally, random: Any, shared: Path
) -> None:
    """Rounds of two writers at the same moment, each round in a folder of its own."""
    del random
    for number in range(rounds):
        folder = place / "folders" / str(number)
        both = PROCESSES.Barrier(2)
        told = [place / f"told-{number}-{side}" for side in "ab"]
        writers = [
            PROCESSES.Process(
                target=writing, args=(subject.name, shared, folder, name, acknowledged, both)
            )
            for name, acknowledged in zip(("a", "bb"), told, strict=True)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        tally.rounds += 1
        tally.acknowledged += sum(len(lines(path)) for path in told)
        check(subject, folder, [lines(path) for path in told], tally)
        left_over(subject, folder, tally)


def tried(kind: str, how: Callable[..., None], rounds: int, seed: int, shared: Path) -> Tally:
    """All rounds of one kind, with a reader beside them."""
    tally, random = Tally(), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "folders").mkdir()
        stop = PROCESSES.Event()
        arguments = (kind, shared, place / "folders", place / "read", stop)
        reader = PROCESSES.Process(target=reading, args=arguments)
        reader.start()
        try:
            how(KINDS[kind](shared), place, rounds, tally, random, shared)
        finally:
            stop.set()
            reader.join()
        first, *failed = (place / "read").read_text().split("\n")
        tally.reads, tally.failed_reads = int(first), len(failed)
        tally.examples += failed
    return tally


def flips(kind: str, most: int | None, seed: int, shared: Path) -> tuple[int, int, int]:
    """(bits flipped, refused, answered otherwise than before without a word) in one small folder."""
    subject, random = KINDS[kind](shared), np.random.default_rng(seed)
    flipped = refused = silent = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subject.write(folder, "a", 1)
        before = subject.read(folder)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            content = bytearray(path.read_bytes())
            bits = np.arange(8 * len(content))
            for bit in bits if most is None else random.choice(bits, min(most, len(bits)), False):
                content[bit // 8] ^= 1 << bit % 8
                path.write_bytes(content)
                content[bit // 8] ^= 1 << bit % 8
                flipped += 1
                try:
                    silent += subject.read(folder) != before
                except JostleError:
                    refused += 1
            path.write_bytes(content)
    return flipped, refused, silent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--only", choices=[*KINDS], action="append", help="one kind of folder")
    parser.add_argument("--bits", type=int, default=2000, help="flipped in each file")
    parser.add_argument("--every-bit", action="store_true", help="instead of some")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--folder", type=Path, help="where, the system's temporary folder otherwise"
    )
    given = parser.parse_args()
    tempfile.tempdir = None if given.folder is None else str(given.folder)
    PROCESSES.set_forkserver_preload(["__main__", *LOADED])
    bad = 0
    columns = "acknowledged  settled  lost  unreadable  left over    reads  failed reads"
    print(f"{'':<18}rounds  {columns}")
    with tempfile.TemporaryDirectory() as name:
        shared = Path(name)
        for kind in given.only or KINDS:
            for words, how in (("killed", kills), ("in pairs", pairs)):
                t = tried(kind, how, given.rounds, given.seed, shared)
                bad += t.bad
                print(
                    f"{kind + ', ' + words:<18}{t.rounds:>6}  {t.acknowledged:>12}  {t.settled:>7}  "
                    f"{t.lost:>4}  {t.unreadable:>10}  {t.leftovers:>9}  {t.reads:>7}  "
                    f"{t.failed_reads:>12}"
                )
                for text in t.examples[:3]:
                    print(f"    {text}")
        print(f"\n{'bits flipped in a':<18}{'bits':>8}  refused  wrong in silence")
        for kind in given.only or KINDS:
            most = None if given.every_bit else given.bits
            flipped, refused, silent = flips(kind, most, given.seed, shared)
            bad += silent + (flipped - refused if kind == "model" else 0)
            print(f"{kind:<18}{flipped:>8}  {refused:>7}  {silent:>16}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
