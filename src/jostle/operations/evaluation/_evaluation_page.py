"""An evaluation as one HTML file that opens in a browser, without a network."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from jostle._base.report import Table, percent
from jostle.data import Runs, RunsSummary, summarise

if TYPE_CHECKING:
    from jostle.operations.evaluation._evaluate import Evaluation

STYLE = """
:root{--paper:#fff;--ink:#1b1f24;--quiet:#57606a;--line:#d0d7de;--bad:#b3161b}
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e8eaed;--quiet:#a5adb6;--line:#3a4149;
--bad:#ff8a8a}}
body{margin:0 auto;max-width:64rem;padding:1rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h2{border-top:1px solid var(--line);padding-top:1rem;font-size:1.2rem}
p.quiet{color:var(--quiet)}.bad{color:var(--bad)}
section{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0}
th,td{text-align:left;padding:.15rem .9rem .15rem 0;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
"""


def evaluation_page(evaluation: Evaluation, runs: Runs) -> str:
    """Write the whole file: the data, and what the fit is worth. Names show as text, whatever is in them.

    runs: all that were evaluated on, for the summary of the data.
    """
    title = f"Jostle on {evaluation.of_data or 'runs'}"
    about = (
        f"Method {evaluation.method}, {evaluation.draws} draw(s) from seed {evaluation.seed}; a share of "
        f"{evaluation.share:g} left out; data version {evaluation.data_version}."
    )
    asides = "".join(f'<p class="bad">{escape(text)}</p>' for text in evaluation.left_aside)
    tables = "".join(table.to_html() for table in evaluation.tables)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="quiet">{escape(about)}</p>'
        f"<section><h2>Errors and bounds on runs that were left out</h2>"
        f"<p>{escape(evaluation.sentence)}</p>{asides}{tables}</section>"
        f"{_data(summarise(runs))}</body></html>\n"
    )


def _data(s: RunsSummary) -> str:
    def ratio(value: float | None) -> str:
        return percent(float("nan") if value is None else value)

    facts = [
        ["runs", str(s.runs)],
        ["of which", ", ".join(f"{n} {name}" for name, n in s.status.items() if n)],
        ["workloads, platforms", f"{s.workloads}, {s.platforms}"],
        ["by number of co-runners", ", ".join(f"{k}: {n}" for k, n in sorted(s.corunners.items()))],
        ["pairs measured alone", f"{s.solo_cells} ({ratio(s.coverage_ratio)} of all)"],
        ["parts that no run connects", str(s.connected_parts)],
        ["repeats differ, median", ratio(s.repeatability_median_ratio)],
        ["repeats differ, 9 in 10 under", ratio(s.repeatability_p90_ratio)],
    ]
    odd = [
        [str(one.count), one.meaning, ", ".join(one.run_ids)]
        for one in s.suspicious.values()
        if one.count
    ]
    looks = Table(["runs", "what looks wrong", "such as"], odd).to_html() if odd else ""
    doubts = "".join(f'<p class="bad">{escape(text)}</p>' for text in s.doubts)
    table = Table(["", ""], facts).to_html()
    return f"<section><h2>The data</h2>{table}{looks}{doubts}</section>"
