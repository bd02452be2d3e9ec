"""Does a command line use up the files that it names, as `gzip FILE` does?

Programs run where the user stands, and more than once. One that changes a file that its words name would
find it changed the next time, and so would a copy of it beside: each of its executions gets copies of these
files in a folder of its own. It is found out on copies, once; the user's files are never touched by that.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from jostle.collect.slots._slots import Slot
from jostle.collect.workloads._job import JobSettings
from jostle.collect.workloads._workloads import Workload

_START_SECONDS, _SECONDS = 60.0, 10.0
_MOST_BYTES = 1 << 30


def named_files(workload: Workload) -> tuple[Path, ...]:
    """Return the files that the command line names and that lie below its folder, as it names them."""
    job = workload.job or JobSettings()
    if workload.kind != "command" or job.has_own_folder:
        return ()
    folder = job.directory or Path.cwd()
    words = (Path(word) for word in workload.arguments if word and "\0" not in word)
    with suppress(OSError):
        return tuple(
            dict.fromkeys(
                path
                for path in words
                if not path.is_absolute() and ".." not in path.parts and (folder / path).is_file()
            )
        )
    return ()


def with_own_copies(workload: Workload) -> Workload:
    """Return the workload in a folder of its own, if running it changes files that it names: with copies of
    these. Else the workload itself."""
    files = named_files(workload)
    job = workload.job or JobSettings()
    folder = job.directory or Path.cwd()
    if not files or sum((folder / path).stat().st_size for path in files) > _MOST_BYTES:
        return workload
    if not _changes(workload, job, folder, files):
        return workload
    return replace(workload, job=replace(job, directory=None, inputs=files, fresh_folder=True))


def _changes(workload: Workload, job: JobSettings, folder: Path, files: tuple[Path, ...]) -> bool:
    with tempfile.TemporaryDirectory(prefix="jostle-trial-") as trial:
        for path in files:
            (Path(trial) / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / path, Path(trial) / path)
        before = [_state(Path(trial) / path) for path in files]
        job = replace(job, directory=Path(trial), before=(), after=(), expected=None)
        parts = [{**replace(workload, job=job).part(), "kind": "job"}]
        slot = Slot()  # which ends all that it started
        try:
            slot.ask({"do": "prepare", "engine": "native", "parts": parts}, _START_SECONDS)
            slot.ask({"do": "execute", "start_ns": 0}, _SECONDS)
        finally:
            slot.kill()
        return before != [_state(Path(trial) / path) for path in files]


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns
