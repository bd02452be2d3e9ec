"""Tables of the pages are those of their files, cell by cell: a figure changed in one of them is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
RAW = DOCS / "results" / "raw"
Rows = dict[str, dict[str, str]]


def table(page: str, head: str, part: str = "") -> Rows:
    """{first cell: {column: cell}} of the table of a page whose header begins so, behind this title. Several
    columns of one name are numbered."""
    text = (DOCS / page).read_text("utf-8")
    assert part in text, f"{page}: no section {part}"
    text = text.partition(part)[2] if part else text
    lines = text.splitlines()
    begins = [n for n, line in enumerate(lines) if line.startswith(f"| {head}")]
    assert begins, f"{page}: no table of {head!r}"
    found = []
    for line in lines[begins[0] :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip().replace("**", "") for cell in line.strip("|").split("|")])
    columns: list[str] = []
    for name in found[0]:
        columns.append(name if name not in columns else f"{name} {columns.count(name) + 1}")
    return {row[0]: dict(zip(columns, row, strict=True)) for row in found[2:]}


def printed(name: str) -> str:
    return (RAW / f"{name}.txt").read_text("utf-8")


def cells_of(line: str) -> list[str]:
    """The cells of a printed row: two blanks or more stand between them."""
    return re.split(r"\s{2,}", line.strip())


POLICIES = {
    "simulator: utilisation gained": ("simulator", 1),
    "GPUs that miss it": ("simulator", 2),
    "with 3% to spare: utilisation": ("simulator with 3% to spare", 1),
    "miss it": ("simulator with 3% to spare", 2),
    "sequential model: utilisation": ("sequential model", 1),
    "miss it 2": ("sequential model", 2),
}


def scale_out() -> dict[tuple[str, str], list[str]]:
    """{(policy, scheduler): utilisation, violations, worst}."""
    rows = [cells_of(line) for line in printed("accelerator-scale-out").splitlines() if "%" in line]
    return {(row[0], row[1]): row[1:] for row in rows if len(row) == 5}


def test_the_cluster_of_gpus() -> None:
    own, compared = scale_out(), 0
    shown = table("results/accelerator.md", "policy: latency kept in")
    for policy, row in shown.items():
        for column, (scheduler, place) in POLICIES.items():
            compared += 1
            assert row[column] == own[policy, scheduler][place], (policy, column)
    assert compared == 6 * 4

    def short(policy: str, scheduler: str, place: int) -> float:
        return float(own[policy, scheduler][place].rstrip("%"))

    for policy, row in table("accelerator.md", "QoS policy").items():
        assert row["utilisation by the simulator"] == own[policy, "simulator"][1]
        both = re.findall(r"[\d.]+", row["violations (worst)"])
        assert float(both[0]) == short(policy, "simulator", 2)
        assert float(both[1]) == pytest.approx(short(policy, "simulator", 3), abs=0.5)
        for column, scheduler in (
            ("with 3% to spare", "simulator with 3% to spare"),
            ("sequential model", "sequential model"),
        ):
            gained, missed = map(float, re.findall(r"[\d.]+", row[column]))
            assert gained == short(policy, scheduler, 1)
            assert missed == pytest.approx(short(policy, scheduler, 2), abs=0.5)


RULES = {
    "`fit accelerator`": "fit accelerator",
    "additive": "additive in target and partner",
    "bubble": "bubble: sensitivity times pressure",
    "constant": "solo time and a constant",
    "solo time": "solo time",
}
LEFT_OUT = {
    "pairs in ten folds": "pairs in ten folds",
    "one pair, over the mean of its runs": "one pair left out, mean of its runs",
    "an application": "an application left out",
    "the other campaign, its pairs too": "the other campaign, its pairs left out",
    "all but a fifth of the pairs": "a fifth of the pairs known",
    "all but six pairs": "six pairs known",
}


@pytest.mark.parametrize("page", ["accelerator.md", "results/accelerator.md"])
def test_pairs_on_a_gpu(page: str) -> None:
    """Of every test and rule the mean error; of the predictor 95% of runs and the worst, too."""
    rows = [cells_of(line) for line in printed("accelerator-magus13").splitlines()]
    own = {row[0]: row[1:] for row in rows if len(row) == 4}
    shown = table(page, "what is left out: mean error")
    assert set(shown) == set(LEFT_OUT)
    for test, row in shown.items():
        for column, rule in RULES.items():
            figures = own[f"{LEFT_OUT[test]}: {rule}"]
            told = re.findall(r"[\d.]+%", row[column])
            assert told == (figures if rule == "fit accelerator" else figures[:1]), (test, rule)


BAGS = {"program held out": "application held out", "pair held out": "pair held out"}


def bags(name: str) -> dict[str, Rows]:
    """{what is held out: {method: {column: cell}}} of what `python -m studies bag` printed."""
    found: dict[str, Rows] = {}
    head: list[str] = []
    for line in printed(name).splitlines():
        row = cells_of(line)
        if row[0].endswith("held out"):
            head = row
            found[head[0]] = {}
        elif head and len(row) == len(head):
            found[head[0]][row[0]] = dict(zip(head, row, strict=True))
        else:
            head = []
    return found


def test_bags_on_a_gpu() -> None:
    """Every figure of the page's table, to the digits that the command prints."""
    own, compared = bags("bag-magus"), 0
    for method, row in table("results/bag.md", "method | program held out").items():
        for mark, test in (("", "application held out"), (" 2", "pair held out")):
            first = "pair held out: each" if mark else "program held out: each"
            for column, name in (
                (first, "each"),
                (f"bag{mark}", "bag"),
                (f"R²{mark}", "R² of extra"),
            ):
                compared += 1
                assert row[column] == own[test][method][name].rstrip("%"), (method, test, name)
            cells = [own[test][method][name].rstrip("%") for name in ("coverage 90", "± s.e.")]
            shown = row[f"coverage{mark}"]
            assert shown == ("–" if cells[0] == "–" else " ± ".join(cells)), (method, test)
    assert compared > 60


