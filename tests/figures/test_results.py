"""Figures in the pages of results are those of the file that the page names beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contracts.site_samples import loaded

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
RAW = re.compile(r"\]\((raw/[\w-]+\.txt)\)(?:, (\d+) lines)?")
FIGURE = re.compile(r"(?<![\w.`/-])(\d+\.\d+)(%?)")


def parts(page: str) -> list[str]:
    """The sections of a page, without blocks of code."""
    text = re.sub(r"^```.*?^```", "", (RESULTS / page).read_text("utf-8"), flags=re.M | re.S)
    return re.split(r"^#+ ", text, flags=re.M)


def without_links(text: str) -> str:
    return re.sub(r"\]\([^)]*\)|`[^`]*`", "", text)


def means_over_data(printed: str) -> list[float]:
    """Of what studies print for one data set after the other, name_of_the_metric_DATA_7."""
    groups: dict[str, list[float]] = {}
    for name, value in re.findall(r"^(\w+_ratio_\w+?)_[a-z]+_7 +(\S+)$", printed, re.M):
        groups.setdefault(name, []).append(float(value))
    return [sum(values) / len(values) for values in groups.values()]


def missing(text: str, printed: str) -> list[str]:
    """Decimal figures of a text that, to their digits, nothing printed nor a mean of it rounds to."""
    numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", printed)]
    numbers += means_over_data(printed)
    absent = []
    for shown, percent in FIGURE.findall(text):
        digits, value = len(shown.partition(".")[2]), float(shown)
        half = 0.5 * 10.0**-digits * (1 + 1e-9)
        near = [
            abs(n - value) <= half or (percent and abs(100 * n - value) <= half) for n in numbers
        ]
        if not any(near):
            absent.append(shown + percent)
    return absent


def test_figures_beside_a_raw_table_stand_in_it() -> None:
    """Of the paragraph that names it, and of the table right above."""
    seen, wrong = 0, []
    for page in sorted(path.name for path in RESULTS.glob("*.md")):
        for part in parts(page):
            blocks = [block for block in re.split(r"\n\s*\n", part) if block.strip()]
            for number, block in enumerate(blocks):
                files_named = RAW.findall(block)
                if not files_named:
                    continue
                files = {name: (RESULTS / name).read_text("utf-8") for name, _ in files_named}
                for name, lines in files_named:
                    if lines:
                        assert files[name].count("\n") == int(lines), f"{page}: lines of {name}"
                above = blocks[number - 1] if number else ""
                text = block + ("\n" + above if re.search(r"^\|", above, re.M) else "")
                text = without_links(text)
                seen += len(FIGURE.findall(text))
                printed = "\n".join(files.values())
                wrong += [f"{page}: {one} is not in {[*files]}" for one in missing(text, printed)]
    assert seen > 10
    assert not wrong


def test_a_figure_that_is_not_in_the_file_is_found() -> None:
    assert missing("4.4% of 15 conditions, 0.36 more", "errors 4.41 and 0.2\nshare 0.355") == []
    assert missing("4.5%, 0.37", "errors 4.41\nshare 0.355") == ["4.5%", "0.37"]
    assert missing("12.3%", "share 0.1234") == []


def test_tables_are_those_of_their_files() -> None:
    """Between their marks, as `python docs/_tables.py` makes them."""
    tables = loaded("tables_of_pages", ROOT / "docs" / "_tables.py")
    made = 0
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text("utf-8")
        made += text.count("<!-- table: ")
        assert text.count("<!-- table: ") == len(tables.MARK.findall(text)), page
        assert tables.renewed(text) == text, page
    assert made >= 8


def test_a_table_of_what_is_not_in_the_file_is_refused() -> None:
    tables = loaded("tables_of_pages", ROOT / "docs" / "_tables.py")
    with pytest.raises(LookupError):
        tables.table("gavel-rules", rows="nobody")
    with pytest.raises(LookupError):
        tables.table("gavel-rules", **{"from": "nothing like it"})


def test_the_rivals_in_the_readme_are_those_of_their_file() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    section = text.partition("## What you would do otherwise\n")[2].partition("\n## ")[0]
    table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    printed = (RESULTS / "raw" / "gavel-rules.txt").read_text("utf-8")
    assert len(FIGURE.findall(table)) >= 8
    assert not missing(table, printed)
    best = [
        float(one)
        for one in re.findall(
            r"^Jostle, by default +([\d.]+)%.*?([\d.]+)% +[\d.]+%$", printed, re.M
        )[0]
    ]
    assert f"**{best[0]}%** | **{best[1]}%**" in table


def test_the_tour_in_the_readme_holds_together() -> None:
    """Of the rows that it shows: the bound is no lower than the prediction, and `inside` is what it says."""
    text = (ROOT / "README.md").read_text("utf-8")
    units = {"ms": 1e-3, "µs": 1e-6, "s": 1.0}
    rows = re.findall(
        r"^\S+ +wasmtime-\w+ .*?" + r" +([\d.]+) (\S+)" * 4 + r" +(yes|no)$", text, flags=re.M
    )
    assert len(rows) == 5
    for *cells, inside in rows:
        times = [float(n) * units[unit] for n, unit in zip(cells[::2], cells[1::2], strict=True)]
        _, predicted, bound, measured = times
        assert bound >= predicted
        assert (measured <= bound) == (inside == "yes")
    held, every, share = re.findall(r"^(\d+) of all (\d+) held-out .*?\(([\d.]+)%\)", text, re.M)[0]
    assert f"{100 * int(held) / int(every):.1f}" == share
