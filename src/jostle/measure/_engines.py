"""Engines: settings of wasmtime that make one machine several platforms.

Two settings are reached only through wasmtime's private bindings; they are offered where a probe
shows that they work. Target triples are constants: an unsupported one aborts the whole process, so
none comes from a user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    """One way to run WebAssembly.

    what: a phrase. public: whether wasmtime's public interface offers it. The rest become features
    of the platform; None is not known.
    """

    name: str
    what: str
    public: bool
    optimizes: bool
    interprets: bool
    checks_bounds: bool | None
    apply: Callable[[Any], None]


def _speed(config: Any) -> None:
    config.cranelift_opt_level = "speed"


def _none(config: Any) -> None:
    config.cranelift_opt_level = "none"


def _checked(config: Any) -> None:
    # Without guard pages around the memory every access is compared with its size first.
    config.cranelift_opt_level = "speed"
    config.memory_reservation = 0
    config.memory_guard_size = 0


def _pulley(config: Any) -> None:
    config.target = "pulley64"


def _winch(config: Any) -> None:
    from wasmtime import _ffi

    _ffi.wasmtime_config_strategy_set(config.ptr(), _STRATEGY_WINCH)


def _single_pass(config: Any) -> None:
    from wasmtime import _ffi

    setter = _ffi.wasmtime_config_cranelift_regalloc_algorithm_set
    setter(config.ptr(), _REGALLOC_SINGLE_PASS)


_SETTINGS = {
    setting.name: setting
    for setting in (
        EngineSetting("speed", "Cranelift, optimising", True, True, False, False, _speed),
        EngineSetting("none", "Cranelift, not optimising", True, False, False, False, _none),
        EngineSetting(
            "checked", "as speed, explicit bounds checks", True, True, False, True, _checked
        ),
        EngineSetting("pulley", "the Pulley interpreter", True, True, True, None, _pulley),
        EngineSetting("winch", "the Winch baseline compiler", False, False, False, False, _winch),
        EngineSetting(
            "singlepass",
            "Cranelift, single-pass registers",
            False,
            True,
            False,
            False,
            _single_pass,
        ),
    )
}


def wasmtime_version() -> str:
    """The version of the wasmtime package. Raises MissingExtra where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wasmtime")
    except PackageNotFoundError as error:
        raise MissingExtra("wasmtime", "measure") from error


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
        setting.apply(config)
        return wasmtime.Engine(config)
    except (AttributeError, ImportError, TypeError, wasmtime.WasmtimeError) as error:
        raise UsageError(f"this wasmtime does not offer engine {name!r}: {error}") from error


def engine_setting(name: str) -> EngineSetting:
    """Raises UnknownName."""
    if name not in _SETTINGS:
        raise UnknownName("engine", name, list(_SETTINGS))
    return _SETTINGS[name]


@cache
def available_engines() -> tuple[str, ...]:
    """The settings that work here, the usual first; those off the public interface are probed."""
    return tuple(name for name, setting in _SETTINGS.items() if setting.public or _works(name))


def find_engines(wanted: Iterable[str] | None) -> tuple[str, ...]:
    """These settings, each once, in the usual order; None means all that work here."""
    if wanted is None:
        return available_engines()
    names = {engine_setting(name).name for name in wanted}
    if not names:
        raise UsageError("no engine to measure on", fix=f"Choose from {', '.join(_SETTINGS)}.")
    for name in names - set(available_engines()):
        raise UsageError(f"this wasmtime does not offer engine {name!r}")
    return tuple(name for name in _SETTINGS if name in names)


# Run in a child: a private setter given a value it no longer knows may abort the process.
_PROBE = """
import sys, wasmtime
from jostle.measure._engines import make_engine
engine = make_engine(sys.argv[1])
module = wasmtime.Module(engine, '(module (func (export "f") (result i32) i32.const 7))')
store = wasmtime.Store(engine)
sys.exit(wasmtime.Instance(store, module, []).exports(store)["f"](store) != 7)
"""


def _works(name: str) -> bool:
    import subprocess
    import sys

    from ._slots import child_environment

    done = subprocess.run(
        [sys.executable, "-c", _PROBE, name],
        env=child_environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode == 0
