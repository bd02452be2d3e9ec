"""The picture of the README: pairs of training jobs on graphics processors that the model never saw.

    python -m studies.slowdown.picture GAVEL [--output docs/pictures] [--seed 0]

GAVEL: the folder with the published measurements of Gavel (OSDI 2020; oracle_throughputs.json). A quarter
of the pairs of jobs is held out on all three kinds of processors, the slowdown method learns from the rest
(half a minute), and `model.plot.slowdowns` draws every pair held out: beside.svg, beside-dark.svg.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jostle
from jostle._base.figure_files import darkened
from jostle._base.figure_style import plotting
from studies.collect.sample_tables import hold_out_sets
from studies.data.gavel import read_gavel


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("gavel", type=Path)
    parser.add_argument("--output", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    runs = read_gavel(asked.gavel, "oracle").ok()
    held, rest = hold_out_sets(runs, 0.25, asked.seed)
    model = jostle.fit(runs.take(rest), jostle.Slowdown(), seed=asked.seed)
    figure, axes = plotting().subplots(figsize=(8.4, 4.2), layout="constrained")
    model.plot.slowdowns(runs.take(held), 0.9, alone=runs, axes=axes)
    axes.set_xlabel("pairs of training jobs that it never saw, in the order of their prediction")
    print(axes.get_title())
    asked.output.mkdir(parents=True, exist_ok=True)
    for shade in ("", "-dark"):
        if shade:
            darkened(figure)
        path = asked.output / f"beside{shade}.svg"
        figure.savefig(path, metadata={"Date": None})
        print(path)


if __name__ == "__main__":
    main()
