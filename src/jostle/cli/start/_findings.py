"""What is looked at: the installation, its extras, measuring, graphics processors."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

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
    """One thing that was looked at. works: None where it is only told. fix: what to do, where it helps."""

    part: str
    what: str
    works: bool | None
    told: str
    fix: str | None = None


def findings() -> list[Finding]:
    """Everything, in the order in which it is shown."""
    return [*_installation(), *_extras(), *_measuring(), *_graphics()]


def _installation() -> list[Finding]:
    import jostle

    where = Path(jostle.__file__).parent
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    version = ".".join(map(str, sys.version_info[:3]))
    linux = sys.platform.startswith("linux")
    return [
        Finding("Installation", "jostle", None, f"{jostle.__version__} in {where}"),
        Finding("Installation", "Python", None, f"{version} on {platform.platform(terse=True)}"),
        Finding("Installation", "cores", None, f"{cores} that it may use"),
        Finding(
            "Installation",
            "Linux",
            linux,
            "measuring works" if linux else "predictions work, measuring does not",
        ),
    ]


def _extras() -> list[Finding]:
    found = []
    for extra, names in sorted(extras().items()):
        missing = [name for name in names if not _is_installed(name)]
        told = FOR.get(extra, "")
        if missing:
            told += f"; missing: {', '.join(missing)}"
        fix = install_command(extra) if missing else None
        found.append(Finding("Extras", extra, not missing, told, fix and f"Install with: {fix}"))
    return found


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _measuring() -> list[Finding]:
    from jostle.measure import available_counters, engine_table

    found = []
    try:
        engines = engine_table()
    except MissingExtra as error:
        engines = []
        found.append(Finding("Measuring: engines", "WebAssembly", False, error.what, error.fix))
    for name, what, reason in engines:
        told = what if reason is None else f"{what}; {reason}"
        fix = None if reason is None else _ENGINES.get(name.partition("-")[0])
        found.append(Finding("Measuring: engines", name, reason is None, told, fix))
    counters = available_counters()
    hardware = "perf_instructions" in counters
    found.append(
        Finding(
            "Measuring: counters",
            "hardware counters",
            hardware,
            f"{len(counters)} events" if hardware else _without_counters(),
            None
            if hardware
            else "Traces then hold exact progress, CPU time and pressure, which is enough to learn from.",
        )
    )
    for what, path, told in (
        ("pressure (PSI)", "/proc/pressure/cpu", "who waited for what in a window"),
        (
            "scheduler waits",
            "/proc/self/schedstat",
            "tells a core that was taken from a program that waits",
        ),
        (
            "control groups v2",
            "/sys/fs/cgroup/cgroup.controllers",
            "limits as variants of an engine",
        ),
    ):
        there = os.access(path, os.R_OK)
        fix = (
            None if there else f"{path} cannot be read; a newer kernel or another container has it."
        )
        found.append(Finding("Measuring: counters", what, there, told, fix))
    valgrind = shutil.which("valgrind") is not None
    fix = None if valgrind else "Install it with the system's packages."
    told = "instruction mixes of native commands, jostle opcodes"
    found.append(Finding("Measuring: counters", "valgrind", valgrind, told, fix))
    return found


def _without_counters() -> str:
    try:
        level = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
    except OSError:
        return "the kernel has none, or hides them"
    if level.lstrip("-").isdigit() and int(level) > 2 and os.geteuid() != 0:
        return f"perf_event_paranoid is {level}: ask for 2 or less"
    return "a virtual machine without them, or a processor that Linux cannot count on"


def _graphics() -> list[Finding]:
    there = Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()
    told = (
        "a device is here" if there else "no device here; profiles from elsewhere can be imported"
    )
    tools = [name for name in ("nsys", "rocprofv3", "ncu") if shutil.which(name)]
    return [
        Finding("Graphics processors", "device", None, told),
        Finding(
            "Graphics processors",
            "profilers",
            None,
            ", ".join(tools) if tools else "none of nsys, ncu, rocprofv3 found here",
        ),
    ]
