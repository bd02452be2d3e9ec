"""Which engines work here: each runs a kernel whose result is known, in a process of its own.

In a process of its own because a private setting given a value it no longer knows, or a foreign
library, may abort it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ._engines import EngineSetting
from ._slots import Slot, gather
from ._workloads import Workload

_KERNEL = Path(__file__).parent / "kernels" / "sha256.wasm"
_ARGUMENT = 1024
# FNV-1a of the SHA-256 of the kernel's input, which any implementation of SHA-256 gives.
CHECKSUM = 0xC066E5A2CAA60010
_TIMEOUT_SECONDS = 60.0


@cache
def why_not(settings: Sequence[EngineSetting]) -> dict[str, str | None]:
    """By name: None where the engine gave the known result, else why not."""
    found: dict[str, str | None] = {}
    slots = {host: Slot(host) for host in {setting.host for setting in settings}}
    try:
        for setting in settings:
            found[setting.name] = _why_not(slots[setting.host], setting)
    finally:
        for slot in slots.values():
            slot.kill()
    return found


def _why_not(slot: Slot, setting: EngineSetting) -> str | None:
    program = setting.host.partition("-")[0]
    if program != "python" and shutil.which(program) is None:
        return f"{program} is not installed"
    workload = Workload("check", _KERNEL, _ARGUMENT, 1)
    part = {**workload.part(), "kind": setting.runs[0]}
    _ = slot.pid  # which starts it
    prepare = {"do": "prepare", "engine": setting.name, "parts": [part]}
    for what, message in (("ready", prepare), ("checksum", {"do": "checksum"})):
        slot.send(message)
        answers = gather([slot], time.monotonic() + _TIMEOUT_SECONDS, lambda: False)
        answer = answers[0] if answers else {}
        if what not in answer:
            return answer.get("failed", "it did not answer in time")
        if what == "checksum" and int(answer[what]) != CHECKSUM:
            return "its result of a known kernel is wrong"
    return None
