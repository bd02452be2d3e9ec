"""The ablations of Pitot (MLSys 2025, Sec. 5.2, App. B.2 and D.2), one published split, half observed.

Each starts from Jostle's factorization and changes one thing. Fig. 5: which of the quantile heads a bound
rests on, each rule calibrated on its own: `selected`, for each confidence the head of least margin on the
validation runs (the paper's rule); `naive`, the nearest head; `non-quantile`, the prediction with one offset.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.progress import Progress
from jostle._base.report import Table, percent
from jostle.conformal import Calibration, Uncertainty, margin_of_errors
from jostle.learn.learners.network import Factorization
from jostle.operations import bound_measures
from studies.data import pitot_folder
from studies.data.pitot import read_pitot
from studies.papers.factorization import HEADS
from studies.papers.row_numbers import file_split
from studies.rivals.blind import Blind
from studies.splits import CONFIDENCES, evaluate_method, fit_split

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs
    from studies.splits import Split

START = Factorization()
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "as it is": {"nothing": {}},
    "4a, objective": {
        "log-residual": {"objective": "squared_log"},
        "log": {"objective": "squared_log", "baseline": False},
        "proportional": {"objective": "squared_relative", "baseline": False},
    },
    "4b, features": {
        "of platforms": {"use_workload_features": False},
        "of workloads": {"use_platform_features": False},
        "none": {"use_workload_features": False, "use_platform_features": False},
    },
    "4d, form": {
        "the paper's": {"form": "paper"},
        "without activation": {"form": "paper", "leak": 1.0},
        "product": {"form": "product"},
    },
    "10, learned features q": {f"{q}": {"table_width": q} for q in (0, 1)},
    "10, embedding r": {f"{r}": {"rank": r} for r in (8, 32)},
    "10, types s": {f"{s}": {"types": s} for s in (1, 2)},
    "10, weight beta": {f"{beta}": {"corun_weight": beta} for beta in (0.1, 0.5)},
}
TREATMENTS = ("discard", "ignore")  # of runs with co-runners


def tables(seed: int, progress: Progress) -> list[Table]:
    """Fit every variant; then one with heads, bounded by each rule."""
    runs = read_pitot(pitot_folder())
    split = file_split(runs, pitot_folder() / "splits" / "0.5_0.npz", seed)
    methods: list[tuple[str, str, Any]] = [
        (figure, name, replace(START, **changes))
        for figure, variants in VARIANTS.items()
        for name, changes in variants.items()
    ]
    methods += [("4c, runs with co-runners", how, Blind(START, how)) for how in TREATMENTS]
    rows = []
    for number, (figure, name, method) in enumerate(methods):
        progress(number, len(methods) + 1, float("nan"))
        m, _ = evaluate_method(runs, method, split, seed=seed)
        cells = (percent(m[f"mape_{group}_ratio"], 2) for group in ("solo", "corun"))
        rows.append([figure, name, *cells])
    return [
        Table(
            ["figure", "changed", "alone", "with co-runners"], rows, "Mean errors, half observed"
        ),
        head_rules(runs, split, seed),
    ]


def head_rules(runs: Runs, split: Split, seed: int, method: Any = None) -> Table:
    """Compare the margins of each rule of choosing a head, alone and with co-runners."""
    method = method or replace(START, quantiles=HEADS)
    model, _ = fit_split(runs, method, split, seed=seed)
    parts = (split.validation, split.calibration, split.test)
    validation, calibration, test = (runs.take(index) for index in parts)
    heads: dict[float | None, Any] = {
        q: Head(model.predictor, place) for place, q in enumerate(model.predictor.quantiles)
    }
    log_seconds = np.log(validation.runtime_seconds)
    asked = validation.colocations
    off = {q: log_seconds - head.uncertainty(asked).log_runtime for q, head in heads.items()}
    heads[None] = Head(model.predictor, None)
    chosen: dict[str, list[float | None]] = {"selected": [], "naive": [], "non-quantile": []}
    for c in CONFIDENCES:
        width = {q: margin_of_errors(error, np.ones(len(error)), c) for q, error in off.items()}
        chosen["selected"].append(min(off, key=lambda q: width[q]))
        chosen["naive"].append(min(off, key=lambda q: abs((q or 0.0) - c)))
        chosen["non-quantile"].append(None)
    none, bounds = validation.take([]), dict[str, list[np.ndarray]]()
    for rule, of_each in chosen.items():
        for c, q in zip(CONFIDENCES, of_each, strict=True):
            calibrated = Calibration.fit(heads[q], none, calibration, unit=split.by)
            answer = calibrated.bound(heads[q], test.colocations, c)
            bounds.setdefault(rule, []).append(answer.seconds)
    bounds["Jostle"] = [model.bound(test.colocations, c).seconds for c in CONFIDENCES]
    alone = test.colocations.number_of_corunners == 0
    rows = []
    for rule, of_each in bounds.items():
        rows.append([rule])
        for rows_of in (alone, ~alone):
            margins = (
                bound_measures(bound[rows_of], test.runtime_seconds[rows_of])["margin"]
                for bound in of_each
            )
            rows[-1].append("/".join(f"{100 * one:.1f}" for one in margins) + "%")
    columns = ["bound by", "alone, .9/.95/.99", "with co-runners"]
    return Table(columns, rows, "Figure 5: mean margins by choice of a head")


class Head:
    """A quantile head of a factorization, or its prediction (None), with the same offset everywhere."""

    def __init__(self, predictor: Any, place: int | None) -> None:
        self.predictor, self.place = predictor, place

    def uncertainty(self, asked: Colocations) -> Uncertainty:
        if self.place is None:
            return Uncertainty.unknown(self.predictor.predict(asked))
        log = self.predictor.log_quantile(self.predictor.codes(asked), self.place)
        return Uncertainty.unknown(np.exp(log))
