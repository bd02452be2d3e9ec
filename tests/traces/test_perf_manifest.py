"""Many recordings of perf stat in one call: a table says what ran where, and what is odd in it is named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jostle.errors import BadData, JostleError, UnknownName, UnreadableFile, UsageError
from jostle.traces import PerfImport, Traces, read_traces

HEAD = "file,cpu,workload,window,runtime\n"
GOOD = HEAD + "alone-a.csv,,a,,whole\nalone-b.csv,,b,,0.025\npair.csv,0,a,,0.04\npair.csv,2;3,b,,\n"


def counted(times: list[float], cores: list[str], count: int, event: str = "instructions") -> str:
    return "".join(
        f"{t},{core}{',' if core else ''}{count},,{event},1,100.00,,\n"
        for t in times
        for core in cores
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "alone-a.csv").write_text(counted([0.01, 0.02], [""], 100))
    (tmp_path / "alone-b.csv").write_text(
        counted([0.01, 0.02, 0.03, 0.04], [""], 50, "instructions:u")
    )
    times = [0.01, 0.02, 0.03, 0.04, 0.05]
    (tmp_path / "pair.csv").write_text(counted(times, ["CPU0", "CPU2", "CPU3"], 70))
    return tmp_path


def read(folder: Path, table: str = GOOD, **options) -> Traces:
    (folder / "runs.csv").write_text(table)
    return PerfImport(folder / "runs.csv", **{"platform": "p", **options}).read()


def test_one_table_for_runs_alone_and_beside(folder: Path) -> None:
    found = {trace.run_id: trace for trace in read(folder)}
    assert set(found) == {"alone-a", "alone-b", "pair-0", "pair-2;3"}
    assert found["alone-a"].runtime_seconds == 0.02
    assert found["alone-a"].solo
    # What ran after the end is not the program's.
    assert found["alone-b"].time_seconds[-1] == 0.03
    one, other = found["pair-0"], found["pair-2;3"]
    assert (one.workload, one.corunners, one.window_id, one.core) == ("a", ("b",), "pair", 0)
    assert (other.workload, other.corunners, other.window_id, other.core) == (
        "b",
        ("a",),
        "pair",
        1,
    )
    assert one.time_seconds[-1] == 0.04
    assert np.isnan(other.runtime_seconds)
    np.testing.assert_array_equal(one["perf_instructions"], [70] * 4)
    np.testing.assert_array_equal(other["perf_instructions"], [140] * 5)


def test_windows_of_several_files_and_whole_recordings(folder: Path) -> None:
    table = "file,workload,window,beside\nalone-a.csv,a,first,b\nalone-b.csv,b,first,\n"
    found = list(read(folder, table, whole=True))
    assert [t.corunners for t in found] == [("b",), ("a",)]
    assert [t.runtime_seconds for t in found] == [0.02, 0.04]
    assert {t.window_id for t in found} == {"first"}


def test_a_window_of_more_than_one_file(folder: Path) -> None:
    found = read(folder, GOOD.replace("alone-a.csv,,a,", "alone-a.csv,,c,pair"))
    assert {t.run_id: t.corunners for t in found}["alone-a"] == ("a", "b")
    assert {t.run_id: t.corunners for t in found}["pair-0"] == ("b", "c")


def test_an_event_has_one_name_in_all_files(folder: Path) -> None:
    both = counted([0.01], [""], 9, "instructions:u") + counted([0.01], [""], 4, "instructions:k")
    (folder / "alone-a.csv").write_text(both)
    names = {t.run_id: set(t.counters) for t in read(folder, GOOD.split("pair")[0])}
    assert names == {
        "alone-a": {"perf_instructions_u", "perf_instructions_k"},
        "alone-b": {"perf_instructions_u"},
    }


@pytest.mark.parametrize(
    ("table", "kind", "message"),
    [
        (HEAD, BadData, "lists no file"),
        ("file,workload,colour\nalone-a.csv,a,red\n", UnknownName, "colour"),
        ("file,workload,file\nalone-a.csv,a,b\n", BadData, "twice"),
        (HEAD + "alone-a.csv,,a\n", BadData, "line 2"),
        (HEAD + "alone-a.csv,,,,\n", BadData, "no workload"),
        (HEAD + "none.csv,,a,,\n", UnreadableFile, "none.csv"),
        (HEAD + "alone-a.csv,x,a,,\n", BadData, "no CPUs"),
        (HEAD + "alone-a.csv,3-1,a,,\n", BadData, "no CPUs"),
        (HEAD + "alone-a.csv,1,a,,\n", BadData, "does not tell CPU 1"),
        (HEAD + "pair.csv,,a,,\n", BadData, "tells 3 cores apart"),
        (HEAD + "pair.csv,0,a,,\npair.csv,7,b,,\n", BadData, "CPU 7"),
        (HEAD + "pair.csv,0,a,x,\n", BadData, "nobody else"),
        (HEAD + "alone-a.csv,,a,,\n" * 2, BadData, "several runs"),
        ("file,workload,beside\nalone-a.csv,a,b\n", BadData, "no window"),
    ],
)
def test_what_is_odd_is_named(
    folder: Path, table: str, kind: type[JostleError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        read(folder, table)


def test_options_of_one_run_do_not_go_with_a_table(folder: Path) -> None:
    with pytest.raises(UsageError, match="manifest"):
        read(folder, workload="a")
    with pytest.raises(BadData, match="where it was counted"):
        read(folder, platform=None)
    with pytest.raises(UsageError, match="what ran"):
        PerfImport(folder / "alone-a.csv", platform="p").read()


def test_the_command_takes_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jostle.cli import exit_code

    (folder / "runs.csv").write_text(GOOD)
    words = ["import", "perf", str(folder / "runs.csv"), "-o", str(folder / "data")]
    assert exit_code([*words, "--platform", "p", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 4
    assert len(list(read_traces(folder / "data"))) == 4
