"""Workloads: a kernel, the size it is set up with, and how often it repeats to make one repetition.

A *repetition* is what a run's `runtime_seconds` means: one call of `run(repeats)`. `repeats`
belongs to the workload, so a repetition is the same work on every platform and beside anyone; the
shipped ones take about 0.5 to 3 ms on an optimising engine and 5 to 50 times that in an
interpreter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from jostle.errors import UnknownName, UnreadableFile, UsageError

_KERNELS = Path(__file__).parent / "kernels"

# kernel: (family, ((setup argument, repeats) for s, m, l)). Arguments are what the C source calls
# n.
_SHIPPED: dict[str, tuple[str, tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]] = {
    "aes": ("cryptography", ((16384, 5), (65536, 2), (262144, 1))),
    "bfs": ("graph", ((512, 128), (4096, 16), (65536, 1))),
    "chacha": ("cryptography", ((16384, 12), (131072, 2), (524288, 1))),
    # 32 KiB, 4 MiB, 64 MiB: inside the first cache, about a last private cache, past it.
    "chase": ("memory_latency", ((1 << 15, 40), (1 << 22, 2), (1 << 26, 1))),
    "copy": ("memory_bandwidth", ((1 << 17, 160), (1 << 21, 64), (1 << 25, 32))),
    "disparity": ("vision", ((32, 4), (48, 1), (80, 1))),
    "edit": ("dynamic_programming", ((96, 32), (384, 2), (768, 1))),
    "fft": ("spectral", ((512, 40), (4096, 4), (32768, 1))),
    "lu": ("dense_linear_algebra", ((48, 16), (112, 2), (176, 1))),
    "mandelbrot": ("floating_point", ((32, 6), (64, 2), (128, 1))),
    "matmul": ("dense_linear_algebra", ((40, 8), (96, 1), (128, 1))),
    "nbody": ("particles", ((48, 48), (128, 8), (384, 1))),
    "search": ("text", ((1 << 14, 4), (1 << 16, 1), (1 << 18, 1))),
    "sha256": ("hashing", ((16384, 5), (65536, 2), (262144, 1))),
    "sieve": ("number_theory", ((1 << 15, 12), (1 << 18, 2), (1 << 20, 1))),
    "sobel": ("vision", ((96, 16), (256, 2), (640, 1))),
    "sort": ("sorting", ((2048, 8), (8192, 2), (32768, 1))),
    "stencil": ("structured_grid", ((64, 64), (256, 4), (768, 1))),
    "stream": ("memory_bandwidth", ((1 << 17, 32), (1 << 20, 24), (1 << 24, 16))),
}


@dataclass(frozen=True)
class Workload:
    """A WebAssembly module that exports `setup(i32)` and `run(i32)`, with their arguments.

    name: unique in a dataset. module: path of the .wasm file. argument: given to setup once in
    every window. repeats: given to run; one call is one repetition. family and size: labels kept as
    features. Raises UsageError for an empty name or arguments outside 0 .. 2^31 - 1.
    """

    name: str
    module: Path
    argument: int
    repeats: int
    family: str = "custom"
    size: str = ""

    def __post_init__(self) -> None:
        if not self.name or "+" in self.name:
            raise UsageError(f"{self.name!r} cannot name a workload", fix="Use letters and digits.")
        if not 0 <= self.argument < 2**31 or not 1 <= self.repeats < 2**31:
            raise UsageError("argument or repeats out of range", where=self.name)

    @property
    def kernel(self) -> str:
        """The module's name without its ending."""
        return Path(self.module).stem

    @cached_property
    def module_bytes(self) -> bytes:
        """The module itself. Raises UnreadableFile."""
        try:
            return Path(self.module).read_bytes()
        except OSError as error:
            raise UnreadableFile(
                f"cannot read the module of workload {self.name!r}: {error.strerror}",
                where=str(self.module),
            ) from error

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the module, hexadecimal: with the two arguments it says what is executed."""
        return hashlib.sha256(self.module_bytes).hexdigest()


def shipped_workloads() -> tuple[Workload, ...]:
    """All workloads that come with Jostle, by name: every kernel in sizes s, m and l."""
    return tuple(
        Workload(f"{kernel}-{size}", _KERNELS / f"{kernel}.wasm", argument, repeats, family, size)
        for kernel, (family, sizes) in sorted(_SHIPPED.items())
        for size, (argument, repeats) in zip("sml", sizes, strict=True)
    )


def find_workloads(wanted: Iterable[str | Workload] | None) -> tuple[Workload, ...]:
    """The workloads of these names or shell patterns (`chase-*`), sorted by name; None means all.

    Workload objects pass through. Raises UnknownName where nothing fits, UsageError where two
    different workloads have one name.
    """
    shipped = shipped_workloads()
    if wanted is None:
        return shipped
    found: dict[str, Workload] = {}
    for want in wanted:
        if isinstance(want, Workload):
            matches = [want]
        else:
            matches = [workload for workload in shipped if fnmatchcase(workload.name, want)]
        if not matches:
            raise UnknownName("workload", str(want), [workload.name for workload in shipped])
        for match in matches:
            if found.setdefault(match.name, match) != match:
                raise UsageError("two different workloads have one name", where=match.name)
    return tuple(found[name] for name in sorted(found))
