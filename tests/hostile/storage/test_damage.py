"""A flipped bit in a saved model or in a dataset is refused; nothing answers otherwise in silence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.collect.campaign import _journal
from jostle.data import (
    GPUS,
    Runs,
    Traces,
    read_profiles,
    read_traces,
    tasks_from_rows,
    write_profiles,
    write_traces,
)
from jostle.errors import BadData, UnreadableFile
from tests.plain_traces import plain_trace

FLIPS = 60  # in each file


def flipped(folder: Path, seed: int = 0) -> Any:
    """Each file of a folder with one bit changed, time and again; the file."""
    random = np.random.default_rng(seed)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        # Ends and beginnings, where lengths and names stand, and anything between.
        bits = [*range(16), *range(8 * len(content) - 16, 8 * len(content))]
        bits += random.integers(0, 8 * len(content), FLIPS).tolist()
        for bit in bits:
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            path.write_bytes(changed)
            yield path
        path.write_bytes(content)


def some_runs(n: int = 60) -> Runs:
    random = np.random.default_rng(0)
    return Runs.from_columns(
        workload=[f"w{k % 4}" for k in range(n)],
        platform=["p"] * n,
        corunners=[[f"w{k}" for k in random.integers(0, 4, k % 3)] for k in range(n)],
        runtime_seconds=random.lognormal(size=n),
        workload_features={"workload": [f"w{k}" for k in range(4)], "size": [1, 2, 3, 4]},
        platform_features={"platform": ["p"], "cores": [4]},
    )


def test_models(tmp_path: Path) -> None:
    method = jostle.Slowdown(rank=1, members=1, steps=3)
    jostle.fit(some_runs(), method, seed=0).save(tmp_path)
    refused = 0
    for path in flipped(tmp_path):
        with pytest.raises(BadData) as raised:
            jostle.load(tmp_path)
        refused += str(tmp_path) in str(raised.value)
        assert path.parent == tmp_path
    assert refused >= 2 * FLIPS
    jostle.load(tmp_path)


def test_traces_and_profiles(tmp_path: Path) -> None:
    write_traces(
        tmp_path / "traces", Traces.from_traces([plain_trace({"x": [1.0] * 3}, run_id="a")])
    )
    rows = [{"kind": "kernel", "start_seconds": 0.0, "duration_seconds": 1.0, "name": "k"}]
    write_profiles(tmp_path / "profiles", [tasks_from_rows(rows, run_id="a", gpu=GPUS["T4"])])
    for name, read in (("traces", read_traces), ("profiles", read_profiles)):
        for path in flipped(tmp_path / name):
            with pytest.raises(UnreadableFile, match=path.name):
                read(tmp_path / name)


def test_journals(tmp_path: Path) -> None:
    """What a killed campaign left: a flipped bit is noticed, or it is the window in flight that goes."""
    from datetime import UTC, datetime

    def row(name: str) -> dict[str, Any]:
        return {"window_id": name, "measured_at": datetime(2024, 1, 2, tzinfo=UTC), "x": 1.5}

    def journal(write: Callable[[list[dict[str, Any]]], None]) -> _journal.Journal:
        return _journal.Journal(tmp_path, "c", write=write, known=set, clock=lambda: 0.0)

    first = journal(lambda rows: None)
    first.append([row("a"), row("a")])
    first.append([row("b")])
    path = tmp_path / "journal" / "c.jsonl"
    content = path.read_bytes()
    first.close()
    assert path.read_bytes() == b""
    whole = [row("a"), row("a"), row("b")]
    for bit in range(8 * (len(content) - 1)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(UnreadableFile, match=r"line [12] is not the one that was written"):
            _journal._rows(path)
    # Cut off right behind its last line, or in it.
    path.write_bytes(content[:-1])
    assert _journal._rows(path) == whole
    path.write_bytes(content[:-2])
    assert _journal._rows(path) == whole[:2]
    found: list[dict[str, Any]] = []
    journal(found.extend).close()
    assert found == whole[:2]


def test_the_script_of_kills_and_pairs(tmp_path: Path) -> None:
    """A few rounds of benchmarks/kills.py, which ends with 1 where anything is lost or unreadable."""
    script = Path(__file__).resolve().parents[3] / "benchmarks" / "kills.py"
    command = [sys.executable, str(script), "--rounds", "1", "--bits", "10"]
    done = subprocess.run([*command, "--folder", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if "killed" in line or "in pairs" in line]
    assert len(rows) == 6
    for line in rows:
        rounds, acknowledged, _, lost, unreadable, left, reads, failed = map(int, line.split()[-8:])
        assert rounds == 1
        assert min(acknowledged, reads) > 0
        assert lost == unreadable == left == failed == 0
