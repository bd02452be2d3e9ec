"""Errors and bounds of what was told over time, against plain loops over runs, parts and scores."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ks_2samp

from jostle.conformal import conformal_rank
from jostle.data import Colocations, Runs
from jostle.models import BusyNodes, Rates, Timelines, ends, no_newcomers, past_and_future
from jostle.models.timelines._arrival_simulation import DRAWS, Newcomers
from jostle.models.timelines._timeline_calibration import Ages, TimelineCalibration, told_by
from tests.packages.models.over_time_samples import NAMES, times
from tests.packages.models.timelines_samples import Known, node_log

MOMENTS = (0.0, 0.4, 0.7, 0.9)
Part = tuple[float, float, float]  # begin, end, seconds of a whole run


@pytest.fixture(scope="module")
def runs() -> Runs:
    return node_log(80, seed=4, noise=0.15)


def parts_of(runs: Runs) -> list[list[Part]]:
    found = []
    for row in runs.table.to_pylist():
        begins = [one["start_seconds"] for one in row["stretches"]]
        beside = [one["corunners"] for one in row["stretches"]]
        seconds = times(
            Colocations.from_columns(
                workload=[row["workload"]] * len(begins),
                platform=["p"] * len(begins),
                corunners=beside,
            )
        ).tolist()
        edges = pairwise([*begins, row["runtime_seconds"]])
        found.append([(a, b, s) for (a, b), s in zip(edges, seconds, strict=True)])
    return found


def until(parts: list[Part], work: float, since: float = 0.0) -> float:
    """When so much work is done that began at `since`; what was last goes on."""
    for number, (begin, end, seconds) in enumerate(parts):
        begin = max(begin, since)
        if begin < end and (begin + work * seconds <= end or number == len(parts) - 1):
            return begin + work * seconds
        work -= max(end - begin, 0.0) / seconds
    raise AssertionError


def done_at(parts: list[Part], age: float) -> float:
    return sum(max(min(age, end) - begin, 0.0) / seconds for begin, end, seconds in parts)


def test_errors_are_those_of_a_plain_walk_through_every_run(runs: Runs) -> None:
    acts = TimelineCalibration.of(Known(), runs, np.arange(len(runs)), seed=0)
    found = sorted(
        zip(acts.kind.tolist(), acts.moment.tolist(), acts.workload.tolist(), acts.error.tolist(),
            strict=True)
    )  # fmt: skip
    expected = []
    names = runs.table.column("workload").to_pylist()
    for name, parts in zip(names, parts_of(runs), strict=True):
        actual = parts[-1][1]
        for moment, share in enumerate(MOMENTS):
            for is_told in (False, True)[: 1 + (moment > 0)]:
                work = share * (done_at(parts, actual) if is_told else 1.0)
                at = until(parts, work)
                if at >= actual:
                    continue
                pace = (share + 0.1) / (done_at(parts, at) + 0.1) if is_told else 1.0
                told = until(parts, (1 - share) / pace, at) if is_told else until(parts, 1.0)
                past = at if is_told else 0.0
                error = float(np.log((actual - past) / (told - past)))
                expected.append((2 * is_told, moment, NAMES.index(name), error))
    mine = [one for one in found if one[0] % 2 == 0]
    assert len(mine) == len(expected) > 400
    np.testing.assert_allclose(mine, sorted(expected), atol=1e-6)
    # Whoever may come, the same are asked about.
    open_ones = Counter((kind - 1, moment, code) for kind, moment, code, _ in found if kind % 2)
    assert open_ones == Counter(one[:3] for one in mine)
    # Of an open question residents count by what they had done.
    rows, rates = np.arange(len(runs)), Rates(Known())
    age, newcomers = Ages.of(runs, rates), Newcomers.of(runs, *rates.names)
    elapsed = age.when_done(rows, 0.4)
    rows = rows[elapsed < runs.runtime_seconds]
    asked = past_and_future(runs, rows, elapsed[rows], is_open=True)
    told = told_by(rates, age.with_residents(asked, rows), newcomers, 0)
    found_open = acts.error[(acts.kind == 1) & (acts.moment == 1)]
    assert np.sort(found_open) == pytest.approx(np.sort(np.log(runs.runtime_seconds[rows] / told)))
    few = TimelineCalibration.of(Known(), runs, np.arange(40), seed=0, most=20)
    assert Counter(few.moment[few.kind == 0].tolist())[0] == 20
    assert max(Counter(few.moment[few.kind == 2].tolist()).values()) <= 5


def test_earlier_moments_are_where_a_plain_walk_comes_to_them(runs: Runs) -> None:
    rows, shares = np.arange(0, len(runs), 5), (0.25, 0.7)
    elapsed = 0.8 * runs.runtime_seconds[rows]
    asked = past_and_future(runs, rows, elapsed, is_open=False)
    found, of = asked.earlier(np.log(times(asked.colocations)), shares)
    all_parts = parts_of(runs)
    for number, row in enumerate(rows.tolist()):
        changes = [begin for begin, _, _ in all_parts[row]]
        moments = changes + [until(all_parts[row], share) for share in shares]
        expected = [
            one for one in moments if one <= elapsed[number] and one < all_parts[row][-1][1]
        ]
        mine = sorted(found.elapsed_seconds[of == number].tolist())
        assert mine == pytest.approx(sorted(expected), abs=1e-5)


def test_what_residents_had_done_is_that_of_their_own_runs(runs: Runs) -> None:
    rows, parts, table = np.arange(0, len(runs), 3), parts_of(runs), runs.table.to_pylist()
    age = Ages.of(runs, Rates(Known()))
    elapsed = age.when_done(rows, 0.4)
    rows, elapsed = rows[np.isfinite(elapsed)], elapsed[np.isfinite(elapsed)]
    asked = age.with_residents(past_and_future(runs, rows, elapsed, is_open=True), rows)
    c, done = asked.colocations, asked.beside_done
    assert done is not None
    begins = [row["measured_at"].timestamp() for row in table]
    for part, row in enumerate(rows[asked.row].tolist()):
        now = begins[row] + float(asked.start_seconds[part])
        there = [
            (table[j]["workload"], min(done_at(parts[j], now - begins[j]), 0.95))
            for j in range(len(table))
            if j != row
            and table[j]["node"] == table[row]["node"]
            and begins[j] <= now + 1e-4 < begins[j] + table[j]["runtime_seconds"]
        ]
        at = slice(*c.corunner_offsets[part : part + 2])
        who = [c.workload_names[code] for code in c.corunner[at]]
        mine = sorted(zip(who, done[at].tolist(), strict=True))
        assert [name for name, _ in mine] == [name for name, _ in sorted(there)]
        np.testing.assert_allclose([d for _, d in mine], [d for _, d in sorted(there)], atol=1e-3)


def by_plain_draws(draw: np.random.Generator, rates: Rates, newcomers: Newcomers) -> list[float]:
    """The ends of the first two of up to four on one node, of which the second is twice as fast as said."""
    here = {0: (0, 1.0, 1.0), 1: (1, 0.5, 2.0)}  # code, share that is left, pace
    clock, over = 0.0, dict[int, float]()
    while not {0, 1} <= over.keys():
        codes = np.array([[code for code, _, _ in here.values()]])
        seconds = dict(zip(here, rates.of(np.zeros(1, int), codes)[0].tolist(), strict=True))
        until = {key: left * seconds[key] / pace for key, (_, left, pace) in here.items()}
        rate = newcomers.rate_per_second[len(here) - 1] if len(here) < 4 else 0.0
        comes = draw.exponential(1 / rate) if rate else np.inf
        step = min(comes, *until.values())
        clock += step
        here = {k: (c, left - step * p / seconds[k], p) for k, (c, left, p) in here.items()}
        if comes == step:
            here[len(over) + len(here) + 10 * int(1e6 * clock)] = (
                int(draw.choice(6, p=newcomers.share[0])), 1.0, 1.0,
            )  # fmt: skip
        else:
            gone = min(until, key=lambda key: until[key])
            over[gone] = clock
            del here[gone]
    return [over[0], over[1]]


def test_whoever_may_come_ends_are_those_of_plain_draws() -> None:
    rates = Rates(Known())
    newcomers = Newcomers(
        np.array([0.02, 0.06, 0.03, 0.5]), np.array([[0.1, 0.2, 0.0, 0.5, 0.2, 0.0]])
    )
    members, left, pace = ([[0, 1]] * DRAWS, [[1.0, 0.5]] * DRAWS, [[1.0, 2.0]] * DRAWS)
    nodes = BusyNodes(
        np.zeros(DRAWS, int), *map(np.array, (members, left, pace)), slots=np.full(DRAWS, 4)
    )
    found = np.concatenate(
        [ends(rates, nodes, newcomers, watched=2, seed=seed) for seed in range(100)]
    )
    draw = np.random.default_rng(0)
    plain = np.array([by_plain_draws(draw, rates, newcomers) for _ in range(900)])
    for one, other in zip(found.T, plain.T, strict=True):
        assert np.asarray(ks_2samp(one, other))[1] > 1e-6


class Scores:
    """One kind and moment: scores over the usual size of a name's other errors."""

    def __init__(self, acts: TimelineCalibration, kind: int, moment: int) -> None:
        rows = np.flatnonzero((acts.kind == kind) & (acts.moment == moment))
        self.of = [(int(acts.workload[i]), float(acts.error[i])) for i in rows]
        self.usual = float(np.mean([abs(e) for _, e in self.of])) if self.of else 1e-9
        self.sorted = sorted(e / self.width(c, without=i) for i, (c, e) in enumerate(self.of))

    def width(self, code: int, without: int | None = None) -> float:
        sizes = [abs(e) for i, (c, e) in enumerate(self.of) if c == code and i != without]
        return (sum(sizes) + 5 * self.usual) / (len(sizes) + 5) + 0.1 * self.usual

    def rank(self, confidence: float) -> int | None:
        rank = conformal_rank(len(self.sorted), confidence)
        return rank if rank <= len(self.sorted) else None


