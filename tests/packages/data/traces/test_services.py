"""What services record becomes runs: totals that begin anew, levels, gaps, days and requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.data import PrometheusImport, SeriesImport, Traces, read_traces
from jostle.errors import BadData, JostleError, NotPermitted, UnknownName, UsageError
from tests.packages.data.traces.services_samples import DAY, every, matrix


def prometheus(tmp_path: Path, document: object, **options: Any) -> Traces:
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(document))
    return PrometheusImport((str(file),), "api", "prod", **options).read()


def table(tmp_path: Path, text: str, **options: Any) -> Traces:
    file = tmp_path / "table.csv"
    file.write_text(text)
    return SeriesImport((file,), "api", "prod", **options).read()


def test_totals_begin_anew_and_levels_are_taken_as_they_are(tmp_path: Path) -> None:
    answer = matrix(
        ({"__name__": "requests_total"}, every(15, [100, 130, 160, 30, 90])),
        ({"__name__": "memory_bytes"}, every(15, [5, 6, "NaN", 8, -2])),
        ({"__name__": "seen_total"}, every(15, ["NaN", "NaN", 8, "NaN", "NaN"])),
    )
    found = prometheus(tmp_path, answer)
    (one,) = found
    assert np.isnan(one["seen_total"]).all()  # one reading tells of no time between two
    np.testing.assert_allclose(one["requests_total"], [30, 30, 30, 60])
    np.testing.assert_allclose(one["memory_bytes_level"], [6, np.nan, 8, -2])
    np.testing.assert_allclose(one.time_seconds, [15, 30, 45, 60])
    assert found.notes == (
        "counted, so rates per second: requests_total, seen_total",
        "levels, taken as they are: memory_bytes_level",
        "running totals began anew 1 times: counted on from 0 there",
    )


def test_a_level_holds_until_the_next_reading_as_long_as_it_is_fresh(tmp_path: Path) -> None:
    """Read every 4 s, but not for 20 s, beside a total that is read every 10 s."""
    readings: list[tuple[float, object]] = [(DAY + t, t) for t in (0, 4, 8, 12, 32, 36, 40)]
    answer = matrix(
        ({"__name__": "x_level"}, readings), ({"__name__": "y_total"}, every(10, [0, 1, 2, 3, 4]))
    )
    (one,) = prometheus(tmp_path, answer)
    np.testing.assert_allclose(one["x_level"], [8, 12, np.nan, 40])
    np.testing.assert_allclose(one["y_total"], 1)


@pytest.mark.parametrize("cut", [None, "30s", "minute"])
@pytest.mark.parametrize("seed", range(6))
def test_what_was_read_is_what_a_walk_second_by_second_finds(
    tmp_path: Path, seed: int, cut: str | None
) -> None:
    """A total that begins anew once, counts and a level, read at odd times and not always."""
    draw = np.random.default_rng(seed)
    at = 7 + np.cumsum(draw.choice([10, 10, 10, 14, 20, 40], 40)).astype(int)
    count = draw.integers(0, 50, len(at))
    total = np.cumsum(count)
    total[20:] -= total[19]
    columns = {"x_total": total, "z": count, "y": draw.integers(1, 9, len(at))}
    cells = {
        name: [str(v) if draw.random() < 0.85 else "" for v in c] for name, c in columns.items()
    }
    rows = zip(*cells.values(), strict=True)
    lines = [f"{DAY + t},{','.join(row)}" for t, row in zip(at.tolist(), rows, strict=True)]
    text = "\n".join(["time,x_total,z,y", *lines]) + "\n"
    found = table(tmp_path, text, count=("z",), cut=cut)

    usual, last = float(np.median(np.diff(at))), int(at[-1])
    rates = {name: np.full(last, np.nan) for name in ("x_total", "z")}
    lines_of_total = [n for n, cell in enumerate(cells["x_total"]) if cell]
    for name, pairs in (("x_total", lines_of_total), ("z", range(len(at)))):
        for before, now in pairwise(pairs):
            begin, end, step = int(at[before]), int(at[now]), columns[name][now]
            if name == "x_total" and step >= total[before]:
                step = step - total[before]
            if cells[name][now] and end - begin <= 2.5 * usual:
                rates[name][begin:end] = step / (end - begin)
    length = {None: 10**9, "30s": 30, "minute": 60}[cut]
    edges = sorted({*at.tolist(), *(e for e in range(0, last, length) if at[0] < e)})
    expected = list[tuple[Any, ...]]()
    for begin, end in pairwise(edges):
        reading = max(t for t in at.tolist() if t <= end)
        level = float(cells["y"][at.tolist().index(reading)] or "nan")
        if end - reading > 1.25 * usual and reading <= begin:
            level = np.nan
        values = (rates["x_total"][begin:end].sum(), rates["z"][begin:end].sum(), level)
        if not np.isnan(values).all():
            since = at[0] if cut is None else begin // length * length
            expected.append((begin // length, end - since, end - begin, *values))
    mine = []
    for run, one in enumerate(found):
        own = (one["x_total"], one["z"], one["y_level"])
        rows = zip(one.time_seconds, one.interval_seconds, *own, strict=True)
        mine += [(run, *row) for row in rows]
    order = {piece: n for n, piece in enumerate(sorted({row[0] for row in expected}))}
    expected = [(order[row[0]], *row[1:]) for row in expected]
    np.testing.assert_allclose(mine, expected, atol=1e-6)


def test_what_is_missing_for_long_is_not_known(tmp_path: Path) -> None:
    readings = every(15, [0, 10, 20]) + every(15, [90, 100], DAY + 150)
    (one,) = prometheus(tmp_path, matrix(({"__name__": "x_total"}, readings)))
    np.testing.assert_allclose(one["x_total"], [10, 10, 10])
    np.testing.assert_allclose(one.time_seconds, [15, 30, 165])


def test_series_are_added_up_but_not_instances_and_buckets(tmp_path: Path) -> None:
    def one(pod: str, code: str, rate: float, name: str = "requests_total") -> Any:
        labels = {"__name__": name, "pod": pod, "code": code}
        return labels, every(10, [rate * k for k in range(4)])

    buckets = [
        ({"__name__": "t_bucket", "pod": "a", "le": le}, every(10, [n, n, 2 * n, 3 * n]))
        for le, n in (("0.1", 1), ("+Inf", 4))
    ]
    answer = matrix(one("a", "200", 30), one("a", "500", 3), one("b", "200", 50), *buckets)
    found = prometheus(tmp_path, answer)
    assert found.run_ids == ("api-a", "api-b")
    assert found.notes[0] == "2 instances are runs of their own"
    np.testing.assert_allclose(found.of("api-a")["requests_total"], [33, 33, 33])
    np.testing.assert_allclose(found.of("api-a")["t_bucket_+Inf"], [0, 4, 4])
    np.testing.assert_allclose(found.of("api-b")["requests_total"], [50, 50, 50])
    (all_in_one,) = prometheus(
        tmp_path, answer, instance=(), per=("code",), metric=("requests_total",)
    )
    assert set(all_in_one.counters) == {"requests_total_200", "requests_total_500"}
    np.testing.assert_allclose(all_in_one["requests_total_200"], [80, 80, 80])


def test_an_instance_that_comes_later_adds_from_then_on(tmp_path: Path) -> None:
    answer = matrix(
        ({"__name__": "x_total", "job": "1"}, every(10, [0, 5, 10, 15, 20])),
        ({"__name__": "x_total", "job": "2"}, every(10, [0, 1, 2], DAY + 20)),
    )
    (one,) = prometheus(tmp_path, answer, instance=())
    np.testing.assert_allclose(one["x_total"], [5, 5, 6, 6])


def test_parts_in_several_files_are_one_series(tmp_path: Path) -> None:
    readings = every(15, [0, 15, 30, 45, 60])
    files = []
    for number, part in enumerate((readings[:3], readings[2:])):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(matrix(({"__name__": "x_total"}, part))))
    (one,) = PrometheusImport(tuple(map(str, files)), "api", "prod").read()
    np.testing.assert_allclose(one["x_total"], [15, 15, 15, 15])


def test_days_and_hours_of_a_zone(tmp_path: Path) -> None:
    readings = every(3600, [3600 * k for k in range(73)])
    answer = matrix(({"__name__": "x_total"}, readings))
    found = prometheus(tmp_path, answer, cut="day")
    assert found.run_ids == tuple(f"api-2026-01-0{k}" for k in (1, 2, 3))
    assert [len(one) for one in found] == [24, 24, 24]
    berlin = prometheus(tmp_path, answer, cut="day", zone="Europe/Berlin")
    assert [len(one) for one in berlin] == [23, 24, 24, 1]
    first = next(iter(berlin))
    assert first.time_seconds[0] == pytest.approx(7200)  # midnight there was an hour before
    # A cut between two readings divides what was counted by time.
    odd = prometheus(tmp_path, answer, cut="90m")
    for one in odd:
        np.testing.assert_allclose(one["x_total"], one.interval_seconds)


def test_requests_are_runs_that_end(tmp_path: Path) -> None:
    requests = tmp_path / "requests.csv"
    requests.write_text(
        "begin,end\n2026-01-01T00:00:23Z,2026-01-01T00:01:10Z\n1767225640,1767225700\n"
    )
    answer = matrix(({"__name__": "x_total"}, every(10, [10 * k for k in range(20)])))
    found = prometheus(tmp_path, answer, requests=requests)
    assert [one.runtime_seconds for one in found] == [47, 60]
    for one in found:
        assert one["x_total"].sum() == pytest.approx(one.runtime_seconds)
    requests.write_text("begin,end\n5,4\n")
    with pytest.raises(BadData, match="do not end after they begin"):
        prometheus(tmp_path, answer, requests=requests)


def test_an_hour_that_the_clock_has_twice_is_told_by_the_order_of_lines_or_noted(
    tmp_path: Path,
) -> None:
    zone, night = ZoneInfo("Europe/Berlin"), 1792882800.0  # 01:00 there; 02:00 comes twice
    clock = [datetime.fromtimestamp(night + 600 * k, zone) for k in range(24)]
    rows = [f"{moment:%Y-%m-%d %H:%M},{600 * k}\n" for k, moment in enumerate(clock)]
    for some, unsure in ((rows, 0), (rows[:10], 4), (rows[12:], 6), (rows[10:14], 0)):
        found = table(tmp_path, "time,x_total\n" + "".join(some), zone="Europe/Berlin")
        seconds = sum(one["x_total"].sum() for one in found)
        assert unsure == 6 or seconds == 600 * (len(some) - 1)
        told = [note for note in found.notes if "has twice" in note]
        assert [note.split()[0] for note in told] == ([str(unsure)] if unsure else [])
    requests = tmp_path / "requests.csv"
    requests.write_text(
        "begin,end\n2026-10-25 02:50,2026-10-25 02:10\n2026-10-25 02:10,2026-10-25 02:20\n"
    )
    answer = matrix(({"__name__": "x_total"}, every(600, list(range(24)), night)))
    found = prometheus(tmp_path, answer, requests=requests, zone="Europe/Berlin")
    assert [one.runtime_seconds for one in found] == [1200, 600]
    assert any(note.startswith("1 readings and requests") for note in found.notes)


@pytest.mark.parametrize("form", ["{0}", "{0}000", "{0}000000000", "iso"])
def test_columns_with_times_of_any_kind(tmp_path: Path, form: str) -> None:
    iso = [f"2026-01-01T00:00:{s:02d}+00:00" for s in (0, 10, 20)]
    times = iso if form == "iso" else [form.format(DAY + s) for s in (0, 10, 20)]
    rows = zip(times, ("0", "40", "10"), ("1.5", "", "2.5"), ("7", "8", "9"), strict=True)
    text = "timestamp,x_total,load,seen\n" + "\n".join(",".join(row) for row in rows)
    (one,) = table(tmp_path, text, count=("seen",))
    np.testing.assert_allclose(one.time_seconds, [10, 20])
    np.testing.assert_allclose(one["x_total"], [40, 10])
    np.testing.assert_allclose(one["load_level"], [np.nan, 2.5])
    np.testing.assert_allclose(one["seen"], [8, 9])


def test_a_column_of_runs(tmp_path: Path) -> None:
    text = "time,request,work_total\n0,a,0\n1,a,5\n2,a,9\n1,b,0\n2,b,7\n"
    found = table(tmp_path, text, run="request", whole=True, cut=None)
    assert found.run_ids == ("api-a", "api-b")
    np.testing.assert_allclose(found.of("api-a")["work_total"], [5, 4])
    assert found.of("api-b").runtime_seconds == 1


def test_files_are_instances_by_their_names_or_paths(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one/a.csv", "two/a.csv", "two/b.csv")]
    for number, file in enumerate(files):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"time,x_total\n0,0\n1,{number}\n")
    found = SeriesImport(tuple(files), "api", "prod").read()
    counted = {one.run_id: one["x_total"].tolist() for one in found}
    assert counted == {f"api-{files[0]}": [0], f"api-{files[1]}": [1], "api-b": [2]}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"status": "error", "error": "bad query"}, "bad query"),
        ({"status": "success", "data": {"resultType": "vector", "result": []}}, "a vector"),
        (matrix(), r"no series\D*Ask for a time"),
        (matrix(({"__name__": "x"}, [])), "no readings"),
        (matrix(({"__name__": "x"}, [(DAY, 1)])), "no run has a sample"),
        (matrix(({"__name__": "x"}, [(float("nan"), 1), (DAY, 1)])), "not finite"),
        (matrix(({"__name__": "x"}, [(DAY, 1), (DAY, 2)])), "two values"),
        (matrix(({"__name__": "x_total"}, every(1, [5, 1] * 9))), "not a running total"),
        (
            matrix(
                ({"__name__": "x"}, every(10, [5, 1] * 9)),
                ({"__name__": "y"}, [(DAY - 1e8, 1), *every(10, [2, 3, 4])]),
            ),
            "22 readings 10 s apart lie 1e\\+08 s from first to last",
        ),
    ],
)
def test_odd_answers_are_named(tmp_path: Path, document: object, told: str) -> None:
    with pytest.raises(BadData, match=told):
        prometheus(tmp_path, document)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("time,x\n1,2\n1,3\n", "stands twice"),
        ("time,x\n1,2\nsoon,3\n", "is not a valid time"),
        ("time,x\n1,2\n2,3,4\n", "line 3 has 3 cells"),
        ("time,x,x\n1,2,2\n", "more than once"),
        ("time,x\n1,b\n2,c\n", "no column of numbers"),
    ],
)
def test_odd_tables_are_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(JostleError, match=told):
        table(tmp_path, text)


def test_odd_options_are_refused(tmp_path: Path) -> None:
    answer = matrix(({"__name__": "x_total"}, every(15, [0, 1, 2])))
    for options in ({"cut": "fortnight"}, {"zone": "Mars/Base"}, {"query": ("x",)}):
        with pytest.raises(UsageError):
            prometheus(tmp_path, answer, **options)
    with pytest.raises(BadData, match="no series has the label"):
        prometheus(tmp_path, answer, instance=("pod",))
    twice = tmp_path / "twice.csv"
    twice.write_text("time,x\n1,2\n2,3\n")
    with pytest.raises(UsageError, match="given twice"):
        SeriesImport((twice, twice), "api", "prod").read()
    with pytest.raises(UnknownName):
        table(tmp_path, "time,x\n1,2\n2,3\n", column=("y",))


class _Answers(BaseHTTPRequestHandler):
    asked: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        words = {key: value[0] for key, value in parse_qs(text).items()}
        self.asked.append(words)
        times = np.arange(float(words["start"]), float(words["end"]) + 1e-6, float(words["step"]))
        body = json.dumps(matrix(({}, [(t, t - DAY) for t in times.tolist()]))).encode()
        if words["query"] == "broken":
            body = json.dumps({"status": "error", "error": "parse error"}).encode()
        if words["query"] in ("page", "refused"):
            body = b"<html>"
        self.send_response({"broken": 400, "refused": 401}.get(words["query"], 200))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    served = HTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    thread.join()
    served.server_close()


def test_a_server_is_asked_in_parts(server: str) -> None:
    importer = PrometheusImport(
        (server,), "api", "prod", query=("work=sum(x_total)",), total=("work",), start="-12h"
    )
    _Answers.asked.clear()
    (one,) = PrometheusImport(
        (server,), "api", "prod", query=importer.query, total=("work",), start="-12h", step="4s"
    ).read(now_seconds=DAY + 43200.0)
    assert len(_Answers.asked) == 2
    assert {words["query"] for words in _Answers.asked} == {"sum(x_total)"}
    np.testing.assert_allclose(one["work"], 4)
    assert len(one) == 10800
    (one,) = PrometheusImport(
        (server,), "api", "prod", query=("x",), start="-40000s", step="4s"
    ).read(now_seconds=DAY + 40000.0)
    assert len(one) == 10_000  # the last reading is asked for alone
    for query, why in {
        "broken": "parse error", "page": "not JSON", "refused": "it answers 401 Unauthorized"
    }.items():  # fmt: skip
        with pytest.raises(JostleError, match=why):
            PrometheusImport((server,), "api", "prod", query=(query,)).read()
    for start, end in (("now", "now"), ("-1h", "-2h")):
        with pytest.raises(UsageError, match="is empty"):
            PrometheusImport((server,), "api", "prod", query=("x",), start=start, end=end).read()
    with pytest.raises(UsageError, match="nothing is asked"):
        PrometheusImport((server,), "api", "prod").read()
    with pytest.raises(NotPermitted, match="does not answer"):
        PrometheusImport(("http://127.0.0.1:9",), "api", "prod", query=("x",)).read()


def test_from_files_to_a_forecast_by_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(0)
    times = DAY + 1800.0 * np.arange(10 * 48 + 1)
    busy = 10 + 5 * (np.sin(2 * np.pi * times / 86400) > 0)
    counts = np.r_[0, np.cumsum(1800 * busy[:-1] * random.uniform(0.9, 1.1, len(busy) - 1))]
    counts[200:] -= counts[199]  # the service began anew
    answer = matrix(
        ({"__name__": "requests_total"}, list(zip(times.tolist(), counts.tolist(), strict=True))),
        ({"__name__": "memory_bytes"}, [(t, 1e9 * b) for t, b in zip(times, busy, strict=True)]),
    )
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(answer))
    words = ["--workload", "api", "--platform", "prod", "--cut", "day"]
    words += ["-o", str(tmp_path / "days")]
    assert exit_code(["import", "--kind=prometheus", str(file), *words]) == 0
    assert "began anew 1 times" in capsys.readouterr().err
    assert len(read_traces(tmp_path / "days")) == 10
    asked = ["forecast", str(tmp_path / "days"), "--at", "21600", "--at", "64800"]
    assert exit_code([*asked, "--limit", "requests_total=12.5", "--json"]) == 0
    day, night = json.loads(capsys.readouterr().out)["answers"]
    assert day["exceedance_ratio"] > 0.9
    assert night["exceedance_ratio"] < 0.1
    assert day["components"]["memory_bytes_level"]["mean_per_second"] == pytest.approx(15e9)
