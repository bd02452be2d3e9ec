"""What Jostle can do on a machine: its installation, extras, measuring, graphics processors."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any

from jostle._report import Report, Table
from jostle.errors import extras, install_command

FOR = {
    "fit": "jostle fit, place assign, pictures, the papers' protocols",
    "measure": "jostle measure, trace and tour with WebAssembly programs, and on many machines",
    "serve": "jostle serve, jostle.Client",
}

_ENGINES = {
    "wasm3": "pip install pywasm3",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. works: None for a mere fact. told: the fact, in words. fix: what to do,
    where it helps. trouble: what is here does not do what it should, whether or not it is wanted."""

    part: str
    what: str
    works: bool | None
    told: str
    fix: str | None = None
    trouble: bool = False


Row = tuple[str, bool | None, str, str | None]  # (what, works, told, fix)
TroubleRow = tuple[str, bool | None, str, str | None, bool]  # and whether it is trouble


def findings() -> list[Finding]:
    """Everything, in the order in which it is shown."""
    parts: dict[str, Sequence[tuple[Any, ...]]] = {
        "Installation": _installation(),
        "Extras": _extras(),
        "Measuring: engines": _engines(),
        "Measuring: counters": _counters(),
        "Graphics processors": _graphics(),
    }
    return [Finding(part, *row) for part, rows in parts.items() for row in rows]


def doctor_report() -> Report:
    """What this machine can do, what is missing, and how to get it; ends with 1 where something is broken."""
    every = findings()
    document = {"schema": "doctor/v1", "findings": [vars(one) for one in every]}
    parts: list[Table | str] = []
    mark = {True: "yes", False: "no", None: ""}
    for part in dict.fromkeys(one.part for one in every):
        own = [one for one in every if one.part == part]
        rows = [[one.what, "broken" if one.trouble else mark[one.works], one.told] for one in own]
        parts.append(Table(["", "", ""], rows, title=part, wrapped=(2,)))
        # Below the table: lines that no column cuts, since they are typed or copied.
        parts += [f"  {one.what}: {one.fix}" for one in own if one.fix]
        parts.append("")
    missing = sum(one.works is False and not one.trouble for one in every)
    broken = [one.what for one in every if one.trouble]
    if broken:
        parts.append(f"broken: {', '.join(broken)}")
    parts.append(
        f"{missing} not here, which is no trouble unless you want it" if missing else "all is here"
    )
    return Report(document, parts, exit_code=int(bool(broken)))


def _installation() -> list[Row]:
    import jostle

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    version = ".".join(map(str, sys.version_info[:3]))
    linux = sys.platform.startswith("linux")
    text = "measuring works" if linux else "predictions work, measuring does not"
    return [
        ("jostle", None, f"{jostle.__version__} in {Path(jostle.__file__).parent}", None),
        ("Python", None, f"{version} on {platform.platform(terse=True)}", None),
        ("cores", None, f"{cores} that it may use", None),
        ("Linux", linux, text, None),
    ]


def _extras() -> list[TroubleRow]:
    rows: list[TroubleRow] = []
    for extra, names in sorted(extras().items()):
        missing = [name for name in names if _version(name) is None]
        wrong = [text for name in names if (text := _unfit(name, extra))]
        text = FOR.get(extra, "")
        text += f"; missing: {', '.join(missing)}" if missing else ""
        text += f"; not as needed: {', '.join(wrong)}" if wrong else ""
        fix = install_command(extra) if missing or wrong else None
        rows.append((extra, not (missing or wrong), text, fix, bool(wrong)))
    return rows


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


_COMPARED = {">=": ge, "<": lt, "<=": le, ">": gt}


def _unfit(name: str, extra: str) -> str | None:
    """A package that is here in a version that the extra does not allow."""
    here = _version(name)
    if here is None:
        return None
    for line in metadata.requires("jostle") or []:
        wanted, _, marker = line.partition(";")
        if not re.match(rf"\s*{re.escape(name)}\b", wanted) or f'"{extra}"' not in marker.replace(
            "'", '"'
        ):
            continue
        for sign, number in re.findall(r"(>=|<=|<|>)\s*([0-9.]+)", wanted):
            if not _COMPARED[sign](_numbers(here), _numbers(number)):
                return f"{name} {here}, wanted {sign}{number}"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version)[:3])


def _engines() -> list[TroubleRow]:
    from jostle.measure import engine_table

    rows: list[TroubleRow] = []
    for name, what, reason in engine_table():
        told = what if reason is None else f"{what}; {reason}"
        fix = None if reason is None else _ENGINES.get(name)
        is_broken = reason is not None and ("is wrong" in reason or "in time" in reason)
        rows.append((name, reason is None, told, fix, is_broken))
    return rows


def _counters() -> list[Row]:
    from jostle.measure import available_counters

    counters = available_counters()
    hardware = "perf_instructions" in counters
    rows: list[Row] = [
        ("hardware counters", True, f"{len(counters)} events", None)
        if hardware
        else ("hardware counters", False, _without_counters(), _NO_COUNTERS)
    ]
    for what, path, text in _FILES:
        fix = f"{path} cannot be read; a newer kernel or another container has it."
        there = os.access(path, os.R_OK)
        rows.append((what, there, text, None if there else fix))
    return rows


_NO_COUNTERS = (
    "Traces then hold exact progress, CPU time and pressure, which is enough to learn from."
)
_FILES = (
    ("pressure (PSI)", "/proc/pressure/cpu", "who waited for what in a window"),
    (
        "scheduler waits",
        "/proc/self/schedstat",
        "tells a core that was taken from a program that waits",
    ),
    ("control groups v2", "/sys/fs/cgroup/cgroup.controllers", "traces of what runs in one"),
)


def _without_counters() -> str:
    try:
        level = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    except OSError:
        return "the kernel has none, or hides them"
    if level.lstrip("-").isdigit() and int(level) > 2 and os.geteuid() != 0:
        return f"perf_event_paranoid is {level}: ask for 2 or less"
    return "a virtual machine without them, or a processor that Linux cannot count on"


def _graphics() -> list[Row]:
    there = Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()
    text = "no device here; profiles from elsewhere can be imported"
    tools = [name for name in ("nsys", "rocprofv3", "ncu") if shutil.which(name)]
    profilers = ", ".join(tools) if tools else "none of nsys, ncu, rocprofv3 found here"
    return [
        ("device", None, "a device is here" if there else text, None),
        ("profilers", None, profilers, None),
    ]
