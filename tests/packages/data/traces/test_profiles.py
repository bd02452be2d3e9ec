"""Readers of accelerator profiles, on files made here in the formats' own shapes, and on broken ones."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.data import (
    GPUS,
    Profile,
    ProfileImport,
    gpu_named,
    read_any,
    read_profile,
    read_profiles,
    tasks_from_rows,
    write_profiles,
)
from jostle.errors import BadData, BadRows, UnknownName, UnreadableFile, UsageError
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

ROOT = Path(__file__).resolve().parents[4]
DATA = Path(os.environ.get("JOSTLE_DATA", ROOT.parent / "shared" / "data")) / "traces"


def test_nsys(tmp_path: Path) -> None:
    found = read_profile(nsys(tmp_path / "a.sqlite"), workload="axpy")
    assert found.tasks.column("kind").to_pylist() == ["htod", "kernel", "kernel", "dtoh", "dtod"]
    kernel = found.tasks.to_pylist()[1]
    assert kernel["name"] == "axpy(float*)"
    shape = [kernel[key] for key in ("blocks", "threads_per_block", "shared_bytes")]
    assert shape == [20, 256, 1536]
    assert kernel["start_seconds"] == pytest.approx(3e-6)
    assert kernel["duration_seconds"] == pytest.approx(2e-6)
    assert kernel["occupancy_ratio"] == 1.0
    assert kernel["bandwidth_per_pe"] is None
    assert found.tasks.column("pinned").to_pylist() == [False, None, None, True, None]
    gpu = found.gpus[0]
    assert gpu is not None
    assert (gpu.pes, gpu.memory_bandwidth_bytes_per_second) == (108, 1.5552e12)
    assert "1 copies" in found.notes[0]
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as base, base:
        base.execute("create table CUPTI_ACTIVITY_KIND_MEMSET (start,end,deviceId,streamId,bytes)")
        base.execute("insert into CUPTI_ACTIVITY_KIND_MEMSET values (9950,9960,0,7,512)")
        base.execute("update TARGET_INFO_GPU set memoryBandwidth = null")
    found = read_profile(tmp_path / "a.sqlite", workload="axpy")
    last = found.tasks.to_pylist()[-1]
    assert (last["kind"], last["bytes"]) == ("memset", 512)
    assert found.gpus[0] is not None
    assert found.gpus[0].memory_bandwidth_bytes_per_second is None  # it does not say


def test_nsys_without_tables_that_were_never_made(tmp_path: Path) -> None:
    found = read_profile(nsys(tmp_path / "a.sqlite", year=2023, copies=False))
    assert len(found) == 2
    assert found.gpus == {0: None}
    assert np.isnan(found.column("occupancy_ratio").astype(float)).all()
    given = read_profile(tmp_path / "a.sqlite", gpu="V100")
    assert given.column("occupancy_ratio").tolist() == [1.0, 1.0]


def test_nsys_graphs(tmp_path: Path) -> None:
    found = read_profile(nsys(tmp_path / "a.sqlite", graphs=True))
    assert found.tasks.column("kind").to_pylist()[0] == "graph"
    assert 5 in found.tasks.column("graph_node").to_pylist()
    assert "graph" in found.notes[0]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("bare", [False, True])
def test_kineto(tmp_path: Path, zipped: bool, bare: bool) -> None:
    document: Any = kineto(HOST, KERNEL, COPY, deviceProperties=PROPERTIES)
    if bare:
        document = document["traceEvents"]
    path = tmp_path / ("a.json.gz" if zipped else "a.json")
    content = json.dumps(document).encode()
    path.write_bytes(gzip.compress(content) if zipped else content)
    found = read_profile(path, gpu="A100" if bare else None)
    copy, kernel = found.tasks.to_pylist()
    assert (copy["kind"], copy["pinned"], copy["bytes"]) == ("htod", True, 1024)
    assert kernel["blocks"] == 640
    assert kernel["start_seconds"] == pytest.approx(1000.5e-6)
    # 122 registers: 16 warps of 64 fit, whatever the trace says was achieved.
    assert kernel["occupancy_ratio"] == 0.25


def test_memory_that_a_run_takes(tmp_path: Path) -> None:
    """The most that PyTorch held of the device, or what the user says; it stays in the dataset."""
    held = {"Total Reserved": 3 * 2**30, "Total Allocated": 2**30, "Device Type": 1}
    host = {"Total Reserved": 9 * 2**30, "Device Type": 0}
    moments = [{**held, "Total Reserved": 2**30}, held, host, {"Total Reserved": "x"}, {}]
    events = [
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": n, "args": args}
        for n, args in enumerate(moments)
    ]
    more = held | {"Total Reserved": 9 * 2**30}
    events += [events[1] | {"args": more} | odd for odd in ({"name": "other"}, {"cat": "cpu_op"})]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(kineto(KERNEL, *events, deviceProperties=PROPERTIES)))
    found = read_profile(path)
    assert found.memory_bytes == 3 * 2**30
    write_profiles(tmp_path / "data", [found])
    assert read_profiles(tmp_path / "data")[found.run_id].memory_bytes == 3 * 2**30
    assert ProfileImport(path, memory="20GB").read().memory_bytes == 20e9
    with pytest.raises(UsageError, match="memory"):
        ProfileImport(path, memory="20 sheep").read()


def test_kineto_of_amd_says_what_it_lacks(tmp_path: Path) -> None:
    amd = {**KERNEL, "args": {"device": 2, "stream": 0}}
    properties = [{"id": 0, "name": "AMD Radeon Graphics", "warpSize": 64, "numSms": 104}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(kineto(amd, deviceProperties=properties)))
    found = read_profile(path)
    assert found.gpus[2] == GPUS["MI250"]
    assert found.tasks.column("blocks").to_pylist() == [None]
    assert "launch shape" in found.notes[0]


def test_a_large_trace_is_streamed(tmp_path: Path) -> None:
    """40 MB, of which one event in forty is a kernel: memory stays far under the file's size."""
    path = tmp_path / "a.json"
    host = json.dumps({**HOST, "args": {"padding": "x" * 900}})
    kernel = json.dumps(KERNEL)
    with path.open("w") as file:
        file.write('{"traceEvents": [')
        for _ in range(1000):
            file.write(",".join([host] * 39 + [kernel]) + ",")
        file.write(kernel + "]}")
    tracemalloc.start()
    found = read_profile(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 1001
    assert path.stat().st_size > 3e7
    assert peak < 1.2e7


def test_nvprof(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(NVPROF)
    copy, kernel, memset = read_profile(path).tasks.to_pylist()
    assert (copy["bytes"], copy["pinned"]) == (16 * 2**20, None)
    assert (copy["start_seconds"], copy["duration_seconds"]) == pytest.approx((0.5, 1e-5))
    assert (kernel["blocks"], kernel["shared_bytes"]) == (8192, 8 * 1024 + 256)
    assert kernel["occupancy_ratio"] == 1.0
    assert memset["kind"] == "memset"
    for whole, cut in (("0.6,20.0", "0.6,"), ("0.6,20.0", ",20.0"), ('"[CUDA memset]"', "")):
        path.write_text(NVPROF.replace(whole, cut))
        with pytest.raises(BadData, match="no times or no name"):
            read_profile(path)


def test_an_api_trace_of_nvprof_is_no_trace_of_the_gpu(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "==1== NVPROF is profiling process 1\n==1== Profiling result:\n"
        '"Start","Duration","Name","Correlation_ID"\ns,us,,\n0.5,10.0,"cudaMalloc",1\n'
    )
    with pytest.raises(UnreadableFile, match="print-gpu-trace"):
        read_profile(path)


def test_rocprof_counts_work_items(tmp_path: Path) -> None:
    path = tmp_path / "timestamps.csv"
    path.write_text(ROCPROF)
    (tmp_path / "sysinfo.csv").write_text("gpu_model\nMI200\n")
    found = read_profile(path)
    row = found.tasks.to_pylist()[0]
    assert (row["blocks"], row["threads_per_block"], row["occupancy_ratio"]) == (4096, 256, 1.0)
    assert row["duration_seconds"] == pytest.approx(20.16e-6)
    for text, pes in (
        ("gpu_model,cu_per_gpu,hbm_bw\nMI200,100,1638.4\n", 100),
        ("gpu_model,cu_per_gpu,hbm_bw\nMI200,,\n", 104),
        ("gpu_model,gpu_arch,cu_per_gpu\n,gfx90a,many\n", 104),
        ("gpu_model,gpu_arch,cu_per_gpu\nMI999,gfx90a,\n", 104),
    ):
        (tmp_path / "sysinfo.csv").write_text(text)
        gpu = read_profile(path).gpus[0]
        assert gpu is not None
        assert (gpu.pes, gpu.l2_bytes) == (pes, GPUS["MI250"].l2_bytes)


@pytest.mark.parametrize(
    ("gpu", "threads", "registers", "shared", "occupancy"),
    [
        # NVIDIA's occupancy calculator.
        ("K40", 256, 32, 0, 1.0),
        ("K40", 256, 64, 0, 0.5),
        ("V100", 128, 64, 0, 0.5),
        ("V100", 1024, 65, 0, 0.0),  # 32 warps need more registers than there are
        ("V100", 256, 32, 49152, 0.25),
        ("V100", 96, 32, 0, 63 / 64),
        ("A100", 128, 122, 12544, 0.25),
        ("A100", 64, 16, 0, 1.0),
        ("A100", 32, 16, 0, 0.5),  # 32 blocks are the limit
        ("A100", 256, 32, 49152, 3 * 8 / 64),
        ("T4", 256, 64, 0, 1.0),
        ("T4", 64, 32, 0, 1.0),
        ("H100", 512, 40, 0, 0.75),
        ("B200", 512, 40, 0, 0.75),
        ("RTX 5090", 256, 32, 0, 1.0),
        ("RTX 5090", 32, 16, 0, 0.5),  # 24 blocks of 48 warps
        ("MI355X", 256, 128, 65536, 0.25),  # 2 blocks fit into 160 KiB
        ("H200", 256, 168, 0, 8 / 64),
        ("GTX 1080 Ti", 256, 37, 0, 0.75),
        ("MI250", 256, 8, 0, 1.0),
        ("MI250", 256, 128, 0, 0.5),
        ("MI250", 256, 256, 0, 0.25),
    ],
)
def test_theoretical_occupancy(gpu, threads, registers, shared, occupancy) -> None:
    assert gpu_named(gpu).occupancy(threads, registers, shared) == pytest.approx(occupancy)


def test_what_sheets_of_devices_say() -> None:
    """GB/s of memory, MiB of L2 and KiB of shared memory on each SM or CU."""
    sheets = {
        "K40": (288, 1.5, 48), "V100": (900, 6, 96), "A100": (1555, 40, 164), "H100": (3350, 50, 228),
        "T4": (320, 4, 64), "MI250": (1638.4, 8, 64), "MI355X": (8000, 32, 160),
    }  # fmt: skip
    for name, (gigabytes, l2, shared) in sheets.items():
        gpu, kib = GPUS[name], 1024
        assert gpu.memory_bandwidth_bytes_per_second == gigabytes * 1e9, name
        assert (gpu.l2_bytes, gpu.shared_bytes_per_pe) == (l2 * kib**2, shared * kib), name


@pytest.mark.parametrize("block", [(0, 0, 0), (-1, 0, 0), (32, -1, 0), (32, 0, -1)])
def test_blocks_that_cannot_be_are_refused(block: tuple[int, int, int]) -> None:
    with pytest.raises(BadData, match="does not exist"):
        GPUS["T4"].occupancy(*block)


@pytest.mark.parametrize(
    ("label", "kind", "pinned"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "htod", False),
        ("Memcpy HtoD (Pinned -> Device)", "htod", True),
        ("Memcpy DtoH (Device -> Pageable)", "dtoh", False),
        ("Memcpy DtoH (Device -> Pinned)", "dtoh", True),
        ("Memcpy DtoD (Device -> Device)", "dtod", None),
        ("Memcpy HtoD", "htod", None),
    ],
)
@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":"), (" ,\n\t", "  :\n")])
def test_copies_of_kineto_however_it_is_laid_out(
    tmp_path: Path, label: str, kind: str, pinned: bool | None, separators: tuple[str, str]
) -> None:
    path = tmp_path / "a.json"
    document = kineto(COPY | {"name": label}, KERNEL, deviceProperties=PROPERTIES)
    path.write_text(json.dumps(document, separators=separators))
    copy, kernel = read_profile(path).tasks.to_pylist()
    assert (copy["kind"], copy["pinned"], copy["bytes"]) == (kind, pinned, 1024)
    assert (kernel["name"], kernel["blocks"]) == ("gemm", 640)


