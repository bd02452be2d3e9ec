"""How far slowdowns carry over to platforms where nothing ran beside others."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.data import Runs
from jostle.learn import Data, FittedEnsemble, SimpleRules, relative_error
from jostle.learn.ensemble._transfer_share import SHARES, share_carried
from tests.packages.learn.ensemble.campaigns import campaign_for
from tests.packages.learn.ensemble.conftest import QUICK, made_runs

LAST = "machine 3"


def alone_there(part: dict[str, float]) -> tuple[Runs, Runs]:
    """(made runs on four platforms, on the last of which nothing ran beside others, runs beside others
    there). part: of the log slowdowns, by platform, where it is not all."""
    runs = made_runs(platforms=4)
    c = runs.colocations
    beside = np.asarray(c.number_of_corunners) > 0
    log, cell = np.log(runs.runtime_seconds), c.platform * len(c.workload_names) + c.workload
    alone = np.bincount(cell[~beside], log[~beside]) / np.bincount(cell[~beside])
    share = np.array([part.get(name, 1.0) for name in c.platform_names])[c.platform]
    log = np.where(beside, alone[cell] + share * (log - alone[cell]), log)
    runs, here = runs.with_one_company(np.exp(log)), beside & (on(runs) == LAST)
    return runs.take(~here), runs.take(here)


def on(runs: Runs) -> np.ndarray:
    """(n,) names of platforms."""
    return np.array(runs.colocations.platform_names)[runs.colocations.platform]


def fitted_to(runs: Runs) -> FittedEnsemble:
    return QUICK.fit(QUICK.prepare(Data.of(runs)), seed=0)


def error(fitted: FittedEnsemble, asked: Runs) -> float:
    return float(
        relative_error(np.log(fitted.predict(asked.colocations) / asked.runtime_seconds)).mean()
    )


def test_what_others_saw_is_believed_where_platforms_are_alike() -> None:
    known, asked = alone_there({})
    fitted = fitted_to(known)
    alone = np.exp(fitted._logs(asked.colocations)[0])
    assert error(fitted, asked) < relative_error(np.log(alone / asked.runtime_seconds)).mean() / 2


def test_the_time_alone_stands_where_platforms_have_nothing_in_common() -> None:
    known, asked = alone_there({"machine 0": 0.0, "machine 1": 0.0, LAST: 0.0})
    assert share_carried(campaign_for(known), SimpleRules(), 0) == 0
    fitted = fitted_to(known)
    assert (fitted.slowdown(asked.colocations) == 1).all()
    assert any("0% of slowdowns elsewhere" in note for note in fitted.notes)
    # Where something ran beside others, that is believed.
    beside = np.asarray(known.colocations.number_of_corunners) > 0
    measured = known.take(beside & (on(known) == "machine 2"))
    assert (fitted.slowdown(measured.colocations) != 1).all()


def test_the_share_is_the_closest_on_platforms_left_out_one_by_one() -> None:
    known, _ = alone_there({"machine 1": 0.4, "machine 2": 0.6})
    campaign, rules = campaign_for(known), SimpleRules()
    platform = campaign.codes[1]
    cost = np.zeros((3, len(SHARES)))
    for at, one in enumerate(np.unique(platform[campaign.beside])):
        rest = campaign.take(~(campaign.beside & (platform == one)))
        learned = rules.fit(rest, ("effects",), seed=4)
        mine = campaign.take(platform == one)
        rows = mine.rows_over(rest.log_alone, rest.unit_seconds).take(mine.beside)
        (answer,) = learned.log_slowdowns(rows, rest.ground)
        for place, share in enumerate(SHARES):
            cost[at, place] = np.abs(np.exp(share * answer - rows.log_slowdown) - 1).mean()
    share = share_carried(campaign, rules, 4)
    assert share == SHARES[np.argmin(cost.sum(0))]
    assert 0 < share < 1


@pytest.mark.parametrize("platforms", [1, 2])
def test_all_is_believed_where_no_platform_can_tell(platforms: int) -> None:
    runs = made_runs(platforms=platforms)
    if platforms == 2:  # of which one has no run beside others
        c = runs.colocations
        runs = runs.take((np.asarray(c.number_of_corunners) == 0) | (c.platform == 0))
    assert share_carried(campaign_for(runs), SimpleRules(), 0) == 1
