"""Writes what Jostle answers today, and says what a later version answers differently.

    python benchmarks/freeze.py write FILE [--only TEXT]
    python benchmarks/freeze.py compare BEFORE AFTER [--tolerance 1e-9]

`write` fits every method to shipped and made data, with two seeds, and keeps predictions, bounds and their
outcomes, then asks every command for its JSON (some six minutes of one core). `compare` reads two such files:
numbers may differ by the tolerance (relative; on another processor a trained network differs by more). A
document is compared by the names of its fields, wherever they stand in it, so that a new shape with the
same figures agrees; a field that is in one alone is named. Ends with 1 where a figure moved.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle import data as datasets
from jostle.data import GPUS, Trace, Traces, tasks_from_rows, write_profiles, write_traces

CONFIDENCES = (0.5, 0.9, 0.99)
# Fields that say when, where or by which version something was made, not what was answered.
VOLATILE = frozenset(
    {
        "fitted_at",
        "jostle_version",
        "version",
        "data_version",
        "path",
        "model",
        "cpu_seconds",
        "wall_seconds",
        "seconds_taken",
        "fit_seconds",
        "schema",
        "measured_at",
        "output",
        "dataset",
        "file",
        "folder",
        "sha256",
    }
)


def made_times(path: Path) -> Path:
    """A table of 24 jobs on 6 hosts, alone and beside up to two others: sensitivity times pressure."""
    random = np.random.default_rng(1)
    level, speed = random.normal(3, 1, 24), random.normal(0, 0.4, 6)
    press, suffers = random.gamma(2, 0.1, 24), random.gamma(2, 0.4, 24)
    lines = ["job,host,others,ms"]
    for _ in range(2000):
        job, host, count = random.integers(24), random.integers(6), random.integers(3)
        others = random.integers(0, 24, count)
        slower = 1 + suffers[job] * press[others].sum()
        ms = np.exp(level[job] + speed[host] + 0.04 * random.normal()) * slower
        lines.append(f"job{job:02},host{host},{';'.join(f'job{i:02}' for i in others)},{ms:.4f}")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def made_probes() -> jostle.Runs:
    """Eight programs and two stressors in pairs; log slowdown is sensitivities times pressures."""
    random = np.random.default_rng(3)
    names = [*(f"w{i}" for i in range(8)), "probe-bus", "probe-cache"]
    press, suffer = random.dirichlet([1, 1, 2], 10)[:, :2], random.uniform(0, 0.6, (10, 2))
    press[8:] = np.eye(2)
    solo = random.uniform(1, 9, 10)
    rows = [(i, ()) for i in range(10)] * 2
    rows += [(i, (j,)) for i in range(10) for j in range(10)]
    seconds = [
        solo[i] * np.exp(sum(float(suffer[i] @ press[j]) for j in others) + 0.02 * random.normal())
        for i, others in rows
    ]
    return jostle.Runs.from_columns(
        workload=[names[i] for i, _ in rows],
        platform=["p"] * len(rows),
        corunners=[[names[j] for j in others] for _, others in rows],
        runtime_seconds=seconds,
        window_id=["+".join(sorted(names[j] for j in (i, *others))) for i, others in rows],
    )


def made_traces(programs: int = 7, repeats: int = 3) -> Traces:
    """Programs of two phases each, alone and in pairs; memory traffic beside slows a phase that has much."""
    random = np.random.default_rng(5)
    rates = random.uniform(1e9, 3e9, (programs, 2))
    misses = random.uniform(1e5, 2e7, (programs, 2))
    steps, interval = 24, 0.01
    every = []

    def add(i: int, j: int | None, number: int, window: str, core: int) -> None:
        half = np.repeat([0, 1], steps // 2)
        slow = 1.0 if j is None else 1 + misses[i, half] * misses[j].mean() / 6e14
        noise = np.exp(0.02 * random.normal(size=steps))
        spent = interval * slow * noise
        every.append(
            Trace(
                run_id=f"{window}-{core}",
                core=core,
                workload=f"w{i}",
                platform="p",
                corunners=() if j is None else (f"w{j}",),
                window_id=window,
                runtime_seconds=float(spent.sum()),
                time_seconds=np.cumsum(spent),
                interval_seconds=spent,
                counters={
                    "instructions": rates[i, half] * interval,
                    "llc-misses": misses[i, half] * interval * noise,
                },
            )
        )

    for number in range(repeats):
        for i in range(programs):
            add(i, None, number, f"w{i}-{number}", 0)
            for j in range(i + 1, programs):
                if (i + j + number) % 3:
                    add(i, j, number, f"w{i}-w{j}-{number}", 0)
                    add(j, i, number, f"w{i}-w{j}-{number}", 1)
    return Traces.from_traces(every)


def made_devices(folder: Path) -> Path:
    """Profiles of seven applications on a V100, and runs alone and in pairs, 1.1 times a fixed sum."""
    kinds = {
        "asr": (["kernel"], 0.01),
        "md": (["kernel"], 0.013),
        "pf": (["htod"], 0.007),
        "bp": (["htod", "kernel"], 0.004),
        "hw": (["kernel"], 0.017),
        "nn": (["dtoh"], 0.005),
        "kms": (["kernel", "dtoh"], 0.006),
    }
    shape = {"blocks": 320, "threads_per_block": 256, "registers_per_thread": 32}
    profiles, solo = [], {}
    for name, (kind, seconds) in kinds.items():
        rows = [
            {"kind": what, "start_seconds": 0.1 + number * seconds, "duration_seconds": seconds}
            | (shape if what == "kernel" else {"bytes": 1000, "pinned": False})
            for number, what in enumerate(kind * 3)
        ]
        profiles.append(tasks_from_rows(rows, run_id=name, gpu=GPUS["V100"]))
        solo[name] = 0.1 + len(rows) * seconds
    write_profiles(folder, profiles)
    random = np.random.default_rng(0)
    rows = [(name, beside) for name in kinds for beside in [[]] * 8 + [[o] for o in kinds] * 8]
    runs = jostle.Runs.from_columns(
        workload=[name for name, _ in rows],
        platform=["v100"] * len(rows),
        corunners=[beside for _, beside in rows],
        runtime_seconds=[
            1.1
            * (solo[name] + 0.4 * sum(solo[o] - 0.1 for o in beside))
            * np.exp(0.02 * random.normal())
            for name, beside in rows
        ],
    )
    jostle.Dataset(folder).write(runs)
    return folder


def answers_of(model: Any, query: Any) -> dict[str, Any]:
    """Predictions, and bounds with their outcomes at three confidences."""
    record: dict[str, Any] = {"runtime_seconds": model.predict(query).tolist()}
    for confidence in CONFIDENCES:
        bounds = model.bound(query, confidence)
        record[f"bound_seconds_{confidence:g}"] = bounds.seconds.tolist()
        record[f"outcome_{confidence:g}"] = [str(one) for one in bounds.outcome]
    return record


def library(folder: Path) -> Iterator[tuple[str, Any]]:
    """(name, function that gives a record) of each fit."""

    def runs_case(data: Any, method: Any, seed: int) -> Any:
        runs = data if isinstance(data, jostle.Runs) else jostle.read_runs(data)
        model = jostle.fit(data, method, seed=seed)
        step = max(1, len(runs) // 400)
        model.save(folder / "saved")
        again = jostle.load(folder / "saved")
        query = runs.take(np.arange(0, len(runs), step)).colocations
        record = answers_of(model, query)
        if not np.array_equal(again.predict(query), model.predict(query)):
            record["saved"] = "a loaded model answers differently"
        return record

    def traced_case(seed: int) -> Any:
        traces = made_traces()
        model = jostle.fit(traces, jostle.Alignment(), seed=seed)
        pairs = [(f"w{i}", f"w{j}") for i in range(7) for j in range(7)]
        query = jostle.Colocations.from_columns(
            workload=[one for one, _ in pairs],
            platform=["p"] * len(pairs),
            corunners=[[other] for _, other in pairs],
        )
        return answers_of(model, query)

    shipped = {"vision": datasets.vision_bags, "shared_core": datasets.shared_core_bags}
    methods = {
        "factorization": jostle.Factorization,
        "slowdown": jostle.Slowdown,
        "bag": jostle.Bag,
    }
    for name, load in shipped.items():
        for kind, method in methods.items():
            for seed in (0, 1):
                yield (
                    f"fit {kind} {name} seed {seed}",
                    lambda load=load, method=method, seed=seed: runs_case(load(), method(), seed),
                )
    yield (
        "fit factorization sample seed 0",
        lambda: runs_case(datasets.sample(), jostle.Factorization(), 0),
    )
    for seed in (0, 1):
        yield (
            f"fit probes made seed {seed}",
            lambda seed=seed: runs_case(made_probes(), jostle.Probes(), seed),
        )
        yield (
            f"fit accelerator made seed {seed}",
            lambda seed=seed: runs_case(folder / "devices", jostle.Accelerator(), seed),
        )
        yield (
            f"fit alignment made seed {seed}",
            lambda seed=seed: traced_case(seed),
        )


# NAME: (arguments). Folders: fleet (made times), model (its fit), devices, series.
COMMANDS = {
    "runs": "runs fleet",
    "predict": "predict model -w job03 -p host2 -b job07 -b job11",
    "predict table": "predict model --input questions.csv",
    "explain": "predict model --why -w job03 -p host2 -b job07",
    "suggest": "suggest model --most 5",
    "update dry run": "update model fleet --dry-run",
    "rank": "place rank model --fleet nodes.csv --tenants tenants.csv -w job03@200ms -w job05@9s",
    "safe": "place safe model --fleet nodes.csv --tenants tenants.csv -w job03@200ms -w job05@9s",
    "safe together": "place safe model --fleet nodes.csv -w job03@200ms -w job05@9s --together",
    "assign": "place assign model --fleet nodes.csv --requests requests.csv",
    "walltime": "place walltime model --fleet nodes.csv --tenants tenants.csv -w job03 -w job05",
    "score": "place safe model --table scored.parquet -o out.parquet",
    "safe devices": "safe devices --service md --batch pf --objective 1.5x",
    "safe devices all": "safe devices --service md --objective 1.5x",
    "safe devices rate": "safe devices --service md --batch pf --objective 3x --rate 2",
    "place devices": "place rank devices --platform V100 -w md@1.5x -b asr@2x",
    "forecast": "forecast series --at 0.05 --at 0.11 --component instructions",
    "evaluate": "evaluate fleet",
}


def command_files(folder: Path) -> None:
    """What the commands read. Nothing here takes a name of a column for granted: all are the default ones."""
    hosts = [f"n{i},host{i % 6},{2 + i % 2}" for i in range(9)]
    (folder / "nodes.csv").write_text("\n".join(["name,platform,slots", *hosts]) + "\n")
    tenants = ["workload,node,deadline", "job01,n1,9s", "job02,n2,400ms", "job07,n4,20s"]
    (folder / "tenants.csv").write_text("\n".join(tenants) + "\n")
    requests = [f"job{i:02},{(i + 1) * 60}ms" for i in range(12)]
    (folder / "requests.csv").write_text("\n".join(["workload,deadline", *requests]) + "\n")
    rows = [f"job{i:02},host{i % 7},job{(3 * i) % 24:02};job{(5 * i) % 24:02}" for i in range(24)]
    (folder / "questions.csv").write_text("\n".join(["workload,platform,corunners", *rows]) + "\n")


def run_command(arguments: str, folder: Path) -> Any:
    command = [sys.executable, "-m", "jostle", *arguments.split(), "--json"]
    environment = os.environ | {"PYTHONPATH": str(Path(jostle.__file__).parents[1])}
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    try:
        document = json.loads(ended.stdout)
    except ValueError:
        document = {"stdout": ended.stdout[-500:], "stderr": ended.stderr[-500:]}
    return {"exit_code": ended.returncode, "document": document}


def write(output: Path, only: str) -> None:
    """Every record, one after the other; a case that fails is kept with its error."""
    record: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made_devices(folder / "devices")
        write_traces(folder / "series", made_traces(1, 9))
        cases = [case for case in library(folder) if only in case[0]]
        for name, case in cases:
            print(name, file=sys.stderr, flush=True)
            try:
                record[name] = case()
            except Exception as error:
                record[name] = {"error": f"{type(error).__name__}: {error}"}
        if any(only in f"command {name}" for name in COMMANDS):
            command_files(folder)
            made_times(folder / "times.csv")
            columns = "--workload job --platform host --corunners others --runtime ms --unit ms"
            run_command(f"import --kind csv times.csv -o fleet {columns}", folder)
            record["command fit"] = run_command(
                "fit fleet --method factorization -o model --seed 0", folder
            )
            table = jostle.load(folder / "model").answer(folder / "questions.csv").to_table()
            import pyarrow.parquet as parquet

            parquet.write_table(
                table.select(["workload", "platform", "corunners"]), folder / "scored.parquet"
            )
        for name, arguments in COMMANDS.items():
            if only in f"command {name}":
                print(f"command {name}", file=sys.stderr, flush=True)
                record[f"command {name}"] = run_command(arguments, folder)
    output.write_text(json.dumps(record), "utf-8")


def leaves(document: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """(name of the nearest field, value) of everything that a document holds, but for what is volatile."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key not in VOLATILE:
                yield from leaves(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from leaves(value, name)
    else:
        yield name, document


def by_name(document: Any) -> dict[str, list[Any]]:
    """{field: its values, in the order of the document}."""
    values: dict[str, list[Any]] = defaultdict(list)
    for name, value in leaves(document):
        values[name].append(value)
    return values


def gap(one: Any, other: Any) -> float:
    """0 where two values agree, the relative difference of two numbers, infinite for anything else."""
    if one == other or (one != one and other != other):
        return 0.0
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (one, other))
    if not numbers or not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / max(abs(one), abs(other))