@pytest.mark.parametrize(
    ("name", "part", "unit"),
    [("bag-vision", "## Vision", "kernel"), ("bag-shared-core", "## Bags of programs", "program")],
)
def test_bags_that_come_with_jostle(name: str, part: str, unit: str) -> None:
    own = bags(name)
    shown = table("results/bag.md", f"method | {unit} held out", part)
    assert set(shown) == set(own["application held out"])
    for method, row in shown.items():
        for mark, test in (("", "application held out"), (" 2", "pair held out")):
            first = "bags held out: each" if mark else f"{unit} held out: each"
            for column, title in (
                (first, "each"),
                (f"bag{mark}", "bag"),
                (f"R²{mark}", "R² of log slowdown"),
            ):
                assert row[column] == own[test][method][title].rstrip("%"), (method, test, title)
    asked = [cells_of(line) for line in printed(name).splitlines()]
    told = {row[0]: row[1:] for row in asked if len(row) == 3}
    for feature, row in table("results/bag.md", "feature | share of answers", part).items():
        assert [row["share of answers"], row["times on the path"]] == told[feature]


def test_what_the_page_of_bags_says_is_in_its_tables() -> None:
    shown = table("bag.md", "test | best method here", "## Measured")
    gpu = table("results/bag.md", "method | program held out")
    one_gpu = table_of_two("results/bag.md", "campaign, observed there")
    pairs = table_of_two("results/bag.md", "campaign, observed |")
    vision = table("results/bag.md", "method | kernel held out")

    def figures(cell: str) -> list[str]:
        return re.findall(r"\d+\.\d+", cell)

    for test, start in (("program", "program held out: each"), ("pair", "pair held out: each")):
        bag = "bag" if test == "program" else "bag 2"
        row = shown[f"magus13, {test} held out: each run / bag"]
        methods = re.findall(r"`(\w+)`", row["best method here"])
        told = [gpu[method][column] for method in methods for column in (start, bag)]
        assert figures(row["best method here"]) == told
        told = [gpu["solo_constant"][column] for column in (start, bag)]
        assert figures(row["solo + constant"]) == told
    for share in ("5%", "20%"):
        row = shown[f"gavel, one GPU with {share} of its pairs, mean of the three"]
        for column, method in (
            ("best method here", "slowdown"),
            ("solo + constant", "solo_constant"),
        ):
            told = [one_gpu[f"{c}, {share}", method]["mean"] for c in ("oracle", "simulation")]
            assert figures(row[column]) == told, (share, method)
    for name, share in (
        ("gavel, half of the pairs observed: oracle / simulation (2 draws)", "50%"),
        ("gavel, a tenth observed (2 draws)", "10%"),
    ):
        told = [pairs[f"{c}, {share}", "solo_constant"]["error"] for c in ("oracle", "simulation")]
        assert figures(shown[name]["solo + constant"]) == told
        laws = [
            table("bag.md", "campaign | 10%")[f"gavel {c}"][share] for c in ("oracle", "simulation")
        ]
        assert figures(shown[name]["best method here"]) == [figures(cell)[1] for cell in laws]
    core = table("results/bag.md", "method | program held out", "## Bags of programs")
    row = shown["programs that share a core, program held out: each run"]
    told = [core[method]["program held out: each"] for method in ("bag", "slowdown")]
    assert figures(row["best method here"]) == told
    assert figures(row["solo + constant"]) == [core["solo_constant"]["program held out: each"]]
    row = shown["vision bags, kernel held out: each run"]
    told = [vision[method]["kernel held out: each"] for method in ("slowdown", "twice_solo", "bag")]
    assert figures(row["best method here"]) == told
    assert figures(row["solo + constant"]) == [vision["solo_constant"]["kernel held out: each"]]


