"""Turns on shared cores, against closed forms, every state counted by hand, and runs measured."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jostle
from jostle.data import Runs
from jostle.learn import CellTable, Ensemble, SlowdownRows, cpu_sharing_log_slowdown, with_cores


def asked(share: list[float], cores: float) -> float:
    """The log slowdown of the first beside the others."""
    n = len(share)
    cell_table = CellTable(1, n, np.array(share), np.array([cores]))
    one = np.zeros(n - 1, np.int64)
    rows = SlowdownRows(np.zeros(1, np.int64), np.arange(1, n), one, np.zeros(1), np.ones(1))
    return float(cpu_sharing_log_slowdown(rows, cell_table)[0])


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
@pytest.mark.parametrize("members", [2, 3, 6, 40])
def test_who_always_wants_a_core_gets_an_even_share(members: int, cores: int) -> None:
    wanted = np.log(max(1.0, members / cores))
    assert asked([1.0] * members, cores) == pytest.approx(wanted)


def test_threads_are_members_of_their_own() -> None:
    assert asked([3.0, 1.0], 2) == pytest.approx(np.log(2.0))
    assert asked([1.0, 3.0], 2) == pytest.approx(np.log(2.0))
    # Just above one core is one thread that was counted with an error.
    assert asked([1.02, 1.02], 1) == pytest.approx(np.log(2.0))


def by_counting(share: list[float], cores: int) -> float:
    """The same by every state of who wants a core, at the s of the fixed point found by bisection."""

    def wants(longer: float) -> list[float]:
        return [u * longer / (1 - u + u * longer) for u in share]

    def mean(chances: list[float], value: object) -> float:
        total = 0.0
        for state in product((0, 1), repeat=len(chances)):
            chance = np.prod([p if on else 1 - p for p, on in zip(chances, state, strict=True)])
            total += float(chance) * value(sum(state))  # type: ignore[operator]
        return total

    low, high = 1.0, 100.0
    for _ in range(100):
        longer = (low + high) / 2
        p = wants(longer)
        more = mean(p, lambda n: n) / mean(p, lambda n: min(n, cores))
        low, high = (longer, high) if more > longer else (low, longer)
    rate = mean(wants(low)[1:], lambda n: min(1.0, cores / (1 + n)))
    return float(np.log(1 - share[0] + share[0] / rate))


@given(st.lists(st.floats(0.05, 0.95), min_size=2, max_size=5), st.integers(1, 3), st.randoms())
def test_as_counted_by_hand_in_any_order(share: list[float], cores: int, random: object) -> None:
    found = asked(share, cores)
    assert found == pytest.approx(by_counting(share, cores), abs=2e-3)
    assert found >= 0
    random.shuffle(others := share[1:])  # type: ignore[attr-defined]
    assert asked([share[0], *others], cores) == pytest.approx(found, abs=1e-9)
    assert asked([*share, 0.5], cores) >= found - 1e-9
    assert asked(share, cores + 1) <= found + 1e-9


NAMES = list("abcdef")


def made(
    *, stated: int | None, beside_another: float | None = None, names: list[str] = NAMES
) -> jostle.Runs:
    """Programs that always want a core, alone and, where it takes so many times as long, in every pair."""
    rows: list[tuple[str, list[str], float]] = [(name, [], 1.0) for name in names]
    if beside_another is not None:
        rows += [(a, [b], beside_another) for a in names for b in names]
    workload, corunners, seconds = zip(*rows, strict=True)
    n = len(rows)
    return jostle.Runs.from_columns(
        workload=workload,
        platform=["p"] * n,
        corunners=corunners,
        runtime_seconds=np.array(seconds) * np.random.default_rng(0).normal(1, 0.01, n),
        cpu_seconds=[1.0] * n,
        window_seconds=[1.0] * n,
        platform_features=stated and {"platform": ["p"], "cores": [stated]},
    )


def slowdown_of(runs: jostle.Runs, corunners: int) -> float:
    model = jostle.fit(runs, Ensemble(("rules",)), seed=0)
    query = jostle.Colocations.from_columns(
        workload=["a"], platform=["p"], corunners=[NAMES[1 : 1 + corunners]]
    )
    return float(model.predict(query)[0])


def test_runs_alone_tell_what_turns_take() -> None:
    assert slowdown_of(made(stated=2), 1) == pytest.approx(1.0, abs=0.05)
    assert slowdown_of(made(stated=2), 3) == pytest.approx(2.0, abs=0.1)
    # Nothing tells how many cores there are.
    assert slowdown_of(made(stated=None), 3) == pytest.approx(1.0, abs=0.05)


def test_pairs_that_have_a_core_each_tell_nothing_of_more() -> None:
    assert slowdown_of(made(stated=2, beside_another=1.0), 3) == pytest.approx(2.0, abs=0.1)
    assert slowdown_of(made(stated=2, beside_another=1.1), 3) > 2.1
    assert slowdown_of(made(stated=None, beside_another=1.0), 3) == pytest.approx(1.0, abs=0.05)


def test_runs_that_took_no_turns_overrule_what_is_stated() -> None:
    assert slowdown_of(made(stated=1, beside_another=1.0), 1) == pytest.approx(1.0, abs=0.05)
    assert slowdown_of(made(stated=1, beside_another=1.0), 4) == pytest.approx(1.0, abs=0.05)


def test_pairs_tell_that_there_is_one_core() -> None:
    for stated in (None, 1):
        assert slowdown_of(made(stated=stated, beside_another=2.0), 3) == pytest.approx(
            4.0, rel=0.1
        )


@pytest.mark.parametrize("value", [0, -1, None, float("nan")])
def test_odd_numbers_of_cores_are_not_believed(value: float | None) -> None:
    runs = made(stated=2)
    features = pa.table({"platform": ["p"], "cores": pa.array([value], pa.float64())})
    cell_table = CellTable(1, 6)
    none = np.zeros(0, np.int64)
    rows = SlowdownRows(none, none, none, np.zeros(0), np.zeros(0))
    names = (tuple(NAMES), ("p",))
    assert with_cores(cell_table, Runs(runs.table, None, features), names, rows).cores is None
    assert with_cores(cell_table, runs, names, rows).cores == [2]


def test_runs_measured_on_shared_cores() -> None:
    """Twenty programs that wait for parts of their time: half of what two cores cost beside three others,
    and nearly all that one does, follows from runs alone."""
    runs = jostle.data.shared_core_bags().ok()
    alone = runs.take(runs.colocations.number_of_corunners == 0)
    model = jostle.fit(alone, Ensemble(("rules",)), seed=0)
    error, without = {}, {}
    solo = dict(
        zip(
            zip(
                *(alone.table.column(c).to_pylist() for c in ("workload", "platform")), strict=True
            ),
            alone.runtime_seconds,
            strict=True,
        )
    )
    for cores in (1, 2):
        mine = runs.colocations.number_of_corunners == 3
        place = runs.colocations.platform_names.index(f"wasmtime-speed@cpus={cores}:intel-xeon-2c")
        part = runs.take(mine & (runs.colocations.platform == place))
        predicted = model.predict(part.colocations)
        error[cores] = float(np.mean(np.abs(predicted / part.runtime_seconds - 1)))
        names = zip(
            *(part.table.column(c).to_pylist() for c in ("workload", "platform")), strict=True
        )
        times = np.array([solo[name] for name in names])
        without[cores] = float(np.mean(np.abs(times / part.runtime_seconds - 1)))
    assert error[1] < without[1] / 5
    assert error[2] < without[2] / 2
