"""A service's load is a covariate of its windows: in runs, models and limits, through the calls of a user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.data import Dataset, PrometheusImport, SeriesImport, Traces, read_traces
from jostle.data.read._watched_runs import watched_runs
from jostle.errors import BadData, UnknownName
from tests.packages.data.traces.services_samples import DAY, every, matrix
from tests.plain_traces import plain_trace

STEP, HOURS = 60, 60
LOADS = np.tile([10.0, 20.0, 40.0], HOURS // 3)  # requests a second, an hour each


def service(tmp_path: Path) -> Path:
    """Of each hour 1 GB and 10 MB for each request a second at its most; nothing is read of the last five
    minutes of the day's end."""
    rate = np.repeat(LOADS, 3600 // STEP)
    total = np.concatenate([[0.0], np.cumsum(rate * STEP)])
    wave = np.tile(np.linspace(0.5, 1.0, 3600 // STEP), HOURS)
    memory = np.concatenate([[1e9], (1e9 + 1e7 * rate) * wave])
    file = tmp_path / "service.json"
    pod = {"pod": "web-0"}
    answer = matrix(
        ({"__name__": "container_memory_working_set_bytes", **pod}, every(STEP, memory.tolist())),
        ({"__name__": "http_requests_total", "service": "web"}, every(STEP, total[:-5].tolist())),
    )
    file.write_text(json.dumps(answer))
    return file


def imported(tmp_path: Path, *words: str) -> Path:
    out = tmp_path / "web"
    base = ["import", str(service(tmp_path)), "--kind", "prometheus", "--workload", "web"]
    rest = ["--platform", "p", "--cut", "hour", "--instance", "pod", "-o", str(out)]
    load = ["--covariate", "requests_per_second=http_requests_total"]
    assert exit_code([*base, *rest, *load, *words]) == 0
    return out


def test_windows_become_runs_with_their_load_and_peak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = imported(tmp_path)
    said = capsys.readouterr()
    assert f"{HOURS} runs" in said.out
    assert "the mean rate a second of http_requests_total" in said.err
    runs = Dataset(out).read()
    assert runs.unknown_corunners.all()  # nobody said who else ran there
    np.testing.assert_allclose(runs.runtime_seconds, 3600)
    np.testing.assert_allclose(runs.covariates["requests_per_second"], LOADS)
    np.testing.assert_allclose(runs.peak_memory_bytes, 1e9 + 1e7 * LOADS)
    assert runs.table.column("measured_at").to_pylist()[1].timestamp() == DAY + 3600
    traces = read_traces(out)
    assert traces.counters == ("container_memory_working_set_bytes_level",)
    assert set(traces.run_ids) == set(runs.table.column("run_id").to_pylist())


def test_what_is_not_known_of_a_run_is_null() -> None:
    """Its peak where nothing of its memory was read, and when it ran where times count from a start."""
    whole = [1e9, 2e9]
    read = [{"rss_bytes_level": whole}, {"rss_bytes_level": [np.nan] * 2, "n": whole}, {"n": whole}]
    made = [plain_trace(counters, 0.1, run_id=f"r{n}") for n, counters in enumerate(read)]
    traces = Traces.from_traces(made)
    for begin, is_known in ((100.0, False), (1e9, True)):
        begins = dict.fromkeys(traces.run_ids, begin)
        runs = watched_runs(traces, begins, {"n": "n"}, "here", knows_corunners=True).runs
        assert runs is not None
        assert runs.table.column("peak_memory_bytes").to_pylist() == [2e9, None, None]
        assert (runs.table.column("measured_at").null_count == 0) == is_known


def test_a_limit_turns_on_the_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = imported(tmp_path)
    found = {}
    for load in (10, 20, 40):
        capsys.readouterr()
        words = ["limit", str(out), "--set", f"requests_per_second={load}", "--json"]
        assert exit_code(words) == 0
        (one,) = json.loads(capsys.readouterr().out)["items"]
        found[load] = one["memory"]["request"]
        assert found[load] >= 1e9 + 1e7 * load  # the peaks have no noise: never below them
    assert found[10] < found[20] < found[40]
    assert exit_code(["limit", str(out), "--set", "requests=1"]) == 4
    assert "Known: requests_per_second" in capsys.readouterr().err


def table(tmp_path: Path) -> tuple[Path, Path, np.ndarray]:
    """(readings, requests, load of each): a request takes 5 s, and 1 s for each other in flight."""
    load = np.random.default_rng(0).integers(1, 20, 80)
    seconds = 5 + load
    ends = np.cumsum(seconds + 5.0)
    begins = ends - seconds
    clock = np.arange(0.0, ends[-1] + 5, 0.5)
    flying = np.zeros(len(clock))
    for begin, end, value in zip(begins, ends, load, strict=True):
        flying[(clock > begin) & (clock <= end)] = value
    file, asked = tmp_path / "load.csv", tmp_path / "requests.csv"
    lines = [f"{DAY + t:.1f},{v:g},{1e9 + v:g}" for t, v in zip(clock, flying, strict=True)]
    file.write_text("time,in flight,mem\n" + "\n".join(lines) + "\n")
    spans = [f"{DAY + b:.1f},{DAY + e:.1f}" for b, e in zip(begins, ends, strict=True)]
    asked.write_text("begin,end\n" + "\n".join(spans) + "\n")
    return file, asked, load


def test_requests_take_longer_at_a_load_that_predict_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, asked, load = table(tmp_path)
    out, model = tmp_path / "web", tmp_path / "model"
    words = ["import", str(file), "--kind", "series", "--workload", "web", "--platform", "p"]
    words += ["--requests", str(asked), "--covariate", "load=in flight", "--beside", "none"]
    assert exit_code([*words, "-o", str(out)]) == 0
    runs = Dataset(out).read()
    assert not runs.unknown_corunners.any()
    np.testing.assert_allclose(runs.covariates["load"], load)
    np.testing.assert_allclose(runs.runtime_seconds, 5 + load)
    np.testing.assert_allclose(runs.peak_memory_bytes, 1e9 + load)
    assert exit_code(["fit", str(out), "-o", str(model)]) == 0
    told = []
    for value in (2, 18):
        capsys.readouterr()
        code = exit_code(["predict", str(model), "-w", "web", "--set", f"load={value}", "--json"])
        assert code in (0, 3)
        (one,) = json.loads(capsys.readouterr().out)["items"]
        told.append(one["runtime_seconds"])
    assert told == pytest.approx([7, 23], rel=0.15)


def test_covariates_are_of_whole_runs_and_of_series_that_are_there(tmp_path: Path) -> None:
    shared: dict[str, Any] = {"covariate": ("load=http_requests_total",)}
    file = (str(service(tmp_path)),)
    with pytest.raises(BadData, match="no run is whole"):
        PrometheusImport(file, "web", "p", **shared).read()
    with pytest.raises(UnknownName, match="unknown series 'http_request_total'"):
        PrometheusImport(file, "web", "p", covariate=("load=http_request_total",)).read()
    readings, asked, _ = table(tmp_path)
    with pytest.raises(UnknownName, match="Did you mean in flight"):
        SeriesImport((readings,), "web", "p", requests=asked, covariate=("in_flight",)).read()
