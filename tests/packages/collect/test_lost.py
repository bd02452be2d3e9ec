"""What is taken off a disturbed time, against a made scheduler whose quiet time is known."""

from __future__ import annotations

import random

import numpy as np
import pytest

from jostle.collect.window._core_sharing import lost_shares, others_of
from jostle.collect.window._lost import cleaned_executions
from tests.packages.collect.made_scheduler import PROGRAMS, Made, made


def corrected(found: Made, cores: int) -> list[float]:
    """Of each member, by what was told of it."""
    places = range(len(found.members))
    shares = len(places) > cores
    groups = [list(places)] if shares else [[place] for place in places]
    cores = cores if shares else 1
    clean = list[float]()
    for group in groups:
        told = [found.members[place] for place in group]
        walls = np.array([sum(one.wall) for one in told])
        used, waited, unseen = (
            np.array([sum(getattr(one, name)) for one in told]) * found.seconds / walls
            for name in ("used", "waited", "unseen")
        )
        taken = sum(found.taken) if shares else found.taken[group[0]]
        others = others_of(found.seconds, cores, (taken, 0.0, 0.0), used, waited, unseen)
        for one, beside in zip(told, others, strict=True):
            wall, late, blind, cpu = (
                np.array(each) for each in (one.wall, one.waited, one.unseen, one.used)
            )
            clean.append(cleaned_executions(wall, late, blind, cpu, cores, beside).seconds)
    return clean


def ratios(names: list[str], hogs: int, cores: int) -> list[float]:
    """Corrected by quiet, of each."""
    programs = [PROGRAMS[name] for name in names]
    quiet = [float(np.median(one.wall)) for one in made(programs, 0, cores, 2000).members]
    clean = corrected(made(programs, hogs, cores, 2000), cores)
    return [one / other for one, other in zip(clean, quiet, strict=True)]


@pytest.mark.parametrize("hogs", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_quiet_time_of_a_made_program_comes_back(name: str, hogs: int) -> None:
    # Nobody sees what the processes that it starts wait.
    allowed = 0.2 if name == "starts processes" else 0.05
    assert ratios([name], hogs, 1)[0] == pytest.approx(1, abs=allowed)


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize("members", [2, 3, 4, 6])
def test_and_of_members_that_share_cores_with_each_other(members: int, cores: int) -> None:
    """Which wait for each other when nobody else is there: that is no disturbance."""
    draw = random.Random(members)
    off = [
        abs(ratio - 1)
        for _ in range(4)
        for hogs in (0, 2, 8)
        for ratio in ratios(draw.choices(list(PROGRAMS), k=members), hogs, cores)
    ]
    assert np.median(off) < 0.03
    assert np.quantile(off, 0.9) < 0.12


@pytest.mark.parametrize(
    ("cores", "members", "rivals"), [(1, 1, 3), (1, 2, 2), (2, 3, 3), (4, 6, 2)]
)
def test_members_that_always_compute_lose_what_equal_parts_say(
    cores: int, members: int, rivals: int
) -> None:
    """n of everyone on c cores: each waits n / c - 1 for a second of its own, m / c - 1 of it for members."""
    everyone = members + rivals
    used = np.full(members, cores / everyone)
    share, per_second = lost_shares(cores, rivals * cores / everyone, used, 1 - used, 0 * used)
    assert share == pytest.approx(np.full(members, rivals / (everyone - cores)), rel=0.02)
    blind = lost_shares(cores, rivals * cores / everyone, used, 0 * used, used)
    assert per_second == pytest.approx(np.zeros(members))
    assert blind[0] * blind[1] == pytest.approx(np.full(members, rivals / cores), rel=0.02)


def test_who_is_beside_nobody_else_loses_nothing() -> None:
    used = np.array([0.6, 0.9, 0.5])
    share, _ = lost_shares(2, 0.0, used, 1 - used, 0 * used)
    assert share == pytest.approx(np.zeros(3), abs=1e-6)
