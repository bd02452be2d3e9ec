"""Tables for people: in lines, in lines that fit a narrow terminal, and as HTML."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jostle._base.report import Table, written

WORDS = "what holds of a set of programs that share a node "


def test_a_table_that_fits_is_aligned_by_what_it_holds() -> None:
    items = [
        SimpleNamespace(name="fft", bound_seconds=0.0123, growth_ratio=0.5, is_kept=True),
        SimpleNamespace(name="模型", bound_seconds=None, growth_ratio=None, is_kept=False),
    ]
    cells = {"who": "name", "bound": "bound_seconds", "grows": "growth_ratio", "kept": "is_kept"}
    table = Table.of(items, {**cells, "also": lambda one: one.name[:1]}, "Title")
    assert table.to_text(80).splitlines() == [
        "Title",
        "who      bound  grows  kept  also",
        "fft    12.3 ms  50.0%  yes   f",
        "模型  no bound      –  no    模",
    ]
    assert Table(["", ""], [["a", "b"]]).to_text() == "a  b"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("limit_seconds", None, "–"),
        ("corunners", ("a", "b"), "a + b"),
        ("corunners", [], "–"),
        ("cost", 12.34567, "12.35"),
        ("n", 7, "7"),
    ],
)
def test_values_are_written_by_their_unit(name: str, value: object, text: str) -> None:
    assert written(name, value) == text


@given(
    st.lists(st.lists(st.text("ab模 -", max_size=70), min_size=3, max_size=3), max_size=4),
    st.integers(8, 120),
)
def test_nothing_is_cut_and_nothing_is_wider_than_the_terminal(
    rows: list[list[str]], width: int
) -> None:
    narrow = [[cell.replace("模", "m") for cell in row] for row in rows]
    table = Table(["first", "", "third"], narrow, WORDS)
    lines = table.to_text(width).splitlines()[1:]
    assert all(cell_len(line) <= width for line in lines)
    for letters in (table.to_text(), Table(["first", "", "third"], rows).to_text(width)):
        assert letters.count("a") >= sum(cell.count("a") for row in rows for cell in row)
    for letter in "abm":
        assert sum(line.count(letter) for line in lines) == sum(
            cell.count(letter) for row in narrow for cell in row
        )


def test_text_is_folded_in_its_column_then_cells_stand_in_lines() -> None:
    table = Table(["n", "what"], [["1", WORDS], ["2", "short"]])
    assert table.to_text(40).splitlines() == [
        "n  what",
        "1  what holds of a set of programs that",
        "   share a node",
        "2  short",
    ]
    assert table.to_text(20).splitlines() == [
        "n: 1",
        "what: what holds of",
        "  a set of programs",
        "  that share a node",
        "",
        "n: 2",
        "what: short",
    ]
