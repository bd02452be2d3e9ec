"""Limits on processes of known laws, and the autoscaler that they are compared with."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.usage import Peaks, Residents
from studies.live.limits import vpa_target
from studies.worlds.usage_processes import LAWS, a_run
from tests.limits import share_limits
from tests.packages.usage.conftest import together


@pytest.mark.parametrize("name", sorted(set(LAWS) - {"cut"}))
def test_made_runs_stay_below(name: str) -> None:
    """Each draw is a new set of recorded runs and one new run, so draws are independent."""
    random = np.random.default_rng(2)
    inside, left, draws = 0, [], 250
    for _ in range(draws):
        runs = [a_run(name, random)[0] for _ in range(19)]
        peaks = Peaks.from_items([{"values": one.tolist()} for one in runs])
        new = a_run(name, random)[0]
        inside += new.max() <= peaks.ranked(0.9).value
        if len(new) > 10:
            live = peaks.seen(np.arange(1.0, 11.0), new[:10])
            left.append(new[10:].max() <= live.ranked(0.9).value)
    low, high = share_limits(draws, 0.9)
    assert low <= inside / draws <= high
    # Fewer runs may have come as far, and then ranks round up.
    assert np.mean(left) >= share_limits(len(left), 0.9)[0]


def test_the_autoscaler_is_its_histogram() -> None:
    """All weight in one bucket: its end, and 15%. Buckets grow by a twentieth from ten megabytes."""
    ends = np.cumsum(1e7 * 1.05 ** np.arange(200))
    peaks = np.full(10, 5e8)
    assert vpa_target(peaks) == pytest.approx(1.15 * ends[ends > 5e8][0])
    assert vpa_target(np.array([5e8, *[1e8] * 400])) < 1.3e8


def three(name: str, runs: int, random: np.random.Generator) -> list[Peaks]:
    made = [[a_run(name, random)[0] for _ in range(runs)] for _ in range(3)]
    return [Peaks.from_items([{"values": one.tolist()} for one in each]) for each in made]


@pytest.mark.parametrize("name", ["bursts", "leaks"])
@pytest.mark.parametrize("runs", [5])
def test_what_residents_need_together(name: str, runs: int) -> None:
    """As many draws as there are: each has new recorded runs and new residents, so they are independent."""
    random, draws = np.random.default_rng(6), 30
    inside = [
        together([a_run(name, random)[0] for _ in range(3)])
        <= Residents(three(name, runs, random)).ranked(0.9).value
        for _ in range(draws)
    ]
    assert np.mean(inside) >= share_limits(draws, 0.9)[0]
