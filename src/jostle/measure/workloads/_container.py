"""Workloads of command lines in containers (an image that podman or docker has here), and servers under
load.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jostle.errors import UnreadableFile, UsageError
from jostle.measure.workloads._job import ContainerSettings, JobSettings, LoadSettings
from jostle.measure.workloads._workloads import Workload, spelled

PROGRAMS = ("podman", "docker")
_ASKED_SECONDS = 30.0
# What Jostle says itself, so that it knows what runs and where.
_OWN_OPTIONS = ("--rm", "--name", "--detach", "-d", "--cpuset-cpus", "--label", "--pull")


def container_workload(
    image: str,
    words: Sequence[str] = (),
    *,
    name: str | None = None,
    job: JobSettings | None = None,
    options: Sequence[str] = (),
) -> Workload:
    """A finished job in a fresh container of an image; its runtime is that of `podman run` from start to end.

    words: the command line in it; none is the image's own. job: the folder where it runs, with its inputs, is
    /work in the container, and its environment is the container's; before and after run outside. options: of
    `run`, such as --network=none. Raises UsageError, and UnreadableFile where there is neither podman nor
    docker, or neither has the image.
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w.:/@\-]{0,255}", image):
        raise UsageError(f"{image!r:.100} is no name of an image")
    for option in options:
        if not option.startswith("-") or option.partition("=")[0] in _OWN_OPTIONS:
            raise UsageError(
                f"{option!r:.100} cannot be an option of the container",
                fix="Write each as one word with a dash in front, such as that for the network; the "
                "container's name, cores, label and removal are Jostle's own.",
            )
    program = _program_with(image)
    settings = ContainerSettings(image, tuple(options), Path(program).name == "podman")
    return Workload(
        name or spelled([image, *words]),
        Path(program).absolute(),
        kind="command",
        family="container",
        arguments=tuple(words),
        job=replace(job or JobSettings(), container=settings),
    )


def _program_with(image: str) -> str:
    """The first program here that has the image."""
    why = []
    for name in PROGRAMS:
        program = shutil.which(name)
        if program is None:
            continue
        try:
            done = subprocess.run(
                [program, "image", "inspect", image],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ASKED_SECONDS,
                check=False,
            )
        except (subprocess.TimeoutExpired, OSError) as error:
            why.append(f"{name}: {type(error).__name__}")
            continue
        if done.returncode == 0:
            return program
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        why.append(f"{name}: {' '.join([line for line in lines if line.strip()][-1:])[:200]}")
    if not why:
        raise UnreadableFile(
            "neither podman nor docker is installed here, so no image can be run",
            where=image,
            fix="Install one of them, or measure the command line itself.",
        )
    raise UnreadableFile(
        f"the image cannot be run here ({'; '.join(why)})",
        where=image,
        fix=f"See that the program works, and fetch the image before: {why[0].split(':')[0]} pull IMAGE.",
    )


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
    called = name or spelled([Path(words[0]).name, *words[1:]], 60)
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
        f"{called}@{rate:g}rps",
        program,
        kind="service",
        family="service",
        arguments=tuple(words[1:]),
        service=settings,
    )