@pytest.mark.parametrize("seed", range(6))
def test_bounds_and_those_outlasted_are_those_of_plain_scores(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n = 300
    kind, moment = draw.integers(0, 4, n), draw.integers(0, 4, n)
    kind[moment == 0] %= 2
    kind[(moment == 3) & (draw.random(n) < 0.8)] = 0
    error = draw.normal(0.05, 0.2, n) * (1 + kind)
    acts = TimelineCalibration(no_newcomers(), kind, moment, draw.integers(0, 3, n), error)
    m, confidence = 60, float(draw.choice([0.5, 0.8, 0.95]))
    law = draw.uniform(5, 20, m)
    elapsed = np.where(draw.random(m) < 0.2, 0.0, draw.uniform(0.1, 1.3, m) * law)
    ratio = [
        float(draw.uniform(0.05, 0.99)) if e and draw.random() < 0.5 else None for e in elapsed
    ]
    is_open = draw.random(m) < 0.5
    asked = Timelines.from_columns(
        workload=[NAMES[k % 4] for k in range(m)], platform=["p"] * m, stretches=[[(0.0, [])]] * m,
        elapsed_seconds=elapsed, done_ratio=ratio, future=is_open.tolist(),
    )  # fmt: skip
    code, told = np.arange(m) % 4, np.maximum(law, elapsed) * draw.uniform(1.0, 1.2, m)
    bounds = acts.bound(told, asked, np.log(law), code, confidence)
    outlasted = acts.outlasted(law, asked, code, confidence)
    for k in range(m):
        counted = ratio[k]
        share = counted if counted is not None else min(elapsed[k] / law[k], 1.0)
        at = sum(share >= one for one in MOMENTS[1:])
        over = int(is_open[k])
        past = elapsed[k] if counted is not None else 0.0
        if counted is not None:
            widest = -np.inf
            first = Scores(acts, over, 0)
            for later in range(at, 4):
                some = Scores(acts, over + 2 * (later > 0), later)
                some = some if some.rank(confidence) is not None else first
                rank = some.rank(confidence)
                assert rank is not None
                widest = max(widest, some.sorted[rank - 1] * some.width(code[k]))
            expected = past + (told[k] - past) * np.exp(widest)
        elif 0 < law[k] <= elapsed[k]:
            some = Scores(acts, 0, 0)
            width = some.width(code[k])
            longer = [one for one in some.sorted if one > np.log(elapsed[k] / law[k]) / width]
            rank = conformal_rank(len(longer), confidence)
            expected = law[k] * np.exp([*longer, np.inf][min(rank - 1, len(longer))] * width)
        else:
            some = Scores(acts, over, at)
            some = some if some.rank(confidence) is not None else Scores(acts, over, 0)
            rank = some.rank(confidence)
            assert rank is not None
            expected = told[k] * np.exp(some.sorted[rank - 1] * some.width(code[k]))
        assert bounds.seconds[k] == pytest.approx(max(expected, elapsed[k])), k
        some = Scores(acts, over, 0)
        passed = sum(
            one <= np.log(elapsed[k] / law[k]) / some.width(code[k]) if elapsed[k] else False
            for one in some.sorted
        )
        all_of = len(some.sorted)
        is_later = conformal_rank(all_of - passed, confidence) + passed > conformal_rank(
            all_of, confidence
        )
        assert outlasted[k] == (passed if is_later else 0)
