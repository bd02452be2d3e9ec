"""Variants of a platform: fewer cores, a niceness, a share of a core, a limit of memory.

`cpus=1,memory=256M,nice=10,quota=0.5` after an engine's name and an @. The same engine with another
variant is another platform. cpus: the first so many cores of the campaign. quota: the share of a
core that each member gets, memory: what each may hold, both by control groups, where permitted.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jostle.errors import NotPermitted, UsageError
from jostle.kernels import engine_setting

# Short beside a window, so that a window holds many turns.
_PERIOD_MICROSECONDS = 20_000
_SMALLEST_MEMORY = 128 << 20
_SCALES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ROOTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))


@dataclass(frozen=True)
class EngineVariant:
    """What differs from the plain platform; None is as it is."""

    cpus: int | None = None
    memory_bytes: int | None = None
    nice: int | None = None
    quota_ratio: float | None = None

    def __str__(self) -> str:
        parts = {
            "cpus": self.cpus,
            "memory": None if self.memory_bytes is None else f"{self.memory_bytes >> 20}M",
            "nice": self.nice,
            "quota": None if self.quota_ratio is None else f"{self.quota_ratio:g}",
        }
        return ",".join(f"{name}={value}" for name, value in parts.items() if value is not None)


def variant_of(engine: str) -> EngineVariant:
    """Of an engine's name with or without one."""
    _, at, text = engine.partition("@")
    return parse_variant(text) if at else EngineVariant()


@cache
def parse_variant(text: str) -> EngineVariant:
    """Raises UsageError for what is no variant."""
    options: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name in options:
            raise _no_variant(text)
        options[name] = value
    try:
        variant = EngineVariant(
            cpus=_whole(options.pop("cpus", None)),
            memory_bytes=_size(options.pop("memory", None)),
            nice=_whole(options.pop("nice", None)),
            quota_ratio=float(quota) if (quota := options.pop("quota", None)) else None,
        )
    except (ValueError, KeyError):
        raise _no_variant(text) from None
    outside = (
        bool(options)
        or (variant.cpus is not None and variant.cpus < 1)
        or (variant.nice is not None and not 0 <= variant.nice <= 19)
        or (variant.quota_ratio is not None and not 0.05 <= variant.quota_ratio < 1)
        or (variant.memory_bytes is not None and variant.memory_bytes < _SMALLEST_MEMORY)
    )
    if outside:
        raise _no_variant(text)
    return variant


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    size = re.fullmatch(r"([0-9]+)([KMG]?)", text)
    if not size:
        raise ValueError(text)
    return int(size[1]) * _SCALES[size[2]]


def _no_variant(text: str) -> UsageError:
    return UsageError(
        f"{text!r} is not a variant of a platform",
        fix="Write for instance cpus=1, nice=10 (0 to 19), quota=0.5 (0.05 to below 1) or "
        "memory=256M (at least 128M), several with commas between.",
    )


class ProcessLimits:
    """What a variant does to a process: its niceness, and a control group of its own.

    Raises NotPermitted where this system does not allow it.
    """

    def __init__(self, variant: EngineVariant, pid: int) -> None:
        self._folders: list[Path] = []
        if variant.nice is not None:
            try:
                os.setpriority(os.PRIO_PROCESS, pid, variant.nice)
            except OSError as error:
                raise NotPermitted(f"niceness {variant.nice}: {error.strerror}") from error
        try:
            if variant.quota_ratio is not None:
                quota = int(variant.quota_ratio * _PERIOD_MICROSECONDS)
                self._limit(
                    "cpu",
                    pid,
                    {"cpu.max": f"{quota} {_PERIOD_MICROSECONDS}"},
                    {"cpu.cfs_period_us": _PERIOD_MICROSECONDS, "cpu.cfs_quota_us": quota},
                )
            if variant.memory_bytes is not None:
                self._limit(
                    "memory",
                    pid,
                    {"memory.max": variant.memory_bytes},
                    {"memory.limit_in_bytes": variant.memory_bytes},
                )
        except OSError as error:
            self.close()
            raise NotPermitted(
                f"control groups cannot be made here: {error.strerror}",
                where=str(error.filename or _ROOTS[0]),
                fix="Variants with quota or memory need root, or a delegated control group.",
            ) from error

    def _limit(
        self, controller: str, pid: int, second: dict[str, object], first: dict[str, object]
    ) -> None:
        """By version 2 where it has the controller, else by version 1."""
        for root in _ROOTS:
            with suppress(OSError):
                if controller in (root / "cgroup.controllers").read_text().split():
                    (root / "cgroup.subtree_control").write_text(f"+{controller}")
                    self._enter(root / f"jostle-{pid}", pid, second)
                    return
        self._enter(_ROOTS[0] / controller / f"jostle-{pid}", pid, first)

    def _enter(self, folder: Path, pid: int, settings: dict[str, object]) -> None:
        folder.mkdir(exist_ok=True)
        if folder not in self._folders:
            self._folders.append(folder)
        for name, value in settings.items():
            (folder / name).write_text(str(value))
        (folder / "cgroup.procs").write_text(str(pid))

    def close(self) -> None:
        """Remove the control groups; their processes have ended."""
        for folder in self._folders:
            with suppress(OSError):
                folder.rmdir()
        self._folders = []


def platform_name(engine: str, device: str) -> str:
    """What a dataset calls it: wasmtime-speed:intel-xeon-2.1ghz-2c, native@nice=10:…"""
    prefix = "wasmtime-" if engine_setting(engine).is_wasmtime else ""
    return f"{prefix}{engine}:{device}"


def with_variant(name: str) -> str:
    """The engine's name with its variant in the usual order. Raises UnknownName, UsageError."""
    base, at, text = name.partition("@")
    engine_setting(base)
    return f"{base}@{parse_variant(text)}" if at else base
