"""Profiles of rocprofv3 and nsys stats, marks of byte order, and memory bandwidth from counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.cli import exit_code
from jostle.data import GPUS, read_profile, read_profiles, tasks_from_rows, with_memory_counters
from jostle.errors import BadData, UnreadableFile
from tests.packages.data.traces.other_recordings_samples import AGENTS, COPIES, KERNELS, STATS


def test_rocprofv3_with_its_copies_and_agents(tmp_path: Path) -> None:
    path = tmp_path / "12_kernel_trace.csv"
    path.write_text(KERNELS)
    alone = read_profile(path)
    assert [row["kind"] for row in alone.tasks.to_pylist()] == ["kernel", "kernel"]
    assert any("copies are not known" in note for note in alone.notes)
    (tmp_path / "12_memory_copy_trace.csv").write_text(COPIES)
    (tmp_path / "12_agent_info.csv").write_text(AGENTS)
    found = read_profile(path, workload="app")
    assert found.devices == (0, 1)
    first, second = (found.on(device).to_pylist() for device in (0, 1))
    assert [row["kind"] for row in first] == ["htod", "kernel"]
    assert [row["kind"] for row in second] == ["kernel", "dtoh"]
    kernel = first[1]
    assert (kernel["blocks"], kernel["threads_per_block"], kernel["stream"]) == (512, 256, 3)
    assert (kernel["registers_per_thread"], kernel["shared_bytes"]) == (12, 512)
    assert kernel["duration_seconds"] == pytest.approx(2e-3)
    assert {n: gpu and gpu.pes for n, gpu in found.gpus.items()} == {0: 104, 1: 304}
    assert any("1 copies between hosts" in note for note in found.notes)
    for units in (
        "0",
        "100000",
        "9" * 19,
        "many",
        "",
    ):  # then it has as many as it is known to have
        (tmp_path / "12_agent_info.csv").write_text(AGENTS.replace('"GPU",304', f'"GPU",{units}'))
        gpu = read_profile(path, workload="app").gpus[1]
        assert gpu is not None
        assert gpu.pes == 304


def test_what_nsys_stats_prints(tmp_path: Path) -> None:
    path = tmp_path / "gpu_trace.csv"
    path.write_text(STATS)
    found = read_profile(path)
    rows = found.tasks.to_pylist()
    assert [row["kind"] for row in rows] == ["htod", "kernel", "dtoh"]
    assert (rows[0]["pinned"], rows[2]["pinned"]) == (False, True)
    assert rows[0]["bytes"] == 4_194_000
    assert (rows[1]["blocks"], rows[1]["threads_per_block"], rows[1]["shared_bytes"]) == (
        256,
        256,
        1000,
    )
    assert rows[1]["duration_seconds"] == pytest.approx(3e-6)
    assert found.gpus[0] == GPUS["A100 80GB"]
    assert any("1 copies between hosts or peers" in note for note in found.notes)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_of_byte_order(tmp_path: Path, encoding: str) -> None:
    for name, text in (("12_kernel_trace.csv", KERNELS), ("trace.csv", STATS)):
        plain, marked = tmp_path / name, tmp_path / f"marked_{name}"
        plain.write_text(text, "utf-8")
        marked.write_text(text, encoding)
        one, other = (read_profile(path, run_id="a", workload="a") for path in (plain, marked))
        assert other.tasks.equals(one.tasks)
    kineto = '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {}}]}'
    (tmp_path / "t.json").write_text(kineto, "utf-8-sig")
    assert len(read_profile(tmp_path / "t.json")) == 1


def profile():
    """40 blocks on 40 of 80 PEs for 1 ms, one kernel without counters, and a copy."""
    shape = {"threads_per_block": 1024, "registers_per_thread": 64, "shared_bytes": 0}
    rows = [
        {"kind": "kernel", "name": "void scale<float>(float*)", "blocks": 40, **shape},
        {"kind": "kernel", "name": "other", "blocks": 40, **shape},
        {"kind": "htod", "name": "copy", "bytes": 100},
    ]
    timed = [
        {**row, "start_seconds": 0.01 * n, "duration_seconds": 1e-3} for n, row in enumerate(rows)
    ]
    return tasks_from_rows(timed, run_id="app", gpu=GPUS["V100"])


NCU_LONG = (
    "==PROF== Connected\n"
    '"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"\n'
    '"0","scale(float *)","(1024, 1, 1)","(40, 1, 1)","dram__bytes_read.sum","Mbyte","1,000"\n'
    '"0","scale(float *)","(1024, 1, 1)","(40, 1, 1)","dram__bytes_write.sum","Kbyte","600,000"\n'
    '"0","scale(float *)","(1024, 1, 1)","(40, 1, 1)","gpu__time_duration.sum","usecond","4,000"\n'
)
NCU_RAW = (
    '"ID","Kernel Name","dram__bytes.sum","gpu__time_duration.sum"\n"","","Gbyte","msecond"\n'
    '"0","scale(float *)","1.6","4"\n"1","scale(float *)","1.6","4"\n'
)


@pytest.mark.parametrize("text", [NCU_LONG, NCU_RAW])
def test_memory_bandwidth_from_counters(tmp_path: Path, text: str) -> None:
    """400 GB/s on 40 PEs are 10 GB/s for each."""
    path = tmp_path / "counters.csv"
    path.write_text(text)
    found = with_memory_counters(profile(), path)
    needs = [row["bandwidth_per_pe"] for row in found.tasks.to_pylist()]
    assert needs == [pytest.approx(10e9), None, None]
    assert "memory bandwidth of 1 of 2 kernels (by name) is from counters.csv" in found.notes
    assert len(found.notes) == 1
    quick = text.replace('"4,000"', '"2,500"').replace('"4"', '"2.5"')  # 640 of 900 GB/s
    path.write_text(quick)
    assert (
        "1 of them come close to the memory's peak"
        in with_memory_counters(profile(), path).notes[1]
    )


def test_counters_that_say_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    for text in ("", "a,b\n1,2\n", "Kernel Name,Metric Name,Metric Value\nk,sm__cycles,4\n"):
        path.write_text(text)
        with pytest.raises(UnreadableFile, match="no counters of device memory"):
            with_memory_counters(profile(), path)
    for old, new in (("1,000", "nan"), ("Mbyte", "furlong"), ("1,000", ""), ("1,000", "-5")):
        path.write_text(NCU_LONG.replace(old, new))
        with pytest.raises(BadData, match="line 3"):
            with_memory_counters(profile(), path)


def test_the_command_takes_counters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, counters = tmp_path / "t.csv", tmp_path / "ncu.csv"
    trace.write_text(STATS)
    counters.write_text(NCU_LONG)
    asked = ["import", "--kind=profile", str(trace), "-o", str(tmp_path / "fleet")]
    assert exit_code([*asked, "--counters", str(counters)]) == 0
    capsys.readouterr()
    (found,) = read_profiles(tmp_path / "fleet").values()
    assert found.column("bandwidth_per_pe")[1] == pytest.approx(400e9 / 32)  # 8 blocks fit on a PE
    assert any("memory bandwidth of 1 of 1" in note for note in found.notes)
