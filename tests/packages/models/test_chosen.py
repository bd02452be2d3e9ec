"""Runs that were chosen are learned from, and no bound rests on them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import jostle
from jostle.data import Runs
from jostle.learn import Data, Prepared, hold_out
from tests.limits import mean_limits
from tests.packages.models.levels import Levels, campaign


def marked(runs: Runs, chosen: np.ndarray, kind: str = "bool_") -> Runs:
    """With the column that says which were chosen."""
    column = pa.array(chosen.tolist()).cast(getattr(pa, kind)())
    return Runs(runs.table.append_column("chosen", column))


def ids(runs: Runs) -> set[str]:
    return set(runs.table.column("run_id").to_pylist())


def drawn(runs: Runs, share: float = 0.3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(len(runs)) < share


def test_the_mark_is_a_column_of_true_and_false() -> None:
    runs = campaign(6, 4)
    chosen = drawn(runs)
    np.testing.assert_array_equal(marked(runs, chosen).is_chosen, chosen)
    assert not runs.is_chosen.any()
    assert not marked(runs, chosen, "string").is_chosen.any()  # a column of somebody's own
    joined = Runs.concatenate(
        [marked(runs.take(chosen), np.ones(chosen.sum(), bool)), runs.take(~chosen)]
    )
    assert joined.is_chosen.sum() == chosen.sum()


@pytest.mark.parametrize("by", ["window", "together"])
def test_whatever_was_chosen_is_never_held_out(by: str) -> None:
    runs = campaign(12, 8)
    for seed in range(5):
        chosen = drawn(runs, seed=seed)
        held = hold_out(Prepared.of(Data(marked(runs, chosen))), seed, by)
        kept = ids(runs.take(chosen))
        assert kept <= ids(held.learn.runs)
        assert len(held.calibration) > 0
        assert not kept & (ids(held.calibration) | ids(held.validation))


def test_a_fit_says_how_many_were_chosen() -> None:
    runs = campaign(12, 8)
    chosen = drawn(runs)
    model = jostle.fit(marked(runs, chosen), Levels())
    assert any(f"{chosen.sum()} runs were chosen" in note for note in model.notes)
    assert not any("chosen" in note for note in jostle.fit(runs, Levels()).notes)


def test_bounds_hold_where_what_was_chosen_is_unlike_the_rest() -> None:
    """Cells that are slow by nature were chosen: calibrated on, they would widen every bound."""
    covered, margins = [], []
    for seed in range(20):
        runs = campaign(12, 10, seed)
        random = np.random.default_rng(seed)
        order = random.permutation(len(runs))
        first, rest = runs.take(np.sort(order[:200])), runs.take(np.sort(order[200:]))
        odd = np.arange(200) < 40
        table = first.table
        place = table.column_names.index("runtime_seconds")
        slow = pa.array(np.where(odd, 3 * first.runtime_seconds, first.runtime_seconds))
        told = Runs(table.set_column(place, table.field(place), slow))
        found = {}
        for name, data in (("marked", marked(told, odd)), ("not", told)):
            model = jostle.fit(data, Levels(), seed=seed)
            bounds = model.bound(rest.colocations, 0.8)
            good = bounds.is_valid
            found[name] = bounds.seconds[good] / rest.runtime_seconds[good]
        covered.append(np.mean(found["marked"] >= 1))
        margins.append(np.median(found["marked"]) / np.median(found["not"]))
    assert mean_limits(covered)[1] > 0.8
    assert mean_limits(margins)[1] < 1
