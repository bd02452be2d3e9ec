"""Foreign CSV and Parquet: what is read, and bad rows by file and line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from jostle.data import CsvImport, Imported, ParquetImport, read_runs
from jostle.errors import BadData, BadRows, JostleError, UnknownName, UsageError

GOOD = """name,host,with,ms,note,round
fft,pi,,12.5,first,007
fft,pi,sort; lu,20,,007
sort,pi,fft,3e1,third,008
"""

BAD = """name,host,with,ms,note,round
fft,pi,,12.5,good,1
fft,pi,,nan,two,1
fft,pi,,inf,three,1
fft,pi,,0,four,1
fft,pi,,-1,five,1
fft,pi,,,six,1
fft,pi,,soon,seven,1

,pi,,1,"eight, after
a blank line",1
fft, ,,1,nine,1
fft,pi,sort;;lu,1,ten,1
fft,pi
fft,pi,,1_0,twelve,1
sort,pi,,2,good,1
"""


def imported(content: str | bytes, **options: Any) -> Imported:
    data = io.BytesIO(content.encode() if isinstance(content, str) else content)
    data.name = "bench.csv"
    named: dict[str, Any] = {
        "workload": "name",
        "platform": "host",
        "corunners": ["with"],
        "runtime": "ms",
        "unit": "ms",
    }
    importer = ParquetImport if options.pop("format", "csv") == "parquet" else CsvImport
    return importer(data, **{**named, **options}).read()


def test_a_good_file() -> None:
    runs = imported(GOOD, window="round", campaign="spring").runs
    assert [runs.colocations.row(i) for i in range(3)] == [
        ("fft", "pi", ()),
        ("fft", "pi", ("lu", "sort")),
        ("sort", "pi", ("fft",)),
    ]
    assert runs.runtime_seconds.tolist() == [0.0125, 0.02, 0.03]
    assert runs.table.column("window_id").to_pylist() == ["007", "007", "008"]
    assert runs.table.column("campaign").to_pylist() == ["spring"] * 3
    assert runs.table.column("note").to_pylist() == ["first", "", "third"]
    assert [i.split(":")[1] for i in runs.table.column("run_id").to_pylist()] == ["2", "3", "4"]


@pytest.mark.parametrize(
    ("unit", "seconds"), [("s", 12.5), ("ms", 0.0125), ("us", 12.5e-6), ("ns", 12.5e-9)]
)
def test_units(unit: str, seconds: float) -> None:
    assert imported(GOOD, unit=unit).runs.runtime_seconds[0] == seconds
    assert imported(GOOD, unit="min").runs.runtime_seconds[0] == 750


@pytest.mark.parametrize(
    ("head", "cells", "seconds"),
    [
        ("wall (ms)", ("12.5", "20"), [0.0125, 0.02]),
        ("took", ("12.3 s", "20 ms"), [12.3, 0.02]),
        ("took", ("1-02:03:04", "2h 3m"), [93784.0, 7380.0]),
        ("runtime_h", ("2", "0.5"), [7200.0, 1800.0]),
        ("wall (ms)", ("2 s", "3 s"), [2.0, 3.0]),  # what cells say is nearer
    ],
)
def test_a_unit_that_the_table_says_is_not_asked_about(
    head: str, cells: tuple[str, str], seconds: list[float]
) -> None:
    text = f"name,host,with,{head}\nfft,pi,,{cells[0]}\nlu,pi,fft,{cells[1]}\n"
    found = imported(text, runtime=head, unit=None)
    assert found.runs.runtime_seconds.tolist() == pytest.approx(seconds)
    assert len(found.understood) == 1
    with pytest.raises(UsageError, match="Say by `unit`"):
        imported("name,host,with,it\nfft,pi,,1\nlu,pi,fft,2\n", runtime="it", unit=None)
    with pytest.raises(UnknownName, match="'nowhere'"):
        imported(text, runtime="nowhere", unit=None)


def test_columns_called_as_those_of_runs_need_no_options() -> None:
    text = "workload,platform,corunners,runtime_seconds\n007,pi,,12\nlu,pi,007;007,20\n"
    nothing: dict[str, Any] = dict.fromkeys(("workload", "platform", "runtime", "unit"))
    runs = imported(text, **nothing, corunners=()).runs
    assert runs.colocations.row(1) == ("lu", "pi", ("007", "007"))
    assert runs.runtime_seconds.tolist() == [12.0, 20.0]


def test_covariates_are_read_as_their_cells_say() -> None:
    sizes = ("1 GB", "2 GB", "3 GB", "4 GB", "a lot")
    text = "name,host,with,ms,size,part\n" + "".join(f"a,pi,,1,{size},p{size}\n" for size in sizes)
    found = imported(text, covariate=("size", "part"))
    assert found.runs.covariates["size"].tolist()[:4] == [1e9, 2e9, 3e9, 4e9]
    assert found.runs.table.column("size").null_count == 1
    assert found.runs.table.column("part").to_pylist()[-1] == "pa lot"
    assert found.understood == ("covariate size: sizes; not known where it is 'a lot'",)


def test_all_bad_rows_are_named_with_their_lines() -> None:
    with pytest.raises(BadRows) as raised:
        imported(BAD)
    found = dict(raised.value.rows)
    expected = {
        3: "NaN",
        4: "infinite",
        5: "not above 0",
        6: "not above 0",
        7: "missing",
        8: "'soon' is not a number",
        10: "workload is empty",
        12: "platform is empty",
        13: "co-runner's name is empty",
        14: "2 cells where there are 6 columns",
        15: "'1_0' is not a number",
    }
    assert list(found) == list(expected)
    for line, reason in expected.items():
        assert reason in found[line], line
    message = str(raised.value)
    assert message.startswith("bench.csv: 11 of 13 rows")
    assert "line 10: workload is empty" in message


def test_only_the_first_bad_rows_are_shown_and_all_are_counted() -> None:
    with pytest.raises(BadRows, match="and 30 more") as raised:
        imported("name,host,with,ms\n" + "a,p,,-1\n" * 50)
    assert len(raised.value.rows) == 50


def test_nothing_is_written_unless_asked(tmp_path: Path) -> None:
    folder = tmp_path / "dataset"
    with pytest.raises(BadRows):
        imported(BAD).write(folder)
    assert not folder.exists()
    taken = imported(BAD, drop_bad=True)
    files = taken.write(folder)
    assert len(read_runs(folder)) == 2
    assert files[0].parent == folder / "rejected"
    assert files[0].name.startswith("bench-")
    kept = pyarrow.csv.read_csv(
        files[0], parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True)
    ).to_pydict()
    assert kept["row"] == [row for row, _ in taken.bad]
    assert kept["note"][:2] == ["two", "three"]
    assert "soon" in [str(cell) for cell in kept["ms"]]


def test_dropping_all_rows_is_no_import() -> None:
    with pytest.raises(BadRows):
        imported("name,host,with,ms\na,p,,-1\n", drop_bad=True)
    with pytest.raises(BadData, match="no rows"):
        imported("name,host,with,ms\n")


def test_the_same_file_again_is_refused(tmp_path: Path) -> None:
    imported(BAD, drop_bad=True).write(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadRows, match="already") as raised:
        imported(BAD, drop_bad=True).write(tmp_path)
    assert raised.value.where == "bench.csv"
    assert sorted(tmp_path.rglob("*")) == before
    imported(GOOD).write(tmp_path)
    assert len(read_runs(tmp_path)) == 5


def test_a_refused_import_leaves_no_rejected_rows(tmp_path: Path) -> None:
    imported(GOOD, workload_features=features(tmp_path, "fft,1\nsort,2\nlu,3\n")).write(
        tmp_path / "d"
    )
    other = features(tmp_path, "qr,1\nsort,9\nlu,3\n")
    bad_row = GOOD.replace("fft", "qr") + "qr,pi,,-1,,1\n"
    with pytest.raises(JostleError, match="'sort'"):
        imported(bad_row, drop_bad=True, workload_features=other).write(tmp_path / "d")
    assert not (tmp_path / "d" / "rejected").exists()
    assert len(read_runs(tmp_path / "d")) == 3


def features(folder: Path, rows: str, key: str = "workload") -> Path:
    file = folder / f"{key}s.csv"
    file.write_text(f"{key},size\n{rows}")
    return file


def test_features_must_cover_all_names(tmp_path: Path) -> None:
    good = imported(GOOD, workload_features=features(tmp_path, "fft,1\nsort,2\nlu,3\n")).runs
    assert good.workload_features is not None
    assert good.workload_features.to_pydict()["size"] == [1, 3, 2]
    with pytest.raises(BadRows, match="line 3: co-runner 'lu' is not in the workload features"):
        imported(GOOD, workload_features=features(tmp_path, "fft,1\nsort,2\n"))
    with pytest.raises(BadRows, match="line 2: platform 'pi' is not"):
        imported(GOOD, platform_features=features(tmp_path, "mac,1\n", "platform"))


def test_one_column_for_each_corunner_and_a_constant_platform() -> None:
    text = "w,a,b,t\nx,y,z,1\nx,,z,2\nx,,,3\n"
    runs = imported(
        text,
        workload="w",
        platform=None,
        platform_name="laptop",
        corunners=["a", "b"],
        runtime="t",
        unit="s",
    ).runs
    assert [runs.colocations.row(i)[2] for i in range(3)] == [("y", "z"), ("z",), ()]
    assert runs.colocations.platform_names == ("laptop",)


def test_columns_called_as_in_runs_v1_fill_them() -> None:
    text = (
        "name,host,with,ms,status,reason,run_id,measured_at\n"
        "a,p,,1,ok,,one,2024-05-01T12:00:00Z\n"
        "a,p,,,timeout,30 s,two,2024-05-01T12:01:00Z\n"
    )
    runs = imported(text).runs
    assert runs.is_ok.tolist() == [True, False]
    assert runs.table.column("run_id").to_pylist() == ["one", "two"]
    assert runs.table.column("reason").to_pylist() == [None, "30 s"]
    assert runs.table.column("measured_at")[0].as_py().hour == 12
    with pytest.raises(BadRows, match=r"line 3: run_id 'one' .*line 2"):
        imported(text.replace("two", "one"))
    with pytest.raises(BadRows, match="line 3: measured_at 'yesterday' is not a valid time"):
        imported(text.replace("2024-05-01T12:01:00Z", "yesterday"))


def test_types_are_inferred_from_all_rows() -> None:
    rows = "".join(f"a,p,,1,{i},1\n" for i in range(60_000))
    runs = imported("name,host,with,ms,note,round\n" + rows + "a,p,,1,text,1\n").runs
    assert runs.table.schema.field("note").type == pa.string()


def test_parquet_with_lists(tmp_path: Path) -> None:
    file = tmp_path / "bench.parquet"
    columns = {"name": ["a", "b"], "host": ["p", "p"], "with": [["b", "a"], None], "ms": [5, 7]}
    pq.write_table(pa.table(columns), file)
    options: dict[str, Any] = {"workload": "name", "platform": "host", "corunners": ["with"]}
    runs = ParquetImport(file, runtime="ms", unit="ms", **options).read().runs
    assert runs.colocations.row(0) == ("a", "p", ("a", "b"))
    pq.write_table(pa.table({**columns, "ms": [5, -7]}), file)
    with pytest.raises(BadRows, match=r"bench\.parquet: 1 of 2 rows[\s\S]*row 1: runtime_seconds"):
        ParquetImport(file, runtime="ms", unit="ms", **options).read()


@pytest.mark.parametrize(
    ("content", "options", "error", "message"),
    [
        (GOOD, {"workload": "nam"}, UnknownName, "Did you mean name"),
        (GOOD, {"unit": "hours"}, UsageError, "hours"),
        (GOOD, {"platform": None}, UsageError, "platform"),
        (GOOD, {"platform_name": "x"}, UsageError, "platform"),
        (GOOD, {"separator": ""}, UsageError, "separator"),
        ("name,name,host,with,ms\na,a,p,,1\n", {}, BadData, "more than once"),
    ],
)
def test_what_cannot_be_read(
    content: Any, options: dict, error: type[JostleError], message: str
) -> None:
    with pytest.raises(error, match=message):
        imported(content, **options)
