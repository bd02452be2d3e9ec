"""Collect the sample campaign on this machine, and say what is in it.

    python -m studies.collect.sample BUILD OUT [--budget 840]

BUILD keeps the campaign, so that an interrupted collection goes on; OUT becomes a small dataset: every
shipped kernel in its middle size on wasmtime's six settings, alone five times and in 500 random sets of
2 to 4, and pairs of a few of them ten times each, which show interference. Takes about twelve minutes on
two cores; leave the machine alone meanwhile. Prints a JSON document; OUT/sample.json holds it too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.compute

from jostle.measure import (
    Campaign,
    MeasureOptions,
    check_machine,
    find_workloads,
    machine_facts,
    measure,
)
from jostle.runs import Dataset, Runs, summarise

pc: Any = pyarrow.compute

ENGINES = ("speed", "none", "checked", "pulley", "winch", "singlepass")
PAIRED = ("chase-m", "copy-l", "fft-m", "matmul-m", "sort-m", "stream-l")
PAIRS = len(PAIRED) * (len(PAIRED) + 1) // 2
# What a reader of the sample needs; the rest of a run's columns stay in BUILD.
KEPT = ("workload", "platform", "corunners", "runtime_seconds", "status", "run_id", "window_id")
KEPT += ("reason", "campaign", "measured_at", "estimator", "cpu_seconds")


def campaigns(window_seconds: float) -> list[Campaign]:
    """The random sets, then the pairs."""
    every = [one.name for one in find_workloads(["*-m"])]
    return [
        Campaign(
            workloads=every,
            engines=ENGINES,
            solo_repeats=5,
            sets=500,
            window_seconds=window_seconds,
            device="sample",
        ),
        Campaign(
            workloads=PAIRED,
            engines=["speed"],
            solo_repeats=10,
            sets=10 * PAIRS,
            set_sizes=(2, 2),
            window_seconds=window_seconds,
            device="sample",
        ),
    ]


def collect(build: Path, budget_seconds: float, window_seconds: float) -> list[dict[str, Any]]:
    """What each campaign did."""
    began, results = time.monotonic(), []
    for campaign in campaigns(window_seconds):
        left = max(0.0, budget_seconds - (time.monotonic() - began))
        printed = [-1]

        def say(now: Any, printed: list[int] = printed) -> None:
            if now.done % 100 == 0 and now.done != printed[0]:
                printed[0] = now.done
                left = f"{now.remaining_seconds:.0f} s left, {now.rejected} rejected"
                print(f"{now.done} of {now.total}, {left}", file=sys.stderr)

        summary = measure(
            campaign,
            build,
            MeasureOptions(time_budget_seconds=left),
            progress=say,
        )
        # Where it was kept is nobody's business.
        results.append({k: v for k, v in summary.to_json().items() if k != "dataset"})
    return results


def export(build: Path, out: Path) -> dict[str, Any]:
    """The undisturbed runs in one small dataset; what it holds."""
    runs = Dataset(build).read().ok()
    if not len(runs):
        raise SystemExit("every window was disturbed: see jostle measure --check")
    table = runs.table.select([name for name in runs.table.column_names if name in KEPT])
    Dataset(out).write(Runs(table, runs.workload_features, runs.platform_features))
    summary = summarise(Dataset(out).read()).to_json()
    size = sum(path.stat().st_size for path in out.glob("**/*.parquet"))
    return {"runs": summary, "parquet_bytes": size}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--budget", type=float, default=840.0)
    parser.add_argument("--window", type=float, default=0.15)
    asked = parser.parse_args()
    if (asked.out / "runs").exists():
        raise SystemExit(f"{asked.out} holds a dataset already: choose another folder")
    quiet = check_machine()
    for message in quiet.disturbances:
        print(f"warning: {message}", file=sys.stderr)
    did = collect(asked.build, asked.budget, asked.window)
    document = {
        "schema": "sample/v1",
        **export(asked.build, asked.out),
        "campaigns": did,
        "quiet": {k: v for k, v in quiet.to_json().items() if k != "strangers"},
        "machine": machine_facts(campaigns(asked.window)[0].core_numbers),
    }
    text = json.dumps(document, indent=1, default=str)
    (asked.out / "sample.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
