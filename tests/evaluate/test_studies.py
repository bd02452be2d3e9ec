"""Studies are found by their table; their cells run anywhere."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import studies
from jostle.errors import NotEnoughRuns
from studies.cells import Runner, file_name, metrics_in, metrics_table


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
