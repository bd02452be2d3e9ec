"""Logs of schedulers as runs with stretches, against a plain count of who was where at every moment."""

from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import jostle
from jostle.data import JobsImport, Runs, SacctImport
from jostle.data.read import _job_log as _log
from jostle.data.read import _log_sweep as _sweep
from jostle.data.read._log_cells import nodes_of
from jostle.errors import BadData, UnknownName, UnreadableFile, UsageError
from tests.command_line import assert_fails
from tests.command_line import jostle as run
from tests.packages.data.runs.logs_samples import HEADER

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def made_log(seed: int) -> list[tuple[str, str, int, int, str]]:
    """(job, nodes, start, end, workload) in seconds of a day."""
    draw = random.Random(seed)
    rows = []
    for job in range(draw.randint(2, 30)):
        nodes = ",".join(draw.sample(["n1", "n2", "n3"], draw.choice([1, 1, 1, 2])))
        start = draw.randint(0, 40)
        rows.append((str(job), nodes, start, start + draw.randint(1, 20), draw.choice("abc")))
    return rows


def written(path: Path, rows: list[tuple[str, str, int, int, str]]) -> Path:
    lines = [
        f'{job},"{nodes}",{(DAY + timedelta(seconds=start)).isoformat()},'
        f"{(DAY + timedelta(seconds=end)).isoformat()},{name}"
        for job, nodes, start, end, name in rows
    ]
    path.write_text("\n".join(["job,node,start,end,workload", *lines]) + "\n", "utf-8")
    return path


def by_hand(rows: list[tuple[str, str, int, int, str]]) -> dict[str, list[tuple[int, list[str]]]]:
    """{job: (second, company) whenever it changes} of jobs on one node."""
    known = {}
    for job, nodes, start, end, _ in rows:
        parts: list[tuple[int, list[str]]] = []
        for second in range(start, end):
            company = sorted(
                name
                for other, on, since, until, name in rows
                if other != job and nodes in on.split(",") and since <= second < until
            )
            if not parts or parts[-1][1] != company:
                parts.append((second - start, company))
        if "," not in nodes:
            known[job] = parts
    return known


def read_back(runs: Runs) -> dict[str, list[tuple[int, list[str]]]]:
    parts, known = runs.stretches, {}
    companies = parts.colocations.to_columns()["corunners"]
    for row, run_id in enumerate(runs.table.column("run_id").to_pylist()):
        at = np.flatnonzero(parts.row == row)
        starts = np.cumsum([0, *parts.seconds[at]])[:-1]
        known[run_id.split(":")[1]] = [
            (round(s), companies[i]) for s, i in zip(starts, at, strict=True)
        ]
    return known


@pytest.mark.parametrize("seed", range(40))
def test_company_is_who_was_there_at_every_moment(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sweep, "SLICE", 1 + seed % 5)
    rows = made_log(seed)
    edges: dict[str, Any] = {"since": "2025-12-31T00:00:00", "until": "2026-02-01T00:00:00"}
    log = JobsImport(written(tmp_path / "log.csv", rows), **edges).read()
    if all("," in nodes for _, nodes, *_ in rows):
        with pytest.raises(BadData, match="several nodes"):
            log.runs()
        return
    assert read_back(log.runs()) == by_hand(rows)


