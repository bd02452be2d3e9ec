"""The protocol of what was recorded on GPUs, by hand; and made devices, which do what their laws say."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from jostle.data import Runs
from studies.accelerator.recorded_gpus import (
    BOUNDED,
    FIFTH,
    FOLDS,
    PROGRAM,
    Answered,
    bound_row,
    decision_rows,
    error_rows,
    folds,
)
from studies.one_model.campaigns import KnownData
from studies.worlds.made_devices import MADE, MadeDevice

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("JOSTLE_DATA", ROOT.parent / "shared" / "data"))


def test_a_set_is_never_on_both_sides() -> None:
    names = [f"w{k}" for k in range(5)]
    pairs = [(a, b) for a in names for b in names if a < b] * 2
    rows = [(a, []) for a in names] + [row for a, b in pairs for row in ((a, [b]), (b, [a]))]
    runs = Runs.from_columns(
        workload=[a for a, _ in rows],
        platform=["gpu|mps"] * len(rows),
        corunners=[b for _, b in rows],
        runtime_seconds=np.ones(len(rows)),
    )
    members = [frozenset((a, *b)) for a, b in rows]
    for way, share in ((FOLDS, 0.2), (FIFTH, 0.8), (PROGRAM, 0.4)):
        seen = np.zeros(len(rows), int)
        for known, asked in folds(KnownData(runs), way, 5, seed=0):
            assert not {members[n] for n in known} & {members[n] for n in asked}
            assert set(range(5)) <= set(known.tolist())
            assert len(asked) == share * 40
            seen[asked] += 1
        assert (seen[5:] == {FOLDS: 1, FIFTH: 4, PROGRAM: 2}[way]).all()


def test_measures_by_hand() -> None:
    """Two runs of one co-location, which is safe in the mean at 1.2, and one of another, which is not."""
    n = np.array([0, 0, 1])
    found = Answered(
        where=np.array(["mps"] * 3),
        seconds=np.array([1.0, 1.2, 2.0]),
        solo=np.ones(3),
        unit=n,
        cell=n.astype(str),
        predicted={
            "right": np.array([1.1, 1.1, 2.0]),
            "solo": np.ones(3),
            "starved": np.array([1.0, 1.2, np.inf]),
            BOUNDED: np.array([1.15, 1.15, np.inf]),
        },
    )
    errors = {row[0]: row[1:] for row in error_rows(found, seed=0)}
    assert errors["right"][0] == f"{100 * (0.1 + 0.1 / 1.2) / 3:.2f}%"
    assert errors["starved"][0] == "333.33%"
    assert BOUNDED not in errors
    decisions = {row[0]: row[1:] for row in decision_rows(found)}
    assert decisions["right"] == ["0.0%", "100.0%"] * 3
    assert decisions["solo"] == ["50.0%", "100.0%"] * 3
    assert decisions[BOUNDED] == ["–", "0.0%", "0.0%", "100.0%", "0.0%", "100.0%"]
    kept, _, margin, none = bound_row(found)
    assert (kept, none) == ("75.0%", "33.3%")
    assert margin == "7.5%"


def test_made_devices_do_what_their_laws_say() -> None:
    """Alone a run takes its trace and its work on the host; a law adds to what the trace alone explains."""
    made = MADE[3]
    solo = made.applications["w0"].solo_seconds
    np.testing.assert_allclose(made.latency(["w0"]), solo)
    hosted = MadeDevice("hosted", "concurrent", "per_direction", 0.5, "none", made.seed)
    assert hosted.latency(["w0"])[0] == pytest.approx(1.5 * solo)
    one = MadeDevice("more", "concurrent", "per_direction", 0.0, "number", 7)
    longer = one.really("w0", ["w1", "w2"]).solo_seconds / one.really("w0", []).solo_seconds
    assert 1 < longer <= 1 + 0.05 * 2**1.5


@pytest.mark.data
@pytest.mark.skipif(
    not (DATA / "v100_interference").is_dir(), reason=f"no public measurements in {DATA}"
)
def test_v100_rows() -> None:
    from studies.accelerator.v100 import evaluate_accelerator_v100

    rows = evaluate_accelerator_v100(DATA / "v100_interference").rows
    errors = [float(row[3].rstrip("%")) for row in rows if row[3] != "–"]
    assert (len(rows), len(errors)) == (23, 15)
    assert max(errors) <= 5
