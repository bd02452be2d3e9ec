"""Bags that contend: the plan, how far pairs and repeats differ, and what is written of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jostle.runs import Dataset, Runs
from studies.collect import contention_bags as recorder

NAMES = ("a", "b", "c", "d")


def test_every_pair_is_there_once_in_every_pass() -> None:
    def plan(passes: int):
        return recorder.EveryPair(
            workloads=recorder.workloads(5), engines=["speed"], passes=passes
        ).plan()

    once, twice = plan(1), plan(2)
    assert twice[: len(once)] == once
    assert len({planned.key for planned in twice}) == len(twice) == 2 * (2 * 5 + 15)
    pairs = {planned.set_name for planned in once if len(planned.members) == 2}
    assert len(pairs) == 15
    assert sum(len({m.name for m in planned.members}) == 1 for planned in once) == 2 * 5 + 5


def runs_of(noise: float) -> Runs:
    """Pairs of NAMES twice on two platforms; only on `turns` does it matter who they are."""
    random = np.random.default_rng(0)
    rows = [(p, t, ()) for p in ("own", "turns") for t in NAMES for _ in range(2)]
    rows += [(p, t, (o,)) for p in ("own", "turns") for t in NAMES for o in NAMES for _ in range(2)]
    worse = {name: 1.0 + number for number, name in enumerate(NAMES)}
    seconds = [
        (worse[o[0]] if p == "turns" and o else 1.0) * np.exp(noise * random.normal())
        for p, _, o in rows
    ]
    return Runs.from_columns(
        workload=[t for _, t, _ in rows],
        platform=[p for p, _, _ in rows],
        corunners=[o for _, _, o in rows],
        runtime_seconds=seconds,
        window_id=[f"w{number}" for number in range(len(rows))],
    )


def test_pairs_and_repeats_are_measured_alike() -> None:
    found = recorder.differences(runs_of(0.01))
    logs = np.log([1.0, 2.0, 3.0, 4.0])
    expected = np.mean(np.abs(np.subtract.outer(logs, logs)))
    assert found["turns"]["pairs_differ"] == pytest.approx(expected, rel=0.05)
    assert found["turns"]["repeats_differ"] == pytest.approx(0.01 * 2 / np.sqrt(np.pi), rel=0.4)
    assert found["turns"]["ratio"] > 20
    assert found["own"]["ratio"] < 2


def test_only_what_shows_something_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Dataset(tmp_path / "noisy").write(runs_of(0.5))
    assert recorder.ship(tmp_path / "noisy", tmp_path / "out") == 1
    assert "no set of bags is made" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    Dataset(tmp_path / "quiet").write(runs_of(0.01))
    assert recorder.ship(tmp_path / "quiet", tmp_path / "out") == 0
    document = json.loads((tmp_path / "out" / "contention.json").read_text())
    assert (document["predicted"], document["cpu_platform"]) == ("turns", "own")
    assert len(Dataset(tmp_path / "out").read()) == 80
