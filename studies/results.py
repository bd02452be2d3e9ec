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
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PICTURES = ROOT / "docs" / "results", ROOT / "docs" / "pictures"
CHEAP_MINUTES = 1.0


@dataclass(frozen=True)
class Entry:
    """A table of results.toml, whose first lines say what each key means."""

    command: str
    minutes: float
    first: Sequence[str] = ()
    needs: Sequence[str] = ()
    keep: bool = False
    pictures: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> tuple[str, ...]:
        """The folders of data that it needs."""
        words = " ".join((*self.first, self.command)).split()
        return tuple(
            dict.fromkeys(
                (*self.needs, *(word.split("/")[0] for word in words if word.split("/")[0] in DATA))
            )
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


ENTRIES = {
    name: Entry(**entry)
    for name, entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
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
