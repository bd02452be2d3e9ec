"""Bandwidth needs of kernels from the sizes of tensors in Kineto traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jostle.data import read_profile
from tests.packages.data.traces.profiles_samples import COPY, HOST, KERNEL, PROPERTIES, kineto


def test_sizes_of_tensors_say_what_kernels_need(tmp_path: Path) -> None:
    """An operator of two kernels of 10 us and 30 us, given 2 MB and a number that is read again and again."""
    shapes = {
        "External id": 7,
        "Input Dims": [[1000, 500], [1000, 500], [], [[3, 3]]],
        "Input type": ["float", "float", "Scalar", "TensorList"],
        "Input Strides": [[500, 1], [0, 0], [], [[3, 1]]],
    }
    first = {**KERNEL, "args": {**KERNEL["args"], "External id": 7}}
    second = {**first, "ts": 900, "dur": 30}
    other = {**KERNEL, "ts": 2000, "args": {**KERNEL["args"], "External id": 8}}
    events = [first, {**HOST, "args": shapes}, other, second, COPY]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(kineto(*events, deviceProperties=PROPERTIES)))
    found = read_profile(path)
    rows = found.tasks.to_pylist()
    # 640 blocks of 4 warps, 16 warps at a time on each of 108 PEs: all are in use.
    need = (1000 * 500 + 1) * 4 / 40e-6 / 108
    assert [row["bandwidth_per_pe"] for row in rows if row["start_seconds"] < 1.9e-3] == [
        *(pytest.approx(need) if row["kind"] == "kernel" else None for row in rows[:-1])
    ]
    assert rows[-1]["bandwidth_per_pe"] is None
    assert any("2 of 3 kernels is from the sizes of the tensors" in note for note in found.notes)
    # No more than the memory can do.
    shapes["Input Dims"] = [[100_000, 5000], [1, 1], [], []]
    path.write_text(json.dumps(kineto(*events, deviceProperties=PROPERTIES)))
    gpu = found.gpus[0]
    assert gpu is not None
    peak = gpu.memory_bandwidth_bytes_per_second
    assert peak is not None
    needs = [row["bandwidth_per_pe"] for row in read_profile(path).tasks.to_pylist()]
    assert max(filter(None, needs)) == pytest.approx(peak / 108)


@pytest.mark.parametrize(
    "wrong",
    [
        {"Input Dims": [[]], "Input type": ["float"]},
        {"Input Dims": [[-3]], "Input type": ["float"]},
        {"Input Dims": [[True]], "Input type": ["float"]},
        {"Input Dims": [["a"]], "Input type": ["float"]},
        {"Input Dims": [[1e300, 1e300]], "Input type": ["float"]},
        {"Input Dims": [[1 << 40, 1 << 40]], "Input type": ["float"]},
        {"Input Dims": [[3], [4]], "Input type": ["float"]},
        {"Input Dims": 5, "Input type": "float"},
        {"Input Dims": [[3]], "Input type": [["float"]]},
        {"Input Dims": [[3]], "Input type": ["of no known size"]},
        {"Input Dims": [[3]], "Input type": ["float"], "External id": "7"},
        {"Input Dims": [[3]], "Input type": ["float"], "External id": 1 << 70},
    ],
)
def test_sizes_that_say_nothing(tmp_path: Path, wrong: dict[str, Any]) -> None:
    kernel = {**KERNEL, "args": {**KERNEL["args"], "External id": 7}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(kineto(kernel, {**HOST, "args": {"External id": 7, **wrong}})))
    found = read_profile(path, gpu="A100")
    assert found.tasks.to_pylist()[0]["bandwidth_per_pe"] is None
    assert not any("tensors" in note for note in found.notes)
