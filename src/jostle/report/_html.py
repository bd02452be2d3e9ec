"""ModelFindings as one HTML file that holds all it needs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from jostle._report import duration, percent
from jostle.report._findings import ModelFindings
from jostle.report._held_out import GroupRow

STYLE = """
:root{--paper:#fff;--ink:#1b1f24;--quiet:#57606a;--line:#d0d7de;--mark:#0b62b8;--bad:#b3161b}
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e8eaed;--quiet:#a5adb6;--line:#3a4149;
--mark:#6db3f8;--bad:#ff8a8a}}
body{margin:0 auto;max-width:64rem;padding:1rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h2{border-top:1px solid var(--line);padding-top:1rem;font-size:1.2rem}
p.quiet,caption{color:var(--quiet);text-align:left}.bad{color:var(--bad)}
section{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0}
th,td{text-align:left;padding:.15rem .9rem .15rem 0;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{max-width:100%;height:auto}svg text{fill:var(--ink);font-size:11px}svg circle{fill:var(--mark)}
"""


def to_html(findings: ModelFindings) -> str:
    """The whole file. Names show as text, whatever is in them."""
    title = f"Jostle report on {findings.dataset}"
    meta = findings.metadata
    intro = (
        f"Model of the method {meta.get('method')}, fitted to data version {meta.get('data_version')} with "
        f"Jostle {meta.get('jostle_version')}; dataset version {findings.dataset_version}."
    )
    notes = "".join(f'<p class="bad">{escape(note)}</p>' for note in findings.notes)
    body = "".join(part(findings) for part in (_data, _errors, _pairs, _map, _worst, _next))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="quiet">{escape(intro)}</p>{notes}{body}</body></html>\n'
    )


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    if not rows:
        return '<p class="quiet">Nothing to tell.</p>'
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    lines = []
    for row in rows:
        cells = (
            f'<td class="n">{escape(cell)}</td>' if n in right else f"<td>{escape(cell)}</td>"
            for n, cell in enumerate(row)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _data(findings: ModelFindings) -> str:
    s = findings.summary
    rows = [
        ["runs", str(s.runs)],
        ["of which", ", ".join(f"{n} {name}" for name, n in s.status.items() if n)],
        ["workloads, platforms", f"{s.workloads}, {s.platforms}"],
        ["by number of co-runners", ", ".join(f"{k}: {n}" for k, n in sorted(s.corunners.items()))],
        ["pairs measured alone", f"{s.solo_cells} ({percent(_number(s.coverage_ratio))} of all)"],
        ["parts that no run connects", str(s.connected_parts)],
        ["repeats differ, median", percent(_number(s.repeatability_median_ratio))],
        ["repeats differ, 9 in 10 under", percent(_number(s.repeatability_p90_ratio))],
    ]
    odd = [
        [str(one.count), one.meaning, ", ".join(one.run_ids)]
        for one in s.suspicious.values()
        if one.count
    ]
    doubts = "".join(f'<p class="bad">{escape(text)}</p>' for text in s.doubts)
    looks = _table(["runs", "what looks wrong", "such as"], odd, (0,)) if odd else ""
    return _section("The data", _table(["", ""], rows), looks, doubts)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _errors(findings: ModelFindings) -> str:
    text = (
        f"On runs that were not learned from. Bounds at {findings.confidence:g}: each fifth of the windows "
        "by what the others calibrate. Intervals of 95% count windows: runs of one are not independent."
    )
    parts = [f'<p class="quiet">{escape(text)}</p>']
    heads = ["", "runs", "windows", "mean error", "coverage", "interval"]
    if findings.overall is not None:
        parts.append(_table(heads, [_group(findings.overall)], range(1, 6)))
    for kind, rows in findings.groups.items():
        parts.append(f"<h3>By {escape(kind)}</h3>")
        parts.append(_table([kind, *heads[1:]], [_group(row) for row in rows], range(1, 6)))
    return _section("Errors and coverage", *parts)


def _group(row: GroupRow) -> list[str]:
    interval = "–" if row.low != row.low else f"{percent(row.low)} to {percent(row.high)}"
    counts = [str(row.runs), str(row.windows)]
    return [row.name, *counts, percent(row.mean_error), percent(row.coverage), interval]


def _pairs(findings: ModelFindings) -> str:
    rows = [
        [p.workload, p.corunner, f"{p.slowdown:.2f}x", str(p.platforms), str(p.runs)]
        for p in findings.pairs
    ]
    heads = ["workload", "beside", "slowdown", "platforms", "runs"]
    return _section("Pairs that disturb most, as measured", _table(heads, rows, (2, 3, 4)))


def _map(findings: ModelFindings) -> str:
    if not findings.map_points:
        return _section("Map of workloads", '<p class="quiet">Too few workloads or platforms.</p>')
    width, height, edge = 860, 460, 40
    xs = [x for _, x, _ in findings.map_points]
    ys = [y for _, _, y in findings.map_points]

    def place(value: float, every: list[float], length: int) -> float:
        span = max(every) - min(every) or 1.0
        return edge + (length - 2 * edge) * (value - min(every)) / span

    def mark(name: str, x: float, y: float) -> str:
        across, down = place(x, xs, width), place(y, ys, height)
        # A name to the left of its point in the right half: none is cut off at the edge.
        side, shift = ("end", -6) if across > width / 2 else ("start", 6)
        at = f'x="{across + shift:.1f}" y="{down + 4:.1f}" text-anchor="{side}"'
        return f'<circle cx="{across:.1f}" cy="{down:.1f}" r="4"/><text {at}>{escape(name)}</text>'

    marks = "".join(mark(*point) for point in findings.map_points)
    text = (
        "Workloads that are near take alike to the same platforms; how long they take is left out."
    )
    return _section(
        "Map of workloads",
        f'<p class="quiet">{text}</p>',
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Map of workloads">{marks}</svg>',
    )


def _worst(findings: ModelFindings) -> str:
    rows = [
        [
            one.workload,
            one.platform,
            " + ".join(one.corunners) or "alone",
            duration(one.runtime_seconds),
            duration(one.predicted_seconds),
            one.reason,
        ]
        for one in findings.worst
    ]
    heads = [
        "workload",
        "platform",
        "beside",
        "measured",
        "predicted",
        "why, as far as it can be told",
    ]
    return _section("Worst errors", _table(heads, rows, (3, 4)))


def _next(findings: ModelFindings) -> str:
    return _section("What to measure next", _table(["measure", "because"], findings.to_measure))
