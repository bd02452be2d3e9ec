"""The shipped kernels compute what they say, the same on every engine."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wasmtime

from benchmarks import build_kernels as build
from jostle.collect import (
    KERNEL_FOLDER,
    Workload,
    available_engines,
    engine_setting,
    find_workloads,
    make_engine,
    shipped_workloads,
)
from jostle.collect.slots._available import CHECKSUM, find_engines, why_not
from jostle.collect.slots._slots import Slot
from jostle.errors import UnknownName, UnreadableFile, UsageError

from .oracles import ORACLES, chase_line

KERNELS = sorted({workload.kernel for workload in shipped_workloads()})

WASMTIME = [name for name in available_engines() if engine_setting(name).is_wasmtime]


def run(kernel: str, n: int, repeats: int = 1, engine: str = "speed") -> tuple[bytes, int, Any]:
    """(result, checksum, export caller) of a kernel after set-up and some repetitions."""
    store = wasmtime.Store(make_engine(engine))
    module = wasmtime.Module.from_file(store.engine, str(KERNEL_FOLDER / f"{kernel}.wasm"))
    exports: Any = wasmtime.Instance(store, module, []).exports(store)
    exports["setup"](store, n)
    exports["run"](store, repeats)
    start, size = exports["result"](store), exports["result_bytes"](store)
    result = bytes(exports["memory"].read(store, start, start + size))
    return result, exports["checksum"](store) % 2**64, exports


@pytest.mark.parametrize("kernel", sorted(ORACLES))
def test_result_equals_the_oracle(kernel: str) -> None:
    n, oracle, floating = ORACLES[kernel]
    found, expected = run(kernel, n)[0], oracle(n)
    if floating:
        found, expected = np.frombuffer(found), np.frombuffer(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    else:
        assert found == expected


def test_chase_walks_one_cycle_through_all_lines() -> None:
    n = 1 << 18  # 4096 lines: 4096 steps come back to the first
    first = int.from_bytes(run("chase", n, 0)[0], "little")
    assert int.from_bytes(run("chase", n, 1)[0], "little") == first
    assert (
        int.from_bytes(run("chase", 2 * n, 1)[0], "little")
        == first + 64 * chase_line(2 * n)
        != first
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_engine_gives_the_same_bits(kernel: str) -> None:
    small = find_workloads([f"{kernel}-s"])[0].argument
    results = {run(kernel, small, 2, engine)[:2] for engine in WASMTIME}
    assert len(results) == 1
    assert results.pop()[1] == build.record()["checksum"][kernel]


@pytest.mark.skipif("wasm3" not in available_engines(), reason="wasm3 is not installed")
def test_wasm3_gives_wasmtimes_results() -> None:
    slot = Slot()
    try:
        for workload in find_workloads(["*-s"]):
            prepare = {"do": "prepare", "engine": "wasm3", "parts": [workload.part()]}
            assert "ready" in slot.ask(prepare, 60)
            found = slot.ask({"do": "checksum"}, 60)["checksum"]
            assert found == str(run(workload.kernel, workload.argument)[1]), workload.kernel
    finally:
        slot.kill()


def test_the_known_checksum_is_that_of_sha256() -> None:
    expected = 0xCBF29CE484222325
    for byte in ORACLES["sha256"][1](1024):
        expected = (expected ^ byte) * 0x100000001B3 % 2**64
    assert expected == CHECKSUM


def test_an_engine_that_does_not_work_says_why() -> None:
    ((name, why),) = why_not((replace(engine_setting("speed"), name="nothing"),)).items()
    assert name == "nothing"
    assert why


def test_checksum_is_fnv_1a_of_the_result() -> None:
    result, checksum, _ = run("sort", 100)
    expected = 0xCBF29CE484222325
    for byte in result:
        expected = (expected ^ byte) * 0x100000001B3 % 2**64
    assert checksum == expected


def test_rebuilding_gives_the_recorded_modules(tmp_path: Path) -> None:
    compiler, record = build.compiler_version(), build.record()
    if compiler is None:
        pytest.skip("clang and wasm-ld are not installed")
    for kernel in KERNELS:
        rebuilt = tmp_path / f"{kernel}.wasm"
        build.build(KERNEL_FOLDER / f"{kernel}.c", rebuilt)
        if compiler == record["compiler"]:
            assert rebuilt.read_bytes() == (KERNEL_FOLDER / rebuilt.name).read_bytes(), kernel
        else:  # another compiler may choose other instructions, but not other results
            n = find_workloads([f"{kernel}-s"])[0].argument
            store = wasmtime.Store(make_engine("speed"))
            module = wasmtime.Module.from_file(store.engine, str(rebuilt))
            exports: Any = wasmtime.Instance(store, module, []).exports(store)
            exports["setup"](store, n)
            exports["run"](store, 1)
            assert exports["checksum"](store) % 2**64 == run(kernel, n)[1], kernel


def test_the_record_is_of_the_shipped_modules() -> None:
    shipped = {path.name: path for path in KERNEL_FOLDER.glob("*.wasm")}
    digests = {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in shipped.items()
    }
    assert digests == build.record()["sha256"]
    assert [path.stem for path in build.kernel_sources()] == KERNELS


def test_workloads_are_found_by_name_and_pattern() -> None:
    assert [w.name for w in find_workloads(["sort-l", "chase-*"])] == [
        *("chase-l", "chase-m", "chase-s", "sort-l"),
    ]
    assert len(find_workloads(None)) == 3 * len(KERNELS) == 60
    with pytest.raises(UnknownName, match="sort-l"):
        find_workloads(["sort-xl"])


def test_bad_workloads_are_refused(tmp_path: Path) -> None:
    sort = find_workloads(["sort-s"])[0]
    with pytest.raises(UsageError):
        find_workloads([sort, Workload("sort-s", sort.module, 1, 1)])
    with pytest.raises(UsageError):
        Workload("a+b", sort.module, 1, 1)
    with pytest.raises(UsageError):
        Workload("a", sort.module, -1, 1)
    with pytest.raises(UnreadableFile):
        _ = Workload("a", tmp_path / "none.wasm", 1, 1).digest


def test_only_listed_engines_reach_wasmtime() -> None:
    assert set(available_engines()) >= {"speed", "none", "checked", "pulley"}
    with pytest.raises(UnknownName):
        find_engines(["x86_64-unknown-nothing"])
    with pytest.raises(UsageError):
        find_engines([])
    for gone in ("winch", "node", "speed@nice=10"):
        with pytest.raises(UnknownName):
            find_engines([gone])
