"""Record bags of vision kernels on this machine, as Moolchandani et al. did, with turns in place of a GPU.

    python -m studies.collect.vision_bags BUILD OUT [--budget 840] [--export]

Nine kernels in three sizes, alone and in 350 random bags of two or three, on two platforms: one on all cores
of the machine, which is the CPU side (CPU time, fairness), and one on which all members share one core and
take turns, as programs on a GPU do; its times are what is predicted. Both platforms see the same bags, so
that the fairness of each is known. BUILD keeps the campaigns, so that an interrupted recording goes on; OUT
becomes a small dataset. Takes about seven minutes on two cores; leave the machine alone meanwhile. --export:
measure nothing, and make OUT from what BUILD holds. Prints what was recorded, as JSON. Then

    python -m studies bag --data OUT --target slowdown --cpu-platform PLATFORM

with the platform's name that is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from jostle.measure import Campaign, MeasureOptions, check_machine, measure
from jostle.runs import Dataset
from studies.collect.sample import export

KERNELS = ("sift", "disparity", "tracking", "faces", "harris", "sobel", "wavelet", "dct", "fir")
CPU, TURNS = "speed", "speed@cpus=1"
BAGS = 350


def campaigns(bags: int = BAGS) -> list[Campaign]:
    """One for each platform. Their seeds are the same, and so are their bags."""
    return [
        Campaign(
            workloads=[f"{kernel}-*" for kernel in KERNELS],
            engines=[engine],
            solo_repeats=4,
            sets=bags,
            set_sizes=(2, 3),
            window_seconds=0.25,
        )
        for engine in (CPU, TURNS)
    ]


def record(build: Path, budget_seconds: float, bags: int) -> None:
    """Measure what is still missing in BUILD."""
    began = time.monotonic()
    for disturbance in check_machine().disturbances:
        print(f"warning: {disturbance}", file=sys.stderr)
    for campaign in campaigns(bags):
        left = max(0.0, budget_seconds - (time.monotonic() - began))
        summary = measure(
            campaign,
            build,
            MeasureOptions(time_budget_seconds=left),
        )
        print(json.dumps(summary.to_json()), file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--budget", type=float, default=840.0)
    parser.add_argument("--bags", type=int, default=BAGS)
    parser.add_argument("--export", action="store_true", help="only make OUT of what BUILD holds")
    asked = parser.parse_args()
    if (asked.out / "runs").exists():
        raise SystemExit(f"{asked.out} holds a dataset already: choose another folder")
    if not asked.export:
        record(asked.build, asked.budget, asked.bags)
    document: dict[str, Any] = {"schema": "vision-bags/v1", **export(asked.build, asked.out)}
    platforms = Dataset(asked.out).read().colocations.platform_names
    document["cpu_platform"] = next(name for name in platforms if "@" not in name)
    text = json.dumps(document, indent=1, default=str)
    (asked.out / "vision.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
