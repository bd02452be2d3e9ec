"""Engines: what makes one machine several platforms. Most are settings of wasmtime.

Each is offered where it gave the known result of a kernel here (`jostle.collect.available_engines`). Target
triples are constants: an unsupported one aborts the whole process, so none comes from a user.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.errors import MissingExtra, UnknownName, UsageError

if TYPE_CHECKING:
    import wasmtime


@dataclass(frozen=True)
class EngineSetting:
    """A way to run workloads: an engine with its options.

    what: a phrase.
    optimizes, interprets, checks_bounds: features of the platform; None is not known.
    config: attributes of wasmtime's configuration; None where it is no setting of wasmtime.
    runs: the kinds of workloads that it can run.
    """

    name: str
    what: str
    optimizes: bool
    interprets: bool
    checks_bounds: bool | None
    config: tuple[tuple[str, Any], ...] | None = None
    runs: tuple[str, ...] = ("kernel", "wasi")

    @property
    def is_wasmtime(self) -> bool:
        """True if it is a setting of wasmtime."""
        return self.config is not None


_SPEED = ("cranelift_opt_level", "speed")
# Without guard pages around the memory every access is compared with its size first.
_CHECKED = (_SPEED, ("memory_reservation", 0), ("memory_guard_size", 0))
_NONE = (("cranelift_opt_level", "none"),)
_PULLEY = (("target", "pulley64"),)

SETTINGS = {
    setting.name: setting
    for setting in (
        EngineSetting("speed", "Cranelift, optimising", True, False, False, (_SPEED,)),
        EngineSetting("none", "Cranelift, not optimising", False, False, False, _NONE),
        EngineSetting("checked", "as speed, explicit bounds checks", True, False, True, _CHECKED),
        EngineSetting("pulley", "the Pulley interpreter", True, True, None, _PULLEY),
        EngineSetting(
            "native",
            "command lines, and kernels beside them as on speed",
            True,
            False,
            None,
            runs=("command", "kernel"),
        ),
        EngineSetting("wasm3", "the wasm3 interpreter", False, True, None, runs=("kernel",)),
    )
}


def wasmtime_version() -> str:
    """Return the version of the wasmtime package. Raises MissingExtra where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wasmtime")
    except PackageNotFoundError as error:
        raise MissingExtra("wasmtime", "measure") from error


def make_engine(name: str, *, fuel: bool = False) -> wasmtime.Engine:
    """Return a fresh engine of this setting; fuel: count executed instructions.

    Raises UnknownName, MissingExtra, and UsageError where this wasmtime does not offer the setting.
    """
    setting = engine_setting(name)
    wasmtime_version()
    import wasmtime

    config = wasmtime.Config()
    # A compiler's threads would outlive it beside what is measured.
    config.parallel_compilation = False
    config.consume_fuel = fuel
    try:
        if setting.config is None:
            raise UsageError(f"{name!r} is not a setting of wasmtime")
        for attribute, value in setting.config:
            setattr(config, attribute, value)
        return wasmtime.Engine(config)
    except (AttributeError, TypeError, wasmtime.WasmtimeError) as error:
        raise UsageError(f"this wasmtime does not offer engine {name!r}: {error}") from error


def silent_wasi(words: Sequence[str]) -> wasmtime.WasiConfig:
    """Return a WASI program's surroundings: its words, no files, no environment; what it prints is thrown
    away."""
    import wasmtime

    wasi = wasmtime.WasiConfig()
    wasi.argv = words
    wasi.stdout_file = wasi.stderr_file = os.devnull
    return wasi


def reason_of(error: Exception) -> str:
    """Return the one line of a wasmtime error that says most: a trap's text stands after its backtrace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    traps = [line for line in lines if "wasm trap:" in line]
    return (traps or lines or [type(error).__name__])[0]


def engine_setting(name: str) -> EngineSetting:
    """Look up an engine by its name. Raises UnknownName."""
    if name not in SETTINGS:
        raise UnknownName("engine", name, list(SETTINGS))
    return SETTINGS[name]


# Of linear memory, for each instance: above what any shipped kernel needs (64 MiB), below what hurts.
MOST_MEMORY_BYTES = 2 << 30
_MOST_TABLE_ELEMENTS = 10_000_000


def limited_store(engine: wasmtime.Engine) -> Any:
    """Return a store whose instances cannot grow beyond the limit: growing further is refused to the module,
    and one that needs more from the start is not instantiated."""
    import wasmtime

    store = wasmtime.Store(engine)
    store.set_limits(memory_size=MOST_MEMORY_BYTES, table_elements=_MOST_TABLE_ELEMENTS)
    return store
