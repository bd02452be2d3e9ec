"""Small campaigns that are quick and do not care how busy the machine is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from jostle.collect import Campaign, Workload

QUICK: dict[str, Any] = {
    "workloads": ["sort-s", "edit-s"],
    "engines": ["speed", "none"],
    "solo_repeats": 1,
    "sets": 6,
    "window_seconds": 0.03,
    "device": "here",
}


@pytest.fixture
def quick() -> Callable[..., Campaign]:
    return lambda **changed: Campaign(**{**QUICK, **changed})


@pytest.fixture
def make_workload(tmp_path: Path) -> Callable[..., Workload]:
    """A workload from the text of its `run`; its memory is there to be used."""

    def make(name: str, run: str, setup: str = "") -> Workload:
        module = tmp_path / f"{name}.wasm"
        text = f"""
          (module (memory (export "memory") 1)
            (func (export "setup") (param i32) {setup})
            (func (export "run") (param i32) {run}))"""
        module.write_bytes(bytes(wasmtime.wat2wasm(text)))
        return Workload(name, module, 1, 1)

    return make
