"""Random bad command lines as real processes: whatever is asked, the exit code is a documented one.

    python benchmarks/command_lines.py --number 2000 [--from 0] [--seed 0]

Words are drawn from the commands' own names and options and from what people mistype: wrong numbers, empty
and endless names, control characters, files of every kind in the place of a dataset or a model. Counted is
exit code 70 (an internal error), a signal, and a traceback. What is found is printed when it is found, and
how far it is to stderr, with the codes so far: a run that is stopped has told what it saw, and `--from` goes
on there. A line depends on its number and the seed alone. One that goes on for `--seconds` is `late`, which
good input may be, and is stopped.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from jostle.cli._command_app import build

_TOLD_EVERY = 20
_VALUES = (
    *("", " ", "-", "--", "0", "-1", "1", "3", "1e400", "nan", "inf", "-inf", "0x10", "9" * 400),
    *("\x1b[31m", "é", "../..", "/", "/dev/null", "/proc/self/mem", "no-such", "x" * 5000),
    *("*", "{}", "[", "a=b", "a+b", "1,2", "1;2", "99999999999999999999", "True", "null", "\udcff"),
)
# Those that measure, listen or take long on good input get something that ends at once.
_SKIPPED = {"tour", "serve"}


def main() -> None:
    """Print a table of exit codes and every command line that broke the rule."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--number", type=int, default=2000)
    parser.add_argument(
        "--from", type=int, default=0, dest="first", help="number of the first line"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0, help="that a line may take")
    given = parser.parse_args()
    commands = _commands(typer.main.get_command(build()), ())
    codes: Counter[str] = Counter()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="jostle-lines-") as name:
        folder = Path(name)
        files = _files(folder)
        last = given.first + given.number
        for number in range(given.first, last):
            words = _line(random.Random(f"{given.seed}, {number}"), commands, files)
            code, output = _ran(words, folder, given.seconds)
            codes[code] += 1
            if code == "late":
                print(f"line {number} went on: {words!r:.200}", file=sys.stderr, flush=True)
            if code not in {"0", "1", "2", "3", "4", "5", "late"} or "Traceback" in output:
                bad += 1
                print(f"line {number}, {code}: {words!r:.400}\n    {output[-400:]!r}", flush=True)
            if (number + 1) % _TOLD_EVERY == 0 or number + 1 == last:
                told = ", ".join(f"{count} of code {code}" for code, count in sorted(codes.items()))
                print(f"{number + 1} of {last}: {told}; {bad} bad", file=sys.stderr, flush=True)
    print("| exit code | command lines |\n|---|---|")
    for code, count in sorted(codes.items()):
        print(f"| {code} | {count} |")
    sys.exit(bad > 0)


def _commands(command: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], list[str]]]:
    """(words of the command, its options), of every command below this one."""
    if hasattr(command, "list_commands"):
        context = command.context_class(command)
        found = []
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and name not in _SKIPPED:
                found += _commands(below, (*path, name))
        return found
    options = [word for parameter in command.params for word in parameter.opts if word[:1] == "-"]
    return [(path, options)]


def _files(folder: Path) -> list[str]:
    """A file of each odd kind, and folders that are no dataset."""
    contents = {
        "empty": b"",
        "text.csv": b"job,host,wall\na,p,1\n",
        "broken.json": b'{"a": [',
        "zero": b"\0" * 100,
        "latin.csv": b"a,\xff\n1,2\n",
        "kernel.wasm": b"\0asm\1\0\0\0",
        "fleet.json": b'{"schema": "fleet/v1"}',
        "a.parquet": b"PAR1",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    for name in ("nothing", "half/runs"):
        (folder / name).mkdir(parents=True)
    (folder / "half" / "runs" / "1.parquet").write_bytes(b"PAR1xxxxPAR1")
    return [*contents, "nothing", "half"]


def _line(
    rng: random.Random, commands: Sequence[tuple[tuple[str, ...], list[str]]], files: list[str]
) -> list[str]:
    path, options = rng.choice(commands)
    words = [*path]
    if rng.random() < 0.05:
        words = [*words[:-1], rng.choice(_VALUES)]
    for _ in range(rng.randint(0, 6)):
        if options and rng.random() < 0.7:
            words.append(rng.choice(options))
        if rng.random() < 0.8:
            words.append(rng.choice(files) if rng.random() < 0.5 else rng.choice(_VALUES))
    if path[:1] == ("measure",) or path[:1] == ("trace",):
        words += ["--budget", "0"] if path[0] == "measure" else []
    return words


def _ran(words: list[str], folder: Path, seconds: float) -> tuple[str, str]:
    """(exit code, both outputs); `late` for one that goes on, and is stopped with all it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jostle", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "late", ""
    return str(process.returncode), output.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
