"""Which engines work here, and what runs on them: each has run a kernel whose result is known.

That is in a process of its own because a foreign library may abort it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from jostle.collect.kernels._engines import (
    SETTINGS,
    EngineSetting,
    engine_setting,
    wasmtime_version,
)
from jostle.collect.kernels._shipped_kernels import KERNEL_FOLDER
from jostle.collect.slots._slots import Slot
from jostle.collect.workloads._workloads import Workload
from jostle.errors import MissingExtra, UsageError

_KERNEL = KERNEL_FOLDER / "sha256.wasm"
_ARGUMENT = 1024
# FNV-1a of the SHA-256 of the kernel's input, which any implementation of SHA-256 gives.
CHECKSUM = 0xC066E5A2CAA60010
_TIMEOUT_SECONDS = 60.0


def available_engines() -> tuple[str, ...]:
    """Return the engines that gave the right result here, wasmtime's usual settings first."""
    return tuple(name for name, _, reason in engine_table() if reason is None)


def engine_table() -> list[tuple[str, str, str | None]]:
    """Return (name, what it is, None or why it does not work here) of every engine; those of wasmtime do not
    where it is not installed."""
    try:
        wasmtime_version()
    except MissingExtra as error:
        absent = {name: str(error) for name, one in SETTINGS.items() if one.is_wasmtime}
    else:
        absent = {}
    settings = tuple(one for name, one in SETTINGS.items() if name not in absent)
    reasons = why_not(settings) | absent
    return [(name, setting.what, reasons[name]) for name, setting in SETTINGS.items()]


def find_engines(wanted: Iterable[str] | None) -> tuple[str, ...]:
    """Return these engines, each once, in the usual order; None means all that work here."""
    if wanted is None:
        return available_engines()
    names = {engine_setting(name).name for name in wanted}
    if names == {"native"}:  # command lines need no wasmtime
        return ("native",)
    if not names:
        raise UsageError("no engine to measure on", fix=f"Choose from {', '.join(SETTINGS)}.")
    reasons = {name: reason for name, _, reason in engine_table()}
    for name in sorted(names):
        if (reason := reasons[name]) is not None:
            raise UsageError(f"this machine does not offer engine {name!r}: {reason}")
    return tuple(name for name in SETTINGS if name in names)


@cache
def why_not(settings: Sequence[EngineSetting]) -> dict[str, str | None]:
    """Try each engine setting. Returns by name None if it gave the known result, else why not."""
    reasons: dict[str, str | None] = {}
    slot = Slot()
    try:
        for setting in settings:
            reasons[setting.name] = None if "command" in setting.runs else _why_not(slot, setting)
    finally:
        slot.kill()
    return reasons


def _why_not(slot: Slot, setting: EngineSetting) -> str | None:
    part = Workload("check", _KERNEL, _ARGUMENT, 1).part()
    prepare = {"do": "prepare", "engine": setting.name, "parts": [part]}
    for what, message in (("ready", prepare), ("checksum", {"do": "checksum"})):
        answer = slot.ask(message, _TIMEOUT_SECONDS)
        if what not in answer:
            return answer.get("failed", "it did not answer in time")
        if what == "checksum" and int(answer[what]) != CHECKSUM:
            return "its result of a known kernel is wrong"
    return None


def can_run(engine: str, workload: Workload) -> bool:
    """Return whether this engine runs workloads of this kind."""
    return workload.kind in engine_setting(engine).runs


def engines_for(engines: Iterable[str], members: Sequence[Workload]) -> list[str]:
    """Choose the engines that can run some of the members. Kernels are measured on native only beside command
    lines: alone they are those of speed."""
    kinds = {member.kind for member in members}
    return [
        engine
        for engine in engines
        if kinds.intersection(engine_setting(engine).runs)
        and (engine != "native" or "command" in kinds)
    ]


def repeats_per_beat(workload: Workload, engine: str) -> int:
    """Return how much of a repetition one beat holds: all of it, or in an interpreter about a thirtieth.

    Beats of a few milliseconds at most can tell a quiet moment from a disturbed one.
    """
    cut = engine_setting(engine).interprets and workload.kind == "kernel"
    return max(1, workload.repeats // 32) if cut else workload.repeats
