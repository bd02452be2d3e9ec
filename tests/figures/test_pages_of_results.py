"""What pages say of results in their sentences is what the files hold that the commands printed to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contracts.site_samples import loaded

ROOT = Path(__file__).resolve().parents[2]
TABLES = loaded("tables_of_pages", ROOT / "docs" / "_tables.py")
Rows = dict[str, dict[str, str]]


def page(name: str) -> str:
    """Its text in one line, without marks of emphasis."""
    return re.sub(r"\s+", " ", (ROOT / "docs" / name).read_text("utf-8").replace("**", ""))


def rows(file: str, start: str = "") -> Rows:
    """{first cell: {column: cell}} of a printed table; no signs of per cent."""
    head, *body = TABLES.printed(file, start)
    return {row[0]: {k: v.rstrip("%") for k, v in zip(head, row, strict=True)} for row in body}


def test_pairs_on_a_gpu() -> None:
    own = rows("accelerator-magus13", "what is left out")

    def of(test: str) -> list[str]:
        rules = ("fit accelerator", "additive in target and partner", "solo time and a constant")
        return [own[f"{test}: {rule}"]["mean"] for rule in rules]

    text, (fit, additive, constant) = page("accelerator.md"), of("pairs in ten folds")
    assert (
        f"mean error {fit}% in ten folds (additive effects {additive}, a constant {constant})"
        in text
    )
    fit, additive, constant = of("an application left out")
    assert f"an application left out {fit} ({additive}, {constant})" in text
    fit, additive, constant = of("six pairs known")
    assert f"six pairs known {fit} ({additive}, {constant})" in text
    fit, additive, constant = of("one pair left out, mean of its runs")
    worst = own["one pair left out, mean of its runs: fit accelerator"]["max"]
    short = page("results/index.md")
    assert f"mean error {fit}%, worst {worst}%" in short
    assert f"solo time and a constant {constant}%, additive effects {additive}%" in short


def test_bounds_on_a_gpu() -> None:
    text = (ROOT / "docs" / "results" / "raw" / "accelerator-magus13.txt").read_text("utf-8")
    share, error, margin = (
        100 * float(re.findall(rf"^ten_folds_{name}_ratio: ([\d.]+)$", text, re.M)[0])
        for name in ("coverage_90", "coverage_90_standard_error", "margin_90")
    )
    sentence = f"{share:.1f}% are kept (standard error {error:.1f}%), {margin:.1f}% above"
    assert sentence in page("results/accelerator.md")


def test_the_cluster_of_gpus() -> None:
    at_70 = [row for row in TABLES.printed("accelerator-scale-out", "policy") if row[0] == "70%"]
    own = {row[1]: row[2:] for row in at_70}
    fine, spare, plain = (
        own[name] for name in ("simulator", "simulator with 3% to spare", "sequential model")
    )
    assert spare[1] == plain[1] == "0.0%"
    assert (
        f"{fine[0]} of the places used, {fine[1]} of the GPUs miss it; with 3% to spare {spare[0]} "
        f"and none; by the sequential model {plain[0]} and none" in page("accelerator.md")
    )


def test_pairs_of_gavel() -> None:
    lines = (ROOT / "docs" / "results" / "bag.md").read_text("utf-8").splitlines()
    own = {
        line.split("|")[1].strip(): line.split("|")[2].strip() for line in lines if line[:2] == "| "
    }
    short, text = page("results/index.md"), page("bag.md")
    assert f"mean error {own['slowdown']}% | time alone {own['solo']}%" in short
    assert f"a constant {own['solo_constant']}%, explained trees {own['bag']}%" in short
    assert (
        f"`slowdown` {own['slowdown']}, `bag` {own['bag']}, a constant {own['solo_constant']}, "
        f"time alone {own['solo']}." in text
    )


@pytest.mark.parametrize("name", ["alignment.md", "results/index.md"])
def test_alignment_on_the_simulator(name: str) -> None:
    own = rows("alignment-simulator", "run time, mean")
    errors = {method: row["run time, mean"] for method, row in own.items()}
    text = page(name)
    assert f"{errors['alignment']}" in text
    assert f"{errors['median slowdown']}" in text
    if "index" in name:
        assert f"no interference {errors['no interference']}%" in text


def test_alignment_on_the_recorded_campaign() -> None:
    own = rows("alignment-campaign", "run time, mean")
    errors = {method: row["run time, mean"] for method, row in own.items()}
    text = page("alignment.md")
    assert (
        f"{errors['alignment']}% where the best constant errs by {errors['median slowdown']}%"
        in text
    )
    assert f"of whole runs alone by {errors['probes']}%" in text
