"""Tables as people keep them: own columns, spreadsheets, words for nobody, matrices, both sides of a pair."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.data import CsvImport, PairsImport, Runs, kind_of
from jostle.data.tables.moments import seconds_of
from jostle.data.tables.quantities import ColumnOfNumbers, duration_of, numbers_in, size_of
from jostle.errors import BadData

ROWS = "workload,machine,beside,seconds,status,run_id,reason\n"
NAMES: dict[str, Any] = {"workload": "workload", "platform": "machine", "corunners": ("beside",)}


def read(folder: Path, text: str, **options: Any) -> Runs:
    path = folder / "table.csv"
    path.write_text(text, "utf-8")
    return CsvImport(path, runtime="seconds", unit="s", **NAMES | options).read().runs


def pairs(folder: Path, text: str, **options: Any) -> Runs:
    path = folder / "pairs.csv"
    path.write_text(text, "utf-8")
    return PairsImport(path, **options).read().runs


def told(runs: Runs) -> set[tuple[str, tuple[str, ...], float]]:
    c = runs.colocations.to_columns()
    rows = zip(c["workload"], c["corunners"], runs.runtime_seconds.tolist(), strict=True)
    return {(name, tuple(beside), round(seconds, 6)) for name, beside, seconds in rows}


def test_columns_that_only_have_a_name_of_jostle_are_the_table_s_own(tmp_path: Path) -> None:
    text = ROWS + "a,p,,1.5,success,0,\na,p,b,2.5,success,0,\nb,p,a,3.5,failed,0,\n"
    runs = read(tmp_path, text)
    assert runs.table.column("status").to_pylist() == ["ok", "ok", "failed"]
    assert runs.table.column("reason").to_pylist() == [None, None, "failed"]
    assert len(set(runs.table.column("run_id").to_pylist())) == 3
    other = read(tmp_path, text.replace("success", "phase two").replace("failed", "phase two"))
    assert set(other.table.column("status").to_pylist()) == {"ok"}
    assert other.table.column("source_status").to_pylist() == ["phase two"] * 3


@pytest.mark.parametrize(
    "form",
    [
        "sep=,\n{0}\n{1}",
        "# exported, by us\n# today\n{0}\n{1}",
        "Runs of May\n\n{0}\n{1}",
        "{0}\n{1}\n{0}\n,,,\n",
        "{0}\n\u00e9,p,,1.5\n\u00e9,p,b,2.5\n",
        '[{{"workload": "a", "machine": "p", "seconds": 1.5}},'
        '{{"workload": "a", "machine": "p", "beside": ["b"], "seconds": 2.5}}]',
        '{{"workload": "a", "machine": "p", "beside": "", "seconds": "1.5"}}\n'
        '{{"workload": "a", "machine": "p", "beside": "b", "seconds": "2.5"}}\n',
    ],
)
def test_what_stands_around_a_table_is_none_of_it(form: str, tmp_path: Path) -> None:
    text = form.format("workload,machine,beside,seconds", "a,p,,1.5\na,p,b,2.5")
    path = tmp_path / "table.csv"
    path.write_text(text, "latin-1")
    runs = CsvImport(path, runtime="seconds", unit="s", **NAMES).read().runs
    name = "\u00e9" if "\u00e9" in text else "a"
    assert told(runs) == {(name, (), 1.5), (name, ("b",), 2.5)}
    path.write_text(
        text.replace("2.5", '"x"' if "{" in text else "x").replace('""x""', '"x"'), "latin-1"
    )
    place = (path.read_bytes().split(b"x\n")[0].count(b"\n") + 1, "object 2")
    with pytest.raises(BadData, match=rf"line {place[0]}: runtime 'x'|{place[1]}: runtime 'x'"):
        CsvImport(path, runtime="seconds", unit="s", **NAMES).read()


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_spreadsheet_with_decimal_commas(separator: str, tmp_path: Path) -> None:
    text = "workload,machine,beside,seconds\na,p,,120.5\na,p,b,158.25\nb,p,,7\n"
    expected = told(read(tmp_path, text))
    rows = text.replace(",", separator).replace(".", ",")
    assert told(read(tmp_path, "\ufeff" + rows.replace("\n", "\r\n"))) == expected


@pytest.mark.parametrize("word", ["none", "NULL", "-", "n/a", "None", "nan", "alone"])
def test_a_word_for_nobody_is_nobody(word: str, tmp_path: Path) -> None:
    text = f"workload,machine,beside,seconds\na,p,{word},1\na,p,b,2\nb,p,{word},3\n"
    assert told(read(tmp_path, text)) == {("a", (), 1.0), ("a", ("b",), 2.0), ("b", (), 3.0)}
    called = text.replace("b,p", f"{word},p").replace(",b,", ",x,")
    assert ("a", (word,), 1.0) in told(read(tmp_path, called))


@pytest.mark.parametrize(
    ("cells", "unit"),
    [
        (("1.32", "1.05"), "ratio"),
        (("132", "105"), "percent"),
        ((".32", ".05"), "added"),
        (("32", "5"), "added-percent"),
    ],
)
def test_slowdowns_that_are_no_ratios_are_asked_about(
    cells: tuple[str, str], unit: str, tmp_path: Path
) -> None:
    text = f"platform,target,corunner,slowdown\np,a,b,{cells[0]}\np,b,a,{cells[1]}\n"
    expected = {("a", (), 1.0), ("b", (), 1.0), ("a", ("b",), 1.32), ("b", ("a",), 1.05)}
    if unit != "ratio":
        with pytest.raises(BadData, match="are they ratios"):
            pairs(tmp_path, text)
    assert told(pairs(tmp_path, text, slowdowns=unit)) == expected


@pytest.mark.parametrize("form", ["{}x", "{} x", "{}"])
def test_a_matrix_is_a_row_for_each_cell(form: str, tmp_path: Path) -> None:
    a, b = form.format(1.5), form.format(1.25)
    runs = pairs(tmp_path, f"fg\\bg,a,b\na,,{a}\nb,{b},\n")
    assert told(runs) == {("a", (), 1.0), ("b", (), 1.0), ("a", ("b",), 1.5), ("b", ("a",), 1.25)}
    assert set(runs.table.column("platform").to_pylist()) == {"pairs"}


@pytest.mark.parametrize(
    "text",
    [
        "fg\\bg;a;b;mean\na;-;1,5;1,5\nb;1,25;n/a;1,25\ngeomean;1,25;1,5;1,3\n",
        "benchmark,a,b\na,,1.5x\nb,1.25x,\n",
        "target;a;b\na;-;1,500\nb;1,250;-\n",
        "fg\\bg;a;b\na;-;1,500x\nb;1,250x;-\n",
        "workload;a;b\na;-;150,000%\nb;125,000%;-\n",
        ",alone,a,b\na,1,,1.5\nb,1,1.25,\n",
        "app_a,app_b,solo_a,solo_b,co_a,co_b\na,b,1,1,1.5,1.25\n",
        "foreground,background,Normalized runtime\na,b,1.5\nb,a,1.25\n",
        "victim,aggressor,unit,solo,corun\na,b,req/min,60,40\nb,a,req/min,60,48\n",
    ],
)
def test_pairs_stand_in_many_shapes(text: str, tmp_path: Path) -> None:
    (tmp_path / "any.csv").write_text(text)
    assert kind_of(str(tmp_path / "any.csv")) == "pairs-csv"
    expected = {("a", (), 1.0), ("b", (), 1.0), ("a", ("b",), 1.5), ("b", ("a",), 1.25)}
    runs = pairs(tmp_path, text, group="^.")
    assert told(runs) == expected
    assert runs.groups == ("^.",)


def test_pairs_without_a_time_say_which_column_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        BadData, match=r"no column holds a time beside others.*corun=NAME, of target"
    ):
        pairs(tmp_path, "target,corunner,x\na,b,1\n")


def test_both_sides_of_a_pair_in_a_row(tmp_path: Path) -> None:
    kinds = ("workload", "solo_seconds", "colocated_seconds")
    names = [f"{kind}_{side}" for kind in kinds for side in "ab"]
    rows: list[list[Any]] = [["x", "y", 2.0, 3.0, 2.5, 3.5], ["y", "x", 3.0, 2.0, 3.5, 2.5]]
    rows.append(["x", "z", 2.0, None, None, None])
    expected = {("x", (), 2.0), ("y", (), 3.0), ("x", ("y",), 2.5), ("y", ("x",), 3.5)}
    lines = "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    cells = "\n".join(",".join("" if c is None else str(c) for c in row) for row in rows)
    for text in (lines + "\n", ",".join(names) + "\n" + cells + "\n"):
        runs = pairs(tmp_path, text)
        assert told(runs) == expected
        assert len(runs) == 4


@pytest.mark.parametrize("unit", ["qps", "img/s", "tokens/sec", "it/s", "rps", "1/s"])
def test_columns_are_named_and_what_no_column_says_is_given(unit: str, tmp_path: Path) -> None:
    text = "where,neighbour,before,after\np,b,4,2\np,c,4,1\n"
    columns = ("platform=where", "corunner=neighbour", "solo=before", "corun=after")
    runs = pairs(tmp_path, text, column=columns, target_name="web", unit=unit)
    assert told(runs) == {("web", (), 0.25), ("web", ("b",), 0.5), ("web", ("c",), 1.0)}


seconds = st.integers(0, 10**7)


def spans(total: int) -> list[str]:
    days, hours, minutes, rest = total // 86400, total // 3600 % 24, total // 60 % 60, total % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")]
    short = " ".join(f"{n}{unit}" for n, unit in parts if n) or "0s"
    clock = f"{hours:02d}:{minutes:02d}:{rest:02d}"
    return [
        short, short.replace(" ", ""), f"{days}-{clock}", f"{days} days, {clock}", f"{total}s",
        f"{total * 1000} ms", f"P{days}DT{hours}H{minutes}M{rest}S", f"PT{total}S", f"{days} days {clock}.0",
        f"{days} days, {hours} hours, {minutes} minutes and {rest} seconds",
        f"{24 * days + hours}:{minutes:02d}:{rest:02d}",
    ]  # fmt: skip


@given(st.lists(seconds, min_size=1, max_size=5))
def test_durations_come_back_in_every_shape(values: list[int]) -> None:
    for shape in zip(*map(spans, values), strict=True):
        read_back = numbers_in(shape)
        assert isinstance(read_back, ColumnOfNumbers)
        assert read_back.unit == "seconds"
        np.testing.assert_allclose(read_back.values, values)
    assert duration_of("1m26.1s") == pytest.approx(86.1)


@given(st.integers(0, 2**50), st.sampled_from(["", "K", "M", "G"]))
def test_sizes_come_back_in_every_shape(number: int, letter: str) -> None:
    power = " KMG".index(letter or " ")
    assert size_of(f"{number} {letter}{'iB' if letter else 'B'}") == number * 1024.0**power
    assert size_of(f"{number}{letter}B") == number * 1000.0**power
    if letter:
        assert size_of(f"{number}{letter}") == number * 1024.0**power


FORMS = (
    *("%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%d %b %Y %H:%M:%S"),
    *(
        "%B %d, %Y %H:%M:%S",
        "%a, %d %b %Y %H:%M:%S GMT",
        "%d-%b-%Y %I:%M:%S %p",
        "%b %d %H:%M:%S %Y L",
    ),
    *(
        "%d/%b/%Y:%H:%M:%S +0000",
        "%b %d, %Y @ %H:%M:%S.000",
        "%a %b %d %H:%M:%S UTC %Y",
        "%Y%m%dT%H%M%SZ",
    ),
    *("epoch", "ms", "us"),
)


@given(
    st.lists(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)), min_size=1, max_size=4),
    st.sampled_from(FORMS),
)
@settings(max_examples=60)
def test_moments_come_back_in_every_shape(moments: list[Any], form: str) -> None:
    utc = [m.replace(microsecond=0, tzinfo=UTC) for m in moments]
    stamps = [m.timestamp() for m in utc]
    factor = {"epoch": 1, "ms": 10**3, "us": 10**6}.get(form)
    cells = [str(int(s) * factor) for s in stamps] if factor else [m.strftime(form) for m in utc]
    first, second, bad = seconds_of(cells)
    assert not bad.any()
    np.testing.assert_array_equal(first, stamps)
    np.testing.assert_array_equal(second, stamps)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,5 GiB", "900 MiB", "1,25 KB"], [1.5 * 2**30, 900 * 2**20, 1250.0]),
        (["12,5%", "7 %"], [0.125, 0.07]),
        (["1,32x", "2x"], [1.32, 2.0]),
        (["27m 24,5s", "20 ms", "0:01:26,1", "1 day, 2:03:04"], [1644.5, 0.02, 86.1, 93784.0]),
    ],
)
def test_quantities_with_a_decimal_comma(cells: list[str], values: list[float]) -> None:
    for some, wanted in (
        (cells, values),
        ([one.replace(",", ".") for one in cells[:2]], values[:2]),
    ):
        read = numbers_in(some)
        assert isinstance(read, ColumnOfNumbers)
        np.testing.assert_allclose(read.values, wanted)
    assert not isinstance(numbers_in(["1,234 MB"]), ColumnOfNumbers)  # 1.234 or 1234


def test_a_cell_that_does_not_fit_its_column_is_named() -> None:
    assert numbers_in(["1", "2", "x", "4"])[0] == 2  # type: ignore[index]
    assert numbers_in(["1,234", "2,345"])[1].startswith("1,234 may be")  # type: ignore[index]
    for cells, values in (
        (["60 %", "[N/A]"], [0.6, np.nan]),
        (["120,5", "3"], [120.5, 3.0]),
        (["1,234.5", "2"], [1234.5, 2.0]),
        (["1'234.5", "2\u202f000"], [1234.5, 2000.0]),
        (["1 234,5", "2"], [1234.5, 2.0]),
        (["1.5GiB / 12GiB", "0B / 12GiB"], [1.5 * 2**30, 0.0]),
    ):
        found = numbers_in(cells)
        assert isinstance(found, ColumnOfNumbers)
        np.testing.assert_array_equal(found.values, values)
