"""Tables of pairs: units, zeros, windows, bad rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jostle.data import Dataset, Origin, PairsImport, Runs, read_runs
from jostle.errors import BadData, BadRows, UnknownName
from tests.packages.data.runs.import_pairs_samples import PAIRS


def table(folder: Path, text: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text(text)
    return path


def test_units_names_and_zeros(tmp_path: Path) -> None:
    found = PairsImport(table(tmp_path, PAIRS), published="lab", licence="MIT").read()
    assert found.skipped == 1
    rows = {
        (*found.runs.colocations.row(i), str(found.runs.table.column("campaign")[i])): s
        for i, s in enumerate(found.runs.runtime_seconds)
    }
    assert rows == {
        ("a", "gpu", (), "one"): 0.25,
        ("b", "gpu", (), "one"): 0.125,
        ("a:small", "gpu", (), "two"): 0.5,
        ("a", "gpu", ("b",), "one"): 0.5,
        ("b", "gpu", ("a",), "one"): 0.5,
        ("a:small", "gpu", ("a", "b:x"), "two"): 1.5,
    }
    assert found.runs.origins == (Origin("one", "lab", "MIT"), Origin("two", "lab", "MIT"))


def test_both_sides_of_a_pair_share_a_window(tmp_path: Path) -> None:
    runs = PairsImport(table(tmp_path, PAIRS), dataset="one").read().runs
    assert set(runs.table.column("campaign").to_pylist()) == {"one"}
    beside = np.flatnonzero(runs.colocations.number_of_corunners == 1)
    assert len(set(runs.window[beside])) == 1
    assert len(set(runs.window)) == 3


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("one,gpu,a,,b,,t,parsecs,4,2,2", "line 6: unknown unit 'parsecs'"),
        ("one,gpu,a,,b,,t,ms,4,2,2", "line 6: slowdown is 2, but solo and corun make it 0.5"),
        ("one,,a,,b,,t,ms,4,8,2", "line 6: platform is empty"),
        ("one,gpu,a,,b,,t,ms,4", "line 6: 9 cells where there are 11 columns"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, row: str, reason: str) -> None:
    path = table(tmp_path, PAIRS + row + "\n")
    with pytest.raises(BadRows, match=r"pairs\.csv") as caught:
        PairsImport(path).read()
    assert reason in str(caught.value)
    kept = PairsImport(path, drop_bad=True).read()
    assert kept.bad[0][0] == 6
    assert kept.rejected is not None
    assert kept.rejected.column("row").to_pylist() == [6]
    assert len(kept.runs) == 6


def test_what_is_no_table_of_pairs(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="corun=NAME"):
        PairsImport(table(tmp_path, "platform,target,corunner,unit,solo\ngpu,a,b,s,1\n")).read()
    with pytest.raises(UnknownName, match="dataset"):
        PairsImport(table(tmp_path, PAIRS), dataset="three").read()


def test_origins_survive_a_dataset(tmp_path: Path) -> None:
    found = PairsImport(table(tmp_path, PAIRS), published="lab", licence="MIT").read()
    found.write(tmp_path / "dataset")
    other = Runs.from_columns(workload=["a"], platform=["gpu"], runtime_seconds=[1.0])
    Dataset(tmp_path / "dataset").write(other)
    assert read_runs(tmp_path / "dataset").origins == found.runs.origins
    assert read_runs(tmp_path / "dataset").take([0]).origins == found.runs.origins


def test_relative_values_are_enough(tmp_path: Path) -> None:
    def seconds(*lines: str) -> dict[tuple[str, ...], float]:
        file = tmp_path / "relative.csv"
        file.write_text("\n".join(lines) + "\n")
        runs = PairsImport(file).read().runs
        rows = runs.table.select(["workload", "corunners", "runtime_seconds"]).to_pylist()
        return {(r["workload"], *r["corunners"]): r["runtime_seconds"] for r in rows}

    head = "platform,target,corunner"
    assert seconds(f"{head},slowdown", "p,a,b,1.5") == {("a",): 1.0, ("a", "b"): 1.5}
    full = f"{head},metric,unit,solo,corun,slowdown"
    assert seconds(full, "p,a,b,,steps/s,,4,") == {("a", "b"): 0.25}  # never alone
    assert seconds(full, "p,a,b,,ratio,1,1.2,") == {("a",): 1.0, ("a", "b"): 1.2}
    assert seconds(full, "p,a,b,throughput,,1,0.5,") == {("a",): 1.0, ("a", "b"): 2.0}
    assert seconds(full, "p,a,b,,s,2,,1.5") == {("a",): 2.0, ("a", "b"): 3.0}
    assert seconds(full, "p,a,b,,s,,3,1.5") == {("a",): 2.0, ("a", "b"): 3.0}


def test_columns_of_numbers_and_empty_ones_are_read_as_they_stand(tmp_path: Path) -> None:
    """As published: lines that end in CR and LF, an empty column of configurations, times to many digits."""
    file = tmp_path / "pairs.csv"
    text = (
        "dataset,platform,target,target_cfg,corunner,corunner_cfg,metric,unit,solo,corun,slowdown\n"
        "r1,gpu,a,,b,,process wall time,ms,3927.42,4486.75,1.142417\n"
        "r1,gpu,b,,a,,process wall time,ms,2061.01,2459.3,1.19325\n"
    )
    file.write_bytes(text.replace("\n", "\r\n").encode())
    runs = PairsImport(file).read().runs
    assert sorted(runs.runtime_seconds.round(5)) == [2.06101, 2.4593, 3.92742, 4.48675]
