"""What perf stat -I wrote is read to the digit, in every layout, and what is broken is named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jostle.data import PerfImport
from jostle.errors import BadData, UsageError
from tests.packages.data.traces.perf_stat_samples import LINES

PER_CORE = """     0.020,S0-D0-C10,1,2927,,page-faults,28023530,100.00,104.451,K/sec
     0.020,S0-D0-C2,1,164,,page-faults,27991082,100.00,5.859,K/sec
     0.051,S0-D0-C10,1,7,,page-faults,28023530,100.00,104.451,K/sec
     0.051,S0-D0-C2,1,5,,page-faults,27991082,100.00,5.859,K/sec
"""
PER_CPU = PER_CORE.replace("S0-D0-C10,1", "CPU10").replace("S0-D0-C2,1", "CPU2")


def read(tmp_path: Path, text: str, name: str = "run.csv", **options):
    file = tmp_path / name
    file.write_text(text)
    return PerfImport(file, workload="w", platform="p", **options).read()


def test_lines_with_separators(tmp_path: Path) -> None:
    (one,) = read(tmp_path, LINES, beside=("b",), window="x", runtime=0.03)
    assert (one.run_id, one.workload, one.corunners, one.window_id) == ("run", "w", ("b",), "x")
    np.testing.assert_array_equal(one.time_seconds, [0.010068, 0.027377])
    np.testing.assert_allclose(one.interval_seconds, [0.010068, 0.017309])
    np.testing.assert_allclose(one["perf_task_clock_ns"], [5.22e6, 3.5e6])
    np.testing.assert_array_equal(one["perf_instructions"], [1000, np.nan])
    np.testing.assert_array_equal(one["perf_instructions_running_ratio"], [0.5, np.nan])
    assert np.isnan(one["perf_llc_load_misses"]).all()
    assert set(one.counters) == {
        *("perf_task_clock_ns", "perf_instructions", "perf_instructions_running_ratio"),
        "perf_llc_load_misses",
    }


def test_another_separator(tmp_path: Path) -> None:
    (one,) = read(tmp_path, LINES.replace(",", ";"), separator=";")
    assert one["perf_instructions"][0] == 1000


@pytest.mark.parametrize("text", [PER_CORE, PER_CPU])
def test_cores_in_their_order(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert len(found) == 1
    np.testing.assert_array_equal(found.of("run", 0)["perf_page_faults"], [164, 5])
    np.testing.assert_array_equal(found.of("run", 1)["perf_page_faults"], [2927, 7])


def test_cgroups_are_told_apart(tmp_path: Path) -> None:
    rows = [("0.1", "a", 5), ("0.1", "b", 7), ("0.2", "a", 6), ("0.2", "b", 8)]
    text = "".join(f"{t},{n},,instructions,{group}.slice,9,100.00,,\n" for t, group, n in rows)
    found = read(tmp_path, text)
    counts = [found.of("run", core)["perf_instructions"].tolist() for core in (0, 1)]
    assert counts == [[5, 6], [7, 8]]


def test_decimal_commas_between_commas_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="LC_ALL=C or with -x;"):
        read(tmp_path, "0,100000000,100,,instructions,100,100,00,1,25,insn per cycle\n")


def test_json_says_the_same_as_lines(tmp_path: Path) -> None:
    objects_text = []
    for line in LINES.splitlines()[2:]:
        fields = line.split(",")
        one = {"interval": float(fields[0]), "counter-value": fields[1], "unit": fields[2]}
        one |= {"event": fields[3], "event-runtime": 1, "pcnt-running": float(fields[5])}
        objects_text.append(json.dumps(one))
    (lines,), (objects,) = read(tmp_path, LINES), read(tmp_path, "\n".join(objects_text))
    assert set(lines.counters) == set(objects.counters)
    for name in lines.counters:
        np.testing.assert_array_equal(lines[name], objects[name])


@pytest.mark.parametrize("layout", ["-x,", "-j"])
def test_what_perf_writes_here(tmp_path: Path, layout: str) -> None:
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    file = tmp_path / "run.txt"
    words = ["perf", "stat", "-I", "20", layout, "-e", "task-clock,page-faults", "-o", str(file)]
    done = subprocess.run(
        [*words, "--", sys.executable, "-c", "for _ in range(20): sum(range(10**5))"],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("perf may not count here, or does not know this layout")
    (one,) = PerfImport(file, workload="w", platform="p").read()
    # An interval in which the command did not run is not counted.
    assert np.nansum(one["perf_task_clock_ns"]) > 1e6
    assert np.nansum(one["perf_page_faults"]) > 10


def test_modifiers_and_threads(tmp_path: Path) -> None:
    both = (
        "0.01,700,,instructions:u,1,100.00,,\n0.01,300,,instructions:k,1,100.00,,\n"
        "0.01,1000,,instructions,1,100.00,,\n0.01,5,,cycles:u,1,100.00,,\n"
    )
    (one,) = read(tmp_path, both)
    assert {name: values[0] for name, values in one.counters.items()} == {
        "perf_instructions_u": 700,
        "perf_instructions_k": 300,
        "perf_instructions": 1000,
        "perf_cycles": 5,
    }
    threads = "".join(
        f"{t},{name},{count},,instructions,1,{share},,\n"
        for t in (0.01, 0.02)
        for name, count, share in (
            ("my app-17", 10, "100.00"),
            ("my app-18", 32, "50.00"),
            ("idle-3", "<not counted>", "0.00"),
        )
    )
    (one,) = read(tmp_path, threads)
    np.testing.assert_array_equal(one["perf_instructions"], [42, 42])
    np.testing.assert_array_equal(one["perf_instructions_running_ratio"], [0.5, 0.5])


def test_what_only_the_kernel_did_is_never_the_program(tmp_path: Path) -> None:
    (one,) = read(tmp_path, "0.01,300,,instructions:k,1,100.00,,\n0.01,7,,cycles:u,1,100.00,,\n")
    assert set(one.counters) == {"perf_instructions_k", "perf_cycles"}


def test_lines_of_metrics_alone_are_passed_over(tmp_path: Path) -> None:
    metric = "".join(
        f"0.010068,{core},,,,,2.31,insn per cycle\n" for core in ("", "CPU1,", "S0,24,", "a-17,")
    )
    assert len(read(tmp_path, LINES + metric).of("run", 0)) == 2
    counted = {"interval": 0.5, "counter-value": "5", "unit": "", "event": "cycles"}
    alone = {"interval": 0.5, "metric-value": "0.8", "metric-unit": "insn per cycle"}
    (one,) = read(tmp_path, f"{json.dumps(counted)}\n{json.dumps(alone)}\n")
    assert set(one.counters) == {"perf_cycles"}
    with pytest.raises(BadData, match="--metric-only"):
        read(tmp_path, "time,insn per cycle,GHz,\n     0.1003,0.85,2.31,\n")


def test_a_recording_that_ends_with_its_run(tmp_path: Path) -> None:
    (one,) = read(tmp_path, LINES, whole=True)
    assert one.runtime_seconds == 0.027377
    with pytest.raises(UsageError, match="`whole`"):
        read(tmp_path, LINES, whole=True, runtime=1.0)


def test_many_files_are_many_runs(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "perf.csv").write_text(LINES)
    (tmp_path / "third.csv").write_text(PER_CPU)
    files = (tmp_path / "a" / "perf.csv", tmp_path / "b" / "perf.csv", tmp_path / "third.csv")
    found = PerfImport(files, workload="w", platform="p", whole=True).read()
    assert found.run_ids == ("a-perf", "b-perf", "third")
    assert found.of("b-perf").runtime_seconds == pytest.approx(0.027377)
    assert found.cores("third") == (0, 1)
    with pytest.raises(UsageError, match="of one file"):
        PerfImport(files, workload="w", platform="p", run_id="x").read()
    with pytest.raises(UsageError, match="no file"):
        PerfImport((), workload="w", platform="p").read()
    with pytest.raises(UsageError, match="same name"):
        PerfImport((files[0], files[0]), workload="w", platform="p").read()