def table_of_two(page: str, head: str) -> dict[tuple[str, str], dict[str, str]]:
    """A table whose rows are told by their first two cells."""
    lines = (DOCS / page).read_text("utf-8").splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith(f"| {head}"))
    rows = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return {(r[0], r[1]): dict(zip(rows[0], r, strict=True)) for r in rows[2:]}


# Of the page of forecasts: (file, title of the block that it prints).
FORECASTS = {
    "phases-1-7 (jitter 1%)": ("bridge-made", "phases-1-7"),
    "phases-5-7": ("bridge-made", "phases-5-7"),
    "phases-15-7": ("bridge-made", "phases-15-7"),
    "drift-7": ("bridge-made", "drift-7"),
    "nmpc-0 (none inside a cycle)": ("bridge-published", "nmpc-0"),
    "nmpc-2": ("bridge-published", "nmpc-2"),
    "nmpc-4": ("bridge-published", "nmpc-4"),
}
NAMES = {"phase, placed": "phase_placed", "the paper's eps": "paper"}


def scores_of(name: str, data: str) -> dict[str, str]:
    """{method: W2} of what `python -m studies bridge` printed of this data."""
    lines = iter(printed(name).splitlines())
    next(line for line in lines if line.startswith(f"{data}: "))
    head = next(lines).split()
    assert head[:2] == ["method", "W2"]
    found: dict[str, str] = {}
    for line in lines:
        cells = line.split()
        if not cells or not re.fullmatch(r"\d+\.\d+", cells[1]):
            return found
        found[cells[0]] = cells[1]
    return found


@pytest.mark.parametrize("head", ["7 snapshots", "published, steady cycles"])
def test_forecasts(head: str) -> None:
    """W2 of every method, of data that files beside the page hold."""
    compared = 0
    for title, row in table("bridge.md", head).items():
        if title not in FORECASTS:
            continue
        name, data = FORECASTS[title]
        own = scores_of(name, data)
        for column, cell in list(row.items())[1:]:
            if cell:
                compared += 1
                assert cell == own[NAMES.get(column, column)], (title, column)
    assert compared >= 24


def test_forecasts_given_a_run_so_far() -> None:
    head, *rows = [line.split(" | ") for line in printed("bridge-given").splitlines()]
    own = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    shown = table("bridge.md", "family | given")
    assert set(shown) == set(own) - {"all"}
    for family, row in shown.items():
        for column in ("given", "mixture", "last", "turns"):
            assert row[column] == own[family][column], (family, column)
        assert row["given over mixture (least to most of a seed)"] == own[family]["over mixture"]
        assert row["over turns"] == own[family]["over turns"].split()[0]


