"""Names that drifted are free to move in an update, and what was kept of them counts as measured now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import jostle
from jostle.data import Runs
from jostle.learn import KeptRuns
from jostle.models import DriftWatch, Model
from jostle.models.updates import _refit as _again
from jostle.models.updates._drift_correction import NameMoved, as_measured_now
from tests.limits import share_limits
from tests.packages.models.levels import Levels, campaign
from tests.packages.models.watch_samples import names_of, renamed, stream, times

START = 500


@dataclass(frozen=True)
class LevelsAgain(Levels):
    """Levels that learn by a fit to all runs."""

    name: ClassVar[str] = "levels_again"
    fits_again: ClassVar[bool] = True


@pytest.fixture(scope="module")
def model() -> Model:
    return jostle.fit(renamed(campaign(24, 12)), LevelsAgain(), seed=0)


@pytest.fixture(autouse=True)
def levels_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _again.method_named
    named = {LevelsAgain.name: LevelsAgain}
    monkeypatch.setattr(_again, "method_named", lambda name: named.get(name) or real(name))


def where(runs: Runs, kind: str, name: str) -> np.ndarray:
    if kind == "fleet":
        return np.ones(len(runs), bool)
    names = names_of(runs, "workload" if kind == "workload" else "platform")
    return np.array([one.endswith(name) if kind == "device" else one == name for one in names])


MOVES = [("workload", "w07", 0.7), ("platform", "y:d1", 1.4), ("device", "d2", 1.3)]


@pytest.mark.parametrize(("kind", "name", "step"), [*MOVES, ("fleet", "", 1.3)])
def test_what_moved_by_how_much_and_since_when(
    model: Model, kind: str, name: str, step: float
) -> None:
    runs = stream(6, 1200)
    inside = where(runs, kind, name) & (np.arange(len(runs)) >= START)
    (found,) = NameMoved.all_of(model, times(runs, np.where(inside, step, 1.0)))
    assert (found.kind, found.name) == (kind, name)
    assert found.log_ratio == pytest.approx(np.log(step), abs=0.06)
    assert (found.has(runs.colocations) == where(runs, kind, name)).all()
    # Runs of before are as they would be measured now; new ones since then stay as they are.
    kept, place = KeptRuns.of(runs, "window"), np.arange(len(runs))
    ratio = as_measured_now(kept, [found]).runtime_seconds / kept.runtime_seconds
    assert ratio == pytest.approx(np.where(where(runs, kind, name), np.exp(found.log_ratio), 1.0))
    later = as_measured_now(kept, [found], place).runtime_seconds / kept.runtime_seconds
    assert later == pytest.approx(np.where(place < found.first, ratio, 1.0))


def test_two_that_moved_are_told_apart(model: Model) -> None:
    runs = stream(7)
    factor = np.where(where(runs, "device", "d2"), 1.3, 1.0)
    both = factor * np.where(where(runs, "workload", "w07"), 1.5, 1.0)
    found = {one.name: one.log_ratio for one in NameMoved.all_of(model, times(runs, both))}
    assert found == pytest.approx({"d2": np.log(1.3), "w07": np.log(1.5)}, abs=0.06)


def test_what_tells_nothing_moves_nothing(model: Model) -> None:
    runs = stream(8)
    assert NameMoved.all_of(model, runs) == []
    assert NameMoved.all_of(model, runs.take([])) == []
    slow = times(runs, 1.5)
    chosen = Runs(slow.table.append_column("chosen", [[True] * len(slow)]))
    assert NameMoved.all_of(model, chosen) == []
    # What goes up and down, and what is only wider.
    at, random = np.arange(len(runs)), np.random.default_rng(0)
    for factor in (np.exp(0.4 * np.sin(at / 40)), np.exp(0.4 * random.normal(size=len(runs)))):
        moved = NameMoved.all_of(model, times(runs, factor))
        assert not [one for one in moved if one.kind == "fleet"]


@pytest.mark.parametrize(("kind", "name", "step"), MOVES)
def test_after_an_update_the_bounds_of_a_name_that_moved_hold_again(
    model: Model, kind: str, name: str, step: float
) -> None:
    """Though most of its runs, for fitting and for bounds, are from before."""

    def moved(runs: Runs) -> Runs:
        return times(runs, np.where(where(runs, kind, name), step, 1.0))

    newer = model.update(moved(stream(9, 700)))
    assert newer.kept is not None
    asked = moved(stream(10, 3000))
    mine = where(asked, kind, name)
    for one, is_held in ((model, False), (newer, True)):
        bounds = one.bound(asked.colocations, 0.9)
        late = (asked.runtime_seconds > bounds.seconds)[mine]
        ratio = (one.predict(asked.colocations) / asked.runtime_seconds)[mine]
        if step > 1:
            assert (late.mean() <= share_limits(len(late), 0.15)[1]) == is_held
        assert (abs(np.log(np.median(ratio))) < 0.06) == is_held
    others = (asked.runtime_seconds <= newer.bound(asked.colocations, 0.9).seconds)[~mine]
    assert others.mean() >= share_limits(len(others), 0.88)[0]
    # The watch of the new model finds nothing any more.
    assert DriftWatch(newer).update(asked) == []


def test_a_factorization_lets_it_move(model: Model) -> None:
    method = jostle.Factorization(steps=100, hidden=16, rank=4)
    fitted = jostle.fit(renamed(campaign(24, 12)), method, seed=0)
    runs = stream(9, 700)
    mine = where(runs, "workload", "w07")
    slow = times(runs, np.where(mine, 1.4, 1.0))
    newer = fitted.update(slow)
    ratio = newer.predict(runs.colocations) / fitted.predict(runs.colocations)
    assert np.median(ratio[mine]) == pytest.approx(1.4, rel=0.06)
    assert np.median(ratio[~mine]) == pytest.approx(1.0, rel=0.03)
