"""A new user's first two hours, step by step: what was typed, how long it took, and what was printed.

    python benchmarks/first_hours.py [--folder FOLDER] [--json FILE]

A table of one's own with a mess in it, programs of one's own, a scheduler's log, the page, a schedule: every
command as a person types it, in a folder of its own, without a terminal. A step is as it should be where it
ends with the code that it should and prints the words that help to go on; ends with 1 where one is not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

SHOWN = 12  # lines of what was printed
TIMES = {"web": 0.2, "index build": 6.0, "train": 45.0, "encode": 3.0, "backup": 12.0}
NAMED = "--workload job --platform host --corunners neighbours --runtime wall_ms --unit ms -o mine"


@dataclass(frozen=True)
class Step:
    """title: what the user wants. command: after jostle. code: how it should end. words: to be printed."""

    title: str
    command: str
    words: tuple[str, ...] = ()
    code: int = 0


@dataclass(frozen=True)
class Outcome:
    """printed: standard output and error, in this order."""

    title: str
    command: str
    seconds: float
    code: int
    printed: str
    is_as_it_should: bool


STEPS = (
    Step("what is here", "doctor", ("measure",)),
    Step("what is in my table", "runs times.csv", (f"jostle import csv times.csv {'--workload job'}",), 2),
    Step("bring it in", f"import csv times.csv {NAMED}", ("line 41", "--drop-bad"), 4),
    Step(
        "without the bad row",
        f"import csv times.csv {NAMED} --drop-bad",
        ("'ENCODE' to 'encode'", "multiply", "--fix all"),
        4,
    ),
    Step("mended", f"import csv times.csv {NAMED} --drop-bad --fix all", ("done:", "300 runs")),
    Step("what it holds", "runs mine", ("are set aside", "repeats agree")),
    Step("a row I know to be wrong", "runs mine --set-aside 50 --reason reboot", ("set aside",)),
    Step("learn", "fit mine -o model", ("up to",)),
    Step("how long", "predict model -w train -p node-a -b web", ("at most",)),
    Step("surely", "predict model -w train -p node-a -b web -c 0.999", ("takes at least 999",), 3),
    Step("why", "explain model -w train -p node-a -b web", ("co-runner", "What would help")),
    Step("how good it is", "report mine model -o report.html", ("report.html",)),
    Step("what next", "suggest model --most 3", ("",)),
    Step(
        "my programs, as a plan",
        "measure -o measured --sets 6 --solo 2 -c 'sort words' -c 'sha256sum words' --plan -- gzip -c words",
        ("[[job]]", "windows alone"),
    ),
    Step("measured", "measure campaign.toml", ("windows", "other programs took")),
    Step("one that fails", "measure -o broken --sets 0 --solo 1 -- sort nowhere", ("No such file",), 1),
    Step("what was measured", "runs measured", ("measured alone",)),
    Step("a scheduler's log", "runs sacct.txt", ("jostle import sacct sacct.txt",), 2),
    Step("its runs", "import sacct sacct.txt -o log --workload {JobName:^[a-z]+}", ("rows of jobs",)),
    Step("a schedule", "place rank model --fleet fleet.csv -w web@4x", ("east",)),
    Step("all at once", "place assign model --fleet fleet.csv --requests jobs.csv", ("train",)),
)  # fmt: skip


def write_inputs(folder: Path) -> None:
    """A table of 300 runs and a bad row, words, a log, a fleet."""
    draw = random.Random(3)
    lines = ["job,host,neighbours,wall_ms,date"]
    for number in range(300):
        job, host = draw.choice(list(TIMES)), draw.choice(["node-a", "node-b", "node-c"])
        beside = draw.choices(list(TIMES), k=draw.choice([0, 0, 1, 1, 2]))
        seconds = TIMES[job] * (1 + 0.2 * len(beside)) * draw.lognormvariate(0, 0.05)
        seconds *= {"node-a": 1.0, "node-b": 1.3, "node-c": 0.8}[host]
        shown = seconds * (1 if number % 37 == 5 else 1000)
        job = {0: job.upper(), 1: job.replace(" ", "  ")}.get(number % 13, job)
        beside += ["cron"] * (number % 60 == 7)
        lines.append(f"{job},{host},{';'.join(beside)},{shown:.6g},2026-03-{1 + number % 28:02}")
    lines.insert(40, "web,node-a,,,2026-03-01")
    (folder / "times.csv").write_text("\n".join(lines) + "\n")
    (folder / "words").write_text("".join(f"{draw.random()}\n" for _ in range(60_000)))
    jobs = ["JobID|User|JobName|NodeList|Start|End|State|ElapsedRaw"]
    for number in range(60):
        hour, minutes = number % 20, 20 + number % 30
        jobs.append(
            f"{number}|ann|{'train' if number % 2 else 'sweep'}-{number}|n{number % 4}|"
            f"2026-03-01T{hour:02}:00:00|2026-03-01T{hour:02}:{minutes}:00|COMPLETED|{60 * minutes}"
        )
    (folder / "sacct.txt").write_text("\n".join(jobs) + "\n")
    (folder / "jobs.csv").write_text("workload,deadline\nweb,4x\ntrain,3x\nencode,5x\n")
    (folder / "fleet.csv").write_text("name,platform,slots\neast,node-a,3\nwest,node-b,2\n")


def outcome_of(step: Step, folder: Path) -> Outcome:
    """Done in the folder; of a plan, what it prints is campaign.toml."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "jostle", *shlex.split(step.command)],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=600,
        check=False,
    )
    seconds = time.perf_counter() - begun
    if "--plan" in step.command:
        (folder / "campaign.toml").write_text(done.stdout)
    printed = done.stdout + done.stderr
    flat = " ".join(printed.split())
    good = done.returncode == step.code and all(word in flat for word in step.words)
    return Outcome(step.title, f"jostle {step.command}", seconds, done.returncode, printed, good)


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """Its address."""
    command = [
        sys.executable,
        "-m",
        "jostle",
        "serve",
        "model",
        "--port",
        "0",
        "--fleet",
        "fleet.csv",
    ]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.wait()


