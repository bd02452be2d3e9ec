"""Tables of pandas, polars and Arrow in and out, and what things say of themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jostle
from jostle.data import from_table
from jostle.errors import BadRows, UnknownName, UsageError
from tests.packages.models.levels import Levels, campaign

COLUMNS: dict[str, list[Any]] = {
    "job": ["a", "b", "c"],
    "host": ["p", "p", "q"],
    "others": ["b;c", "", None],
    "ms": [10.0, 20.0, 30.0],
    "owner": ["x", "y", "z"],
}
NAMES: dict[str, Any] = {
    "workload": "job",
    "platform": "host",
    "corunners": "others",
    "runtime": "ms",
    "unit": "ms",
}


@pytest.mark.parametrize(
    "made", [pd.DataFrame, pl.DataFrame, pa.table, dict, lambda c: pa.table(c).to_pylist()]
)
def test_every_kind_of_table_gives_the_same_runs(made: Any) -> None:
    runs = from_table(made(COLUMNS), **NAMES)
    np.testing.assert_allclose(runs.runtime_seconds, [0.01, 0.02, 0.03])
    assert [runs.colocations.row(i) for i in range(3)] == [
        ("a", "p", ("b", "c")),
        ("b", "p", ()),
        ("c", "q", ()),
    ]
    table = runs.to_table()
    assert table.column("owner").to_pylist() == ["x", "y", "z"]
    assert pl.from_arrow(table).shape[0] == len(table.to_pandas()) == 3


def test_default_names_features_and_odd_tables() -> None:
    frame = pd.DataFrame(
        {
            "workload": ["a", "b"],
            "platform": "p",
            "runtime_seconds": [1.0, 2.0],
            "corunners": [["b"], []],
        }
    )
    features = pd.DataFrame({"workload": ["a", "b"], "size": [1, 2]})
    runs = from_table(frame, workload_features=features)
    assert runs.colocations.row(0) == ("a", "p", ("b",))
    assert runs.features_of("workload")[0] == ("a", "b")
    assert len(from_table(frame.drop(columns="corunners"))) == 2
    named = from_table(frame.drop(columns="platform"), platform_name="here")
    assert named.colocations.platform_names == ("here",)
    with pytest.raises(UnknownName, match="ms"):
        from_table(frame, runtime="ms")
    with pytest.raises(BadRows, match="row 1"):
        from_table(frame.assign(runtime_seconds=[1.0, -2.0]))
    with pytest.raises(UsageError, match="unknown unit"):
        from_table(frame, unit="days")
    with pytest.raises(UsageError, match="a int is not a table"):
        from_table(3)


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table])
def test_durations_know_their_own_unit(made: Any) -> None:
    took = [timedelta(seconds=seconds) for seconds in (1.5, 20.0, 3600.0)]
    runs = from_table(made(COLUMNS | {"ms": took}), **NAMES)
    np.testing.assert_allclose(runs.runtime_seconds, [1.5, 20.0, 3600.0])


def test_what_things_say_of_themselves() -> None:
    runs = campaign(12, 6)
    model = jostle.fit(runs, Levels(), fitted_at="noon")
    bounds = model.bound(runs.colocations, 0.8)
    said = {name: repr(thing) for name, thing in (("r", runs), ("m", model), ("b", bounds))}
    assert "runs: 144" in said["r"]
    assert "workloads: 12" in said["r"]
    assert "beside others: 72, up to 1" in said["r"]
    assert "method: levels" in said["m"]
    assert "fitted at: noon" in said["m"]
    assert "alone, bounds up to: 0.9" in said["m"]
    assert "bounds: 144, confidence: 0.8" in said["b"]
    assert str((bounds.outcome == "guaranteed").sum()) in said["b"]
    for thing in (runs, model, bounds):
        html = thing._repr_html_()
        assert html.startswith("<table>")
        assert f"<caption>{type(thing).__name__}</caption>" in html
    assert "&lt;b&gt;" in jostle.fit(runs, Levels(), fitted_at="<b>")._repr_html_()
    table = bounds.to_table()
    assert table.column("bound_seconds").to_pylist() == bounds.seconds.tolist()
    asked = runs.colocations.to_table().to_pylist()
    assert (asked[3]["workload"], asked[3]["platform"], tuple(asked[3]["corunners"])) == (
        runs.colocations.row(3)
    )
    assert "no bound" not in repr(bounds)
