"""A DataFrame in and out, rows that are indexed and iterated, and everything shown as a person reads it."""

from __future__ import annotations

import sys
from inspect import isroutine
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import jostle
from jostle._base.report import Reported
from jostle.data import Dataset, Runs
from jostle.errors import UsageError
from jostle.models import Model
from jostle.operations import all_verbs
from tests.packages.models.levels import Levels, campaign


@pytest.fixture(scope="module")
def runs() -> Runs:
    return campaign()


@pytest.fixture(scope="module")
def model(runs: Runs) -> Model:
    return jostle.fit(runs, Levels(), seed=0)


def frame_of(runs: Runs) -> pd.DataFrame:
    frame = runs.colocations.to_pandas().head(3)
    return frame.set_axis([7, 3, 5], axis=0)


def test_any_table_is_answered_in_its_order(model: Model, runs: Runs) -> None:
    frame = frame_of(runs)
    seconds = model.predict(runs.colocations[:3])
    forms: list[Any] = [frame, pa.Table.from_pandas(frame), frame.to_dict("list")]
    for table in (*forms, frame.to_dict("records")):
        np.testing.assert_array_equal(model.predict(table), seconds)
        np.testing.assert_array_equal(
            model.bound(table).seconds, model.bound(runs.colocations[:3]).seconds
        )
        for found in (model.bound(table), model.answer(table)):
            assert found.to_pandas().index.tolist() == ([7, 3, 5] if table is frame else [0, 1, 2])
    for row in (frame.iloc[0], frame.to_dict("records")[0], frame.iloc[:1]):
        assert model.predict(row).tolist() == [seconds[0]]
        assert model.explain(row).seconds == seconds[0]
    with pytest.raises(UsageError, match="one co-location"):
        model.explain(frame)


def test_results_become_data_frames_with_the_index_of_what_was_asked(
    model: Model, runs: Runs
) -> None:
    frame = frame_of(runs)
    bounds = model.bound(frame)
    for table in (bounds.to_pandas(), bounds.take([0, 1, 2]).to_pandas()):
        assert table.index.tolist() == [7, 3, 5]
        assert table["bound_seconds"].tolist() == bounds.seconds.tolist()
    assert pd.DataFrame(bounds)["outcome"].tolist() == bounds.outcome.tolist()
    answers = model.answer(frame.assign(workload=["w00", "nobody knows it", "w01"]))
    table = answers.to_pandas()
    assert table.index.tolist() == [7, 3, 5]
    assert table["outcome"].tolist()[1] == "unknown_name"
    assert table["status"].tolist()[1] == "none"
    assert answers[1]["workload"] == "nobody knows it"
    assert answers[1:].to_pandas().index.tolist() == [3, 5]


@pytest.mark.parametrize("part", ["runs", "colocations"])
def test_rows_are_indexed_iterated_and_converted(runs: Runs, part: str) -> None:
    rows: Any = runs if part == "runs" else runs.colocations
    mask = np.arange(len(rows)) % 3 == 0
    assert len(rows[:5]) == 5
    assert len(rows[mask]) == mask.sum() == len(rows[pd.Series(mask)])
    assert rows[-1] == list(rows)[-1]
    assert rows[[2, 0]][0] == rows[2]
    assert rows.to_pandas()["workload"].tolist() == [row["workload"] for row in rows]
    with pytest.raises(IndexError):
        rows[len(rows)]


def test_without_pandas_it_is_named(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas is not installed"):
        runs.to_pandas()


def test_everything_shows_itself(model: Model, runs: Runs, tmp_path: Path) -> None:
    Dataset(tmp_path / "data").write(runs)
    row = frame_of(runs).iloc[0]
    fleet = jostle.Fleet.of({"name": ["a", "b"], "platform": ["p00", "p01"]})
    placement = jostle.place(model, fleet)
    shown: list[Any] = [
        *(
            model,
            runs,
            runs.colocations,
            Dataset(tmp_path / "data"),
            jostle.read(tmp_path / "data"),
        ),
        *(model.bound(runs.colocations), model.answer(frame_of(runs)), model.explain(row)),
        *(fleet, placement, placement.rank([{"workload": "w00"}]), model.plot, runs.plot),
        *(jostle.Requests.of([{"workload": "w00"}]), jostle.DriftWatch(model)),
    ]
    for one in shown:
        assert " object at 0x" not in repr(one)
        assert "<dataclass" not in repr(one)
        assert len(repr(one)) < 2000
        assert one._repr_html_().startswith(("<table>", "<p>"))
    assert "accuracy" in repr(model.plot)
    (tmp_path / "data" / "runs" / "x.parquet").write_text("no Parquet")
    assert "unreadable" in repr(Dataset(tmp_path / "data"))


def test_all_that_operations_find_shows_itself_as_its_report() -> None:
    def all_of(kind: type) -> list[type]:
        return [one for sub in kind.__subclasses__() for one in (sub, *all_of(sub))]

    assert all_verbs()
    ours = [kind for kind in all_of(Reported) if kind.__module__.startswith("jostle.")]
    assert len(ours) > 10
    assert [kind for kind in ours if kind.__repr__ is not Reported.__repr__] == []


def test_a_model_has_ten_methods_at_most() -> None:
    public = [name for name in dir(Model) if not name.startswith("_")]
    assert len([name for name in public if isroutine(getattr(Model, name))]) <= 10


def test_the_unit_of_a_time_is_never_guessed() -> None:
    table = {"workload": ["a"], "platform": ["p"], "took": [3.0]}
    with pytest.raises(UsageError, match="unit of column 'took' is not known"):
        Runs.from_table(table, runtime="took")
    assert Runs.from_table(table, runtime="took", unit="ms").runtime_seconds[0] == 0.003
    for name, seconds in (("ms", 0.003), ("time (us)", 3e-6), ("runtime_seconds", 3.0)):
        renamed = {"workload": ["a"], "platform": ["p"], name: [3.0]}
        assert Runs.from_table(renamed, runtime=name).runtime_seconds[0] == seconds
    said = table | {"took": ["3 ms"]}
    assert Runs.from_table(said, runtime="took").runtime_seconds[0] == 0.003


def test_no_model_is_written_into_a_dataset(model: Model, runs: Runs, tmp_path: Path) -> None:
    Dataset(tmp_path).write(runs)
    with pytest.raises(UsageError, match="a dataset lies in this folder"):
        model.save(tmp_path)
    assert not (tmp_path / "model.json").exists()