def page_outcome(folder: Path) -> Outcome:
    """The page comes, and the question that it sends first is answered."""
    begun = time.perf_counter()
    with service(folder) as address:
        page = urllib.request.urlopen(f"{address}/").read().decode()
        item = {"workload": "web", "platform": "node-a", "corunners": ["train"]}
        sent = urllib.request.Request(
            f"{address}/v1/predict",
            json.dumps({"items": [item]}).encode(),
            {"Content-Type": "application/json"},
        )
        answer = json.load(urllib.request.urlopen(sent))["items"][0]
    printed = f"{len(page)} characters; {json.dumps(answer)}\n"
    good = "<title>Jostle" in page and answer["runtime_seconds"] > 0
    return Outcome("the page", "jostle serve model", time.perf_counter() - begun, 0, printed, good)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="jostle-first-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["COLUMNS"] = "120"
    write_inputs(folder)
    outcomes = []
    for step in (*STEPS, None):
        one = page_outcome(folder) if step is None else outcome_of(step, folder)
        outcomes.append(one)
        print(
            f"{'' if one.is_as_it_should else 'NOT AS IT SHOULD BE: '}{one.title}: {one.seconds:.1f} s"
        )
        print(f"  $ {one.command}    [ends with {one.code}]")
        lines = one.printed.splitlines()
        for line in lines[:SHOWN]:
            print(f"  | {line}")
        if len(lines) > SHOWN:
            print(f"  | … {len(lines) - SHOWN} more lines")
    good = sum(one.is_as_it_should for one in outcomes)
    total = sum(one.seconds for one in outcomes)
    print(f"{good} of {len(outcomes)} steps as they should be, {total:.0f} s in all, in {folder}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n")
    return int(good < len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
