"""Samples and readers of recordings that are several files, or a service's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.packages.data.traces.other_recordings_samples import AGENTS, COPIES, KERNELS
from tests.packages.data.traces.services_samples import every, matrix

ROCPROF_V3 = KERNELS.encode()
PROMETHEUS: Any = matrix(
    ({"__name__": "x_total", "pod": "a"}, every(10, [0, 10, 30, 5, 8])),
    ({"__name__": "x_total", "pod": "b"}, every(10, [1, 2, "NaN", 3, 4])),
    ({"__name__": "memory_bytes", "pod": "a"}, every(10, [7, 8, 9, "+Inf", 7])),
)
SERIES = (
    b"time,host,cpu_seconds_total,memory_bytes\n2026-01-01T00:00:00Z,a,0,5\n2026-01-01T00:00:10Z,a,4,6\n"
    b"2026-01-01T00:00:20Z,a,9,7\n2026-01-01T00:00:30Z,a,1,7\n1767225600,b,3,1\n1767225610,b,5,2\n"
)


def rocprof_v3_rest(folder: Path) -> None:
    (folder / "1_memory_copy_trace.csv").write_text(COPIES)
    (folder / "1_agent_info.csv").write_text(AGENTS)
