"""Commands killed at random moments: whether anything acknowledged is ever lost or there twice.

    python benchmarks/command_kills.py [--kills 100] [--only import|fit|update|measure ...] [--seed 0]

A command runs in a process that begins with the libraries loaded, and is killed with its threads after a
random part of the time that it takes. What commands that ended have written is there after each of them,
once and readable; no run is learned twice; no program that was measured goes on. Ends with 1 where anything
is not as it should be. `benchmarks/service.py --only kills` kills the service, its learner and its database.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet  # noqa: F401 (loaded once, before processes begin)
import scipy.stats  # noqa: F401

import jostle
import jostle.models
from jostle.data import Dataset, read_runs

COLUMNS = "--kind csv --workload w --platform h --corunners co --runtime t --unit s --run-id run"
PROGRAM = "0.0623"  # seconds that what is measured sleeps: no other program here does


def begun(words: Sequence[object], log: Path) -> int:
    """The process of a command."""
    if pid := os.fork():
        return pid
    os.setsid()
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number, target in ((out, 1), (out, 2), (os.open(os.devnull, os.O_RDONLY), 0)):
        os.dup2(number, target)
    code = 99
    try:
        sys.argv = ["jostle", *map(str, words)]
        from jostle.__main__ import main

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    finally:
        os._exit(code)


def ended(pid: int, most_seconds: float) -> int | None:
    """The exit code; None where it was killed, as that took too long."""
    end = time.monotonic() + most_seconds
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return 0
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


class Command:
    """One command, killed again and again. folder: of its own. acknowledged: what is known to be there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        self.data, self.model = folder / "data", folder / "model"
        self.acknowledged: set[str] = set()
        self.prepare()

    def prepare(self) -> None:
        """Make what it works on."""

    def words(self, turn: int) -> list[object]:
        raise NotImplementedError

    def wrong(self, turn: int, *, has_ended: bool) -> list[str]:
        """What is not as it should be after a turn."""
        raise NotImplementedError

    def run(self, *words: object) -> float:
        """Seconds that a command takes to its end."""
        start = time.monotonic()
        pid = begun(words, self.log)
        if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            raise SystemExit(f"{' '.join(map(str, words))}: {code}\n{self.log.read_text()[-500:]}")
        return time.monotonic() - start

    def table(self, name: str, n: int) -> list[object]:
        """Words that import so many new runs."""
        draw = np.random.default_rng(len(name) + n)
        rows = [
            f"{name}-{i},w{draw.integers(4)},p,{'' if i % 2 else f'w{draw.integers(4)}'},"
            f"{draw.lognormal(0, 0.1):.6f}"
            for i in range(n)
        ]
        path = self.folder / f"{name}.csv"
        path.write_text("\n".join(["run,w,h,co,t", *rows]) + "\n")
        return ["import", path, *COLUMNS.split(), "-o", self.data]

    def ids(self) -> Counter[str]:
        there = list(self.data.glob("runs/*.parquet"))
        return Counter(read_runs(self.data).table.column("run_id").to_pylist() if there else [])

    def lost_and_doubled(self, now: Counter[str]) -> list[str]:
        lost, twice = self.acknowledged - now.keys(), [one for one in now if now[one] > 1]
        self.acknowledged = set(now)
        return [f"lost {one}" for one in lost] + [f"twice {one}" for one in twice]


class Import(Command):
    """Of each table all runs or none."""

    def words(self, turn: int) -> list[object]:
        return self.table(f"t{turn}", 300)

    def wrong(self, turn: int, *, has_ended: bool) -> list[str]:
        now = self.ids()
        mine = sum(one.startswith(f"t{turn}-") for one in now)
        is_whole = mine == 300 or (mine == 0 and not has_ended)
        return self.lost_and_doubled(now) + ([] if is_whole else [f"{mine} of 300"])


