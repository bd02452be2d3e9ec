"""In a slot: what is run for a command line in a container, and how it is ended."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

_REMOVED_SECONDS = 60.0
_LABEL = "jostle"


def run_words(
    program: str, job: Mapping[str, Any], words: Sequence[str], folder: str, name: str
) -> list[str]:
    """The program's command line, for a container on the cores that this process may use.

    name: of the container. job: settings as a slot is told them; its limits are those of the platform.
    """
    container = job["container"]
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    options = ["--rm", "--pull=never", f"--name={name}", f"--label={_LABEL}={os.getppid()}"]
    options += [f"--cpuset-cpus={cores}", f"--volume={folder}:/work", "--workdir=/work"]
    if (quota := container.get("quota_ratio")) is not None:
        options.append(f"--cpus={quota:g}")
    if (memory := container.get("memory_bytes")) is not None:
        options.append(f"--memory={memory}")
    options += [f"--env={key}={value}" for key, value in job.get("environment", {}).items()]
    return [program, "run", *options, *container["options"], container["image"], *words]


def remove(program: str, name: str) -> None:
    """End a container and forget it, if it is there."""
    # `rm --force` alone would ask it to end first, and wait.
    for words in (["kill", name], ["rm", "--force", name]):
        _told(program, words)


def remove_all(program: str, owner: int) -> None:
    """The same for all that the slots of a process have begun. What runs them should still be alive."""
    listed = _told(program, ["ps", "--all", "--quiet", f"--filter=label={_LABEL}={owner}"])
    for number in listed.split():
        remove(program, number)


def _told(program: str, words: Sequence[str]) -> str:
    """What it prints; nothing where it fails."""
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [program, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_REMOVED_SECONDS,
            check=False,
        )
        return done.stdout.decode("ascii", "replace")
    return ""
