"""What answers needs nothing but what the core declares: no library that only an extra brings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jostle
from tests.core_alone import hidden_here, in_core
from tests.packages.models.levels import campaign


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core") / "model"
    runs = campaign(6, 3)
    settings = jostle.Bag("tree")
    jostle.fit(runs, settings, seed=0).save(folder)
    return folder


def test_commands_that_answer_need_only_the_core(model: Path, tmp_path: Path) -> None:
    assert {"jax", "click", "wasmtime"} <= hidden_here()[0]
    table = tmp_path / "times.csv"
    table.write_text("job,host,ms\na,p,1\nb,p,2\n")
    named = ["--workload", "job", "--platform", "host", "--runtime", "ms", "--unit", "ms"]
    lines = [
        ["--help"],
        ["import", "--kind=csv", str(table), "-o", str(tmp_path / "fleet"), *named],
        ["runs", str(tmp_path / "fleet")],
        ["predict", str(model), "-w", "w00", "-p", "p00", "-b", "w01", "-c", "0.5"],
        ["predict", "--why", str(model), "-w", "w00", "-p", "p00", "-b", "w01"],
        ["doctor"],
    ]
    for words, (code, complaint) in zip(lines, in_core(lines), strict=True):
        assert code == 0, f"{words}: {complaint}"


def test_commands_that_need_more_say_what(model: Path, tmp_path: Path) -> None:
    runs = jostle.Runs.from_columns(
        workload=["a"] * 40, platform=["p"] * 40, runtime_seconds=np.linspace(1, 2, 40)
    )
    jostle.Dataset(tmp_path / "fleet").write(runs)
    lines = {
        "fit": ["fit", str(tmp_path / "fleet"), "-o", str(tmp_path / "model")],
        "measure": ["tour", "-o", str(tmp_path / "tour")],
        "serve": ["serve", str(model)],
    }
    for extra, (code, complaint) in zip(lines, in_core(list(lines.values())), strict=True):
        assert code == 2, f"{extra}: {code} {complaint}"
        assert f"[{extra}]" in complaint
        assert "Measuring" not in complaint
