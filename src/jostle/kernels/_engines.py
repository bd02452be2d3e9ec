"""Engines: settings of wasmtime, and other ways to run a workload, that make one machine several
platforms.

Each is offered where it gave the known result of a kernel here (`jostle.measure.available_engines`). Two
settings are reached only through wasmtime's private bindings. Target triples are constants: an unsupported
one aborts the whole process, so none comes from a user. A variant may follow the name
(`speed@nice=10`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jostle.errors import MissingExtra, UnknownName, UsageError

if TYPE_CHECKING:
    import wasmtime


# From the wasmtime C API's enums, wasmtime_strategy_t and wasmtime_regalloc_algorithm_t.
_STRATEGY_WINCH = 2
_REGALLOC_SINGLE_PASS = 1


@dataclass(frozen=True)
class EngineSetting:
    """One way to run workloads.

    what: a phrase. The next three become features of the platform; None is not known. config: of a
    wasmtime setting, the attributes of its configuration; private: a setter of the C API that only
    private bindings reach, and its value. host: which program a slot is, python or what `_slot.js`
    starts. runs: the kinds of workloads that it can run.
    """

    name: str
    what: str
    optimizes: bool
    interprets: bool
    checks_bounds: bool | None
    config: tuple[tuple[str, Any], ...] | None = None
    private: tuple[str, int] | None = None
    host: str = "python"
    runs: tuple[str, ...] = ("kernel", "wasi")

    @property
    def is_wasmtime(self) -> bool:
        """Whether it is a setting of wasmtime."""
        return self.config is not None


_SPEED = ("cranelift_opt_level", "speed")
# Without guard pages around the memory every access is compared with its size first.
_CHECKED = (_SPEED, ("memory_reservation", 0), ("memory_guard_size", 0))
_NONE = (("cranelift_opt_level", "none"),)
_WINCH = ("wasmtime_config_strategy_set", _STRATEGY_WINCH)
_SINGLE_PASS = ("wasmtime_config_cranelift_regalloc_algorithm_set", _REGALLOC_SINGLE_PASS)

SETTINGS = {
    setting.name: setting
    for setting in (
        EngineSetting("speed", "Cranelift, optimising", True, False, False, (_SPEED,)),
        EngineSetting("none", "Cranelift, not optimising", False, False, False, _NONE),
        EngineSetting("checked", "as speed, explicit bounds checks", True, False, True, _CHECKED),
        EngineSetting(
            "pulley", "the Pulley interpreter", True, True, None, (("target", "pulley64"),)
        ),
        EngineSetting("winch", "the Winch baseline compiler", False, False, False, (), _WINCH),
        EngineSetting(
            "singlepass", "Cranelift, single-pass registers", True, False, False, (), _SINGLE_PASS
        ),
        EngineSetting(
            "native",
            "gcc -O2, and command lines",
            True,
            False,
            None,
            runs=("native", "command", "service"),
        ),
        EngineSetting("node", "V8's TurboFan", True, False, None, host="node", runs=("kernel",)),
        EngineSetting(
            "node-liftoff",
            "V8's Liftoff",
            False,
            False,
            None,
            host="node-liftoff",
            runs=("kernel",),
        ),
        EngineSetting("wasm3", "the wasm3 interpreter", False, True, None, runs=("kernel",)),
    )
}


def wasmtime_version() -> str:
    """The version of the wasmtime package. Raises MissingExtra where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wasmtime")
    except PackageNotFoundError as error:
        raise MissingExtra("wasmtime", "measure") from error


def gcc_version() -> str | None:
    """What gcc calls itself; None where there is none."""
    path = shutil.which("gcc")
    return None if path is None else _named_by(path)


@cache
def _named_by(compiler: str) -> str | None:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0].strip() or None


def make_engine(name: str, *, fuel: bool = False) -> wasmtime.Engine:
    """A fresh engine of this setting; fuel: count executed instructions.

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
        if setting.private is not None:
            from wasmtime import _ffi

            setter, value = setting.private
            getattr(_ffi, setter)(config.ptr(), value)
        return wasmtime.Engine(config)
    except (AttributeError, ImportError, TypeError, wasmtime.WasmtimeError) as error:
        raise UsageError(f"this wasmtime does not offer engine {name!r}: {error}") from error


def silent_wasi(words: Sequence[str]) -> wasmtime.WasiConfig:
    """A WASI program's surroundings: its words, no files, no environment; what it prints is thrown away."""
    import wasmtime

    wasi = wasmtime.WasiConfig()
    wasi.argv = words
    wasi.stdout_file = wasi.stderr_file = os.devnull
    return wasi


def reason_of(error: Exception) -> str:
    """The one line of a wasmtime error that says most: a trap's text stands after its backtrace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    traps = [line for line in lines if "wasm trap:" in line]
    return (traps or lines or [type(error).__name__])[0]


def engine_setting(name: str) -> EngineSetting:
    """Of an engine, with or without a variant. Raises UnknownName."""
    base = name.partition("@")[0]
    if base not in SETTINGS:
        raise UnknownName("engine", name, list(SETTINGS))
    return SETTINGS[base]


# Of linear memory, for each instance: above what any shipped kernel needs (64 MiB), below what hurts.
MOST_MEMORY_BYTES = 2 << 30
_MOST_TABLE_ELEMENTS = 10_000_000


def limited_store(engine: wasmtime.Engine) -> Any:
    """A store whose instances cannot grow beyond the limit: growing further is refused to the module, and
    one that needs more from the start is not instantiated."""
    import wasmtime

    store = wasmtime.Store(engine)
    store.set_limits(memory_size=MOST_MEMORY_BYTES, table_elements=_MOST_TABLE_ELEMENTS)
    return store