def test_slices_with_much_company_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    start = draw.integers(0, 100, 60)
    stays = _sweep.Stays(
        np.zeros(60, int), draw.integers(0, 4, 60), start, start + 50, np.ones(60, bool)
    )

    def parts(entries: int) -> list[tuple[int, ...]]:
        of = {}
        for company in _sweep.companies(stays, entries=entries):
            ends = np.cumsum(company.counts)
            for stay, first, last in zip(company.stay, ends - company.counts, ends, strict=True):
                of[stay] = (*company.offset[first:last], *company.sizes[first:last])
        return [of[stay] for stay in sorted(of)]

    assert parts(10) == parts(10**9)
    usual = float(np.median([sum(one[len(one) // 2 :]) for one in parts(10**9)]))
    monkeypatch.setattr(_sweep, "MOST_OF_ONE", usual)
    assert 0 < len(parts(10**9)) < 60


def test_the_same_log_tomorrow_adds_what_is_new(tmp_path: Path) -> None:
    rows = [(str(i), "n1", 10 * i, 10 * i + 15, "ab"[i % 2]) for i in range(20)]
    today = written(tmp_path / "today.csv", rows[:12])
    made, files = JobsImport(today).read().write(tmp_path / "fleet")
    # Two started before the first end, two ended after the last start.
    assert (made.runs, made.added, len(files)) == (8, 8, 1)
    assert made.left_aside == {
        "the log begins after their start": 2,
        "the log ends before their end": 2,
    }
    again, files = JobsImport(today).read().write(tmp_path / "fleet")
    assert (again.runs, again.added, files) == (8, 0, [])
    more, _ = JobsImport(written(tmp_path / "tomorrow.csv", rows)).read().write(tmp_path / "fleet")
    assert (more.runs, more.added) == (16, 8)
    whole = JobsImport(written(tmp_path / "tomorrow.csv", rows)).read().runs()
    assert read_back(jostle.read_runs(tmp_path / "fleet")) == read_back(whole)


SACCT = """\
101|ann|train-17|n[01-02]|2026-03-01T08:00:00|2026-03-01T09:00:00|COMPLETED|3600
102|ann|train-18|n01|2026-03-01T08:30:00|2026-03-01T09:30:00|COMPLETED|3600
102.batch||batch|n01|2026-03-01T08:30:00|2026-03-01T09:30:00|COMPLETED|3600
102.0||python|n01|2026-03-01T08:30:01|2026-03-01T09:30:00|COMPLETED|3599
102.extern||extern|n01|2026-03-01T08:30:00|2026-03-01T09:30:00|COMPLETED|3600
103_1|bob|sweep|n02|2026-03-01T08:10:00|2026-03-01T08:20:00|COMPLETED|600
103_2|bob|sweep|n02|2026-03-01T08:15:00|2026-03-01T08:40:00|TIMEOUT|1500
103_[3-9]|bob|sweep|None assigned|Unknown|Unknown|PENDING|0
104|bob|odd|n02|2026-03-01T08:05:00|2026-03-01T08:12:00|CANCELLED by 1001|420
105|eve|lost|n01|2026-03-01T08:00:00|2026-03-01T08:45:00|NODE_FAIL|2700
105|eve|lost|n03|2026-03-01T08:50:00|2026-03-01T09:50:00|COMPLETED|3600
106|eve|serve|n03|2026-03-01T09:00:00|Unknown|RUNNING|5000
107|eve|stopped|n03|2026-03-01T09:10:00|2026-03-01T10:10:00|COMPLETED|1800
108|eve|n03|2026-03-01T09:10:00|2026-03-01T10:10:00|COMPLETED|3600
109|eve|quick|n03|2026-03-01T09:10:00|2026-03-01T09:10:00|COMPLETED|0
110|eve|torn|n[03|2026-03-01T09:10:00|2026-03-01T09:20:00|COMPLETED|600
111|eve|when|n03|2026-02-30T09:10:00|2026-03-01T09:20:00|COMPLETED|600
"""


def test_what_sacct_prints(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(HEADER + SACCT, "utf-8")
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("node,platform\nn01,big\nn02,big\nn03,small\n", "utf-8")
    options: dict[str, Any] = {"since": "2026-03-01T00:00:00", "campaign": "c1"}
    log = SacctImport(path, workload="{user}/{jobname:^[a-z]+}", nodes=nodes, **options).read()
    made, _ = log.write(tmp_path / "fleet")
    assert made.left_aside == {
        "they are steps of jobs": 3,
        "they never started": 1,
        "they took no time": 1,
        "a time of theirs cannot be read": 1,
        "their lines have more or fewer cells than the header (a delimiter in a name?)": 1,
        "they did not take what lies between start and end (suspended, or say `timezone`)": 1,
        "their nodes cannot be read": 1,
        "they were still running": 1,
        "they ran on several nodes": 1,
    }
    assert made.jobs == 17
    assert made.status == {"ok": 3, "failed": 2, "timeout": 1}
    runs = jostle.read_runs(tmp_path / "fleet")
    rows = {row["run_id"].split(":")[1]: row for row in runs.ok().table.to_pylist()}
    assert rows["102"]["workload"] == "ann/train"
    assert rows["102"]["platform"] == "big"
    assert rows["102"]["stretches"] == [
        {"start_seconds": 0.0, "corunners": ["ann/train", "eve/lost"]},
        {"start_seconds": 900.0, "corunners": ["ann/train"]},
        {"start_seconds": 1800.0, "corunners": []},
    ]
    # Its first ten minutes: a job over two nodes, one cancelled after two, one for the last five.
    assert rows["103_1"]["stretches"] == [
        {"start_seconds": 0.0, "corunners": ["ann/train", "bob/odd"]},
        {"start_seconds": 120.0, "corunners": ["ann/train"]},
        {"start_seconds": 300.0, "corunners": ["ann/train", "bob/sweep"]},
    ]
    # Requeued: twice on two nodes, of which one failed; the one that runs on is company to the end.
    assert rows["105"]["corunners"] == ["eve/serve"]
    failed = {
        (row["run_id"].split(":")[1], row["status"], row["reason"])
        for row in runs.take(~runs.is_ok).table.to_pylist()
    }
    assert failed == {
        ("104", "failed", "CANCELLED by 1001"),
        ("105", "failed", "NODE_FAIL"),
        ("103_2", "timeout", "TIMEOUT"),
    }


def test_an_hour_that_the_clock_has_twice(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    # On this night 02:30 comes before and after the clock goes back.
    path.write_text(
        HEADER
        + "1|ann|a|n1|2026-10-25T01:30:00|2026-10-25T02:30:00|COMPLETED|7200\n"
        + "2|ann|a|n2|2026-10-25T02:30:00|2026-10-25T02:40:00|COMPLETED|600\n"
        + "3|ann|a|n3|2026-10-25T02:30:00|2026-10-25T02:40:00|COMPLETED|4200\n",
        "utf-8",
    )
    edges: dict[str, Any] = {"since": "2026-10-24T00:00:00", "until": "2026-10-26T00:00:00"}
    log = SacctImport(path, timezone="Europe/Berlin", **edges).read()
    assert sorted(log.runs().runtime_seconds) == [600.0, 4200.0, 7200.0]
    # Without the zone two of them did not take what the clock shows.
    made, _ = SacctImport(path, **edges).read().write(tmp_path / "fleet")
    assert made.runs == 1


def test_edges_in_an_hour_that_the_clock_has_twice_hold_either_way(tmp_path: Path) -> None:
    """02:30 comes at 00:30 and 01:30 UTC; a job between them is after the one and before the other."""
    path = tmp_path / "log.csv"
    times = [("22:00", "22:30"), ("00:40", "00:50"), ("02:00", "02:30")]
    path.write_text("job,node,start,end,workload\n" + "".join(
        f"{n},n1,2026-10-{24 + (n > 0)}T{start}:00Z,2026-10-{24 + (n > 0)}T{end}:00Z,a\n"
        for n, (start, end) in enumerate(times)
    ))  # fmt: skip
    wide = {"since": "2026-10-24T00:00:00", "until": "2026-10-26T00:00:00"}
    for edge, there in (("since", {"2"}), ("until", {"0"})):
        options: dict[str, Any] = wide | {edge: "2026-10-25T02:30:00"}
        runs = JobsImport(path, timezone="Europe/Berlin", **options).read().runs()
        assert {one.split(":")[1] for one in runs.table.column("run_id").to_pylist()} == there


def test_an_hour_that_the_clock_has_twice_is_never_guessed_in_silence(tmp_path: Path) -> None:
    """Against all readings that a clock allows: what one alone allows is read so, the rest is told."""
    night = datetime(2026, 10, 24, 23, tzinfo=UTC)  # 01:00 in Berlin; it is 02:00 to 03:00 twice
    zone, draw = ZoneInfo("Europe/Berlin"), random.Random(0)
    lines, lengths, is_known, unsure = [], {}, {}, 0
    for job in range(200):
        minutes = sorted(draw.sample(range(5 * 60), 2))
        clock = [(night + timedelta(minutes=m)).astimezone(zone) for m in minutes]
        took = 60 * (minutes[1] - minutes[0])
        tells = draw.random() < 0.5
        readings = [
            (end - start).total_seconds()
            for start, end in product(
                *[{c.replace(fold=f).astimezone(UTC) for f in (0, 1)} for c in clock]
            )
            if end > start and (not tells or (end - start).total_seconds() == took)
        ]
        unsure += len(readings) > 1
        if len(readings) == 1 or tells:
            lengths[str(job)] = float(took)
            is_known[str(job)] = len(readings) == 1
        times = (c.strftime("%Y-%m-%dT%H:%M:%S") for c in clock)
        lines.append(f"{job},n{job},{','.join(times)},{took if tells else ''},a\n")
    path = tmp_path / "log.csv"
    path.write_text("job,node,start,end,elapsed,workload\n" + "".join(lines), "utf-8")
    edges: dict[str, Any] = {"since": "2026-10-24T00:00:00", "until": "2026-10-26T00:00:00"}
    log = JobsImport(path, timezone=zone.key, **edges).read()
    runs = log.runs()
    ids = (one.split(":")[1] for one in runs.table.column("run_id").to_pylist())
    read = dict(zip(ids, runs.runtime_seconds.tolist(), strict=True))
    assert 0 < unsure < 200
    assert 0 < len(lengths) < 200
    # A length that may be two is no run; where when it ran is not known, so is beside whom.
    assert lengths == read
    flagged = dict(zip(read, runs.unknown_corunners.tolist(), strict=True))
    assert flagged == {job: not known for job, known in is_known.items()}
    assert not JobsImport(path, timezone="UTC", **edges).read().notes


def test_the_commands_tell_what_was_made(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    lines = [
        f"{i}|ann|job{i % 2}|n{i % 2}|2026-03-01T{8 + i // 6:02d}:00:00|"
        f"2026-03-01T{8 + i // 6:02d}:{(10, 50)[i % 5 == 0]}:00|COMPLETED|{(600, 3000)[i % 5 == 0]}"
        for i in range(60)
    ]
    path.write_text(HEADER + "\n".join(lines) + "\n", "utf-8")
    command = ["import", "--kind=sacct", str(path), "-o", str(tmp_path / "fleet"), "--json"]
    answer = run(*command)
    document = json.loads(answer.stdout)
    assert document["schema"] == "import_log/v1"
    assert (document["workloads"], document["platforms"]) == (2, 2)
    assert document["runs"] == document["added"] == 60 - sum(document["left_aside"].values())
    assert document["left_aside"].keys() <= {
        "the log begins after their start",
        "the log ends before their end",
    }
    assert document["on_one_node"] == document["sets"] > 0  # each name is on one node
    assert document["stretches"] > 1
    path.with_suffix(".csv").write_text("job,start\n1,2026-01-01\n", "utf-8")
    command = [
        "import",
        "--kind=jobs",
        str(path.with_suffix(".csv")),
        "-o",
        str(tmp_path / "other"),
    ]
    assert_fails(BadData, "node or host or hostname", *command)
    # Once more, with another rule: what is there stays.
    again = SacctImport(path, "{User}").read().write(tmp_path / "fleet")[0]
    assert again.added == 0
    assert "new folder" in again.notes[-1]


def test_other_names_of_columns_and_names_that_hold_the_delimiter(tmp_path: Path) -> None:
    plain = written(tmp_path / "log.csv", made_log(3))
    edges: dict[str, Any] = {"since": "2025-12-31T00:00:00", "until": "2026-02-01T00:00:00"}
    other = tmp_path / "other.csv"
    lines = plain.read_text("utf-8").replace("job,node,start,end", "Job_ID,Host,Begin,Finish", 1)
    other.write_text(lines, "utf-8")
    one, two = (JobsImport(path, **edges).read().runs() for path in (plain, other))
    assert two.table.equals(one.table)
    rows = [
        "1|ann|a|n1|2026-01-01T00:00:00|2026-01-01T00:10:00|COMPLETED|600",
        "2|ann|b|c||n1|2026-01-01T00:00:00|2026-01-01T00:05:00|COMPLETED|300",
        "3|ann|n1|2026-01-01T00:00:00|2026-01-01T00:10:00|COMPLETED|600",
    ]
    path = tmp_path / "sacct.txt"
    path.write_text(HEADER + "\n".join(rows) + "\n", "utf-8")
    made = SacctImport(path, "{JobName}", all_jobs=True, **edges).read()
    runs = made.runs()
    assert read_back(runs) == {"1": [(0, ["b|c|"]), (300, [])], "2": [(0, ["a"])]}
    # The third line has too few cells, and was beside both.
    assert runs.unknown_corunners.all()


def test_a_log_of_which_nothing_ended_well_and_names_with_numbers_are_told(tmp_path: Path) -> None:
    rows = [
        f"{i}|ann|sort-{i}|n1|2026-01-01T00:0{i}:00|2026-01-01T00:0{i}:30|{'XX' if i else 'PR'}|30"
        for i in range(9)
    ]
    path = tmp_path / "sacct.txt"
    path.write_text(HEADER + "\n".join(rows) + "\n", "utf-8")
    edges: dict[str, Any] = {"since": "2025-12-31T00:00:00", "until": "2026-02-01T00:00:00"}
    edges["all_jobs"] = True
    bad = SacctImport(path, **edges).read().write(tmp_path / "bad")[0]
    assert bad.notes == [
        "no job ended well: COMPLETED, succeeded, done or ok says so, not 'PR', 'XX'"
    ]
    path.write_text(path.read_text("utf-8").replace("XX", "COMPLETED"), "utf-8")
    (note,) = SacctImport(path, **edges).read().write(tmp_path / "good")[0].notes
    assert "8 of 8 names were met once, such as 'ann/sort-1'" in note


def test_programs_under_one_name_and_names_met_once(tmp_path: Path) -> None:
    rows = [(str(i), "n1", 200 * i, 200 * i + (10, 150)[i % 2], "a") for i in range(40)]
    rows += [
        ("x", "n1", 9_000, 9_010, "b"),
        ("y", "n1", 9_100, 9_110, "c"),
        ("z", "n1", 9_200, 9_300, "c"),
    ]
    made, _ = JobsImport(written(tmp_path / "log.csv", rows)).read().write(tmp_path / "fleet")
    assert made.several == ["a"]
    assert (made.workloads, made.once) == (3, 2)  # the last one is cut


def test_bad_logs_are_told(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("job,node,start,end,workload\n", "utf-8")
    with pytest.raises(UnreadableFile, match="no job that ran"):
        JobsImport(path).read().runs()
    path.write_text("job,node,start,workload\n1,n1,2026-01-01T00:00:00,a\n", "utf-8")
    with pytest.raises(BadData, match=r"called end or end_time.*of job, node"):
        JobsImport(path).read()
    with pytest.raises(UnknownName, match="queue"):
        JobsImport(written(path, made_log(0)), workload="{queue}").read()
    for refused in (
        lambda: JobsImport(path, timezone="Mars"),
        lambda: JobsImport(path, since="noon"),
        lambda: JobsImport(path, workload="{a:(}"),
        lambda: JobsImport(path, workload="x{}"),
    ):
        with pytest.raises(UsageError):
            refused()
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("node,platform\nn1,a\nn1,b\n", "utf-8")
    with pytest.raises(BadData, match="line 3"):
        JobsImport(path, nodes=nodes).read()


def test_cells() -> None:
    assert nodes_of("r[1-2]n[08-10,12],gpu1") == (
        *("r1n08", "r1n09", "r1n10", "r1n12", "r2n08", "r2n09", "r2n10", "r2n12", "gpu1"),
    )
    assert nodes_of("None assigned") == nodes_of("") == ()
    for bad in ("n[1", "n[a-b]", "n[1-999999]", "n]1"):
        with pytest.raises(ValueError, match=r"."):
            nodes_of(bad)


def test_a_log_of_one_cell_a_line_is_told(tmp_path: Path) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text("JobID    User   JobName\n1 ada sort\n")
    with pytest.raises(BadData, match=r"none end.*sacct -aDP"):
        SacctImport(file).read()
    file.write_text("JobID|JobName|State\n1|sort|COMPLETED\n")
    with pytest.raises(BadData, match=r"called nodelist.*sacct -aDP"):
        SacctImport(file, "JobName").read()
    packed = tmp_path / "cut.txt.gz"
    packed.write_bytes(gzip.compress(b"JobID|User\n" * 999)[:-20])
    with pytest.raises(UnreadableFile, match="damaged gzip"):
        SacctImport(packed).read()


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_of_a_job_that_stands_more_than_once_the_last_row_counts(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_log, "_IDS_AT_ONCE", at_once)
    draw = np.random.default_rng(0)
    ids = [f"{job}" for job in draw.integers(20, size=200)]
    start = draw.integers(5_000_000, size=200)
    last = {
        (one, at // 1_000_000): row for row, (one, at) in enumerate(zip(ids, start, strict=True))
    }
    found = _log._last_of_each("cluster", pa.array(ids), start)
    assert np.flatnonzero(found).tolist() == sorted(last.values())
