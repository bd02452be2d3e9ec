"""Recordings of other tools as importers: the kinds `perf` and `profile`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from jostle._base.option_fields import Positional, Short
from jostle._base.untrusted import understood
from jostle.data.read._memory_needs import with_memory_counters
from jostle.data.read._perf_stat import read as read_counters
from jostle.data.read._trace_readers import STEP, RecordedRun, read_profile
from jostle.data.tables import cells
from jostle.data.traces._profile_tasks import Profile
from jostle.data.traces._traces import Traces
from jostle.errors import UsageError


@dataclass(frozen=True)
class PerfImport:
    """Counter samples from `perf stat -I`, a file for each run, into traces."""

    name: ClassVar[str] = "perf"
    file: Annotated[
        Path | tuple[Path, ...],
        "What perf stat -I wrote, with -x, or -j, each file a run.",
        Positional(),
    ]
    workload: Annotated[str | None, "The workload's name."] = None
    platform: Annotated[str | None, "The platform's name."] = None
    beside: Annotated[tuple[str, ...], "A co-runner; may be repeated.", Short("-b")] = ()
    window: Annotated[str | None, "What runs traced together share."] = None
    run_id: Annotated[str | None, "The run's name; the file's by default."] = None
    runtime: Annotated[float | None, "Seconds of the whole run, where it had ended."] = None
    whole: Annotated[
        bool, "The run ended with the recording (perf stat -- CMD): it took as long as its samples."
    ] = False
    separator: Annotated[str, "What perf was given with -x."] = ","

    def read(self) -> Traces:
        """Read the samples of a recording.

        Raises UnreadableFile, BadData naming the line that cannot be read, and UsageError.
        """
        files = self.file if isinstance(self.file, tuple) else (self.file,)
        if self.whole and self.runtime is not None:
            what = "`whole` takes the runtime from the samples"
            raise UsageError(what, fix="Leave out `runtime`.")
        if self.workload is None:
            where = ", ".join(map(str, files[:3]))
            raise UsageError("it does not say what ran", where=where, fix="Say `workload`.")
        if len(files) > 1 and (self.run_id is not None or self.runtime is not None):
            raise UsageError(
                "a run's name and runtime are of one file",
                fix="Leave them out: files name their runs, and `whole` takes runtimes from samples.",
            )
        if not files:
            raise UsageError("no file is given")
        names = [Path(file).stem for file in files]
        traces = []
        for file, stem in zip(files, names, strict=True):
            # Files of one name in several folders are told apart by the folder.
            name = stem if names.count(stem) == 1 else f"{Path(file).parent.name}-{stem}"
            with understood(file):
                traces += list(self._one(Path(file), self.run_id or name))
        if len({(one.run_id, one.core) for one in traces}) < len(traces):
            raise UsageError("two files have the same name", fix="Give every file once.")
        return Traces.from_traces(traces)

    def _one(self, file: Path, run_id: str) -> Traces:
        facts = self.platform or "", self.beside, self.window, self.runtime
        recorded = RecordedRun(self.workload or "", run_id, None, *facts)
        traces = read_counters(file, recorded, self.separator)
        if not self.whole:
            return traces
        ended = [replace(one, runtime_seconds=float(one.time_seconds[-1])) for one in traces]
        return Traces.from_traces(ended)


@dataclass(frozen=True)
class ProfileImport:
    """Add what one run did on the accelerator, task by task."""

    name: ClassVar[str] = "profile"
    file: Annotated[
        Path,
        "Nsight Systems SQLite, Kineto JSON(.gz), nvprof, rocprof or nsys stats CSV.",
        Positional(),
    ]
    workload: Annotated[str | None, "What ran; the file's name by default."] = None
    run_id: Annotated[str | None, "A name for this run; the workload by default."] = None
    gpu: Annotated[str | None, "The device, where the file does not say: V100, A100, …"] = None
    format: Annotated[str | None, "nsys, kineto, nvprof or rocprof, instead of a look inside."] = (
        None
    )
    counters: Annotated[
        Path | None,
        "Counters of device memory for the same kernels, a CSV of ncu: then "
        "contention for memory bandwidth is simulated.",
    ] = None
    queries: Annotated[
        str,
        "How one query is told from a recording of many: steps as marked, gaps, whole, or auto (steps where "
        "at least two are marked).",
    ] = "auto"
    mark: Annotated[str, "How the names of annotations or NVTX ranges begin that mark a step."] = (
        STEP
    )
    memory: Annotated[
        str | None,
        "Of the device, that the run takes, such as 20GiB: what does not fit is never called safe.  "
        "[default: what the file says; PyTorch's does with profile_memory=True]",
    ] = None

    def read(self) -> Profile:
        """Read the tasks of a profile.

        Raises UnreadableFile, BadData for a file without tasks, UnknownName for a GPU, UsageError.
        """
        size = cells.asked(cells.size, self.memory, "`memory`", "20GiB")
        names = ("workload", "run_id", "gpu", "format", "queries", "mark")
        profile = read_profile(self.file, **{name: getattr(self, name) for name in names})
        profile = replace(profile, memory_bytes=size or profile.memory_bytes)
        return profile if self.counters is None else with_memory_counters(profile, self.counters)
