"""Requests of a log: found, replayed, written for other tools, and asked on the command line."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

import jostle
from jostle.cli import exit_code
from jostle.data import Dataset, MadeOfLog, Runs
from jostle.errors import NotEnoughRuns, UnknownName, UsageError
from jostle.operations import RequestQuestion, log_report, requests_of, written

NAMES = ("NF:ALIGN", "it's", "COUNT")


def a_log(n: int = 60, **columns: Any) -> Runs:
    """Three workloads: one grows with its input, one always needs 2 GB, one was never seen to its end."""
    random = np.random.default_rng(0)
    names = np.array([NAMES[i % 3] for i in range(n)])
    size = np.exp(0.7 * random.standard_normal(n)) * 1e9
    peak = np.where(
        names == NAMES[0], 1e9 + 2 * size, 2e9 * np.exp(0.01 * random.standard_normal(n))
    )
    status = ["failed" if name == NAMES[2] else "ok" for name in names]
    made = {
        "workload": names.tolist(),
        "platform": ["node"] * n,
        "runtime_seconds": [None if s == "failed" else 600.0 for s in status],
        "status": status,
        "reason": ["lost" if s == "failed" else None for s in status],
        "measured_at": pa.array(np.arange(n) * 1_000_000_000, pa.timestamp("us", tz="UTC")),
        "covariates": ["input_bytes"],
        "input_bytes": size,
        "peak_memory_bytes": peak,
        "requested_memory_bytes": np.full(n, 16e9),
    }
    return Runs.from_columns(**(made | columns))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    Dataset(folder).write(a_log())
    return folder


def test_what_is_requested_follows_what_the_runs_needed(dataset: Path) -> None:
    found = {one.workload: one for one in jostle.limit(dataset).items}
    same, lost = found[NAMES[1]], found[NAMES[2]]
    assert same.memory is not None
    assert 2.0e9 < same.memory.request < 2.1e9
    assert same.time is not None
    assert 600 <= same.time.request < 660
    # Nothing of it has ended well: what is requested now, and how likely it needs more nobody knows.
    assert lost.memory is not None
    assert (lost.memory.rule, lost.memory.request, lost.memory.runs) == ("requested", 16e9, 0)
    assert np.isnan(lost.memory.over_ratio)
    assert lost.time is None
    big = jostle.limit(dataset, values={"input_bytes": 6e9}).items[1]
    assert big.workload == NAMES[0]
    assert big.memory is not None
    assert 13e9 <= big.memory.request < 16e9
    with pytest.raises(UnknownName, match="covariate"):
        jostle.limit(dataset, values={"nothing": 1.0})


def test_a_bound_instead_is_the_best_that_few_runs_have(dataset: Path) -> None:
    found = {one.workload: one.memory for one in jostle.limit(dataset, confidence=0.99).items}
    same = found[NAMES[1]]
    assert same is not None
    # Twenty runs: 20 / 21; as their order may tell of a trend, hardly more than the largest.
    assert (same.rule, same.confidence) == ("bound", 0.9523)
    largest = a_log().peak_memory_bytes[1::3].max()
    assert largest <= same.request < 1.01 * largest


def test_only_workloads_with_runs_since(dataset: Path) -> None:
    assert jostle.limit(dataset, since="1970-01-01T16:23").items[0].workload == NAMES[2]
    assert len(jostle.limit(dataset, since="1970-01-01T16:06").items) == 2
    with pytest.raises(UsageError, match="since"):
        jostle.limit(dataset, since="yesterday")


def test_a_log_without_peaks_or_starts() -> None:
    unknown = {
        name: pa.nulls(60, pa.float64()) for name in ("peak_memory_bytes", "requested_memory_bytes")
    }
    timed = requests_of(a_log(**unknown))
    assert [one.memory for one in timed.items] == [None] * 3
    assert timed.items[2].time is not None
    assert "times only" in timed.report().notes[0]
    with pytest.raises(NotEnoughRuns, match="needed"):
        requests_of(a_log(**unknown).take(np.arange(60) % 3 == 2))
    unordered = requests_of(a_log(measured_at=None))
    assert unordered.items[2].memory is not None


def test_deaths_raise_what_is_requested() -> None:
    peaks = np.full(20, 2e9)
    status = ["out_of_memory" if i % 2 else "ok" for i in range(20)]
    died = a_log(
        20,
        workload=["a"] * 20,
        status=status,
        reason=[None if s == "ok" else "killed" for s in status],
        runtime_seconds=[600.0 if s == "ok" else None for s in status],
        peak_memory_bytes=peaks,
        requested_memory_bytes=peaks,
    )
    told = requests_of(died).items[0].memory
    assert told is not None
    assert told.request > 2.5e9


def test_where_every_run_died_no_bound_is_made_and_what_is_requested_stands() -> None:
    peaks = np.full(12, 2e9)
    died = a_log(
        12,
        workload=["a"] * 12,
        status=["out_of_memory"] * 12,
        reason=["killed"] * 12,
        runtime_seconds=[None] * 12,
        peak_memory_bytes=peaks,
        requested_memory_bytes=peaks,
    )
    told = requests_of(died, RequestQuestion(confidence=0.9))
    memory = told.items[0].memory
    assert memory is not None
    assert (memory.rule, memory.request, memory.confidence) == ("requested", 2e9, None)
    assert not told.report().notes


def test_a_replay_prices_every_rule(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["evaluate", "limits", str(dataset), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "evaluate-limits/v1"
    # By hand: each run after the largest that had ended, twice as much where it died.
    log = a_log()
    waste = 0.0
    for name in NAMES[:2]:
        seen: list[float] = []
        mine = np.array(log.table.column("workload").to_pylist()) == name
        for peak in log.peak_memory_bytes[mine] / 1e9:
            request = max(seen, default=16.0)
            while request < peak:
                waste += request / 6
                request *= 2
            waste += (request - peak) / 6
            seen.append(peak)
    assert told["waste_largest_seen_gbh"] == pytest.approx(waste)
    assert told["waste_jostle_gbh"] < min(waste, told["waste_largest_seen_x1.2_gbh"])
    assert told["failures_requested_ratio"] == 0
    assert told["asked"] == 40
    assert "both_waste_jostle_price" in told
    assert "time_waste_requested_hours" not in told  # nothing says what time was requested
    assert exit_code(["evaluate", "limits", str(dataset)]) == 0
    assert "wasted GB-hours" in capsys.readouterr().out
    assert exit_code(["evaluate", "limits", str(dataset), "--retry", "none"]) == 2
    assert "--hour-price" in capsys.readouterr().err


def test_the_command_writes_for_other_tools(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["limit", str(dataset)]) == 0
    assert "NF:ALIGN" in capsys.readouterr().out
    assert exit_code(["limit", str(dataset), "--format", "slurm"]) == 0
    first, second, _ = (shlex.split(line) for line in capsys.readouterr().out.splitlines())
    assert first[:2] == ["sbatch", "--job-name=COUNT"]
    assert first[2:] == [f"--mem={-(-16 * 10**9 // 2**20)}M"]
    assert second[3] == "--time=11"
    assert exit_code(["limit", str(dataset), "--format", "kubernetes"]) == 0
    # No container can have a name with capitals, a colon or a quote.
    assert all(line.startswith("# ") for line in capsys.readouterr().out.splitlines())
    assert exit_code(["limit", str(dataset), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "requests/v1"
    assert exit_code(["limit", str(dataset.parent / "nowhere")]) == 4


@pytest.mark.parametrize("retry", ["x2", "max", "none"])
def test_a_configuration_of_nextflow(dataset: Path, retry: Any) -> None:
    found = requests_of(dataset, RequestQuestion(retry, hour_price=1.0))
    text = written(found, "nextflow")
    assert text.count("{") == text.count("}")
    assert "withName: 'NF:ALIGN' {" in text
    assert r"withName: 'it\\\'s' {" in text
    assert ("maxRetries" in text) == (retry != "none")
    assert ("2 ** (task.attempt - 1)" in text) == (retry == "x2")
    # Elements spread into a list are no part of the language that Nextflow 26 reads.
    assert not re.search(r"[\[,(]\s*\*", text)


def test_patches_of_containers() -> None:
    log = a_log(workload=[("web/align-1", "Align", "b" * 64)[i % 3] for i in range(60)])
    told = [one for one in yaml.safe_load_all(written(requests_of(log), "kubernetes")) if one]
    (container,) = told[0]["spec"]["template"]["spec"]["containers"]
    assert (len(told), container["name"]) == (1, "align-1")
    assert container["resources"]["requests"] == container["resources"]["limits"]


@pytest.mark.parametrize("retry", ["x2", "max", "none"])
def test_a_profile_as_snakemake_reads_it(tmp_path: Path, retry: Any) -> None:
    cli = pytest.importorskip("snakemake.cli", reason="snakemake is not installed")
    log = a_log(workload=[("align", "it's", "count")[i % 3] for i in range(60)])
    found = requests_of(log, RequestQuestion(retry, hour_price=1.0))
    (tmp_path / "config.yaml").write_text(written(found, "snakemake"))
    _, told = cli.parse_args(["--profile", str(tmp_path), "--cores", "1"])
    assert set(told.set_resources) == {"align", "count"}  # the third is no name of a rule
    memory = told.set_resources["align"]["mem_mb"]
    same = next(one.memory for one in found.items if one.workload == "align")
    assert same is not None
    amount = int(np.ceil(same.request / 1e6))
    later = {"x2": 2 * amount, "max": 16_000, "none": amount}[retry]
    assert [_value(memory, attempt) for attempt in (1, 2)] == [amount, later]


def _value(resource: Any, attempt: int) -> int:
    if not resource.is_evaluable():
        return int(resource.value)
    return int(eval(resource.raw, {"attempt": attempt}))


def test_what_an_import_tells_is_all_in_its_document() -> None:
    made = MadeOfLog(notes=[f"remark {i}" for i in range(12)], understood=["columns"])
    report = log_report("log.txt", Path("runs"), made, [])
    assert report.document["notes"] == made.notes
    assert report.document["understood"] == made.understood
    assert report.notes[-1] == "and 3 more notes: --json has all of them"
    assert len(report.notes) == 11
