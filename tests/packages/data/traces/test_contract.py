"""What every reader of recordings must do with a file that is broken, odd or foreign.

A reader is here with a whole recording and with what can be wrong in it, as the format would write it; the
laws below are the same for all. A new reader needs one more entry in READERS."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jostle.data import Profile, RecordedRun, read_any, reader_names
from jostle.errors import BadData, JostleError
from tests.packages.data.runs.import_contract_samples import FOREIGN
from tests.packages.data.traces.other_recordings_samples import KERNELS, STATS
from tests.packages.data.traces.perf_stat_samples import LINES
from tests.packages.data.traces.profiles_samples import (
    COPY,
    HOST,
    KERNEL,
    NVPROF,
    PROPERTIES,
    ROCPROF,
    kineto,
    nsys,
)

HERE = RecordedRun(platform="p", run_id="r", workload="w")
KINETO = json.dumps(kineto(HOST, KERNEL, COPY, KERNEL, deviceProperties=PROPERTIES))
HUGE = "1" + "0" * 40
DIGITS = "9" * 5000  # more than Python reads


@dataclass(frozen=True)
class Reader:
    """name: its entry point. whole: makes a recording in a folder, after `edit` of its text or by its SQL.
    refused: {what is wrong: (edit, what the error says)}. passed_over: {what is odd: edit}, which changes
    nothing that is read. twice: an edit that writes a task again. ends: whether a file cut off between two
    lines is a whole file."""

    name: str
    whole: Callable[[Path, Any], bytes]
    refused: dict[str, tuple[Any, str]]
    passed_over: dict[str, Any]
    twice: Any
    ends: bool = False


def of_text(text: str) -> Callable[[Path, Any], bytes]:
    def whole(_: Path, edit: tuple[str, str] | None) -> bytes:
        assert edit is None or edit[0] in text
        return (text if edit is None else text.replace(*edit)).encode()

    return whole


def of_database(folder: Path, edit: str | None) -> bytes:
    path = nsys(folder / "whole.sqlite")
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(edit or "select 1")
    content = path.read_bytes()
    path.unlink()
    return content


def again(text: str, number: int) -> tuple[str, str]:
    """The edit that writes a line twice."""
    line = text.splitlines(keepends=True)[number]
    return line, line + line


TASKS = "CUPTI_ACTIVITY_KIND_KERNEL"
READERS = {
    "kineto": Reader(
        "kineto",
        of_text(KINETO),
        {
            "NaN": (('"ts": 1000.5', '"ts": NaN'), "starts at nan"),
            "no number": (('"ts": 1000.5', '"ts": "soon"'), "no readable ts"),
            "negative": (('"dur": 10,', '"dur": -10,'), "takes -"),
            "negative shape": (("[8, 16, 5]", "[-8, 16, 5]"), "-640"),
            "huge": (('"dur": 10,', '"dur": 1e300,'), "impossible time|takes"),
            "huge count": (('"bytes": 1024', f'"bytes": {HUGE}'), "does not fit"),
            "many digits": (('"dur": 10,', f'"dur": {DIGITS},'), "cannot be read"),
            "column missing": (('"ts": 1000.5, ', ""), "no readable ts"),
            "other": (("traceEvents", "events"), "no traceEvents"),
            "text after it": ((KINETO, f"{KINETO} and more"), "follows the end"),
            "text after a list": ((KINETO, f"[{json.dumps(KERNEL)}] and more"), "follows the end"),
            "no array": (("[8, 16, 5]", "[{]"), "broken|cut off"),
            "nothing in it": ((KINETO, json.dumps(kineto(HOST))), "no kernel or transfer"),
        },
        {
            "unknown column": ('"dur": 10,', '"dur": 10, "colour": "red",'),
            "unknown item": ('{"schemaVersion"', '{"colour": [1], "schemaVersion"'),
        },
        (json.dumps(COPY), f"{json.dumps(COPY)}, {json.dumps(COPY)}"),
    ),
    "nsys": Reader(
        "nsys",
        of_database,
        {
            "NaN": (f"update {TASKS} set end='nan'", "end in CUPTI"),
            "no number": (f"update {TASKS} set end='soon'", "end in CUPTI"),
            "negative": (f"update {TASKS} set end=-5", "takes -"),
            "negative shape": (f"update {TASKS} set gridX=-8", "blocks"),
            "huge": (f"update {TASKS} set end=9e300", "takes"),
            "huge count": (f"update {TASKS} set gridX=9e300", "does not fit"),
            "column missing": (f"alter table {TASKS} drop column end", "no end"),
        },
        {"unknown column": f"alter table {TASKS} add column colour"},
        f"insert into {TASKS} select * from {TASKS} where start = 3000",
    ),
    "nvprof": Reader(
        "nvprof",
        of_text(NVPROF),
        {
            "NaN": (("20.0", "nan"), "line 6"),
            "no number": (("20.0", "soon"), "line 6"),
            "negative": (("20.0", "-20.0"), "takes -"),
            "negative shape": (("4096,2", "-4096,2"), "-8192"),
            "huge": (("20.0", "1e300"), "takes"),
            "huge count": (("4096,2", f"{HUGE},2"), "does not fit"),
            "many digits": (("20.0", DIGITS), "line 6"),
            "unit": (("s,us", "s,fortnights"), "row of units"),
            "column missing": (('"Duration"', '"Length"'), "no header"),
            "nothing in it": (
                (NVPROF, "".join(NVPROF.splitlines(True)[:4])),
                "no kernel or transfer",
            ),
        },
        {"unknown column": ('"Context"', '"Colour"')},
        again(NVPROF, 5),
        ends=True,
    ),
    "nsys stats": Reader(
        "nsys",
        of_text(STATS),
        {
            "NaN": (("2000,3000", "2000,nan"), "line 5"),
            "no number": (("2000,3000", "2000,many"), "line 5"),
            "negative": (("2000,3000", "2000,-1"), "takes -"),
            "negative shape": (("128,2", "-128,2"), "-256"),
            "huge": (("2000,3000", f"2000,{HUGE}"), "takes"),
            "huge count": (("128,2", f"{HUGE},2"), "does not fit"),
            "many digits": (("2000,3000", f"2000,{DIGITS}"), "line 5"),
            "unit": (("(ns)", "(fortnights)"), "row of units"),
            "column missing": (("Duration (ns)", "Length (ns)"), "known format"),
            "other": (
                (STATS, "Time (%),Total Time (ns),Instances,Name\n99.0,1,1,k\n"),
                "no header",
            ),
        },
        {"unknown column": ("GreenCtx", "Colour")},
        again(STATS, 4),
        ends=True,
    ),
    **{
        name: Reader(
            "rocprof",
            of_text(text),
            {
                "NaN": ((end, "nan"), "line 2"),
                "no number": ((end, "soon"), "line 2"),
                "no end": ((end, ""), "line 2.* has no times"),
                "no start": ((start, ""), "line 2.* has no times"),
                "negative": ((end, "-1"), "takes -"),
                "negative shape": ((blocks, f"-{blocks}"), "-"),
                "huge": ((end, HUGE), "impossible time"),
                "huge count": ((blocks, HUGE), "does not fit"),
                "many digits": ((end, DIGITS), "line 2|impossible"),
                "column missing": (("End_Timestamp", "Ende"), "no start and end|foreign|no header"),
            },
            {"unknown column": (unused, "Colour")},
            again(text, 2),
            ends=True,
        )
        for name, text, start, end, blocks, unused in (
            ("rocprof", ROCPROF, "1413827795608813", "1413827795628973", "1048576", "Accum_VGPR"),
            ("rocprofv3", KERNELS, "1000000", "3000000", "65536", "Correlation_Id"),
        )
    },
    "perf": Reader(
        "perf",
        of_text(LINES),
        {
            "NaN": (("0.027377,3.50", "nan,3.50"), "line 6"),
            "NaN count": (("0.010068,1000", "0.010068,nan"), "line 4"),
            "no number": (("0.027377,3.50", "soon,3.50"), "line 6"),
            "negative": (("0.010068,1000", "0.010068,-1"), "line 4"),
            "huge": (("0.010068,1000", "0.010068,1" + "0" * 400), "line 4"),
            "many digits": (("0.010068,1000", f"0.010068,{DIGITS}"), "line 4"),
            "column missing": (("instructions:u", ""), "line 4"),
            "cut off": ((LINES, LINES + "     0.0410,5"), "line 9"),
            "an object cut off": ((LINES, LINES + '{"interval" : 0.04, "counter-val'), "line 9"),
            "twice": (again(LINES, 3), "stands twice"),
            "nothing in it": (
                (LINES, "# started on Monday\n"),
                "foreign|not a profile|no intervals",
            ),
        },
        {"unknown column": ("CPUs utilized\n", "CPUs utilized,colour\n")},
        None,
        ends=True,
    ),
}
EVERY = sorted(READERS)
FAULTS = [(name, fault) for name in EVERY for fault in READERS[name].refused]


def read(path: Path, content: bytes, format: str | None = None) -> list[Any]:
    """The rows of what was read, in their order: tasks, or a run's counters at its times."""
    path.write_bytes(content)
    found = read_any(path, HERE, format=format)
    if isinstance(found, Profile):
        return found.tasks.drop_columns(["sequence"]).to_pylist()
    rows = []
    for run in found:
        columns = sorted(run.counters.items())
        for at, time in enumerate(run.time_seconds.tolist()):
            rows.append((time, [(name, repr(float(values[at]))) for name, values in columns]))
    return rows


