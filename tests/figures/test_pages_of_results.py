"""What pages say of results in their sentences is what the files hold that the commands printed to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jostle.cli import exit_code
from tests.contracts.site_samples import loaded

ROOT = Path(__file__).resolve().parents[2]
TABLES = loaded("tables_of_pages", ROOT / "docs" / "_tables.py")
ALONE = ("--model", "none", "--most", "1")
RESULTS = "results/index.md"
TREE = "tree: all, time alone among them"


def page(name: str) -> str:
    """Its text in one line, without marks of emphasis."""
    return re.sub(r"\s+", " ", (ROOT / "docs" / name).read_text("utf-8").replace("**", ""))


def recorded(start: str, way: str = "sets, in folds") -> dict[tuple[str, str], dict[str, str]]:
    """{(recorded on, by): {column: cell}} of a table of what was recorded on GPUs."""
    head, *body = TABLES.printed("accelerator-recorded", start)
    rows_of_way = [dict(zip(head, row, strict=True)) for row in body if row[1] == way]
    return {(row[head[0]], row["by"]): row for row in rows_of_way}


def test_gpus_and_their_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    errors, decisions = recorded("error on"), recorded("decisions on")
    medians, wrong = (
        sorted(
            float(row[column].rstrip("%")) for (_, by), row in table.items() if by == "simulator"
        )
        for table, column in ((errors, "median"), (decisions, "1.2x wrong"))
    )
    off = f"{medians[0]:.0f} to {medians[-1]:.0f}%"
    folder = str(ROOT / "studies" / "accelerator" / "recorded" / "h100-jobs")
    exit_code(["safe", folder, "--service", "lstm-infer-16", "--batch", "graph-train-1", *ALONE])
    assert f"off by {off} in the median" in capsys.readouterr().err
    text = page("accelerator.md")
    assert f"is off by {off} in the median here" in text
    assert f"limit of 1.2, {wrong[0]:.0f} to {wrong[-1]:.0f}% are not" in text


def test_what_papers_buy_is_what_their_tables_say() -> None:
    """Of sentences that stand under a table of another kind; others name the file of their figures."""
    bags = {row[0]: row[2] for row in TABLES.printed("papers-bag", "benchmark left out")}
    tree, constant, default = (bags[name] for name in (TREE, "a constant", "default"))
    said = f"errs by {tree}, a constant by {constant}, the default by {default}."
    assert said in page(RESULTS)
    mean, middle = (
        {row[0]: row[at] for row in TABLES.printed("papers-accelerator", "by  ")} for at in (1, 2)
    )
    assert (
        f"a median ({middle['simulator']}, a constant {middle['constant']}) and not a mean "
        f"({mean['simulator']}, a constant {mean['constant']}), and learning from co-runs halves "
        f"it ({mean['default']})" in page(RESULTS)
    )
