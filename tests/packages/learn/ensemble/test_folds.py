"""What folds leave out, beside loops over what they are said to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.data import Runs
from jostle.learn import TrainingRuns
from jostle.learn.ensemble._folds import (
    ALONE,
    ELSEWHERE,
    FEW_SETS,
    FEWEST_LEFT,
    HARDLY_ALONE,
    NEW_CELL,
    NEW_NAME,
    NEW_SET,
    NOT_ASKED,
    SET_FOLDS,
    _fold_of_cells,
    folds_of,
    kinds_of,
)
from tests.packages.learn.ensemble.campaigns import campaign_for
from tests.packages.learn.ensemble.conftest import made_runs, members_of


@pytest.mark.parametrize("seed", range(2))
def test_folds_of_sets_leave_out_what_they_say(campaign: TrainingRuns, seed: int) -> None:
    members, (_, platform, _), cell = members_of(campaign), campaign.codes, campaign.cell
    folds = [fold for fold in folds_of(campaign, seed) if not fold.is_of_names]
    assert len(folds) == SET_FOLDS
    turns, elsewhere = np.zeros(len(campaign), int), 0
    for fold in folds:
        assert (fold.left_out == (fold.kind != NOT_ASKED)).all()
        kept = {members[at] for at in np.flatnonzero(~fold.left_out) if campaign.degree[at]}
        here = {(members[at], platform[at]) for at in np.flatnonzero(~fold.left_out)}
        alone = set(cell[~fold.left_out & (campaign.degree == 0)].tolist())
        units: dict[int, set[Any]] = {}
        for at in np.flatnonzero(fold.left_out).tolist():
            kind, own, set_here = fold.kind[at], members[at], (members[at], int(platform[at]))
            assert kind in (ALONE if not campaign.degree[at] else NEW_SET, ELSEWHERE)
            assert (own in kept) == (kind == ELSEWHERE) or kind == ALONE
            assert set_here not in here or kind == ALONE
            assert kind != ALONE or int(cell[at]) in alone
            units.setdefault(int(fold.unit[at]), set()).add(own if kind == NEW_SET else set_here)
        assert all(len(one) == 1 for one in units.values())
        assert len({next(iter(one)) for one in units.values()}) == len(units)
        turns += np.isin(fold.kind, (NEW_SET, ALONE))
        elsewhere += int((fold.kind == ELSEWHERE).sum())
    beside = campaign.degree > 0
    assert (turns[beside] == 1).all()
    assert elsewhere > 0
    # Of each cell one run alone stays in all of them.
    for one in np.unique(cell[~beside]):
        assert sorted(turns[(cell == one) & ~beside].tolist())[:2] == [0, 1]


@pytest.mark.parametrize("seed", range(2))
def test_folds_of_names_leave_names_with_what_they_say(campaign: TrainingRuns, seed: int) -> None:
    members, (workload, platform, _), cell = members_of(campaign), campaign.codes, campaign.cell
    beside, ran, wholly = campaign.degree > 0, np.zeros(0, int), []
    for fold in (one for one in folds_of(campaign, seed) if one.is_of_names):
        left = [members[at] for at in np.flatnonzero(~fold.left_out & beside)]
        sets_of = [{one for one in left if name in one} for name in range(campaign.size[1])]
        new = np.flatnonzero(fold.kind == NEW_NAME)
        names = {int(name) for name in np.unique(fold.unit[new] - 2**32)}
        assert 0 < len(names) < campaign.size[1]
        assert {len(sets_of[name]) for name in names} == {0, 1}
        for at in new.tolist():
            assert int(fold.unit[at] - 2**32) in set(members[at]) & names
            if int(workload[at]) in names:
                assert int(fold.unit[at] - 2**32) == workload[at]
        out = np.unique(cell[fold.kind == NEW_CELL])
        for one in out.tolist():
            # What ran beside others is asked, but for new names, where nothing of the cell is known.
            there, asked = beside & (cell == one), fold.kind == NEW_CELL
            wholly.append(bool(fold.left_out[there].all()))
            expected = there & (fold.kind != NEW_NAME) if wholly[-1] else there & False
            has_new = np.array([bool(set(names_here) & names) for names_here in members])
            assert (asked & there)[~has_new].tolist() == expected[~has_new].tolist()
        known = np.flatnonzero(~fold.left_out & ~beside)
        assert not set(cell[known].tolist()) & set(out.tolist())
        assert set(workload[known].tolist()) == set(range(campaign.size[1]))
        assert set(platform[known].tolist()) == set(range(campaign.size[0]))
        hardly = np.flatnonzero(fold.kind == HARDLY_ALONE)
        for name in np.unique(workload[hardly]).tolist():
            assert not sets_of[name]
            assert (workload[known] == name).sum() == 1
        units = {int(unit) for unit in np.unique(fold.unit[fold.kind == NEW_CELL])}
        assert len(units) == len(out)
        assert not units & set(fold.unit[new].tolist())
        ran = np.append(ran, out)
    assert len(ran) == len(set(ran.tolist()))
    assert {*wholly} == {True, False}


def test_the_last_cell_of_a_name_is_never_left_out() -> None:
    """Workloads that ran on one platform alone, beside one that ran on all."""
    places = [(0, p) for p in range(3)] + [(w, w % 3) for w in range(1, 9)]
    runs = Runs.from_columns(
        workload=[f"w{w}" for w, _ in places],
        platform=[f"p{p}" for _, p in places],
        runtime_seconds=np.arange(1.0, 12.0),
    )
    campaign = campaign_for(runs)
    for seed in range(20):
        fold = _fold_of_cells(campaign, np.random.default_rng(seed))
        out = np.flatnonzero(fold >= 0)
        ran = np.setdiff1d(campaign.cell, out)
        assert set(out.tolist()) <= set(campaign.cell.tolist())
        assert set((ran % 9).tolist()) == set(range(9))
        assert set((ran // 9).tolist()) == set(range(3))
        assert 1 <= len(out) <= 2
    one = campaign_for(runs.take(runs.colocations.platform == 0))
    assert (_fold_of_cells(one, np.random.default_rng(0)) == -1).all()


def test_where_hardly_any_would_be_left_beside_others_only_runs_alone_are_asked() -> None:
    runs = made_runs(programs=FEWEST_LEFT // 2, platforms=1, threes=0)
    beside = np.flatnonzero(runs.colocations.number_of_corunners > 0)[:FEWEST_LEFT]
    alone = np.flatnonzero(runs.colocations.number_of_corunners == 0)
    campaign = campaign_for(runs.take(np.concatenate([alone, beside])))
    for fold in folds_of(campaign, 0):
        assert (campaign.degree[fold.kind != NOT_ASKED] == 0).all()
        assert not fold.left_out[campaign.degree > 0].any()
        assert (fold.kind != NOT_ASKED).any()


def test_what_kind_a_question_is_depends_on_the_name_that_is_known_least(
    campaign: TrainingRuns,
) -> None:
    rows, members = campaign.every_row, members_of(campaign)
    sets = {one for one in members if len(one) > 1}
    counted = [sum(name in one for one in sets) for name in range(campaign.size[1])]
    assert campaign.sets_of_names.tolist() == counted
    few = np.array(counted)
    few[:3] = 0, 2, 3
    elsewhere = np.arange(len(rows)) % 4 == 0
    for kind, own, known in zip(kinds_of(rows, few, elsewhere), members, elsewhere, strict=True):
        least = min(few[list(own)])
        expected = ELSEWHERE if known else FEW_SETS if least <= 2 else NEW_SET
        assert kind == (NEW_NAME if least == 0 else expected)