def test_every_reader_is_here_with_what_every_format_can_have() -> None:
    assert {reader.name for reader in READERS.values()} == set(reader_names())
    for reader in READERS.values():
        assert {"NaN", "no number", "negative", "huge", "column missing"} <= set(reader.refused)
        assert "unknown column" in reader.passed_over


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_what_is_wrong_is_told(tmp_path: Path, name: str, fault: str) -> None:
    reader = READERS[name]
    edit, message = reader.refused[fault]
    with pytest.raises(BadData, match=message) as error:
        read(tmp_path / "x", reader.whole(tmp_path, edit))
    assert str(tmp_path / "x") in str(error.value)


@pytest.mark.parametrize("name", EVERY)
def test_what_it_does_not_know_changes_nothing(tmp_path: Path, name: str) -> None:
    reader = READERS[name]
    rows = read(tmp_path / "x", reader.whole(tmp_path, None))
    assert rows == read(tmp_path / "x", reader.whole(tmp_path, None), reader.name)
    for edit in reader.passed_over.values():
        assert repr(read(tmp_path / "x", reader.whole(tmp_path, edit))) == repr(rows)


@pytest.mark.parametrize("name", [name for name in EVERY if READERS[name].twice])
def test_a_task_that_stands_twice_ran_twice(tmp_path: Path, name: str) -> None:
    reader = READERS[name]
    rows, more = (
        sorted(repr(row) for row in read(tmp_path / "x", reader.whole(tmp_path, edit)))
        for edit in (None, reader.twice)
    )
    extra = [row for row in set(more) if more.count(row) > rows.count(row)]
    assert set(more) == set(rows)
    assert len(more) == len(rows) + len(extra) == len(rows) + 1


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_a_file_cut_off_anywhere_is_refused_or_known_in_part(
    tmp_path: Path, name: str, packed: bool
) -> None:
    """A table of lines that ends with a whole line cannot know that there were more; a packed one can."""
    reader = READERS[name]
    whole = reader.whole(tmp_path, None)
    if packed:
        if reader.name != "kineto":
            pytest.skip("files of this kind are not packed")
        whole = gzip.compress(whole)
    every = read(tmp_path / "x", whole)
    for length in range(0, len(whole) - 1, max(1, len(whole) // 60)):
        try:
            rows = read(tmp_path / "x", whole[:length], reader.name if length else None)
        except JostleError:
            continue
        assert reader.ends, length
        if name == "perf":  # of a time all counters or some
            assert [row[0] for row in rows] == [row[0] for row in every[: len(rows)]]
        else:
            assert repr(rows) == repr(every[: len(rows)])
        assert whole[:length].rstrip(b" ").endswith(b"\n")


@pytest.mark.parametrize("format", [None, *reader_names()])
@pytest.mark.parametrize("kind", [*FOREIGN, "database"])
def test_foreign_files_are_refused_by_every_reader(
    tmp_path: Path, format: str | None, kind: str
) -> None:
    path = tmp_path / "foreign"
    with closing(sqlite3.connect(tmp_path / "base")) as base, base:
        base.execute("create table t (a)")
    content = FOREIGN[kind] if kind in FOREIGN else (tmp_path / "base").read_bytes()
    with pytest.raises(BadData, match="foreign"):
        read(path, content, format)


@pytest.mark.parametrize("format", [None, *reader_names()])
def test_what_is_no_file_is_refused(tmp_path: Path, format: str | None) -> None:
    for path in (tmp_path, tmp_path / "missing.sqlite"):
        with pytest.raises(JostleError):
            read_any(path, HERE, format=format)
