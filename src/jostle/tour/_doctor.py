"""What Jostle can do on a machine: its installation, extras, measuring, graphics processors."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from jostle._report import Report, Table
from jostle.errors import MissingExtra, extras, install_command

FOR = {
    "alignment": "learning from counter traces, jostle fit alignment",
    "bridge": "exact transport in forecasts",
    "cluster": "many machines, with Dask",
    "evaluate": "the papers' protocols and figures, pictures",
    "fit": "jostle fit with factorization and slowdown",
    "measure": "jostle measure, trace, tour with WebAssembly programs",
    "place": "jostle place assign, --among-chosen",
    "postgresql": "a service whose replicas share a database",
    "service": "jostle serve, jostle.Client",
    "simulate": "a compiled simulator of accelerators",
}

_ENGINES = {
    "native": "Install gcc with the system's packages.",
    "node": "Install Node.js.",
    "wasm3": "Install with: pip install pywasm3",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. works: None for a mere fact. told: the fact, in words. fix: what to do,
    where it helps."""

    part: str
    what: str
    works: bool | None
    told: str
    fix: str | None = None


Row = tuple[str, bool | None, str, str | None]  # (what, works, told, fix)


def findings() -> list[Finding]:
    """Everything, in the order in which it is shown."""
    parts = {
        "Installation": _installation(),
        "Extras": _extras(),
        "Measuring: engines": _engines(),
        "Measuring: counters": _counters(),
        "Graphics processors": _graphics(),
    }
    return [Finding(part, *row) for part, rows in parts.items() for row in rows]


def doctor_report() -> Report:
    """What this machine can do, what is missing, and how to get it."""
    every = findings()
    document = {"schema": "doctor/v1", "findings": [vars(one) for one in every]}
    parts: list[Table | str] = []
    for part in dict.fromkeys(one.part for one in every):
        parts += [Table(["", "", ""], [_row(one) for one in every if one.part == part], title=part)]
        parts += [""]
    missing = sum(one.works is False for one in every)
    parts.append(f"{missing} missing, each with what helps" if missing else "everything is here")
    return Report(document, parts)


def _row(one: Finding) -> list[str]:
    mark = {True: "yes", False: "no", None: ""}[one.works]
    return [one.what, mark, f"{one.told}. {one.fix}" if one.fix else one.told]


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


def _extras() -> list[Row]:
    rows: list[Row] = []
    for extra, names in sorted(extras().items()):
        missing = [name for name in names if not _is_installed(name)]
        text = FOR.get(extra, "") + (f"; missing: {', '.join(missing)}" if missing else "")
        fix = f"Install with: {install_command(extra)}" if missing else None
        rows.append((extra, not missing, text, fix))
    return rows


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _engines() -> list[Row]:
    from jostle.measure import engine_table

    try:
        engines = engine_table()
    except MissingExtra as error:
        return [("WebAssembly", False, error.what, error.fix)]
    return [
        (name, True, what, None)
        if reason is None
        else (name, False, f"{what}; {reason}", _ENGINES.get(name.partition("-")[0]))
        for name, what, reason in engines
    ]


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
    valgrind = shutil.which("valgrind") is not None
    fix = None if valgrind else "Install it with the system's packages."
    text = "instruction mixes of native commands, jostle opcodes"
    return [*rows, ("valgrind", valgrind, text, fix)]


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
    ("control groups v2", "/sys/fs/cgroup/cgroup.controllers", "limits as variants of an engine"),
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
