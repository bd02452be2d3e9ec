"""Facts about this machine, the features of a platform; what is not told is null, never 0."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from jostle._base.option_fields import Flag, NoOption
from jostle.collect.host._proc import text_of
from jostle.collect.kernels._engines import engine_setting, wasmtime_version
from jostle.errors import NotPermitted, UsageError

_CPUS = Path("/sys/devices/system/cpu")
# Kept as features where the CPU lists its extensions: what compilers and hash functions make use
# of.
_EXTENSIONS = ("avx2", "avx512f", "sha_ni", "aes", "bmi2", "asimd", "sve")

Cores = Annotated[
    Sequence[int] | None,
    "A core to use; may be repeated.  [default: all allowed]",
    Flag("--core"),
    NoOption(),
]
Device = Annotated[
    str | None,
    "What the platform is called after the engine.  [default: from the CPU]",
]


def usable_cores() -> tuple[int, ...]:
    """Return the cores this process may run on. Raises NotPermitted off Linux."""
    try:
        return tuple(sorted(os.sched_getaffinity(0)))
    except AttributeError:
        raise NotPermitted(
            f"measuring pins processes to cores, which {platform.system()} does not offer",
            fix="Measure on Linux; datasets made there can be used anywhere.",
        ) from None


def chosen_cores(cores: Iterable[int] | None) -> tuple[int, ...]:
    """Return these cores in order, each once; None means all that are usable. Raises UsageError,
    NotPermitted."""
    usable = usable_cores()
    numbers = usable if cores is None else tuple(sorted(set(cores)))
    if not numbers or not set(numbers) <= set(usable):
        raise UsageError(f"cores {numbers} are not all among those usable here, {usable}")
    return numbers


def machine_facts(cores: tuple[int, ...]) -> dict[str, Any]:
    """Read CPU, caches, memory and kernel, keyed by feature name; sizes in bytes, frequencies in hertz.

    cores: those that are used; the first one's caches are described.
    """
    cpu = _cpuinfo()
    listed = cpu.get("flags") or cpu.get("Features")
    extensions = set(listed.split()) if listed else None
    first = cores[0]
    governor = text_of(_CPUS / f"cpu{first}/cpufreq/scaling_governor")
    kilohertz = _number(_CPUS / f"cpu{first}/cpufreq/cpuinfo_max_freq")
    return {
        "architecture": platform.machine() or None,
        "cpu_model": cpu.get("model name") or cpu.get("Model"),
        "cpu_vendor": cpu.get("vendor_id") or cpu.get("CPU implementer"),
        "cpu_family": cpu.get("cpu family") or cpu.get("CPU architecture"),
        "cpu_model_number": cpu.get("model") or cpu.get("CPU part"),
        "virtual_machine": "hypervisor" in extensions if extensions is not None else None,
        "cores": len(cores),
        "threads_per_core": _threads_per_core(first),
        "nominal_frequency_hertz": _nominal_frequency(cpu),
        "maximum_frequency_hertz": kilohertz * 1000 if kilohertz else None,
        "governor": governor,
        **_caches(first),
        "main_memory_bytes": _main_memory(),
        **{
            f"cpu_has_{name}": name in extensions if extensions is not None else None
            for name in _EXTENSIONS
        },
        "kernel": f"{platform.system()} {platform.release()}",
    }


def engine_facts(engine: str) -> dict[str, Any]:
    """Describe the engine and its setting, keyed by feature name."""
    setting = engine_setting(engine)
    program = "wasmtime" if setting.is_wasmtime else setting.name
    return {
        "engine": program,
        "engine_version": _engine_version(program),
        "engine_setting": setting.name,
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "engine_optimizes": setting.optimizes,
        "engine_interprets": setting.interprets,
        "engine_checks_bounds": setting.checks_bounds,
    }


def _engine_version(program: str) -> str | None:
    if program == "wasmtime":
        return wasmtime_version()
    if program == "wasm3":
        from importlib.metadata import version

        return version("pywasm3")
    return None


def platform_name(engine: str, device: str) -> str:
    """Name a platform as datasets do: wasmtime-speed:intel-xeon-2.1ghz-2c."""
    prefix = "wasmtime-" if engine_setting(engine).is_wasmtime else ""
    return f"{prefix}{engine}:{device}"


def device_name(cores: tuple[int, ...]) -> str:
    """Return a name from the CPU and its cores, without the host name: intel-xeon-2.1ghz-2c."""
    cpu = _cpuinfo()
    model = cpu.get("model name") or cpu.get("Model") or platform.machine() or "unknown"
    model = re.sub(r"\((r|tm)\)|\bcpu\b|\bprocessor\b|\bwith\b.*|[0-9]+-core", " ", model.lower())
    frequency = re.search(r"([0-9.]+)\s*ghz", model)
    model = re.sub(r"@?\s*[0-9.]+\s*ghz", " ", model)
    words = re.findall(r"[a-z0-9.]+", model)
    if frequency:
        words.append(f"{float(frequency.group(1)):g}ghz")
    return "-".join([*words, f"{len(cores)}c"])


def _cpuinfo() -> dict[str, str]:
    """Return the first processor's entry in /proc/cpuinfo, with what stands after all (on Arm boards)."""
    facts: dict[str, str] = {}
    for line in (text_of("/proc/cpuinfo") or "").splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            facts.setdefault(key.strip(), value.strip())
    return facts


def _nominal_frequency(cpu: dict[str, str]) -> float | None:
    """Read the frequency in Hz from the model's name: the clock that /proc/cpuinfo gives changes from moment
    to moment."""
    clock = re.search(r"([0-9.]+)\s*GHz", cpu.get("model name", ""))
    return float(clock.group(1)) * 1e9 if clock else None


def _caches(core: int) -> dict[str, int | None]:
    """Return data or unified cache of each level, in bytes, and how many CPUs share the last."""
    sizes: dict[str, int | None] = {f"cache_level{level}_bytes": None for level in (1, 2, 3)}
    for index in sorted((_CPUS / f"cpu{core}/cache").glob("index*")):
        level, size = _number(index / "level"), text_of(index / "size")
        scale = {"K": 1024, "M": 1024**2}.get((size or " ")[-1])
        if level in (1, 2, 3) and size and scale and text_of(index / "type") != "Instruction":
            sizes[f"cache_level{level}_bytes"] = int(size[:-1]) * scale
    return sizes


def _threads_per_core(core: int) -> int | None:
    siblings = text_of(_CPUS / f"cpu{core}/topology/thread_siblings_list")
    if not siblings:
        return None
    spans = [part.split("-") for part in siblings.split(",")]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in spans)


def _main_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _number(path: Path) -> int | None:
    text = text_of(path)
    return int(text) if text and text.isdigit() else None