class Fit(Command):
    """One model over the other: it answers as the last one that was acknowledged, or as the one after it."""

    def prepare(self) -> None:
        self.answers, self.now = list[float](), None
        for number in range(4):
            self.data = self.folder / f"data{number}"
            self.run(*self.table(f"f{number}", 60 + 20 * number))
            self.run("fit", self.data, "-o", self.folder / f"m{number}", "--method", "slowdown")
            self.answers.append(self.answer(self.folder / f"m{number}"))

    def answer(self, model: Path) -> float:
        one = {"workload": ["w0"], "platform": ["p"], "corunners": [["w1"]]}
        return float(jostle.load(model).predict(jostle.Colocations.from_columns(**one))[0])

    def words(self, turn: int) -> list[object]:
        data = self.folder / f"data{turn % 4}"
        return ["fit", data, "-o", self.model, "--method", "slowdown"]

    def wrong(self, turn: int, *, has_ended: bool) -> list[str]:
        if not (self.model / "model.json").exists():
            return ["lost"] if has_ended or self.now is not None else []
        before, self.now = self.now, self.answers.index(self.answer(self.model))
        is_right = self.now == turn % 4 or (self.now == before and not has_ended)
        return [] if is_right else [f"model {self.now} where {before} was, then {turn % 4}"]


class Update(Command):
    """What was learned stays learned, and no run is learned again."""

    given = 200
    told: list[object]

    def prepare(self) -> None:
        self.run(*self.table("u", self.given))
        self.run("fit", self.data, "-o", self.model, "--method", "slowdown")
        self.told = []

    def words(self, turn: int) -> list[object]:
        if turn % 2 == 0:
            self.run(*self.table(f"more{turn}", 20))
            self.given += 20
        return ["update", self.model, self.data]

    def wrong(self, turn: int, *, has_ended: bool) -> list[str]:
        before, records = self.told, jostle.load(self.model).metadata.get("updates") or []
        self.told, learned = records, 200 + sum(one["runs"] for one in records)
        is_right = learned == self.given if has_ended else learned <= self.given
        lost = [] if records[: len(before)] == before else ["an update lost"]
        return lost + ([] if is_right else [f"{learned} learned of {self.given}"])


class Measure(Command):
    """Runs that were written stay, and what was measured ends."""

    def words(self, turn: int) -> list[object]:
        more = ["--solo", 2 + turn // 4, "--sets", 0, "--", "sleep", PROGRAM]
        return ["measure", "-o", self.data, *more]

    def wrong(self, turn: int, *, has_ended: bool) -> list[str]:
        del turn, has_ended
        end, left = time.monotonic() + 5, [""]
        while left and time.monotonic() < end:
            time.sleep(0.1)
            left = [str(one) for one in Path("/proc").glob("[0-9]*/cmdline") if is_measured(one)]
        return self.lost_and_doubled(self.ids()) + [f"{one} goes on" for one in left]


def is_measured(command_line: Path) -> bool:
    try:
        return command_line.read_bytes() == f"sleep\0{PROGRAM}\0".encode()
    except OSError:
        return False


COMMANDS = {"import": Import, "fit": Fit, "update": Update, "measure": Measure}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", choices=[*COMMANDS], nargs="+", default=[*COMMANDS])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    draw, bad = random.Random(asked.seed), 0
    for name in asked.only:
        with tempfile.TemporaryDirectory() as folder:
            command, killed, turn, wrong = COMMANDS[name](Path(folder)), 0, 0, list[str]()
            takes = command.run(*command.words(0))
            wrong += command.wrong(0, has_ended=True)
            while killed < asked.kills:
                turn += 1
                words, start = command.words(turn), time.monotonic()
                code = ended(begun(words, command.log), draw.uniform(0, 1.2 * takes))
                killed += code is None
                if code is not None:
                    takes = min(takes, time.monotonic() - start)
                wrong += command.wrong(turn, has_ended=code is not None)
            command.run(*command.words(turn + 1))  # once more to the end
            wrong += command.wrong(turn + 1, has_ended=True)
            if command.data.exists():
                wrong += [f"left over: {one}" for one in Dataset(command.data).leftovers()]
        print(f"{name}: {killed} kills in {turn} turns, {len(wrong)} wrong", flush=True)
        for text in wrong[:3]:
            print(f"    {text}")
        bad += len(wrong)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
