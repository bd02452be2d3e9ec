"""`python -m studies papers`: the parts of the papers' protocols, by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from jostle._base.progress import no_progress
from jostle.data import Runs
from jostle.learn import Data, Prepared
from jostle.learn.learners.counters import Alignment
from jostle.learn.learners.network import Factorization
from studies.papers import ablations, alignment
from studies.papers.bag import bag_errors, benchmarks_of, left_out
from studies.rivals.linear import LinearScaling
from studies.splits import observed_split
from tests.packages.learn.bags.conftest import APPS, make_bags


def test_the_bag_ends_with_its_last_member() -> None:
    runs = Runs.from_columns(
        workload=["a", "b", "a", "b"],
        platform=["p"] * 4,
        corunners=[["b"], ["a"], ["b"], ["b"]],
        runtime_seconds=[2.0, 5.0, 2.0, 8.0],
        window_id=["x", "x", "y", "z"],
    )
    error = bag_errors(runs, np.arange(4), np.array([4.0, 3.0, 9.0, 6.0]))
    # x: 4 for 5; y has no row of b; z is b beside itself.
    assert sorted(error.tolist()) == pytest.approx([0.2, 0.25])


def test_a_benchmark_is_left_out_with_all_that_it_is_in() -> None:
    runs = make_bags(most=1, cpu=True)
    assert benchmarks_of(runs) == {name: name for name in APPS}
    parts = left_out(runs, "cpu")
    assert set(parts) == set(APPS)
    for name, rows in parts.items():
        asked = [runs.colocations.row(n) for n in rows]
        assert all(p == "gpu" and others and name in (w, *others) for w, p, others in asked)
    assert sum(map(len, parts.values())) == 6 + 2 * 30  # six beside themselves, thirty others twice


def test_tables_of_the_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "Ensemble", lambda: Alignment(learner="phases"))
    traces = alignment.simulated(6, 12, 0.03, 0)
    two, selection, three, four, figure_2, short = alignment.tables_of(traces, 0, no_progress)
    assert len(two.rows) == 6
    left = [int(row[1]) for row in selection.rows]
    assert left == sorted(left, reverse=True)
    assert left[-1] == 2 * len(three.rows)
    for row in four.rows:
        for cell in row[-2:]:
            predicted, error = cell.rstrip("%)").split(" (")
            assert float(error) == pytest.approx(
                100 * (float(predicted) / float(row[4]) - 1), abs=0.6
            )
    assert [row[0] for row in figure_2.rows] == ["ridge", "lasso", "elastic net", "linear SVR"]
    errors = {row[0]: row[1] for row in short.rows}
    assert errors["printed"] == "0.94%"
    assert {"mended, ridge", "alignment", "default", "no interference"} <= set(errors)


@dataclass(frozen=True)
class WithHeads:
    """Linear scaling that also offers quantile heads, each a step above the last."""

    name = "with_heads"
    needs = frozenset({"runs"})

    def prepare(self, data: Data) -> Prepared:
        return Prepared.of(data)

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: Any = None) -> Any:
        inner = LinearScaling().fit(prepared)

        class Predictor:
            quantiles = (0.5, 0.9, 0.99)
            predict = staticmethod(inner.predict)

            def codes(self, colocations: Any) -> Any:
                return colocations

            def log_quantile(self, colocations: Any, head: int) -> np.ndarray:
                centre = np.log(inner.predict(colocations))
                step = np.random.default_rng(0).random(len(centre))
                return centre + (0, 0.1, 1)[head] * step

        return Predictor()


def test_rules_choose_among_heads(world: Runs) -> None:
    split = observed_split(world, 0.8, 0, "row")
    table = ablations.head_rules(world, split, 0, WithHeads())
    rows = {row[0]: row[1:] for row in table.rows}
    assert set(rows) == {"selected", "naive", "non-quantile", "Jostle"}
    margins = {rule: row[0].rstrip("%").split("/") for rule, row in rows.items()}
    assert margins["naive"][0] != margins["non-quantile"][0]
    assert margins["selected"][0] in {margins["naive"][0], margins["non-quantile"][0]}


def test_ablations_change_what_they_name() -> None:
    variants = [v for each in ablations.VARIANTS.values() for v in each.values()]
    methods = {repr(Factorization(**changes)) for changes in variants}
    assert len(methods) == len(variants)
