"""Which periods lie inside phases, and what is learned from those alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from jostle.learn.learners.counters import (
    AlignedRows,
    SoloIndex,
    aligned_rows,
    fit_learner,
    traced_windows,
)
from jostle.learn.learners.counters.learning._network import PhaseNetwork
from jostle.learn.learners.counters.solo._offered import offered_counters
from jostle.learn.learners.counters.solo._phases import same_phase
from studies.alignment.laws import LAWS
from studies.alignment.paper.ridge import run_errors
from studies.alignment.simulated import draw_programs, simulate_campaign
from tests.packages.learn.counters.conftest import a_solo


def two_phases(noise: float = 0.0, samples: int = 40) -> np.ndarray:
    """(2 samples + 1, 3) the one in the middle is half of each."""
    first, second = np.array([8.0, 1.0, 4.0]), np.array([4.0, 2.0, 4.0])
    table = np.concatenate(
        [np.tile(first, (samples, 1)), (first + second)[None] / 2, np.tile(second, (samples, 1))]
    )
    return table * np.exp(noise * np.random.default_rng(0).normal(size=table.shape))


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_neighbours_of_one_phase_are_alike(noise: float) -> None:
    alike = same_phase(two_phases(noise))
    assert not alike[39]
    assert not alike[40]
    rest = np.delete(alike, [39, 40])
    assert rest.all() if not noise else rest.mean() > 0.9


def test_where_every_sample_differs_there_are_no_phases() -> None:
    random = np.random.default_rng(1)
    assert same_phase(np.exp(random.normal(size=(200, 5)))).mean() > 0.9
    assert same_phase(np.zeros((4, 2))).all()
    assert not len(same_phase(np.ones((1, 2))))


def test_one_counter_that_jumps_is_no_phase() -> None:
    table = np.tile([8.0, 1.0, 4.0, 2.0, 3.0, 5.0, 1.0, 1.0], (30, 1))
    table[10, 7] = 50.0
    assert same_phase(table).all()


def test_stretches_inside_a_phase() -> None:
    solo = a_solo(two_phases(samples=4), tau=2.0)  # the period from 8 to 10 seconds holds both

    def inside(begin: float, end: float) -> bool:
        return bool(solo.inside_phase(np.array([begin]), np.array([end]))[0])

    assert inside(0, 2)
    assert inside(1, 7.5)
    assert inside(0, 8)
    assert inside(10, 18)
    assert inside(3, 3.5)
    assert not inside(7, 9)
    assert not inside(8, 10)
    assert not inside(8.5, 9)
    assert not inside(9.5, 10.5)
    assert inside(18, 20)
    assert inside(19, 25)
    assert not inside(17, 19)
    assert not inside(25, 27)


@cache
def rows_of(law: str) -> tuple[AlignedRows, AlignedRows]:
    """(rows of 14 programs, rows of 5 others)."""
    programs = draw_programs(19, 5, seconds=0.04, shortest_seconds=5e-4, machine=LAWS[law])
    learned = [(a, (a + step) % 14) for a in range(14) for step in (1, 3, 4, 6)]
    tested = [(a, b) for a in range(14, 19) for b in range(14, 19) if a < b]
    traces = simulate_campaign(programs, LAWS[law], period_seconds=5e-4, sets=[*learned, *tested])
    offered, _ = offered_counters(traces, ("instructions", "cache_misses", "loads", "branches"))
    solos, windows = SoloIndex.from_traces(traces, offered), traced_windows(traces)
    late = {program.name for program in programs[14:]}
    found = [
        aligned_rows({k: v for k, v in windows.items() if (v[0].workload in late) == new}, solos)
        for new in (False, True)
    ]
    return found[0], found[1]


@pytest.mark.parametrize("law", ["queue", "smt"])
def test_a_law_is_learned_better_inside_phases(law: str) -> None:
    learned, asked = rows_of(law)
    assert learned.inside is not None
    assert 0.3 < learned.inside_share < 0.95

    def error(rows: AlignedRows) -> float:
        return float(run_errors(fit_learner(rows, "phases", seed=0), asked).mean())

    everywhere = replace(learned, inside=np.ones(len(learned), bool))
    found = error(learned)
    assert found < 0.75 * error(everywhere)
    assert found < 0.2 * float(np.abs(np.expm1(-asked.run_logs())).mean())


def test_beyond_what_was_seen_it_answers_within_its_limits() -> None:
    learned, asked = rows_of("queue")
    network = fit_learner(learned.thinned(800), "phases", seed=0)
    assert isinstance(network, PhaseNetwork)
    found = network.slowdown(1e6 * asked.own, 1e6 * asked.others)
    assert found.max() <= network.limits[1]
    assert found.min() >= network.limits[0]
    np.testing.assert_array_equal(network.slowdown(asked.own, 0 * asked.others), 1.0)
