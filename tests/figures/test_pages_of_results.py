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
Rows = dict[str, dict[str, str]]


def page(name: str) -> str:
    """Its text in one line, without marks of emphasis."""
    return re.sub(r"\s+", " ", (ROOT / "docs" / name).read_text("utf-8").replace("**", ""))


def rows(file: str, start: str = "") -> Rows:
    """{first cell: {column: cell}} of a printed table; no signs of per cent."""
    head, *body = TABLES.printed(file, start)
    return {row[0]: {k: v.rstrip("%") for k, v in zip(head, row, strict=True)} for row in body}


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


def test_pairs_of_gavel() -> None:
    own = {row[0]: row[1] for row in TABLES.printed("gavel-rules", "all runs")}
    assert (
        f"the default errs by {own['Jostle, by default']}, time alone by {own['the time alone']}, a constant "
        f"by {own['the time alone times a constant']}, additive effects by "
        f"{own['additive effects']}, boosted trees by {own['boosted trees']}." in page(RESULTS)
    )


def test_lives_under_policies() -> None:
    rows = TABLES.printed("lives", "law and load")[1:]
    said = []
    for policy in ("rank", "at most two a node"):
        cells = [row[2:] for row in rows if row[1] == policy]
        assert len(cells) == 6
        late = sorted(100 * float(one[0]) for one in cells)
        said.append((f"{late[0]:.1f}% to {late[-1]:.1f}%", sum(float(one[1]) for one in cells)))
        assert max(float(one[2]) for one in cells) <= 0.1
    (rank, hours), (two, more) = said
    text = page(RESULTS)
    assert f"{rank} break their limits if `rank` places them, in {hours:.0f} node hours" in text
    assert f"with at most two a node {two}, in {more:.0f}" in text


def test_what_papers_buy_is_what_their_tables_say() -> None:
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
    ablated = {tuple(row[:2]): row[2] for row in TABLES.printed("papers-ablations", "figure")}
    without, with_all = ablated["4b, features", "none"], ablated["as it is", "nothing"]
    assert (
        f"({without} without, {with_all} with them), and several types of interference buy "
        f"nothing ({ablated['10, types s', '1']} with one)" in page(RESULTS)
    )
    aligned = {row[0]: row[1:] for row in TABLES.printed("papers-alignment", "run time")}
    ridge, (mine, _, of_draws), (constant, _, usual) = (
        aligned[name] for name in ("mended, ridge", "alignment", "median slowdown")
    )
    assert (
        f"the paper's ridge regression buys nothing: it errs by {ridge[0]}, Jostle's method by {mine}, a "
        f"constant by {constant}; in the mean of three draws of programs these err by {of_draws} and {usual}"
        in page(RESULTS)
    )
    _, *body = TABLES.printed("papers-bridge", "inside a cycle")
    w2 = {(row[0], row[1]): row[2:] for row in body}
    told = [(cycle, at) for cycle in "01234" for at in range(5) if w2[cycle, "default"][at] != "="]
    transport, default = (
        sum(float(w2[c, by][at]) < float(w2[c, "as printed"][at]) for c, at in told)
        for by in ("transport", "default")
    )
    assert (
        f"buys nothing: of {len(told)} times inside a control cycle, exact transport is closer to "
        f"what was measured at {transport}, the default at {default}" in page(RESULTS)
    )


def test_alignment_on_the_simulator() -> None:
    own = rows("alignment-simulator", "run time, mean")
    errors = {method: row["run time, mean"] for method, row in own.items()}
    assert (
        f"errs by {errors['alignment']}%, no interference by {errors['no interference']}%, "
        f"the best constant by {errors['median slowdown']}%." in page(RESULTS)
    )
