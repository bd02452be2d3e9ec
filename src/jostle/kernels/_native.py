"""Kernels built by gcc: C sources, each built once into a shared library in the user's cache (under the
hash of what went in) and loaded anew for every window."""

from __future__ import annotations

import _ctypes
import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from jostle.kernels._beats import CAPACITY, Beats, Part, sleep_until
from jostle.kernels._engines import gcc_version
from jostle.kernels._shipped import KERNEL_FOLDER

# No fused multiply-add, so that results are those of WebAssembly to the bit; kernels cast
# addresses to 32 bits, which warnings would be about.
_FLAGS = ("-O2", "-std=gnu11", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-Wl,-Bsymbolic")


def library_of(source: Path) -> Path:
    """The kernel as a shared library, built if need be. Raises RuntimeError with gcc's message."""
    version = gcc_version()
    if version is None:
        raise RuntimeError("gcc is not installed")
    if not source.exists():
        raise RuntimeError(f"there is no C source {source} to build natively")
    parts = [source, KERNEL_FOLDER / "kernel.h", KERNEL_FOLDER / "native.c"]
    text = b"\0".join(part.read_bytes() for part in parts)
    words = " ".join([version, platform.machine(), *_FLAGS])
    digest = hashlib.sha256(words.encode() + text).hexdigest()[:16]
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jostle"
    target = cache_folder / f"{source.stem}-{digest}.so"
    if target.exists():
        return target
    cache_folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder) as folder:
        library = Path(folder) / target.name
        inputs = [f"-I{KERNEL_FOLDER}", str(source.resolve()), str(parts[2])]
        done = subprocess.run(
            ["gcc", *_FLAGS, "-o", str(library), *inputs],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"gcc cannot build {source.name}: {done.stderr.strip()[:300]}")
        os.replace(library, target)
    return target


class Library(Part):
    """A kernel."""

    def __init__(self, part: dict[str, Any]) -> None:
        path = library_of(Path(part["module"]).with_suffix(".c"))
        # A copy of its own: the same kernel may be two phases, each with its own memory.
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder) / path.name
            shutil.copyfile(path, own)
            self._library = ctypes.CDLL(str(own))
        self._times = (ctypes.c_int64 * (CAPACITY + 1))()
        self._library.checksum.restype = ctypes.c_uint64
        self._library.jostle_beats.argtypes = [
            ctypes.c_uint32,
            ctypes.c_int64,
            ctypes.c_uint32,
            ctypes.c_void_p,
        ]
        self._library.setup(ctypes.c_uint32(part["argument"]))

    def beats(self, repeats: int, start_ns: int, until_ns: int, most: int) -> Beats:
        sleep_until(start_ns)
        count = self._library.jostle_beats(repeats, until_ns, most, self._times)
        return Beats(bytes(self._times)[: 8 * (count + 1)], count)

    def checksum(self) -> int:
        self._library.run(ctypes.c_uint32(1))
        return self._library.checksum()

    def close(self) -> None:
        self._library.jostle_release()
        _ctypes.dlclose(self._library._handle)
