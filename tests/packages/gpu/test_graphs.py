"""CUDA graphs: recorded whole or node by node, with schedules worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from jostle.data import GPUS, gpu_named, tasks_from_rows
from jostle.errors import UsageError
from jostle.gpu import Application, split_device
from jostle.gpu import Device as SharedDevice
from tests.packages.gpu.made_profiles import ENGINES, FULL, ends


def of_rows(*rows: tuple[str, float, float, int, int | None]) -> Application:
    """rows: (kind, start, seconds, blocks, node); two blocks fill a PE of 80."""
    made: list[dict[str, Any]] = []
    for kind, start, seconds, blocks, node in rows:
        row = {"kind": kind, "start_seconds": start, "duration_seconds": seconds, "stream": 7}
        shape = {} if kind != "kernel" else {**FULL, "blocks": blocks}
        made.append({**row, **shape, "graph_node": node})
    return Application.from_profile(tasks_from_rows(made, run_id="a", gpu=GPUS["V100"]))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_graph_recorded_whole_takes_the_device(engine: Any) -> None:
    """A: a graph of 10 s, then half of the device for 4 s. B: half of it for 3 s from 1 s on. B waits for the
    graph, then both run side by side."""
    one = of_rows(("graph", 0.0, 10.0, 0, None), ("kernel", 10.0, 4.0, 80, None))
    other = of_rows(("kernel", 0.0, 1.0, 80, None), ("kernel", 1.0, 3.0, 80, None))
    assert ends(engine, one) == pytest.approx([14])
    assert any("no launch shape" in note for note in one.notes)
    # B's first kernel finds no room before 10 s either, and ends at 11; its second beside A's until 14.
    assert ends(engine, one, other) == pytest.approx([14, 14])


@pytest.mark.parametrize("engine", ENGINES)
def test_branches_of_a_graph_run_beside_each_other(engine: Any) -> None:
    """A graph in one stream: root 2 s on 20 PEs, two branches of 4 and 6 s on 40 PEs each, a join of 1 s."""
    graph = of_rows(
        ("kernel", 0.0, 2.0, 40, 1),
        ("kernel", 2.0, 4.0, 80, 2),
        ("kernel", 2.0, 6.0, 80, 3),
        ("kernel", 8.0, 1.0, 40, 4),
    )
    assert len(graph) == 4
    assert ends(engine, graph) == pytest.approx([9])
    # Beside 80 PEs for 1 s that come at the same time and are first: all of it is 1 s later.
    full = of_rows(("kernel", 0.0, 1.0, 160, None))
    assert ends(engine, full, graph) == pytest.approx([1, 10])
    # Beside 40 PEs from 3 s on, for 2 s: no room until the shorter branch ends at 6 s; ends at 8.
    half = of_rows(("htod", 0.0, 3.0, 0, None), ("kernel", 3.0, 2.0, 80, None))
    assert ends(engine, graph, half) == pytest.approx([9, 8])


def test_kernels_of_one_stream_without_a_graph_stay_in_one_lane() -> None:
    found = of_rows(("kernel", 0.0, 4.0, 80, None), ("kernel", 2.0, 4.0, 80, None))
    assert not found.columns.is_parallel
    assert any("overlap" in note for note in found.notes)


@pytest.mark.parametrize(
    ("gpu", "text", "shares"),
    [
        ("H100", "3g.40gb,4g.40gb", [(60, 0.5), (64, 0.5)]),
        ("A100", "1g.5gb+me,1g.10gb", [(14, 0.125), (14, 0.25)]),
        ("A100 80GB", "MIG 3g.40gb,4g", [(42, 0.5), (56, 0.5)]),
        ("H200", "3g.71gb,3g.71gb", [(60, 0.5), (60, 0.5)]),
        ("H100", "1g.20gb,1g.10gb", [(26, 0.25), (16, 0.125)]),
        ("NVIDIA GH200 480GB", "1g.12gb,4g.48gb", [(16, 0.125), (64, 0.5)]),
        ("NVIDIA B200", "1g.23gb,1g.45gb,2g.45gb", [(18, 0.125), (30, 0.25), (36, 0.25)]),
        ("NVIDIA GB200", "2g.47gb,2g.47gb", [(38, 0.25), (38, 0.25)]),
        ("NVIDIA A30", "2g.12gb,1g.6gb+me", [(28, 0.5), (14, 0.25)]),
    ],
)
def test_slices_by_their_full_names(gpu: str, text: str, shares: list) -> None:
    found = split_device(SharedDevice.of(gpu_named(gpu)), text).partitions
    assert [(part.pes, part.resource_ratio) for part in found] == shares


def test_slices_that_a_device_does_not_have() -> None:
    unlisted = [("P100", "1g,2g"), ("H20", "1g,1g"), ("B200", "3g,4g"), ("L40S", "1g,1g")]
    other_memory = [("A100", "3g.40gb,4g"), ("H200", "3g.40gb,3g"), ("V100", "3g.40gb,3g")]
    for gpu, text in (*unlisted, *other_memory):
        with pytest.raises(UsageError, match="slice"):
            split_device(SharedDevice.of(gpu_named(gpu)), text)
    assert gpu_named("Tesla V100-SXM2-32GB").memory_bytes is None
    assert gpu_named("NVIDIA A100-SXM4-80GB").memory_bytes == 80e9
