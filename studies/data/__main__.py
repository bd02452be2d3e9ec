"""`python -m studies.data {pitot,gavel,magus} SOURCE -o DATASET`: published runs, profiles as a dataset."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jostle.data import Runs, add_runs, has_runs, read_runs, write_profiles
from jostle.errors import BadData, JostleError
from studies.data.gavel import CAMPAIGNS, read_gavel
from studies.data.magus import read_magus, read_magus_profiles
from studies.data.pitot import read_pitot


def main(arguments: list[str] | None = None) -> int:
    """Read what was published, add it to the dataset, and say how much it was; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m studies.data", description=__doc__)
    parser.add_argument("published", choices=("pitot", "gavel", "magus"))
    parser.add_argument("source", type=Path, help="the folder of the published files")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the dataset: a folder")
    parser.add_argument(
        "--campaign",
        choices=CAMPAIGNS,
        default="oracle",
        help="of Gavel, which measured twice under different conditions",
    )
    asked = parser.parse_args(arguments)
    try:
        if asked.published == "gavel":
            runs = read_gavel(asked.source, asked.campaign)
        else:
            runs = {"pitot": read_pitot, "magus": read_magus}[asked.published](asked.source)
        _require_one_campaign(runs, asked.output, asked.published)
        profiles = read_magus_profiles(asked.source) if asked.published == "magus" else {}
        add_runs(asked.output, runs, str(asked.source))
        if profiles:
            write_profiles(asked.output, [*profiles.values()])
    except JostleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    also = f" and {len(profiles)} profiles" if profiles else ""
    print(f"{len(runs)} runs{also} in {asked.output}")
    return 0


def _require_one_campaign(runs: Runs, dataset: Path, published: str) -> None:
    """Raise BadData where the dataset holds another year of Pitot, or the other conditions of Gavel: the same
    names would pass for the same thing."""
    there = read_runs(dataset) if has_runs(dataset) else runs
    if published == "magus":  # whose two campaigns repeat one another
        return
    here = set(runs.table.column("campaign").to_pylist())
    others = {name for name in there.table.column("campaign").to_pylist() if name not in here}
    if found := sorted(name for name in others if name.startswith(f"{published}-")):
        text = f"the dataset holds {found[0]}, which measured under other conditions"
        raise BadData(text, where=str(dataset), fix="Give each campaign a dataset of its own.")


if __name__ == "__main__":
    sys.exit(main())
