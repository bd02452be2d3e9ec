"""Compiled programs kept between processes: compiling takes as long as training on few runs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import jax

VARIABLE = "JOSTLE_PROGRAMS"
MOST_BYTES = 256 * 2**20  # past which the oldest go
WORTH_KEEPING = 0.3  # seconds of compiling


def keep_programs() -> None:
    """Let JAX keep what it compiles in the folder that JOSTLE_PROGRAMS names, by default jostle/programs of
    the user's cache folder; nowhere if that is empty or cannot be written, and where JAX has been told a
    folder of its own, there."""
    configured = getattr(jax.config, "jax_compilation_cache_dir", None)
    if configured or os.environ.get(VARIABLE) == "":
        return
    try:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return
        _drop_oldest(folder)
    except (OSError, RuntimeError):  # no home, no room, no permission: then they are compiled anew
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)


def _folder() -> Path:
    """Return the folder for each kind of processor, for which programs are compiled."""
    configured = os.environ.get(VARIABLE)
    cache = os.environ.get("XDG_CACHE_HOME")
    base = Path(cache) if cache else Path.home() / ".cache"
    processor = Path("/proc/cpuinfo")
    lines = processor.read_text("utf-8", "replace").splitlines() if processor.exists() else []
    kind = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    name = hashlib.sha256("\n".join(kind).encode()).hexdigest()[:12]
    return (Path(configured) if configured else base / "jostle" / "programs") / name


def _drop_oldest(folder: Path) -> None:
    files = sorted(
        (path for path in folder.iterdir() if path.is_file()), key=lambda path: path.stat().st_mtime
    )
    sizes = [path.stat().st_size for path in files]
    total = sum(sizes)
    for path, size in zip(files, sizes, strict=True):
        if total <= MOST_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= size
