"""One way in: Data from a folder, from runs, from traces; and what is held out of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.data import Dataset, Runs
from jostle.errors import NotEnoughRuns, UsageError
from jostle.learn import Data, Prepared, hold_out, without_inputs
from jostle.learn.learners.latent_factors import Slowdown


def test_a_folder_is_read_when_asked(runs: Runs, tmp_path: Path) -> None:
    data = jostle.read(tmp_path / "d")  # nothing there yet, and nothing read
    assert data.version is None
    assert not data.has_runs
    Dataset(tmp_path / "d").write(runs)
    again = jostle.read(tmp_path / "d")
    assert again.has_runs
    assert len(again.runs) == len(runs)
    assert again.version == Dataset(tmp_path / "d").version()
    assert again.features[0] is not None
    assert again.runs is again.runs
    fitted = jostle.fit(tmp_path / "d", Slowdown(members=1, steps=5))
    same = jostle.fit(again, Slowdown(members=1, steps=5))
    assert np.array_equal(fitted.predict(runs.colocations), same.predict(runs.colocations))


def test_what_is_no_data_is_refused() -> None:
    with pytest.raises(UsageError, match="data cannot be a int"):
        Data.of(3)
    with pytest.raises(NotEnoughRuns, match="no traces in the data"):
        _ = Data().traces


def test_inputs_are_never_held_out(runs: Runs) -> None:
    on_p0 = np.array(runs.table.column("platform").to_pylist()) == "p0"
    prepared = Prepared.of(Data(runs), inputs=on_p0)
    held = hold_out(prepared, 0, "window")
    for part in (held.validation, held.calibration):
        assert len(part)
        assert "p0" not in part.table.column("platform").to_pylist()
    assert held.learn.inputs.sum() == on_p0.sum()


def test_a_caller_cannot_calibrate_on_inputs(runs: Runs) -> None:
    class OnPlatform(Slowdown):
        def prepare(self, data: Data) -> Prepared:
            every = data.runs
            place = np.array(every.table.column("platform").to_pylist()) == "p0"
            return Prepared.of(data, every, inputs=place)

    method = OnPlatform(members=1, steps=5)
    prepared = method.prepare(Data(runs))
    left = without_inputs(method, prepared, runs)
    assert set(left.table.column("platform").to_pylist()) == {"p1", "p2"}
    model = jostle.fit(runs, method, validation=runs.take([]), calibration=runs)
    assert model.metadata["runs"]["calibration"] == len(left)


def test_runs_that_failed_are_never_learned_from(runs: Runs) -> None:
    columns = {name: runs.table.column(name) for name in ("workload", "platform", "corunners")}
    status = ["ok"] * (len(runs) - 1) + ["failed"]
    seconds = runs.runtime_seconds.copy()
    seconds[-1] = np.nan
    some = Runs.from_columns(**columns, runtime_seconds=seconds, status=status)
    assert len(Prepared.of(Data(some)).runs) == len(runs) - 1


@pytest.mark.parametrize(("pairs", "most"), [(25, 10), (50, 16), (78, 16), (300, 36)])
def test_as_many_pairs_calibrate_as_a_bound_needs(pairs: int, most: int) -> None:
    names = [f"w{k:02d}" for k in range(25)]
    both = [(a, b) for a in range(25) for b in range(a)][:pairs]
    rows = [pair for a, b in both for pair in ((a, b), (b, a))]
    runs = Runs.from_columns(
        workload=[names[a] for a, _ in rows],
        platform=["p"] * len(rows),
        corunners=[[names[b]] for _, b in rows],
        runtime_seconds=[1.0] * len(rows),
    )
    held = hold_out(Prepared.of(Data(runs), calibrate_by="together"), 0, "together")
    found = len(np.unique(held.calibration.units("together")))
    assert most - 1 <= found <= most


def test_calibration_runs_past_the_most_are_drawn_from_all() -> None:
    """Old quiet runs must not be all that bounds of a noisier mix are calibrated on."""
    n = 2000
    runs = Runs.from_columns(
        workload=["a", "b"] * (n // 2),
        platform=["p"] * n,
        runtime_seconds=np.where(np.arange(n) < n // 2, 1.0, 2.0),
        window_id=[f"w{i // 2}" for i in range(n)],
    )
    held = hold_out(Prepared.of(Data(runs)), 0, "window", most=40)
    assert 40 <= len(held.calibration) <= 41
    late = float((held.calibration.runtime_seconds == 2.0).mean())
    assert 0.25 < late < 0.75
    windows = [
        part.table.column("window_id").to_pylist() for part in (held.calibration, held.learn.runs)
    ]
    assert not set(windows[0]) & set(windows[1])
    total = len(held.learn.runs) + len(held.validation) + len(held.calibration)
    assert total == n
