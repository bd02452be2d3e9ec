"""Time-resolved profiles: what runs did while they ran.

This file is the room's whole public face. Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._counters import Trace, Traces
    from ._perf_stat import read_perf_stat
    from ._store import read_traces, write_traces

_HOMES = {
    "Trace": "_counters",
    "Traces": "_counters",
    "read_perf_stat": "_perf_stat",
    "read_traces": "_store",
    "write_traces": "_store",
}

__all__ = ["Trace", "Traces", "read_perf_stat", "read_traces", "write_traces"]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
