"""What is known of a recording beside its file, and what the beginning of a file says."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.traces.profiles._gpus import Gpu

STEP = "ProfilerStep#"  # what torch.profiler calls its steps


@dataclass(frozen=True)
class RecordedRun:
    """What a file may not say itself. workload, run_id: what ran and the run's name; empty, they come from
    the file's name. gpu: the device, instead of what the file says of it. The others are of traces:
    platform, co-runners, what runs recorded together share, and seconds of the whole run where it had ended.
    mark: how the names of annotations begin that mark a step (a query).
    """

    workload: str = ""
    run_id: str = ""
    gpu: Gpu | None = None
    platform: str = ""
    corunners: tuple[str, ...] = ()
    window_id: str | None = None
    runtime_seconds: float | None = None
    mark: str = STEP


def text_of(head: bytes) -> str:
    """The beginning of a file as text, without its mark of byte order and blank lines before it."""
    marked = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    return head.decode("utf-16" if marked else "utf-8", "replace").lstrip("\ufeff \t\r\n")
