"""Series that are sums of others or told twice, devices that nobody names, units, windows cut at a day."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.data import PrometheusImport, SeriesImport, WindowsImport
from jostle.errors import BadData, UsageError

BEGIN = 1_764_230_400
STEP = 15
POD = {"namespace": "n", "pod": "web-0", "node": "w1", "id": "/kubepods/p/b", "container": "web"}


def answer(path: Path, *series: tuple[str, dict[str, str], Any]) -> Path:
    result = [
        {
            "metric": {"__name__": name, **labels},
            "values": [[BEGIN + STEP * i, str(value)] for i, value in enumerate(values)],
        }
        for name, labels, values in series
    ]
    path.write_text(json.dumps({"data": {"resultType": "matrix", "result": result}}), "utf-8")
    return path


@pytest.mark.parametrize(
    ("other", "is_left_out"),
    [
        ({"container": "POD", "id": "/kubepods/p/a"}, True),
        ({"container": "", "id": "/kubepods/p"}, True),
        ({"container": None, "id": "/kubepods/p"}, True),
        ({"container": None, "id": None}, True),
        ({"container": None, "pod": None, "id": "/kubepods"}, True),
        ({"container": None, "pod": None, "id": "/"}, True),
        ({"service": "another-kubelet"}, True),
        ({"job": "another"}, True),
        ({"container": "proxy", "id": "/kubepods/p/c"}, False),
    ],
)
def test_what_is_told_twice_or_is_a_sum_is_not_added(
    other: dict[str, str | None], is_left_out: bool, tmp_path: Path
) -> None:
    values = [1e9 + 1e6 * i for i in range(40)]
    labels = {key: value for key, value in (POD | other).items() if value is not None}
    name = "container_memory_working_set_bytes"
    file = answer(tmp_path / "a.json", (name, POD, values), (name, labels, values))
    found = PrometheusImport((str(file),), "w", "p", instance=()).read()
    (trace,) = found
    added = 1 if is_left_out else 2
    np.testing.assert_allclose(trace.counters[f"{name}_level"], added * np.array(values[1:]))
    assert any("left out" in note for note in found.notes) == is_left_out


def test_a_total_is_not_added_to_its_parts(tmp_path: Path) -> None:
    parts = [("cpu_seconds_total", {"cpu": f"cpu0{n}"}, np.arange(40.0)) for n in range(2)]
    whole = ("cpu_seconds_total", {"cpu": "total"}, 2 * np.arange(40.0))
    file = answer(tmp_path / "a.json", *parts, whole)
    (trace,) = PrometheusImport((str(file),), "w", "p").read()
    np.testing.assert_allclose(trace.counters["cpu_seconds_total"], 2.0)


def test_windows_cut_at_a_time_that_was_watched_are_whole(tmp_path: Path) -> None:
    file = answer(tmp_path / "a.json", ("x", {}, np.ones(4 * 60 + 1)))
    traces = PrometheusImport((str(file),), "w", "p", cut="15m").read()
    assert [one.runtime_seconds for one in traces] == [900.0] * 4
    early = answer(tmp_path / "b.json", ("x", {}, np.ones(4 * 52 + 1)))
    times = [
        one.runtime_seconds for one in PrometheusImport((str(early),), "w", "p", cut="15m").read()
    ]
    assert times[:3] == [900.0] * 3
    assert np.isnan(times[3])


def served(labels: dict[str, str], metric: str, each: float, n: int = 121) -> list[Any]:
    """60 requests a minute that take `each` in the metric's unit."""
    count = 15.0 * np.arange(n)
    return [(f"{metric}_count", labels, count), (f"{metric}_sum", labels, each * count)]


CHAT, CODE = {"model_name": "chat", "pod": "chat-0"}, {"model_name": "code", "pod": "code-0"}
GAUGE = "DCGM_FI_DEV_GPU_UTIL"


