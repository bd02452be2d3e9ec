"""Studies are found by their table; their cells run anywhere."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import studies
from jostle.errors import NotEnoughRuns
from studies.cells import Runner, file_name


@pytest.mark.parametrize("name", studies.STUDIES)
def test_a_study_is_options_and_a_run(name: str) -> None:
    study: Any = studies.study_of(name)
    assert study.name == name
    assert callable(study.run)
    assert study.__doc__
    assert dataclasses.is_dataclass(study)


@dataclass(frozen=True)
class Square:
    """Refuses odd numbers."""

    number: int

    @property
    def file_name(self) -> str:
        return file_name(f"square-{self.number}", (self.number,))

    def measure(self, data: Any) -> pa.Table:
        if self.number % 2:
            raise NotEnoughRuns("odd", where=str(self.number))
        return pa.table({"square": [data * self.number**2]})


@pytest.mark.parametrize("workers", [1, 2])
def test_cells_are_measured_anywhere_in_their_order(workers: int) -> None:
    told: list[int] = []
    found = Runner(workers).run(
        [Square(number) for number in (4, 0, 2)],
        lambda: 2,
        lambda done, total, _: told.append(done),
    )
    assert [table.column("square")[0].as_py() for table in found] == [32, 0, 8]
    assert told == [0, 1, 2, 3, 3]
    with pytest.raises(NotEnoughRuns, match="odd"):
        Runner(workers).run([Square(2), Square(3)], lambda: 2)


def test_kept_cells_are_not_measured_again(tmp_path: Path) -> None:
    def never() -> Any:
        raise AssertionError("the data is not needed")

    runner = Runner(folder=tmp_path / "cells")
    first = runner.run([Square(2)], lambda: 1)
    with pytest.raises(NotEnoughRuns):
        runner.run([Square(3)], lambda: 1)
    assert len(list((tmp_path / "cells").iterdir())) == 1, "what failed is not kept"
    assert runner.run([Square(2)], never)[0].equals(first[0])
