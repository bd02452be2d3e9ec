"""From what perf stat wrote to predictions, through the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jostle.cli import exit_code

PROGRAMS = {"a": (2e7, 1e5), "b": (1e7, 8e5), "c": (3e7, 4e5), "d": (1.5e7, 2e5)}
PERIODS, STEP = 20, 0.01


def lines(program: str, slow: float) -> str:
    """Two phases, half as many instructions in the second; each period as long as perf makes it."""
    out, now, done = [], 0.0, 0.0
    work, misses = PROGRAMS[program]
    whole = PERIODS * STEP
    while done < whole - 1e-12:
        part = min(STEP / slow, whole - done)
        share = part / STEP * (1.0 if done < whole / 2 else 0.5)
        now, done = now + part * slow, done + part
        for event, count in (("instructions:u", work), ("cache-misses", misses)):
            out.append(f"{now:.9f},{count * share:.0f},,{event},9999,100.00,,")
        out.append(f"{now:.9f},<not supported>,,LLC-stores,0,100.00,,")
    return "\n".join(["# started on Mon Jan  1 10:00:00 2024", "", *out, ""])


def slowdown(program: str, other: str) -> float:
    return 1 + 0.8 * PROGRAMS[program][1] * PROGRAMS[other][1] / 64e10


def test_from_perf_to_a_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")

    def add(program: str, slow: float, other: str = "") -> None:
        file = tmp_path / f"{program}-{other}.csv"
        file.write_text(lines(program, slow))
        words = ["import", "--kind=perf", str(file), "-o", data, "--platform", "p", "--whole"]
        words += ["--workload", program, "--run-id", file.stem]
        if other:
            words += ["--beside", other, "--window", "".join(sorted(program + other))]
        assert exit_code(words) == 0

    names = sorted(PROGRAMS)
    for name in names:
        add(name, 1.0)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            add(one, slowdown(one, other), other)
            add(other, slowdown(other, one), one)
    capsys.readouterr()
    model = str(tmp_path / "model")
    fit = ["fit", "--method=alignment", data, "-o", model, "--set=learner=phases"]
    fit += ["--set=corunners=loop"]
    fit += ["--set=counters=perf_cache_misses"]
    assert exit_code(fit) == 0
    capsys.readouterr()
    errors, nothing = [], []
    for one, other in (("b", "c"), ("c", "b"), ("a", "d"), ("d", "b")):
        assert exit_code(["predict", model, "-w", one, "-b", other, "-c", "0.5", "--json"]) == 0
        (answer,) = json.loads(capsys.readouterr().out)["items"]
        slow = slowdown(one, other)
        errors.append(answer["runtime_seconds"] / (PERIODS * STEP * slow) - 1)
        nothing.append(1 / slow - 1)
    assert np.abs(errors).mean() < 0.5 * np.abs(nothing).mean()