def in_order(value: Any) -> tuple[bool, float, str]:
    """A key that sorts values of any kind: numbers first."""
    is_number = isinstance(value, int | float)
    return (not is_number, value if is_number else 0.0, str(value))


def compare(before: Path, after: Path, tolerance: float) -> bool:
    """Prints a line for every field that moved; whether none did."""
    old, new = (json.loads(path.read_text("utf-8")) for path in (before, after))
    moved = 0
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            print(f"{name}: only {'after' if name in new else 'before'}")
            continue
        first, second = by_name(old[name]), by_name(new[name])
        for field in sorted(first.keys() ^ second.keys()):
            print(f"{name}: {field}: only {'after' if field in second else 'before'}")
        for field in sorted(first.keys() & second.keys()):
            a, b = first[field], second[field]
            if len(a) != len(b):
                if {repr(v) for v in a} != {repr(v) for v in b}:
                    print(f"{name}: {field}: {len(a)} values before, {len(b)} after")
                    moved += 1
                continue
            largest = max(map(gap, a, b), default=0.0)
            if largest > tolerance:  # the same values in another order?
                a, b = (sorted(values, key=in_order) for values in (a, b))
                if (largest := max(map(gap, a, b))) <= tolerance:
                    print(f"{name}: {field}: in another order")
            if largest > tolerance:
                at = next(i for i in range(len(a)) if gap(a[i], b[i]) > tolerance)
                print(
                    f"{name}: {field}: by up to {largest:.3g}; first {a[at]!r:.60} -> {b[at]!r:.60}"
                )
                moved += 1
    print(f"{len(old.keys() & new.keys())} records compared, {moved} fields moved")
    return moved == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    writing = verbs.add_parser("write")
    writing.add_argument("output", type=Path)
    writing.add_argument("--only", default="", help="cases whose name holds this text")
    comparing = verbs.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--tolerance", type=float, default=1e-9)
    options = parser.parse_args()
    if options.verb == "write":
        write(options.output, options.only)
        return 0
    return 0 if compare(options.before, options.after, options.tolerance) else 1


if __name__ == "__main__":
    raise SystemExit(main())
