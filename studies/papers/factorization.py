"""Pitot: Interference-aware edge runtime prediction with conformal matrix completion (MLSys 2025).

Its Figures 6 and 11, on the published runs and one published split for each share: errors alone and with one
co-runner, margins of bounds. Then its later campaign, with up to two co-runners.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle._base.progress import Progress
from jostle._base.report import Table, percent
from jostle.learn import Ensemble
from jostle.learn.learners.network import Factorization
from studies.data import pitot_folder
from studies.data.pitot import read_pitot
from studies.papers.row_numbers import file_split
from studies.rivals.boosting import GradientBoosting
from studies.rivals.linear import LinearScaling
from studies.splits import evaluate_method, observed_split

if TYPE_CHECKING:
    from jostle.data import Runs
    from studies.splits import Split

HEADS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)  # denser where a bound widens fast (App. B.2)
PAPER = Factorization(
    form="paper",
    rank=32,
    types=2,
    hidden=128,
    table_width=1,
    corun_weight=0.5,
    quantiles=HEADS,
    objective="squared_log",
)
BOOSTING, FIVE = "gradient boosting", "five members"
SHARES = {BOOSTING: (0.1, 0.5), FIVE: (0.5,)}  # of what takes minutes: where it is fitted
METHODS: dict[str, Any] = {
    "the paper's": PAPER,
    "default": Ensemble(),
    "factorization": Factorization(),
    FIVE: Factorization(members=5),
    BOOSTING: GradientBoosting(),
    "linear scaling": LinearScaling(),
}
PRINTED = {  # {share: errors alone and with co-runners in percent, read off; margins alone}
    0.1: ("10.3%", "11.6%", "–"),
    0.5: ("5.8%", "9.4%", "8/10/16%"),
    0.9: ("5.2%", "9.2%", "–"),
}
COLUMNS = [
    "by",
    "alone",
    "with co-runners",
    "margins alone .9/.95/.99",
    "with",
    "covered alone",
    "with",
]


def tables(seed: int, progress: Progress) -> list[Table]:
    """Fit each method on each published split, calibrate it, and test it on the runs not observed."""
    runs, rows = read_pitot(pitot_folder()), []
    for number, (share, (alone, beside, margin)) in enumerate(PRINTED.items()):
        progress(number, len(PRINTED), float("nan"))
        rows.append([f"{share:.0%}", "printed", alone, beside, margin, "–", "–", "–"])
        split = file_split(runs, pitot_folder() / "splits" / f"{share}_0.npz", seed)
        names = [name for name in METHODS if share in SHARES.get(name, PRINTED)]
        rows += [[f"{share:.0%}", *row] for row in rows_of(runs, split, seed, names)]
    later = read_pitot(pitot_folder() / "2023").ok()
    split = observed_split(later, 0.5, seed, "row")
    more = [["50%", *row] for row in rows_of(later, split, seed, ("the paper's", "default"))]
    return [
        Table(["observed", *COLUMNS], rows, "Figures 6 and 11: mean error, margins"),
        Table(["of 2023", *COLUMNS], more, "The campaign of 2023, up to two co-runners"),
    ]


def rows_of(runs: Runs, split: Split, seed: int, names: Sequence[str]) -> list[list[str]]:
    """Return for each method its name, errors, margins and coverage alone and with co-runners."""
    rows = []
    for name in names:
        m, _ = evaluate_method(runs, METHODS[name], split, seed=seed)
        cells = [name, *(percent(m[f"mape_{group}_ratio"], 2) for group in ("solo", "corun"))]
        for what in ("margin", "coverage"):
            for group in ("solo", "corun"):
                at = (f"{100 * m[f'{what}_{level}_{group}_ratio']:.1f}" for level in (90, 95, 99))
                cells.append("/".join(at) + "%")
        rows.append(cells)
    return rows
