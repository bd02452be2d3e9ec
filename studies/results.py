"""Draws and prints again what stands in docs/results and docs/pictures: one entry for each command.

    python -m studies.results [NAME ...] [--all] [--list]

Without a name, what takes under a minute and needs no data from elsewhere (`make results` does this). A
NAME or --all takes the others; their data is found in $JOSTLE_DATA, or in ../shared/data. What a command
prints goes to docs/results/raw/NAME.txt, pictures become SVG for light and for dark pages. --list says
what there is, what it needs, and how many minutes it took on one busy core.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from studies.bridge.families import FAMILIES
from studies.bridge.paper import CAPTIONS as BRIDGE_CAPTIONS

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PICTURES = ROOT / "docs" / "results", ROOT / "docs" / "pictures"
CHEAP_MINUTES = 1.0


@dataclass(frozen=True)
class Entry:
    """command: words in capitals stand for folders: OUT for a scratch folder, RESULTS for docs/results,
    others for data. first: commands that make what it reads. minutes: on one busy core. keep: whether what
    it prints is kept. pictures: what it draws in OUT/figures, and what that is called in docs/results."""

    command: str
    minutes: float
    first: tuple[str, ...] = ()
    keep: bool = False
    pictures: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> tuple[str, ...]:
        """The folders of data that it needs."""
        words = " ".join((*self.first, self.command)).split()
        return tuple(
            dict.fromkeys(word.split("/")[0] for word in words if word.split("/")[0] in DATA)
        )

    @property
    def is_cheap(self) -> bool:
        return self.minutes <= CHEAP_MINUTES and not self.data


DATA = {
    "GAVEL": "gavel",
    "MAGUS": "magus13",
    "NMPC": "nmpc",
    "PITOT": "pitot",
    "V100": "v100_interference",
}


def _same(*names: str, prefix: str = "") -> dict[str, str]:
    return {name: prefix + name for name in names}


_BAG = ("figure-4-benchmarks", "figure-5-9-ablation", "figure-10-11-radar", "figure-12-heat-map")
_BRIDGE = "python -m studies bridge"
_RECORDED = "python -m studies.collect.bridge_recordings OUT --seed 41"
_LARGE = "--windows 500 --seconds 0.15 --folds 1 --no-compare --no-factorization"
_SMALL = "--windows 200 --seconds 0.12 --folds 1 --held 6"
ENTRIES = {
    "picture": Entry(
        "python -m studies.slowdown.picture GAVEL --output OUT/figures",
        1.0,
        pictures={"beside": "../pictures/beside"},
    ),
    "factorization-figures": Entry(
        "python -m studies figures OUT",
        1.0,
        first=("cp -r RESULTS/. OUT",),
        pictures=_same(
            "figure-4a-objective",
            "figure-4b-features",
            "figure-4c-interference",
            "figure-4d-activation",
            "figure-5-quantiles",
            "figure-6a-baselines",
            "figure-8-heads",
            "figure-11-bounds-all",
        ),
    ),
    "factorization-maps": Entry(
        "python -m studies figures OUT --model OUT/model --dataset OUT/runs",
        3.0,
        first=(
            "cp -r RESULTS/. OUT",
            "jostle import pitot PITOT -o OUT/runs",
            "jostle fit OUT/runs -o OUT/model",
        ),
        pictures=_same(
            "figure-7-12a-suite",
            "figure-12b-runtime",
            "figure-12c-microarchitecture",
            "figure-12d-interference",
        ),
    ),
    "mixes": Entry("python -m studies.bounds.mixes --data PITOT", 2.0, keep=True),
    "drift-made": Entry("python -m studies.live.drift_made", 25.0, keep=True),
    "few-names": Entry("python -m studies.live.few_names", 20.0, keep=True),
    "gavel-rules": Entry(
        "jostle evaluate pairs OUT/oracle --observed 0.75 --seeds 2 "
        "--methods solo,solo_constant,additive,own_worst,boosting,additive_low_rank,slowdown",
        3.0,
        first=("jostle import gavel GAVEL --campaign oracle -o OUT/oracle",),
        keep=True,
    ),
    "bag-magus": Entry(
        "python -m studies bag --data OUT/magus --seeds 1 --figures OUT",
        8.0,
        first=("jostle import magus MAGUS -o OUT/magus",),
        keep=True,
        pictures={f"bag-{name}": f"bag-{name}" for name in _BAG},
    ),
    "bag-new-names": Entry(
        "python -m studies.bounds.new_names OUT/magus --method bag --alone --draws 2",
        10.0,
        first=("jostle import magus MAGUS -o OUT/magus",),
        keep=True,
    ),
    "bag-laws": Entry(
        "python -m studies.slowdown.on_laws --method bag --seeds 1 --shares 0.1,0.3", 2.0, keep=True
    ),
    "bag-shared-core": Entry(
        "python -m studies bag --seeds 1 --no-bounds --figures OUT",
        20.0,
        keep=True,
        pictures={
            f"bag-{name}": f"bag-shared-core-{name}" for name in (*_BAG[:2], "figure-2-copies")
        },
    ),
    "bag-vision": Entry(
        "python -m studies bag --on vision --seeds 1 --no-bounds --figures OUT",
        20.0,
        keep=True,
        pictures={f"bag-{name}": f"bag-vision-{name}" for name in _BAG[:3]},
    ),
    "accelerator-scale-out": Entry(
        "python -m studies accelerator --on scale-out --figures OUT",
        0.5,
        keep=True,
        pictures=_same(
            "figure-16-utilisation-pairs",
            "figure-17-qos-pairs",
            "figure-18-utilisation",
            "figure-19-violations",
            prefix="accelerator-",
        ),
    ),
    "accelerator-v100": Entry(
        "python -m studies accelerator --on v100 --data V100", 0.5, keep=True
    ),
    "accelerator-magus13": Entry(
        "python -m studies accelerator --on magus13 --data MAGUS", 10.0, keep=True
    ),
    "bridge-families": Entry(
        f"{_BRIDGE} "
        + " ".join(f"--data {family}-7" for family in FAMILIES)
        + " --no-speed --splits 1 --runs 160 --seed 41",
        10.0,
        keep=True,
    ),
    "bridge-made": Entry(f"{_BRIDGE} --no-speed --seed 41", 25.0, keep=True),
    "bridge-made-without-marks": Entry(
        f"{_BRIDGE} --clock none --no-speed --seed 41", 25.0, keep=True
    ),
    "bridge-published": Entry(
        f"{_BRIDGE} --data nmpc-0 --data nmpc-2 --data nmpc-4 "
        "--published NMPC --splits 1 --no-speed --seed 41",
        5.0,
        keep=True,
    ),
    "bridge-tables": Entry(
        f"{_BRIDGE} --data drift-7 --splits 1 --seed 41 --tables --published NMPC", 15.0, keep=True
    ),
    "bridge-given": Entry("python -m studies.live.given", 4.0, keep=True),
    "bridge-paper": Entry(
        f"{_BRIDGE} --paper OUT --runs 100 --seed 41",
        8.0,
        keep=True,
        pictures=_same(*BRIDGE_CAPTIONS, prefix="bridge-"),
    ),
    "bridge-controller": Entry(
        "jostle forecast OUT/controller --at 0.3 --method phase --snapshots 7 --clock phases "
        "--clock-kind beats --period 5 --component loads --component stores "
        "--component float_operations --picture OUT",
        20.0,
        first=(f"{_RECORDED} --only controller",),
        pictures={"forecast": "bridge-forecast-controller"},
    ),
    "bridge-controller-ended": Entry(
        f"{_RECORDED} --only controller --ended 0.9 --splits 1", 20.0, keep=True
    ),
    "bridge-workers": Entry(f"{_RECORDED} --only workers --splits 1", 20.0, keep=True),
    "alignment": Entry(
        "python -m studies alignment --programs 16 --windows 60 --seconds 0.1 --folds 1 "
        "--learner ridge --output OUT",
        20.0,
        pictures={
            "figure-2-learners": "alignment-figure-2",
            "figure-3-samples": "alignment-figure-3",
            "counters-tree": "alignment-counters-tree",
            "counters-prefix": "alignment-counters-prefix",
        },
    ),
    "probe-laws": Entry("python -m studies.slowdown.probe_laws --seeds 6", 2.0, keep=True),
    "probe-laws-new": Entry(
        "python -m studies.slowdown.probe_laws --seeds 6 --new 4 --shares 0.3", 6.0, keep=True
    ),
    **{
        f"alignment-{name}": Entry(
            f"python -m studies alignment --on {law} --programs {programs} {more}", 15.0, keep=True
        )
        for name, law, programs, more in (
            ("simulator", "simulator", 104, f"{_LARGE} --seed 0"),
            ("simulator-seed-1", "simulator", 104, f"{_LARGE} --seed 1"),
            ("simulator-seed-2", "simulator", 104, f"{_LARGE} --seed 2"),
            ("simulator-probes", "simulator", 104, f"{_LARGE} --probes"),
            (
                "simulator-probes-40",
                "simulator",
                40,
                "--probes --windows 200 --seconds 0.15 --folds 2 --no-compare --no-factorization",
            ),
            ("queue", "queue", 24, _SMALL),
            ("smt", "smt", 24, _SMALL),
            ("lru", "lru", 24, _SMALL),
            ("lru-probes", "lru", 24, f"--probes {_SMALL}"),
        )
    },
    "alignment-campaign": Entry(
        "python -m studies alignment --on campaign --no-compare --no-factorization --output OUT",
        2.0,
        keep=True,
        pictures={"figure-3-samples": "alignment-campaign-figure-3"},
    ),
    "alignment-campaign-alignments": Entry(
        "python -m studies alignment --on campaign --no-factorization --output OUT",
        10.0,
        keep=True,
        pictures={"figure-2-learners": "alignment-campaign-figure-2"},
    ),
    "alignment-campaign-pairs": Entry(
        "python -m studies alignment --on campaign --hold-out pairs --folds 2 --no-compare "
        "--no-factorization",
        5.0,
        keep=True,
    ),
    **{
        f"alignment-campaign-{name}": Entry(
            "python -m studies alignment --on campaign --no-compare --no-factorization "
            + " ".join(f"--stressors probe-{one}" for one in stressors),
            2.0,
            keep=True,
        )
        for name, stressors in (
            ("three", ("core", "scatter", "stream")),
            ("two", ("core", "stream")),
        )
    },
    "measure": Entry(
        "python -m studies.collect.sample_tables src/jostle/datasets/sample", 2.0, keep=True
    ),
}


def run(name: str, entry: Entry) -> None:
    """Runs an entry's commands, and keeps what they print and draw."""
    data = Path(os.environ.get("JOSTLE_DATA", ROOT.parent / "shared" / "data"))
    with tempfile.TemporaryDirectory() as out:
        places = {word: str(data / folder) for word, folder in DATA.items()}
        places |= {"OUT": out, "RESULTS": str(RESULTS)}
        printed = ""
        for command in (*entry.first, entry.command):
            words = [
                "/".join([places.get(part, part) for part in word.split("/")])
                for word in shlex.split(command)
            ]
            if words[0] in ("jostle", "python"):
                module = ["-m", "jostle"] if words[0] == "jostle" else []
                words = [sys.executable, *module, *words[1:]]
            print(f"$ {command}", flush=True)
            done = subprocess.run(words, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False)
            if done.returncode:
                raise SystemExit(f"{name}: ended with {done.returncode}")
            printed = done.stdout
        if entry.keep:
            (RESULTS / "raw" / f"{name}.txt").write_text(printed.replace(out, "OUT"), "utf-8")
        for drawn, called in entry.pictures.items():
            for shade in ("", "-dark"):
                picture = Path(out) / "figures" / f"{drawn}{shade}.svg"
                if picture.exists():
                    (RESULTS / f"{called}{shade}.svg").write_bytes(picture.read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("name", nargs="*", choices=[[], *ENTRIES], metavar="NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if asked.list:
        for name, entry in ENTRIES.items():
            needs = f", needs {' and '.join(entry.data)}" if entry.data else ""
            print(f"{name}: {entry.minutes:g} min{needs}\n    {entry.command}")
        return
    usual = [name for name, entry in ENTRIES.items() if asked.all or entry.is_cheap]
    for name in asked.name or usual:
        run(name, ENTRIES[name])


if __name__ == "__main__":
    main()
