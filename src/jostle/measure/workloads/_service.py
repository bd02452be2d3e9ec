"""Services under load: a server, a way to tell that it is ready, and requests at a rate."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from jostle.errors import UnreadableFile, UsageError
from jostle.measure.workloads._job import JobSettings
from jostle.measure.workloads._load_settings import LoadSettings
from jostle.measure.workloads._workloads import Workload

_MOST_PER_SECOND = 20_000.0


def service_workload(
    words: Sequence[str],
    rate: float,
    *,
    url: str = "",
    ready: Sequence[str] = (),
    load: Sequence[str] = (),
    quantile: float = 0.99,
    name: str | None = None,
    job: JobSettings | None = None,
) -> Workload:
    """A server's command line and the load on it as a workload, called NAME@100rps: see LoadSettings.

    job: its directory and environment are those of all command lines. Raises UsageError for a rate,
    quantile or url that cannot be, UnreadableFile for a program or folder that is not there.
    """
    if not words or not words[0]:
        raise UsageError("a server's command line has at least one word")
    if not 0 < rate <= _MOST_PER_SECOND:
        raise UsageError(
            f"a rate is above 0 and at most {_MOST_PER_SECOND:g} a second, not {rate:g}"
        )
    if not 0 < quantile < 1:
        raise UsageError(f"a quantile is between 0 and 1, not {quantile:g}")
    if url and not re.fullmatch(r"http://[\w.\-\[\]:{}]+(/\S*)?", url):
        raise UsageError(f"{url!r:.100} is no address", fix="Write http://127.0.0.1:{port}/path.")
    if not url and not (ready and load):
        raise UsageError("without a url both `ready` and `load` are needed")
    for program in (words, ready, load):
        if program and shutil.which(program[0]) is None:
            raise UnreadableFile("no such program, or not executable", where=program[0])
    job = job or JobSettings()
    if job.inputs or job.before or job.after or job.expected:
        raise UsageError("a service has a directory and an environment, and nothing else around it")
    spelled = name or re.sub(r"[^\w.=]+", "-", " ".join([Path(words[0]).name, *words[1:]]))[
        :60
    ].strip("-")
    settings = LoadSettings(
        float(rate),
        url,
        tuple(ready),
        tuple(load),
        quantile,
        "" if job.directory is None else str(job.directory),
        job.environment,
    )
    program = Path(str(shutil.which(words[0]))).absolute()
    return Workload(
        f"{spelled}@{rate:g}rps",
        program,
        kind="service",
        family="service",
        arguments=tuple(words[1:]),
        service=settings,
    )
