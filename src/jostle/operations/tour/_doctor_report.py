"""What Jostle can do on a machine: its installation, extras, measuring, graphics processors."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from operator import ge, gt, le, lt
from pathlib import Path

from jostle._base.report import Report, Table
from jostle.errors import extras, install_command

FOR = {
    "fit": "jostle fit, place assign, pictures, the papers' protocols",
    "measure": "jostle measure, trace and tour with WebAssembly programs, and on many machines",
    "serve": "jostle serve, jostle.Client",
}


@dataclass(frozen=True)
class Finding:
    """Describe one thing that was looked at.

    works: None for a mere fact.
    told: the fact, in words.
    fix: what to do, if that helps.
    trouble: whether what is here does not do what it should.
    """

    part: str
    what: str
    works: bool | None
    told: str
    fix: str | None = None
    trouble: bool = False


def findings() -> list[Finding]:
    """Look at everything, in the order in which it is shown."""
    return [*_installation(), *_extras(), *_engines(), *_counters(), *_graphics()]


def doctor_report() -> Report:
    """Report what this machine can do, what is missing, and how to get it; the exit code is 1 if a part is
    broken."""
    every = findings()
    document = {"schema": "doctor/v1", "findings": [vars(one) for one in every]}
    parts: list[Table | str] = []
    mark = {True: "yes", False: "no", None: ""}
    for part in dict.fromkeys(one.part for one in every):
        own = [one for one in every if one.part == part]
        rows = [[one.what, "broken" if one.trouble else mark[one.works], one.told] for one in own]
        parts.append(Table(["", "", ""], rows, part))
        # Below the table: lines that no column cuts, since they are typed or copied.
        parts += [*(f"  {one.what}: {one.fix}" for one in own if one.fix), ""]
    missing = sum(one.works is False and not one.trouble for one in every)
    if broken := [one.what for one in every if one.trouble]:
        parts.append(f"broken: {', '.join(broken)}")
    parts.append(
        f"{missing} not here, which is no trouble unless you want it" if missing else "all is here"
    )
    return Report(document, parts, exit_code=int(bool(broken)))


def _installation() -> Iterator[Finding]:
    import jostle

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    linux = sys.platform.startswith("linux")
    facts = {
        "jostle": (None, f"{jostle.__version__} in {Path(jostle.__file__).parent}"),
        "Python": (None, f"{platform.python_version()} on {platform.platform(terse=True)}"),
        "cores": (None, f"{cores} that it may use"),
        "Linux": (linux, "measuring works" if linux else "predictions work, measuring does not"),
    }
    for what, (works, told) in facts.items():
        yield Finding("Installation", what, works, told)


def _extras() -> Iterator[Finding]:
    for extra, names in sorted(extras().items()):
        missing = [name for name in names if _version(name) is None]
        wrong = [text for name in names if (text := _unfit(name, extra))]
        told = FOR.get(extra, "")
        told += f"; missing: {', '.join(missing)}" if missing else ""
        told += f"; not as needed: {', '.join(wrong)}" if wrong else ""
        fix = install_command(extra) if missing or wrong else None
        yield Finding("Extras", extra, fix is None, told, fix, bool(wrong))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


_COMPARED = {">=": ge, "<": lt, "<=": le, ">": gt}


def _unfit(name: str, extra: str) -> str | None:
    """Name a package that is here in a version that the extra does not allow, and the version it wants."""
    if (here := _version(name)) is None:
        return None
    for line in metadata.requires("jostle") or []:
        wanted, _, marker = line.partition(";")
        if re.match(rf"\s*{re.escape(name)}\b", wanted) and re.search(
            rf"['\"]{extra}['\"]", marker
        ):
            for sign, number in re.findall(r"(>=|<=|<|>)\s*([0-9.]+)", wanted):
                if not _COMPARED[sign](_numbers(here), _numbers(number)):
                    return f"{name} {here}, wanted {sign}{number}"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version)[:3])


def _engines() -> Iterator[Finding]:
    from jostle.collect import engine_table

    for name, what, reason in engine_table():
        told = what if reason is None else f"{what}; {reason}"
        fix = "pip install pywasm3" if reason and name == "wasm3" else None
        is_broken = reason is not None and ("is wrong" in reason or "in time" in reason)
        yield Finding("Measuring: engines", name, reason is None, told, fix, is_broken)


def _counters() -> Iterator[Finding]:
    from jostle.collect import available_counters

    part, counters = "Measuring: counters", available_counters()
    if "perf_instructions" in counters:
        yield Finding(part, "hardware counters", True, f"{len(counters)} events")
    else:
        fix = (
            "Traces then hold exact progress, CPU time and pressure, which is enough to learn from."
        )
        yield Finding(part, "hardware counters", False, _without_counters(), fix)
    for what, path, told in _FILES:
        there = os.access(path, os.R_OK)
        fix = f"{path} cannot be read; a newer kernel or another container has it."
        yield Finding(part, what, there, told, None if there else fix)


_FILES = (
    ("pressure (PSI)", "/proc/pressure/cpu", "who waited for what in a window"),
    (
        "scheduler waits",
        "/proc/self/schedstat",
        "tells a core that was taken from a waiting program",
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


def _graphics() -> Iterator[Finding]:
    there = Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()
    told = (
        "a device is here" if there else "no device here; profiles from elsewhere can be imported"
    )
    tools = [name for name in ("nsys", "rocprofv3", "ncu") if shutil.which(name)]
    yield Finding("Graphics processors", "device", None, told)
    told = ", ".join(tools) or "none of nsys, ncu, rocprofv3 found here"
    yield Finding("Graphics processors", "profilers", None, told)
