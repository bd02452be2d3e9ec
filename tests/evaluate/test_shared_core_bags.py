"""studies/collect/shared_core_bags.py: what is planned, kept over a break, and written."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.runs import Dataset
from studies.collect import shared_core_bags as recorder


class Stage:
    """In place of the machine: writes what each window would give. seen: the windows asked for."""

    seen: list[tuple[str, tuple[str, ...]]]

    def __init__(self, build: Path, names: list[str], engine: str) -> None:
        self.engine = engine

    def close(self) -> None:
        pass

    def window(self, bag: tuple[str, ...], identity: str) -> list[dict[str, Any]]:
        self.seen.append((self.engine, bag))
        if len(self.seen) == 40:
            raise KeyboardInterrupt
        return [
            {
                "workload": name,
                "platform": f"wasmtime-{self.engine}:here",
                "corunners": [*bag[:place], *bag[place + 1 :]],
                "runtime_seconds": (1.0 + 0.01 * (len(self.seen) % 3)) * (1 + len(bag) * len(name)),
                "status": "ok",
                "reason": None,
                "run_id": f"{self.engine}-{'-'.join(bag)}-{len(self.seen)}-{place}",
                "window_id": f"{self.engine}-{'-'.join(bag)}-{len(self.seen)}",
                "repetitions": 1.0,
                "window_seconds": 1.0,
                "cpu_seconds": 0.5,
            }
            for place, name in enumerate(bag)
        ]


def test_after_a_break_it_goes_on_and_every_window_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    Stage.seen = []
    monkeypatch.setattr(recorder, "BagMachine", Stage)
    asked = [str(tmp_path / "build"), str(tmp_path / "out"), "--programs", "3", "--passes", "2"]
    with pytest.raises(KeyboardInterrupt):
        recorder.main(asked)
    log = tmp_path / "build" / "windows.jsonl"
    log.write_text(log.read_text() + '{"engine": "speed@cp')  # cut off as it was written
    assert recorder.main(asked) == 0
    names = list(recorder.PROGRAMS)[:3]
    each = recorder.bags(names)
    found = [(one["engine"], tuple(one["bag"])) for one in recorder.logged(tmp_path / "build")]
    assert sorted(found) == sorted(2 * [(e, b) for e in (recorder.ONE, recorder.TWO) for b in each])
    assert set(each) >= {(a,) for a in names} | {(a, a) for a in names}
    runs = Dataset(tmp_path / "out").read()
    assert len(runs) == 4 * sum(map(len, each))
    written = json.loads((tmp_path / "out" / "bags.json").read_text())
    assert written["predicted"] == f"wasmtime-{recorder.ONE}:here"
    assert written["cpu_platform"] == f"wasmtime-{recorder.TWO}:here"
    workloads, features = runs.features_of("workload")
    assert features is not None
    assert set(workloads) == set(names)
    assert min(features.column("instructions").to_pylist()) > 1e6


def test_bags_that_differ_no_more_than_repeats_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    random = np.random.default_rng(0)

    class Noisy(Stage):
        def window(self, bag: tuple[str, ...], identity: str) -> list[dict[str, Any]]:
            rows = super().window(bag, identity)
            return [{**row, "runtime_seconds": float(random.uniform(1, 2))} for row in rows]

    Stage.seen = [("", ())] * 40
    monkeypatch.setattr(recorder, "BagMachine", Noisy)
    asked = [str(tmp_path / "build"), str(tmp_path / "out"), "--programs", "3", "--passes", "2"]
    assert recorder.main(asked) == 1
    assert "no set is made" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_window_is_recorded(tmp_path: Path) -> None:
    """On this machine, if it has two cores: a program that waits is on its core for a part of its time."""
    from jostle.measure import chosen_cores

    if len(chosen_cores(None)) < 2:
        pytest.skip("needs two cores")
    before = os.sched_getaffinity(0)
    try:
        machine = recorder.BagMachine(tmp_path, ["sponge"], recorder.ONE)
        with closing(machine):
            rows = machine.window(("sponge", "sponge"), "test")
    finally:
        os.sched_setaffinity(0, before)
    assert [row["workload"] for row in rows] == ["sponge", "sponge"]
    assert all(row["corunners"] == ["sponge"] for row in rows)
    assert all(0.02 < row["cpu_seconds"] / row["window_seconds"] < 0.9 for row in rows)
