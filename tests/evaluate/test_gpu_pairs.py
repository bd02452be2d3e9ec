"""Recording kernels on the CPU: it goes on where it was left, and loses nothing to members that die."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import jostle
from studies.collect import gpu_pairs as recorder

QUICK = ["--device", "cpu", "--seconds", "0.02", "--warm-up", "0.02", "--scale", "0.001"]


def test_the_plan_is_as_large_as_it_must_be() -> None:
    jobs = recorder.plan()
    assert jobs == recorder.plan()
    assert len({job.key("mps") for job in jobs}) == len(jobs)
    bags = [job for job in jobs if job.kind == "bag"]
    assert len(bags) >= 91
    assert sum(len(set(job.members)) == 1 for job in bags) == 45
    assert {len(job.members) for job in jobs} == {1, 2, 3, 4}
    assert {job.members[0] for job in jobs if job.kind == "trace"} == set(recorder.NAMES)
    assert sum(job.kind == "solo" and job.again > 0 for job in jobs) > 20


def test_jobs_are_planned_in_sets_of_two_to_four_each_once() -> None:
    jobs = recorder.plan(workloads="jobs")
    assert len({job.key("mps") for job in jobs}) == len(jobs)
    bags = [job.members for job in jobs if job.kind == "bag"]
    assert [sum(len(bag) == size for bag in bags) for size in (2, 3, 4)] == [50, 35, 25]
    assert {name for bag in bags for name in bag} == set(recorder.JOBS)
    assert not any(job.kind == "service" for job in jobs)


def test_a_member_that_fails_is_told_and_not_counted_as_no_steps() -> None:
    from studies.collect import gpu_worker

    def step() -> None:
        raise MemoryError("none is left")

    device = gpu_worker.NumpyDevice(0.001)
    with pytest.raises(MemoryError, match="none is left"):
        gpu_worker._together(device, [device.step("sort-1"), step], 0.0, 0.01, [None, None], 0)


def test_it_goes_on_where_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "torch" else real(n))
    jobs = [
        recorder.KernelJob("solo", ("sort-1",)),
        recorder.KernelJob("bag", ("sort-1", "sort-1")),
        recorder.KernelJob("service", ("sort-1", "stream-1"), loads=(0.5, None)),
        recorder.KernelJob("bag", ("nothing-1", "sort-1")),
        recorder.KernelJob("solo", ("stream-1",)),
    ]
    monkeypatch.setattr(recorder, "plan", lambda seed, workloads: jobs)
    given = ["-o", str(tmp_path), *QUICK, "--modes", "time-sliced", "--budget", "60"]
    recorder.main([*given, "--most", "1"])
    assert "time-sliced: 1 measurements left, at most 0 minutes" in capsys.readouterr().out
    path = tmp_path / "measurements.jsonl"
    first = path.read_text()
    assert len(first.splitlines()) == 1
    path.write_text(first + '{"key": "cut o')
    recorder.main(given)
    assert "time-sliced: 4 measurements left" in capsys.readouterr().out
    lines = [json.loads(line) for line in path.read_text().splitlines() if line[-1] == "}"]
    assert path.read_text().startswith(first)
    assert [line["ok"] for line in lines] == [True, True, True, False, True]
    assert lines[2]["p99_seconds"][0] >= lines[2]["medians"][0][0] > 0
    assert "nothing" in lines[3]["reason"]
    runs = jostle.read_runs(tmp_path / "dataset")
    columns = runs.colocations.to_columns()
    assert set(columns["platform"]) == {"cpu|time-sliced"}
    assert [len(beside) for beside in columns["corunners"]].count(1) == 10
    assert np.all(runs.runtime_seconds > 0)
    recorder.main(given)  # what failed is tried once more, and no more
    recorder.main(given)
    tried = [json.loads(line) for line in path.read_text().splitlines() if line[-1] == "}"]
    assert len(tried) == 6


def test_a_budget_is_kept_and_nonsense_refused(tmp_path: Path, capsys) -> None:
    recorder.main(["-o", str(tmp_path), *QUICK, "--budget", "1", "--modes", "streams"])
    assert "is used up" in capsys.readouterr().out
    assert not (tmp_path / "measurements.jsonl").exists()
    with pytest.raises(SystemExit):
        recorder.main(["-o", str(tmp_path), *QUICK, "--modes", "none"])


def test_without_pytorch_a_gpu_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="PyTorch is not installed"):
        recorder.main(["-o", str(tmp_path)])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_with_pytorch_every_kernel_steps() -> None:
    from studies.collect import gpu_worker

    device = gpu_worker.TorchDevice("cpu", 0.001)
    for kernel in gpu_worker.KERNELS:
        assert device.timed(device.step(f"{kernel}-2")) > 0