@pytest.mark.parametrize(
    ("labels", "named", "unknown"),
    [
        ({"gpu_uuid": "GPU-1"}, (), False),
        ({"instance": "10.0.0.1:80"}, (), True),
        ({}, (), True),
        ({}, ("chat-0", "code-0"), False),
        ({}, ("chat-0",), True),
    ],
)
def test_alone_is_who_is_known_to_be(
    labels: dict[str, str], named: tuple[str, ...], unknown: bool, tmp_path: Path
) -> None:
    metric = "vllm:time_to_first_token_seconds"
    series = [one for who in (CHAT, CODE) for one in served(who | labels, metric, 0.1)]
    series += [(GAUGE, {"UUID": "GPU-1", "exported_pod": pod}, np.ones(121)) for pod in named]
    file = answer(tmp_path / "a.json", *series)
    found = WindowsImport((file,), "a100").read()
    assert found.runs.unknown_corunners.tolist() == [unknown] * len(found.runs)
    assert set(found.runs.table.column("workload").to_pylist()) == {"chat at 1/s", "code at 1/s"}
    np.testing.assert_allclose(found.runs.runtime_seconds, 0.1)
    np.testing.assert_allclose(found.runs.covariates["requests_per_second"], 1.0)
    assert "service from label model_name" in found.understood[-1 - bool(unknown and not named)]


@pytest.mark.parametrize(
    ("metric", "each"),
    [
        ("x_us", 1e5),
        ("x_ms", 100.0),
        ("x_milliseconds", 100.0),
        ("x_seconds", 0.1),
        ("x_latency_us", 1e5),
    ],
)
def test_the_unit_of_a_latency_is_that_of_its_name(
    metric: str, each: float, tmp_path: Path
) -> None:
    file = answer(tmp_path / "a.json", *served(CHAT | {"gpu_uuid": "g"}, metric, each))
    np.testing.assert_allclose(
        WindowsImport((file,), "p", latency=metric).read().runs.runtime_seconds, 0.1
    )


def test_a_unit_that_no_name_says_is_asked_for(tmp_path: Path) -> None:
    file = answer(tmp_path / "a.json", *served(CHAT | {"gpu_uuid": "g"}, "latency", 100.0))
    with pytest.raises(UsageError, match="says no unit"):
        WindowsImport((file,), "p", latency="latency").read()
    runs = WindowsImport((file,), "p", latency="latency", unit="ms").read().runs
    np.testing.assert_allclose(runs.runtime_seconds, 0.1)


def test_buckets_without_their_last_are_read_by_the_count(tmp_path: Path) -> None:
    labels, count = CHAT | {"gpu_uuid": "g"}, 15.0 * np.arange(121)
    series = [
        *served(labels, "x_seconds", 0.1),
        *(
            ("x_seconds_bucket", labels | {"le": le}, share * count)
            for le, share in (("0.1", 0.5), ("0.2", 1.0))
        ),
    ]
    file = answer(tmp_path / "a.json", *series)
    runs = WindowsImport((file,), "p", latency="x_seconds", quantile=0.75).read().runs
    np.testing.assert_allclose(runs.runtime_seconds, 0.15)


SMI = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"


