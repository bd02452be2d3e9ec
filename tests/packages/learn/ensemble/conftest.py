"""Made campaigns: programs that press on each other, alone, in pairs and in threes, on some platforms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import jostle
from jostle.data import Runs
from jostle.learn import Ensemble, TrainingRuns
from tests.packages.learn.ensemble.campaigns import campaign_for

QUICK = Ensemble(learners=("rules",))


def made_runs(
    programs: int = 8, platforms: int = 2, seed: int = 0, noise: float = 0.02, threes: int = 12
) -> Runs:
    """Slowdowns are 1 + susceptibility times the sum of pressures."""
    random = np.random.default_rng(seed)
    solo = np.exp(random.normal(size=programs) + 0.2 * random.normal(size=(platforms, programs)))
    hit, press = random.uniform(0.1, 1, programs), random.uniform(0, 0.8, programs)
    sets = [(a,) for a in range(programs)] * 2
    sets += list(itertools.combinations(range(programs), 2))
    every = list(itertools.combinations(range(programs), 3))
    sets += [every[at] for at in random.permutation(len(every))[:threes]]
    rows: dict[str, list] = {"workload": [], "platform": [], "corunners": [], "runtime_seconds": []}
    window = []
    for number, (members, place) in enumerate(itertools.product(sets, range(platforms))):
        for own in members:
            others = [one for one in members if one != own]
            slow = 1 + hit[own] * sum(press[one] for one in others)
            seconds = solo[place, own] * slow * np.exp(noise * random.normal())
            rows["workload"].append(f"program {own}")
            rows["platform"].append(f"machine {place}")
            rows["corunners"].append([f"program {one}" for one in others])
            rows["runtime_seconds"].append(seconds)
            window.append(f"{number}")
    features = {
        "workload": [f"program {own}" for own in range(programs)],
        "size": random.normal(size=programs) + hit,
    }
    return Runs.from_columns(**rows, window_id=window, workload_features=features)


DAYS = np.array([0.2, -0.1, -0.05])  # log factors


def in_campaigns(effect: np.ndarray, seed: int = 0, whole_platforms: bool = False) -> Runs:
    """Windows of the made runs drawn into campaigns, which are slower or faster as a whole."""
    runs = made_runs(seed=seed)
    random = np.random.default_rng([seed, 7])
    window = np.unique(runs.window, return_inverse=True)[1].reshape(-1)
    campaign = random.integers(0, len(effect), int(window.max()) + 1)[window]
    if whole_platforms:  # nothing ran on one platform in two campaigns
        campaign = np.asarray(runs.colocations.platform) % len(effect)
    return Runs.from_columns(
        **runs.colocations.to_columns(),
        runtime_seconds=runs.runtime_seconds * np.exp(effect[campaign]),
        window_id=[f"{code}" for code in window.tolist()],
        campaign=[f"day {code}" for code in campaign.tolist()],
        workload_features=runs.workload_features,
    )


@pytest.fixture(scope="session")
def runs() -> Runs:
    return made_runs()


@pytest.fixture(scope="session")
def of_rules(runs: Runs) -> jostle.Model:
    """Of the made runs, by the simple rules alone."""
    return jostle.fit(runs, QUICK, seed=0)


@pytest.fixture(scope="session")
def campaign() -> TrainingRuns:
    return campaign_for(made_runs(programs=9, platforms=3, threes=20))


def members_of(campaign: TrainingRuns) -> list[tuple[int, ...]]:
    """Of every run the workloads together."""
    workload, _, corunner = campaign.codes
    row = np.repeat(np.arange(len(campaign)), campaign.degree)
    return [
        tuple(sorted([int(own), *corunner[row == at].tolist()])) for at, own in enumerate(workload)
    ]
