"""Accelerators by name, and theoretical occupancy.

The figures of the devices (gpus.csv) are those of NVIDIA's data sheets, CUDA C++ Programming Guide (table of
technical specifications per compute capability), MIG user guide and listings of MIG profiles by its driver,
and AMD's CDNA whitepapers and table of specifications; the SMs of H20 and GB200, for which there is no data
sheet with them, are those that drivers report. The occupancy is that of
NVIDIA's occupancy calculator (registers allocated by warp, shared memory by block), for AMD that of the
CDNA instruction set guides (registers allocated by wave on each SIMD).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from jostle.errors import BadData, UnknownName

Slice = tuple[
    str, int, float
]  # of MIG: its name (3g), PEs, and share of the memory and its bandwidth


@dataclass(frozen=True)
class Gpu:
    """Hardware of a device. PE: a streaming multiprocessor, or a compute unit on AMD.

    memory_bandwidth_bytes_per_second: peak, None where unknown. reserved_shared_bytes: taken by the
    runtime from every block. register_unit: registers are given out to a warp in multiples of it.
    warp_unit: warps are given registers in multiples of it. simds: 0 where registers are shared by
    the whole PE, else the register file stands registers_per_pe lanes wide on each of so many SIMDs.
    """

    name: str
    pes: int
    warps_per_pe: int
    blocks_per_pe: int
    registers_per_pe: int
    shared_bytes_per_pe: int
    memory_bandwidth_bytes_per_second: float | None
    threads_per_warp: int = 32
    l2_bytes: int | None = None
    compute_capability: str = ""
    register_unit: int = 256
    warp_unit: int = 4
    shared_unit: int = 256
    reserved_shared_bytes: int = 0
    simds: int = 0

    def __post_init__(self) -> None:
        for field in ("pes", "warps_per_pe", "blocks_per_pe", "threads_per_warp"):
            if getattr(self, field) < 1:
                raise BadData(f"{field} is {getattr(self, field)}, not at least 1", where=self.name)
        bandwidth = self.memory_bandwidth_bytes_per_second
        if bandwidth is not None and not bandwidth > 0:
            raise BadData(f"memory bandwidth is {bandwidth}, not above 0", where=self.name)

    @property
    def memory_bytes(self) -> float | None:
        """Memory of the device, as its name or the table of devices says (GB of 1e9 bytes); None if neither
        does, or if the device is sold with several sizes."""
        known = known_gpu(self.name)
        size = re.search(r"(?:.* mig \dg\.|\b)(\d+) ?GB\b", self.name, re.IGNORECASE)
        if size and not (known and known.name.startswith("GH200")):  # there it is the host's
            return float(size[1]) * 1e9
        gigabytes = None if known is None else _GIGABYTES.get(known.name)
        return None if gigabytes is None else gigabytes * 1e9

    @property
    def slices(self) -> tuple[Slice, ...]:
        """Slices that MIG can cut the device into, of one name the smaller first; () for none, or unknown."""
        known = known_gpu(self.name)
        return () if known is None or known.pes != self.pes else _SLICES[known.name]

    def warps_of(self, threads_per_block: int) -> int:
        """Count the warps of a block, whole ones."""
        return -(-threads_per_block // self.threads_per_warp)

    def resident_blocks(
        self, threads_per_block: int, registers_per_thread: int = 0, shared_bytes: int = 0
    ) -> int:
        """Return how many blocks of a kernel one PE holds at a time; 0 where not even one fits.

        Raises BadData for a block without threads or a negative need.
        """
        if threads_per_block < 1 or registers_per_thread < 0 or shared_bytes < 0:
            raise BadData(
                f"a block of {threads_per_block} threads with {registers_per_thread} registers each "
                f"and {shared_bytes} bytes of shared memory does not exist",
                where=self.name,
            )
        warps = self.warps_of(threads_per_block)
        limits = [self.warps_per_pe // warps, self.blocks_per_pe]
        if registers_per_thread:
            limits.append(self._warps_by_registers(registers_per_thread) // warps)
        shared = shared_bytes + self.reserved_shared_bytes
        if shared:
            limits.append(self.shared_bytes_per_pe // _round_up(shared, self.shared_unit))
        return min(limits)

    def occupancy(
        self, threads_per_block: int, registers_per_thread: int = 0, shared_bytes: int = 0
    ) -> float:
        """Compute the theoretical occupancy: resident warps over the most a PE can hold, 0 to 1."""
        blocks = self.resident_blocks(threads_per_block, registers_per_thread, shared_bytes)
        return blocks * self.warps_of(threads_per_block) / self.warps_per_pe

    def _warps_by_registers(self, registers_per_thread: int) -> int:
        if self.simds:
            each = self.registers_per_pe // _round_up(registers_per_thread, self.register_unit)
            return self.simds * each
        per_warp = _round_up(registers_per_thread * self.threads_per_warp, self.register_unit)
        return self.registers_per_pe // per_warp // self.warp_unit * self.warp_unit


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _nvidia(name: str, pes: int, gigabytes_per_second: float, capability: str) -> Gpu:
    warps, blocks, shared_kib = _PER_SM[capability]
    major = int(capability.split(".")[0])
    return Gpu(
        name=name,
        pes=pes,
        warps_per_pe=warps,
        blocks_per_pe=blocks,
        registers_per_pe=65536,
        shared_bytes_per_pe=shared_kib * 1024,
        memory_bandwidth_bytes_per_second=gigabytes_per_second * 1e9,
        compute_capability=capability,
        **register_rules(major, int(capability.split(".")[1])),
    )


def register_rules(major: int, minor: int) -> dict[str, int]:
    """Return how a compute capability gives out registers and shared memory."""
    return {
        "warp_unit": 2 if (major, minor) == (6, 0) else 4,
        "shared_unit": 128 if major >= 8 else 256,
        "reserved_shared_bytes": 1024 if major >= 8 else 0,
    }


# compute capability: (warps, blocks, KiB of shared memory) per SM
_PER_SM = {
    "3.5": (64, 16, 48), "3.7": (64, 16, 112), "5.2": (64, 32, 96), "6.0": (64, 32, 64),
    "6.1": (64, 32, 96), "7.0": (64, 32, 96), "7.5": (32, 16, 64), "8.0": (64, 32, 164),
    "8.6": (48, 16, 100), "8.9": (48, 24, 100), "9.0": (64, 32, 228), "10.0": (64, 32, 228),
    "12.0": (48, 24, 100),
}  # fmt: skip


def amd_gpu(name: str, pes: int, gigabytes_per_second: float) -> Gpu:
    """Return a device of AMD's CDNA."""
    return Gpu(
        name=name,
        pes=pes,
        warps_per_pe=32,
        blocks_per_pe=32,
        registers_per_pe=512,
        shared_bytes_per_pe=65536,
        memory_bandwidth_bytes_per_second=gigabytes_per_second * 1e9,
        threads_per_warp=64,
        register_unit=8,
        shared_unit=512,
        simds=4,
    )