def test_devices_by_the_names_that_drivers_give() -> None:
    for given, known in {
        "Tesla V100-SXM2-32GB": "V100",
        "NVIDIA A100-SXM4-80GB": "A100 80GB",
        "NVIDIA A100-PCIE-40GB": "A100",
        "GeForce GTX 1080 Ti (0)": "GTX 1080 Ti",
        "Tesla T4": "T4",
        "NVIDIA H100 80GB HBM3": "H100",
        "NVIDIA H100 PCIe": "H100 PCIe",
        "NVIDIA H200": "H200",
        "Tesla K40c": "K40",
        "AMD Instinct MI250X": "MI250",
        "AMD Instinct MI355X": "MI355X",
        "NVIDIA L40S": "L40S",
        "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada",
        "NVIDIA GeForce RTX 5090": "RTX 5090",
        "NVIDIA GH200 480GB": "GH200",
        "NVIDIA GH200 144G HBM3e": "GH200 144GB",
        "NVIDIA B200": "B200",
        "NVIDIA GB200": "GB200",
        "A100 SXM4": "A100",
        "NVIDIA A10G": "A10G",
        "NVIDIA H100 NVL": "H100 NVL",
        "NVIDIA RTX A6000": "RTX A6000",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000 Server",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "RTX PRO 6000",
        "AMD Instinct MI210": "MI210",
    }.items():
        assert gpu_named(given).name == known, given
    for unknown in ("Voodoo 2", "Quadro RTX 6000"):
        with pytest.raises(UnknownName, match="GPU"):
            gpu_named(unknown)
    slice_of_one = replace(GPUS["H100"], name="NVIDIA H100 80GB HBM3 MIG 1g.10gb", pes=16)
    assert (slice_of_one.memory_bytes, slice_of_one.slices) == (10e9, ())
    host_in_name = replace(GPUS["GH200"], name="NVIDIA GH200 480GB")
    assert host_in_name.memory_bytes == 96e9
    # One name of a slice never has less of one thing and more of the other.
    for gpu in GPUS.values():
        assert all(1 <= pes <= gpu.pes and 0 < part <= 1 for _, pes, part in gpu.slices)
        assert list(gpu.slices) == sorted(gpu.slices)


