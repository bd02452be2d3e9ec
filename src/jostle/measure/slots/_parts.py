"""What an engine makes of a workload: whether it can run it, what a slot is told, how long a beat is."""

from __future__ import annotations

from typing import Any

from jostle.measure.host._engines import engine_setting
from jostle.measure.host._variants import variant_of
from jostle.measure.workloads._workloads import Workload


def can_run(engine: str, workload: Workload) -> bool:
    """Whether this engine runs workloads of this kind; natively, kernels that have a C source."""
    runs = engine_setting(engine).runs
    if workload.kind == "kernel" and "native" in runs:
        return workload.module.with_suffix(".c").exists()
    return workload.kind in runs


def part_of(workload: Workload, engine: str) -> dict[str, Any]:
    """What a slot must know to set a workload up on an engine."""
    part = workload.part()
    container = part.get("job", {}).get("container")
    if container is not None:  # control groups of its own: the platform's limits are told to it
        variant = variant_of(engine)
        container |= {"quota_ratio": variant.quota_ratio, "memory_bytes": variant.memory_bytes}
    native = part["kind"] == "kernel" and "native" in engine_setting(engine).runs
    return {**part, "kind": "native"} if native else part


def repeats_per_beat(workload: Workload, engine: str) -> int:
    """How much of a repetition one beat holds: all of it, or in an interpreter about a thirtieth.

    Beats of a few milliseconds at most can tell a quiet moment from a disturbed one.
    """
    cut = engine_setting(engine).interprets and workload.kind == "kernel"
    return max(1, workload.repeats // 32) if cut else workload.repeats
