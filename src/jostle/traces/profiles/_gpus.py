"""Accelerators by name, and theoretical occupancy.

The figures of the devices are those of NVIDIA's data sheets, CUDA C++ Programming Guide (table of
technical specifications per compute capability) and AMD's CDNA whitepapers. The occupancy is that of
NVIDIA's occupancy calculator (registers allocated by warp, shared memory by block), for AMD that of the
CDNA instruction set guides (registers allocated by wave on each SIMD).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from jostle.errors import BadData, UnknownName


@dataclass(frozen=True)
class Gpu:
    """One device. PE: a streaming multiprocessor, or a compute unit on AMD.

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
        """Of the device, as its name or the table of devices says (GB of 1e9 bytes); None where neither
        does, or where the device is sold with several."""
        size = re.search(r"(\d+) ?GB\b", self.name, re.IGNORECASE)
        if size:
            return float(size[1]) * 1e9
        known = known_gpu(self.name)
        gigabytes = None if known is None else _GIGABYTES.get(known.name)
        return None if gigabytes is None else gigabytes * 1e9

    def warps_of(self, threads_per_block: int) -> int:
        """Warps of a block, whole ones."""
        return -(-threads_per_block // self.threads_per_warp)

    def resident_blocks(
        self, threads_per_block: int, registers_per_thread: int = 0, shared_bytes: int = 0
    ) -> int:
        """How many blocks of a kernel one PE holds at a time; 0 where not even one fits.

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
        """Theoretical occupancy: resident warps over the most a PE can hold, 0 to 1."""
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


def _nvidia(
    name: str, pes: int, capability: str, gigabytes_per_second: float, l2_mib: float
) -> Gpu:
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
        l2_bytes=int(l2_mib * 2**20),
        compute_capability=capability,
        **register_rules(major, int(capability.split(".")[1])),
    )


def register_rules(major: int, minor: int) -> dict[str, int]:
    """How a compute capability gives out registers and shared memory."""
    return {
        "warp_unit": 2 if (major, minor) == (6, 0) else 4,
        "shared_unit": 128 if major >= 8 else 256,
        "reserved_shared_bytes": 1024 if major >= 8 else 0,
    }


# compute capability: (warps, blocks, KiB of shared memory) per SM
_PER_SM = {
    "3.5": (64, 16, 48),
    "3.7": (64, 16, 112),
    "5.2": (64, 32, 96),
    "6.0": (64, 32, 64),
    "6.1": (64, 32, 96),
    "7.0": (64, 32, 96),
    "7.5": (32, 16, 64),
    "8.0": (64, 32, 164),
    "8.6": (48, 16, 100),
    "8.9": (48, 24, 100),
    "9.0": (64, 32, 228),
}


def amd_gpu(name: str, pes: int, gigabytes_per_second: float, l2_mib: float) -> Gpu:
    """A device of AMD's CDNA."""
    return Gpu(
        name=name,
        pes=pes,
        warps_per_pe=32,
        blocks_per_pe=32,
        registers_per_pe=512,
        shared_bytes_per_pe=65536,
        memory_bandwidth_bytes_per_second=gigabytes_per_second * 1e9,
        threads_per_warp=64,
        l2_bytes=int(l2_mib * 2**20),
        register_unit=8,
        shared_unit=512,
        simds=4,
    )


# Name, PEs, compute capability, GB/s, MiB of L2, GB of memory: the V100 is sold with 16 and with 32, the A100
# with 40 and with 80, which its name then says. Of the MI250 each of its two dies is a device of its own.
_DEVICES = (
    ("K40", 15, "3.5", 288, 1.5, 12),
    ("K80", 13, "3.7", 240, 1.5, 12),
    ("P100", 56, "6.0", 732, 4, 16),
    ("GTX 1080 Ti", 28, "6.1", 484, 2.75, 11),
    ("V100", 80, "7.0", 900, 6, None),
    ("T4", 40, "7.5", 320, 4, 16),
    ("A100", 108, "8.0", 1555, 40, 40),
    ("A100 80GB", 108, "8.0", 2039, 40, 80),
    ("A10", 72, "8.6", 600, 6, 24),
    ("RTX 3090", 82, "8.6", 936, 6, 24),
    ("L4", 58, "8.9", 300, 48, 24),
    ("RTX 4090", 128, "8.9", 1008, 72, 24),
    ("H100", 132, "9.0", 3350, 50, 80),
    ("H100 PCIe", 114, "9.0", 2000, 50, 80),
    ("H200", 132, "9.0", 4800, 50, 141),
    ("MI250", 104, "CDNA", 1638.4, 8, 64),
    ("MI300X", 304, "CDNA", 5324.8, 4, 192),
)
GPUS: dict[str, Gpu] = {
    name: amd_gpu(name, pes, rate, l2) if kind == "CDNA" else _nvidia(name, pes, kind, rate, l2)
    for name, pes, kind, rate, l2, _ in _DEVICES
}
_GIGABYTES = {name: size for name, *_, size in _DEVICES}


def reported_gpu(
    name: str, pes: int | None, warps_per_pe: int | None, where: str, **facts: Any
) -> Gpu | None:
    """The device that a recording describes; without PEs and warps, that of its name in the table, if there.

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


_FAMILY = re.compile(r"[a-z]+ ?\d+ ?(?:ti|x)?", re.IGNORECASE)


def gpu_named(name: str) -> Gpu:
    """The device of a name as people or drivers write it: V100, Tesla V100-SXM2-32GB.

    Raises UnknownName.
    """
    gpu = known_gpu(name)
    if gpu is None:
        raise UnknownName("GPU", name, sorted(GPUS))
    return gpu


def known_gpu(name: str) -> Gpu | None:
    """As gpu_named; None for a name that is not in the table."""
    plain = _plain(name)
    for known in sorted(GPUS, key=len, reverse=True):
        if _plain(known) == plain:
            return GPUS[known]
    large = re.search(r"a100.*80 ?gb", name, re.IGNORECASE)
    if large:
        return GPUS["A100 80GB"]
    if re.search(r"h100.*pcie", name, re.IGNORECASE):
        return GPUS["H100 PCIe"]
    words = {_plain(match) for match in _FAMILY.findall(name)}
    for known in sorted(GPUS, key=len, reverse=True):
        if _plain(known) in words or (
            " " in known and re.search(rf"\b{re.escape(known)}\b", name, re.IGNORECASE)
        ):
            return GPUS[known]
    if re.search(r"\bmi2[05]0x?\b|gfx90a", name, re.IGNORECASE):
        return GPUS["MI250"]
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