def test_bounds_on_a_gpu_and_results_in_short() -> None:
    own = {
        cells[0]: cells[1] for cells in map(str.split, printed("accelerator-magus13").splitlines())
    }
    share, error, margin = (
        100 * float(own[f"ten_folds_{name}_ratio:"])
        for name in ("coverage_90", "coverage_90_standard_error", "margin_90")
    )
    text = (DOCS / "results" / "accelerator.md").read_text("utf-8")
    assert f"{share:.1f}% are kept (standard error {error:.1f}%), {margin:.1f}% above" in text
    assert f"cover {share:.1f}," in (DOCS / "accelerator.md").read_text("utf-8")
    short = table("results/index.md", "system")
    pairs = table("results/accelerator.md", "what is left out: mean error")[
        "one pair, over the mean of its runs"
    ]
    mean, _, worst = re.findall(r"[\d.]+%", pairs["`fit accelerator`"])
    assert short["accelerator"]["found"] == f"mean error {mean}, worst {worst}"
    beside = short["accelerator"]["simple rules beside it"]
    assert (
        beside
        == f"solo time and a constant {pairs['constant']}, additive effects {pairs['additive']}"
    )
    told = map(cells_of, printed("alignment-simulator").splitlines())
    errors = {row[0]: row[1] for row in told if len(row) > 2}
    assert short["alignment"]["found"] == f"mean error of run times {errors['alignment']}"
    beside = (
        f"no interference {errors['no interference']}, median slowdown {errors['median slowdown']}"
    )
    assert short["alignment"]["simple rules beside it"] == beside
    bag = table("results/bag.md", "method | program held out")
    assert short["bag"]["found"] == f"mean error {bag['bag']['program held out: each']}%"
    core = table("results/bag.md", "method | program held out", "## Bags of programs")
    own, constant, trees = (
        core[method]["program held out: each"] for method in ("bag", "solo_constant", "boosting")
    )
    assert short["bag, one core"]["found"] == f"mean error {own}%"
    beside = f"time alone and a constant {constant}%, trees alone {trees}%"
    assert short["bag, one core"]["simple rules beside it"] == beside
    constant = bag["solo_constant"]["program held out: each"]
    assert short["bag"]["simple rules beside it"] == f"time alone and a constant {constant}%"
    gavel = table_of_two("results/bag.md", "campaign, observed |")
    found = {
        m: gavel["oracle, 50%", m]["error"] for m in ("slowdown", "solo", "solo_constant", "bag")
    }
    assert short["slowdown"]["found"] == f"mean error {found['slowdown']}%"
    assert re.findall(r"[\d.]+", short["slowdown"]["simple rules beside it"]) == [
        found[name] for name in ("solo", "solo_constant", "bag")
    ]


def campaign(name: str) -> dict[str, list[str]]:
    """{method: mean and its interval, max, slowed by over 10%, per sample, closer by} as printed."""
    lines = iter(printed(name).splitlines())
    next(line for line in lines if line.lstrip().startswith("run time, mean"))
    found = {}
    for line in lines:
        if not line.strip():
            return found
        method, mean, interval, *rest = cells_of(line)
        found[method] = [f"{mean} {interval}", *rest]
    return found


CAMPAIGN = {
    "alignment (`auto`)": "alignment",
    "[probes](../probes.md) from the same runs": "probes",
    "best constant (median slowdown)": "median slowdown",
}


@pytest.mark.parametrize(
    ("part", "name", "columns"),
    [
        ("Five folds of four programs", "alignment-campaign", (0, 1, 2, 4)),
        ("## Known programs, pairs held out", "alignment-campaign-pairs", (0, 1, 2, 4)),
    ],
)
def test_a_recorded_campaign(part: str, name: str, columns: tuple[int, ...]) -> None:
    own, shown = campaign(name), table("results/alignment.md", "|", part)
    assert len(shown) == len(own)
    for title, row in shown.items():
        cells = [own[CAMPAIGN.get(title, title)][place] for place in columns]
        assert list(row.values())[1:] == cells, title


def test_a_recorded_campaign_with_fewer_stressors() -> None:
    shown = table("results/alignment.md", "| two | three | four")
    files = {
        "two": "alignment-campaign-two",
        "three": "alignment-campaign-three",
        "four": "alignment-campaign",
    }
    for title in (title for title in shown if title in CAMPAIGN):
        for column, name in files.items():
            figure = campaign(name)[CAMPAIGN[title]][0]
            assert shown[title][column] in (figure, figure.split()[0]), (title, column)
