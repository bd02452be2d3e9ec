"""Studies are found by their entry points, Jostle's own like another package's; their cells run anywhere."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jostle.cli import exit_code
from jostle.errors import NotEnoughRuns, UnknownName
from jostle.evaluate import study_named, study_names
from studies.cells import Runner, file_name, metrics_in, metrics_table

ANOTHER = '''
"""A study of another package."""
from dataclasses import dataclass
from typing import Annotated, ClassVar

from jostle.extend import Report, Table

@dataclass(frozen=True)
class Dice:
    """How often a die shows six."""
    name: ClassVar[str] = "dice"
    throws: Annotated[int, "How many."] = 6

    def run(self, *, progress):
        progress(self.throws, self.throws, 0.0)
        share = Table(["throws", "sixes"], [[str(self.throws), "1"]], (0, 1))
        return Report({"schema": "evaluate/v1", "name": self.name, "metrics": {"sixes": 1}}, [share])
'''


@pytest.mark.parametrize("name", study_names())
def test_a_study_is_options_and_a_run(name: str) -> None:
    study = study_named(name)
    assert study.name == name
    assert dataclasses.is_dataclass(study)
    assert study.__doc__
    assert callable(study.run)


def test_a_study_of_another_package_is_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dicing.py").write_text(ANOTHER)
    metadata = tmp_path / "dicing-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dicing\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[jostle.studies]\ndice = dicing:Dice\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "dice" in study_names()
    assert exit_code(["evaluate", "dice", "--throws", "12", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == {"sixes": 1}
    assert exit_code(["evaluate", "dice", "--throws", "12"]) == 0
    assert capsys.readouterr().out.split() == ["throws", "sixes", "12", "1"]
    assert exit_code(["evaluate", "--help"]) == 0
    assert "How often a die shows six" in capsys.readouterr().out


def test_no_study_is_loaded_before_it_is_asked_for() -> None:
    code = (
        "import sys; from jostle.cli import main; main(['--help'])\n"
        "assert not [name for name in sys.modules if name.endswith('_study')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_an_unknown_study() -> None:
    with pytest.raises(UnknownName, match="study"):
        study_named("nonsense")


@dataclass(frozen=True)
class Square:
    """Refuses odd numbers."""

    number: int

    @property
    def file_name(self) -> str:
        return file_name(f"square-{self.number}", (self.number,))

    def measure(self, data: Any) -> pa.Table:
        if self.number % 2:
            raise NotEnoughRuns("odd", where=str(self.number), fix="Take an even number.")
        return metrics_table({"square": data * self.number**2})


@pytest.mark.parametrize("workers", [1, 2])
def test_tolerated_errors_take_the_place_of_numbers(workers: int) -> None:
    cells = [Square(number) for number in range(4)]
    told: list[int] = []
    runner = Runner(workers, tolerated=(NotEnoughRuns,))
    found = runner.run(cells, lambda: 2, lambda done, total, _: told.append(done))
    assert [metrics_in(found[even]) for even in (0, 2)] == [{"square": 0.0}, {"square": 8.0}]
    assert [str(found[odd]) for odd in (1, 3)] == [
        f"{odd}: odd. Take an even number." for odd in (1, 3)
    ]
    assert told == [0, 1, 2, 3, 4, 4]
    with pytest.raises(NotEnoughRuns, match="odd"):
        replace(runner, tolerated=()).run(cells, lambda: 2)


def test_kept_cells_are_not_measured_again(tmp_path: Path) -> None:
    def never() -> Any:
        raise AssertionError("the data is not needed")

    runner = Runner(folder=tmp_path / "cells", tolerated=(NotEnoughRuns,))
    first = runner.run([Square(2), Square(3)], lambda: 1)
    assert len(list((tmp_path / "cells").iterdir())) == 1, "what failed is not kept"
    again = runner.run([Square(2)], never)
    assert metrics_in(again[0]) == metrics_in(first[0]) == {"square": 4.0}
