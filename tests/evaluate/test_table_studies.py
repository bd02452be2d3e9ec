"""Studies that are tables: means over draws, a metric for every cell, rows told as they are measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest

from jostle.extend import Table
from studies._runner import Measures, TableStudy, error_of_mean, over_best


@dataclass(frozen=True)
class Powers(TableStudy):
    """Powers of the seed."""

    exponents: Annotated[str, "By commas."] = "1,2"

    name: ClassVar[str] = "powers"
    places: ClassVar[Sequence[str]] = ("exponent",)
    columns: ClassVar[Mapping[str, str]] = {
        "power": ".1f",
        "odd ones": ".0f",
        "never": ".0f",
        "most (least)": "{} ({})",
    }
    has_total: ClassVar[bool] = True

    def rows(self) -> list[tuple[Any, ...]]:
        return [(int(one),) for one in self.exponents.split(",")]

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        power = float(seed ** row[0])
        return {"power": power, "odd ones": power if seed % 2 else math.nan, "hidden": 1.0}

    def of_draws(self, draws: Sequence[Measures]) -> Measures:
        powers = [int(one["power"]) for one in draws]
        return {**super().of_draws(draws), "most (least)": (max(powers), min(powers))}

    def closing(self, measured: Sequence[Measures]) -> dict[str, float]:
        return {"largest": max(m["power"] for m in measured)}


def test_means_are_over_draws(capsys: pytest.CaptureFixture[str]) -> None:
    report = Powers(seed=2, seeds=3).run()
    table = report.tables[0]
    assert isinstance(table, Table)
    assert list(table.columns) == ["exponent", "power", "odd ones", "most (least)"]
    assert [list(row) for row in table.rows] == [
        ["1", "3.0", "3", "4 (2)"],
        ["2", "9.7", "9", "16 (4)"],
        ["all", "6.3", "6", "16 (2)"],
    ]
    assert capsys.readouterr().err.splitlines()[1] == "2 | 9.7 | 9 | 16 (4)"
    metrics = report.document["metrics"]
    assert metrics["power_2"] == pytest.approx((4 + 9 + 16) / 3)
    assert metrics["hidden_1"] == 1.0
    assert metrics["most_least_2"] == 16
    assert metrics["largest"] == metrics["power_2"]
    assert report.tables[1] == "largest: 9.667"


def test_what_no_draw_has_is_a_dash() -> None:
    table = Powers(seed=2, exponents="1").run().tables[0]
    assert isinstance(table, Table)
    assert list(table.rows[0]) == ["1", "2.0", "–", "2 (2)"]


def test_summaries() -> None:
    assert error_of_mean([1.0, 3.0, math.inf]) == pytest.approx(1.0)
    assert math.isnan(error_of_mean([1.0]))
    assert over_best([0.5, 2.0]) == {
        "over_best_rule_geometric_mean_ratio": pytest.approx(1.0),
        "over_best_rule_worst_ratio": 2.0,
    }
