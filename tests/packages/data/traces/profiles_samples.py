"""Samples and helpers for tests of profiles, and for others that need them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

KERNEL_COLUMNS = (
    "start,end,deviceId,streamId,demangledName,shortName,registersPerThread,gridX,gridY,gridZ,"
    "blockX,blockY,blockZ,staticSharedMemory,dynamicSharedMemory,graphNodeId"
)


GPU_COLUMNS = (
    "id,name,memoryBandwidth,smCount,l2CacheSize,maxShmemPerSm,maxRegistersPerSm,threadsPerWarp,"
    "maxWarpsPerSm,maxBlocksPerSm,computeMajor,computeMinor"
)


A100 = (0, "NVIDIA A100-SXM4-40GB", 1.5552e12, 108, 2**25, 167936, 65536, 32, 64, 32, 8, 0)


def nsys(path: Path, *, year: int = 2024, copies: bool = True, graphs: bool = False) -> Path:
    """A database as nsys exports it; year 2023 has the older name of the table of versions."""
    with closing(sqlite3.connect(path)) as base, base:

        def table(name: str, columns: str, rows: list[tuple]) -> None:
            base.execute(f"create table {name} ({columns})")
            marks = ",".join("?" * len(columns.split(",")))
            base.executemany(f"insert into {name} values ({marks})", rows)

        version = "META_DATA_EXPORT" if year >= 2024 else "EXPORT_META_DATA"
        table(version, "name,value", [("EXPORT_PRODUCT_VERSION", f"{year}.5")])
        table("StringIds", "id,value", [(1, "axpy(float*)"), (2, "axpy")])
        if year >= 2024:
            table("TARGET_INFO_GPU", GPU_COLUMNS, [A100])
        kernels = [
            (3000, 5000, 0, 7, 1, 2, 32, 10, 2, 1, 128, 2, 1, 1024, 512, None),
            (7000, 8000, 0, 7, 1, 2, 32, 10, 1, 1, 256, 1, 1, 0, 0, 5 if graphs else None),
        ]
        table("CUPTI_ACTIVITY_KIND_KERNEL", KERNEL_COLUMNS, kernels)
        if copies:
            columns = "start,end,deviceId,streamId,bytes,copyKind,srcKind,dstKind"
            rows = [
                (1000, 2000, 0, 7, 4096, 1, 0, 2),
                (9000, 9500, 0, 7, 2048, 2, 2, 1),
                (9600, 9700, 0, 7, 64, 8, 2, 2),
                (9800, 9900, 0, 7, 64, 9, 2, 2),
            ]
            table("CUPTI_ACTIVITY_KIND_MEMCPY", columns, rows)
        if graphs:
            table(
                "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start,end,deviceId,streamId", [(1, 900, 0, 7)]
            )
    return path


def kineto(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, **more, "traceEvents": list(events), "traceName": "x"}


KERNEL = {
    "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "ts": 1000.5, "dur": 10,
    "args": {
        "device": 0, "stream": 7, "registers per thread": 122, "shared memory": 12544,
        "grid": [8, 16, 5], "block": [128, 1, 1], "est. achieved occupancy %": 99,
    },
}  # fmt: skip


COPY = {
    "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "ts": 900,
    "dur": 5.5, "args": {"device": 0, "stream": 7, "bytes": 1024},
}  # fmt: skip


PROPERTIES = [{
    "id": 0, "name": "NVIDIA A100-PG509-200", "computeMajor": 8, "computeMinor": 0, "warpSize": 32,
    "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "numSms": 108,
    "sharedMemPerMultiprocessor": 167936,
}]  # fmt: skip


HOST = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2}


NVPROF = """==1== NVPROF is profiling process 1, command: ./a
==1== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z",\
"Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","Device","Context","Stream","Name"
s,us,,,,,,,,KB,B,MB,GB/s,,,,
0.5,10.0,,,,,,,,,,16.0,1.0,"GeForce GTX 1080 Ti (0)","1","7","[CUDA memcpy HtoD]"
0.6,20.0,4096,2,1,512,1,1,19,8.0,256,,,"GeForce GTX 1080 Ti (0)","1","7","sort(int*, int) [1]"
0.7,1.0,,,,,,,,,,1.0,1.0,"GeForce GTX 1080 Ti (0)","1","7","[CUDA memset]"
"""


ROCPROF = (
    "Dispatch_ID,Kernel_Name,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Arch_VGPR,Accum_VGPR,"
    "Start_Timestamp,End_Timestamp\n"
    '0,"copy(double*, int)",1048576,256,0,8,0,1413827795608813,1413827795628973\n'
    '1,"copy(double*, int)",1048576,256,0,8,0,1413827795708813,1413827795728973\n'
)