def test_profiles_in_a_dataset(tmp_path: Path) -> None:
    first = read_profile(nsys(tmp_path / "a.sqlite"), workload="axpy")
    rows = [{"kind": "kernel", "start_seconds": 0.0, "duration_seconds": 1.0, "name": "k"}]
    second = tasks_from_rows(rows, run_id="other", gpu=GPUS["T4"])
    write_profiles(tmp_path / "set", [first, second])
    back = read_profiles(tmp_path / "set")
    assert list(back) == ["axpy", "other"]
    assert back["axpy"].tasks.equals(first.tasks)
    assert back["axpy"].gpus == dict(first.gpus)
    assert back["axpy"].notes == first.notes
    with pytest.raises(BadData, match="there already"):
        write_profiles(tmp_path / "set", [second])
    with pytest.raises(UnreadableFile, match="no profiles"):
        read_profiles(tmp_path / "empty")


def test_bandwidth_needs_are_added_by_name() -> None:
    rows = [{"kind": "kernel", "start_seconds": 0.0, "duration_seconds": 1.0, "name": "k"}]
    profile: Profile = tasks_from_rows(rows, run_id="a", gpu=GPUS["T4"])
    assert profile.with_bandwidth({"k": 3.0}).column("bandwidth_per_pe").tolist() == [3.0]
    with pytest.raises(BadData, match="bandwidth need"):
        profile.with_bandwidth({"k": -1.0})
    for odd, why in (({"colour": 1}, "'colour' is no column"), ({"kind": "x"}, "kind 'x' is none")):
        with pytest.raises(BadData, match=why):
            tasks_from_rows([rows[0] | odd], run_id="a", gpu=GPUS["T4"])
    with pytest.raises(BadRows):
        tasks_from_rows(
            [{"kind": "kernel", "start_seconds": 0.0, "duration_seconds": float("inf")}],
            run_id="a",
            gpu=GPUS["T4"],
        )


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no public measurements in {DATA}")
def test_real_files() -> None:
    counts = {
        "kineto_a100_alexnet_25KB.json.gz": 98,
        "kineto_amd_mi250_7KB.json.gz": 16,
        "kineto_dlrm_rank0_sampled_124KB.json.gz": 1204,
        "kineto_v100_ns_resolution_1.1MB.json.gz": 6095,
        "nsys_cloverleaf_cuda_perlmutter.sqlite": 1591,
        "nsys_saxpy_mpi_cuda_perlmutter.sqlite": 20,
        "rocprof_MI200/timestamps.csv": 3,
        "rocprof_MI300X_A1/timestamps.csv": 3,
    }
    whole = {name: len(read_profile(DATA / name, queries="whole")) for name in counts}
    assert whole == counts
    one = {name: len(read_profile(DATA / name)) for name in counts}
    steps = {
        "kineto_dlrm_rank0_sampled_124KB.json.gz": 2,
        "kineto_v100_ns_resolution_1.1MB.json.gz": 5,
    }
    assert one == {name: count // steps.get(name, 1) for name, count in counts.items()}


@pytest.mark.parametrize("table", ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"])
def test_tables_of_later_schemas_are_found(table: str, tmp_path: Path) -> None:
    plain = nsys(tmp_path / "a.sqlite")
    expected = read_profile(plain, workload="w").tasks
    other = nsys(tmp_path / "b.sqlite")
    with closing(sqlite3.connect(other)) as base, base:
        base.execute(f"alter table {table} rename to {table}_V3")
    assert read_profile(other, workload="w").tasks.equals(expected)
    with closing(sqlite3.connect(other)) as base, base:
        base.execute("drop table if exists CUPTI_ACTIVITY_KIND_KERNEL")
        base.execute("drop table if exists CUPTI_ACTIVITY_KIND_KERNEL_V3")
    with pytest.raises(BadData, match="no table of kernels"):
        read_profile(other, workload="w")


def test_an_event_in_two_halves_is_one_and_one_without_a_length_is_refused(tmp_path: Path) -> None:
    begin = {"ph": "B", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 10.0, "args": {}}
    end = {"ph": "E", "pid": 0, "tid": 7, "ts": 15.0}
    whole, halves = begin | {"ph": "X", "dur": 5.0}, [begin, end]
    files = []
    for number, events in enumerate(([whole], halves, [halves[0] | {"ph": "X"}])):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps({"traceEvents": events}), "utf-8")
    one, two = (read_profile(file, workload="w").tasks for file in files[:2])
    assert two.equals(one)
    with pytest.raises(BadData, match="'k' has no duration"):
        read_profile(files[2], workload="w")


def test_kineto_of_older_tools(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    host = {"name": "mm", "ph": "X", "ts": 0.0, "dur": 9.0, "tid": 1, "pid": "CPU functions"}
    path.write_text(json.dumps([host, host | {"pid": "CUDA functions", "ts": 5.0}]))
    (task,) = read_profile(path).tasks.to_pylist()
    assert (task["kind"], task["start_seconds"]) == ("kernel", pytest.approx(5e-6))
    mark = {"ph": "B", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 1.0}
    ends = {"ph": "E", "pid": 1, "tid": 1, "ts": 1900.0}
    path.write_text(
        json.dumps(kineto(mark, KERNEL, ends, mark | {"ts": 2000.0}, KERNEL | {"ts": 2001.0}))
    )
    found = read_any(path)
    assert isinstance(found, Profile)
    assert found.marks == pytest.approx((1e-6, 2e-3))
    path.write_bytes(
        json.dumps(kineto(KERNEL | {"name": "gémm"}), ensure_ascii=False).encode("latin-1")
    )
    assert len(read_profile(path)) == 1