def _listed() -> Iterator[tuple[Gpu, float | None, tuple[Slice, ...], str]]:
    with open(Path(__file__).with_name("gpus.csv"), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            l2, size = row["l2_mib"], row["gigabytes"]
            facts = row["name"], int(row["pes"]), float(row["gigabytes_per_second"])
            is_amd = row["kind"].startswith("CDNA")
            gpu = amd_gpu(*facts) if is_amd else _nvidia(*facts, row["kind"])
            shared = {"shared_bytes_per_pe": 160 * 1024} if row["kind"] == "CDNA4" else {}
            l2_bytes = int(float(l2) * 2**20) if l2 else None
            gigabytes = float(size) if size else None
            parts = (part.split(":") for part in row["slices"].split())
            slices = tuple((part, int(pes), float(Fraction(of))) for part, pes, of in parts)
            yield replace(gpu, l2_bytes=l2_bytes, **shared), gigabytes, slices, row["also"]


# Of the MI250 each of its two dies is a device of its own. The V100 is sold with 16 GB and with 32, which its
# name then says. A slice of an instance of MIG is left out where no listing of a driver was at hand: H20,
# H100 PCIe, and 3g and 4g of the B200 and GB200.
GPUS: dict[str, Gpu] = {}
_GIGABYTES: dict[str, float | None] = {}
_SLICES: dict[str, tuple[Slice, ...]] = {}
_ALSO: dict[str, str] = {}  # patterns of names that drivers give
for _gpu, _size, _slices, _also in _listed():
    GPUS[_gpu.name], _GIGABYTES[_gpu.name], _SLICES[_gpu.name] = _gpu, _size, _slices
    if _also:
        _ALSO[_gpu.name] = _also


def reported_gpu(
    name: str, pes: int | None, warps_per_pe: int | None, where: str, **facts: Any
) -> Gpu | None:
    """Return the device that a recording describes; without PEs and warps, that of its name in the table, if
    there.

    facts: fields of Gpu; one that is None or 0 is as the table or most devices have it. Raises BadData for
    numbers that no device has. where: they stand.
    """
    named = known_gpu(name)
    if not (pes and warps_per_pe):
        return named
    usual = {
        "blocks_per_pe": named.blocks_per_pe if named else 32,
        "registers_per_pe": 65536,
        "shared_bytes_per_pe": named.shared_bytes_per_pe if named else 49152,
        "memory_bandwidth_bytes_per_second": None,
    }
    reported = {fact: value for fact, value in facts.items() if value}
    try:
        return Gpu(name=name or "unnamed", pes=pes, warps_per_pe=warps_per_pe, **(usual | reported))
    except BadData as error:
        raise BadData(error.what, where=where) from None


_FAMILY = re.compile(r"[a-z]+ ?\d+(?: ?(?:ti|x)|s\b)?", re.IGNORECASE)


def gpu_named(name: str) -> Gpu:
    """Return the device of a name as people or drivers write it: V100, Tesla V100-SXM2-32GB.

    Raises UnknownName.
    """
    gpu = known_gpu(name)
    if gpu is None:
        raise UnknownName("GPU", name, sorted(GPUS))
    return gpu


def known_gpu(name: str) -> Gpu | None:
    """Look up a GPU as gpu_named does; None for a name that is not in the table."""
    plain = _plain(name)
    for known in sorted(GPUS, key=len, reverse=True):
        if _plain(known) == plain:
            return GPUS[known]
    for known, pattern in _ALSO.items():
        if re.search(pattern, name, re.IGNORECASE):
            return GPUS[known]
    words = {_plain(match) for match in _FAMILY.findall(name)}
    for known in sorted(GPUS, key=len, reverse=True):
        if _plain(known) in words or (
            " " in known and re.search(rf"\b{re.escape(known)}\b", name, re.IGNORECASE)
        ):
            return GPUS[known]
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