@pytest.mark.parametrize(
    ("head", "row", "name", "factor"),
    [
        (SMI, "2026/01/27 08:00:{:02d}.123, 0, 60 %, {} MiB", "memory.used_bytes", 2**20),
        (SMI, "2026/01/27 08:00:{:02d}.123, 0, [N/A], {}", "memory.used_bytes", 2**20),
        ("", SMI + "2026/01/27 08:00:{:02d}.123, 0, [N/A], {}", "memory.used_bytes", 2**20),
        ('sep=;\n"Time";"mem"\n', "27.01.2026 08:00:{:02d};{},0", "mem", 1),
        ("date,time,mem\n", "2026-01-27,08:00:{:02d},{}", "mem", 1),
        (
            "Linux 6 (h)\n\n# Time   PID    RSS  Command\n",
            "11:59:{:02d} PM  7  {}  a b\nAverage:  7  1  a",
            "RSS_bytes",
            1024,
        ),
        ("# Elapsed time   CPU (%)     Real (MB)\n", "{}.5   60.0   {}.0", "Real_bytes", 2**20),
        ("time,name,mem\n", "2026-01-27 08:00:{:02d},web,{}GiB / 1000GiB", "mem", 2**30),
        (
            "Linux 5 (h)\n\n#      Time   PID    RSS  Command\n",
            " 17642304{:02d}  7  {}  a b",
            "RSS_bytes",
            1024,
        ),
        (
            '"Dstat 0.7"\n"epoch","memory usage",\n"epoch","used","free"\n',
            "17642304{:02d}.5,{},1",
            "used",
            1,
        ),
    ],
)
def test_what_other_tools_print_is_a_series(
    head: str, row: str, name: str, factor: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(head + "".join(row.format(n, 10 + n) + "\n" for n in range(20)), "utf-8")
    (trace,) = SeriesImport((path,), "w", "p").read()
    np.testing.assert_allclose(trace.counters[f"{name}_level"], factor * (10.0 + np.arange(1, 20)))
    np.testing.assert_allclose(np.diff(trace.time_seconds), 1.0)


@pytest.mark.parametrize("column", ["pci.bus_id", "card"])
def test_what_tells_readings_of_one_time_apart_is_found(column: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    end = "0" if column == "pci.bus_id" else "x"  # which may be read as a time of day
    rows = (f"{n},{5 * n},00000000:0{k}:00.{end},{n}\n" for n in range(5) for k in (1, 2))
    path.write_text(f"time,a,{column},b\n" + "".join(rows))
    assert len(SeriesImport((path,), "w", "p").read()) == 2


def test_a_clock_without_days_goes_on_over_midnight(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    clock = ("11:59:59 AM", "12:00:00 PM", "11:59:59 PM", "12:00:00 AM", "12:00:01 AM")
    path.write_text("time,a\n" + "".join(f"{time},1\n" for time in clock))
    (trace,) = SeriesImport((path,), "w", "p").read()
    assert trace.interval_seconds.tolist()[-2:] == [1.0, 1.0]


def test_cells_that_say_why_they_are_empty_and_units_in_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{1764230400 + n}, {n}, {50 + n}.5 W, {n} ms\n" for n in range(5)]
    rows[2] = "1764230402, 2, [Unknown Error], [N/A]\n"
    path.write_text("timestamp, index, power.draw [W], wait (ms)\n" + "".join(rows))
    (trace,) = SeriesImport((path,), "w", "p").read()
    assert trace.counters["power.draw_watts_level"].tolist()[:1] == [51.5]
    assert np.isnan(trace.counters["power.draw_watts_level"][1])
    np.testing.assert_allclose(trace.counters["wait_seconds_level"][[0, 2]], [1e-3, 3e-3])


def test_a_column_that_may_be_read_in_two_ways_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time;ok;rss\n1764230400;1;1,200\n1764230401;2;1,300\n")
    with pytest.raises(BadData, match=r"rss: '1,200' in line 2 .* may be 1.234 or 1234"):
        SeriesImport((path,), "w", "p").read()


def test_lines_of_json_and_times_in_digits_are_a_series(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(f'{{"time": "2026012708000{n}", "Mem": "{n}MiB / 9GiB"}}\n' for n in range(4))
    )
    (trace,) = SeriesImport((path,), "w", "p").read()
    np.testing.assert_allclose(trace.counters["Mem_level"], 2**20 * np.arange(1.0, 4.0))
    np.testing.assert_allclose(trace.interval_seconds, 1.0)
    path.write_text("Linux 6 (h)\n\n08:00:01 AM  UID  PID  %usr\n08:00:02 AM  0  1  2\n")
    with pytest.raises(BadData, match="pidstat -hH"):
        SeriesImport((path,), "w", "p").read()
