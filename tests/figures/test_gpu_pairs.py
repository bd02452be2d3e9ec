"""Recording kernels on a GPU: what is planned, that it goes on where it was left, and what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import jostle
from studies.collect import gpu_pairs as recorder


def test_the_plan_is_as_large_as_it_must_be() -> None:
    jobs = recorder.plan()
    assert jobs == recorder.plan()
    assert len({job.key("mps") for job in jobs}) == len(jobs)
    bags = [job for job in jobs if job.kind == "bag"]
    assert len(bags) == 110
    assert sum(len(set(job.members)) == 1 for job in bags) == 45
    assert {len(job.members) for job in jobs} == {1, 2, 3, 4}
    assert {job.members[0] for job in jobs if job.kind == "trace"} == set(recorder.NAMES)
    assert sum(job.kind == "solo" and job.again > 0 for job in jobs) >= 13


class Stage:
    """Workers that answer at once; whoever runs `lookup-1` dies."""

    running = ()

    def __init__(self, *_: Any) -> None:
        pass

    def get(self, count: int) -> list[int]:
        return list(range(count))

    def all(self, pipes: list[int], orders: list[tuple], limit: float) -> list[Any]:
        if orders[0][0] == "prepare" and orders[0][1] == "lookup-1":
            raise recorder.Gone("the process ended")
        return [[0.001, 0.002, 0.003]] * len(pipes) if orders[0][0] == "run" else [None]

    def stop(self) -> None:
        pass


def test_it_goes_on_where_it_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [
        recorder.KernelJob("solo", ("sort-1",)),
        recorder.KernelJob("bag", ("sort-1", "sort-1")),
        recorder.KernelJob("bag", ("lookup-1", "sort-1")),
    ]
    monkeypatch.setattr(recorder, "plan", lambda seed: jobs)
    monkeypatch.setattr(recorder, "Workers", Stage)
    given = ["-o", str(tmp_path), "--modes", "time-sliced", "--platform", "gpu"]
    recorder.main([*given, "--most", "1"])
    path = tmp_path / "measurements.jsonl"
    first = path.read_text()
    path.write_text(first + '{"key": "cut o')
    recorder.main(given)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert path.read_text().startswith(first)
    assert [line["ok"] for line in lines] == [True, True, False]
    runs = jostle.read_runs(tmp_path / "dataset")
    assert runs.colocations.platform_names == ("gpu|time-sliced",)
    assert len(runs) == 3 * recorder.REPEATS
    recorder.main(given)  # what failed is tried once more, and no more
    recorder.main(given)
    assert len(path.read_text().splitlines()) == 4
