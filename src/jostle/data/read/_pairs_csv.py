"""Tables of co-location measurements, one row per workload and what ran beside it, as runs.

The table has the columns `platform, target, corunner`, then `unit, solo, corun` or `slowdown` or all of them,
and may have `dataset` (the campaign), `target_cfg` and `corunner_cfg` (what distinguishes two runs of one
program) and `metric`. `solo` and `corun` are a time (s, ms, us, ns, min), a throughput (`steps/s`, `1/s`: the
runtime is then seconds per step), or plain numbers (`ratio`, `1` or no unit: relative times, or relative
throughputs where `metric` says throughput). Of `solo`, `corun` and `slowdown` two give the third; a
slowdown by itself is a runtime relative to one alone of 1; a `corun` by itself is a run beside others whose
time alone is not known. A zero, or a row without a value, says that nothing was measured: it is counted and
passed over. Everything else that makes no sense is a bad row, named with its line.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np
import pyarrow as pa

from jostle._base.option_fields import NoOption, OneOf, Positional
from jostle._base.untrusted import understands
from jostle.data.read._foreign_table import ForeignTable
from jostle.data.read._imported_runs import Imported, rejected_rows
from jostle.data.read._pairs_shapes import in_rows
from jostle.data.read._runs_table import UNITS
from jostle.data.runs._runs import Runs
from jostle.data.runs._runs_columns import columns_table
from jostle.data.runs._schema import Origin, conform, with_origins
from jostle.data.runs._solo_times import windows_of
from jostle.data.runs._workload_groups import GroupRule, require_pattern, with_group
from jostle.data.tables._read_table import file_bytes
from jostle.data.tables.cells import float_of
from jostle.data.tables.quantities import SECONDS, is_nobody, is_nothing, rate_seconds
from jostle.errors import BadData, UsageError, require_known

_WHAT = {
    "platform": "the platform",
    "target": "the workload that was timed",
    "corunner": "who ran beside it",
    "corun": "a time beside others, or a slowdown",
}
REQUIRED = ("platform", "target", "corunner")
VALUES = ("unit", "solo", "corun")
OPTIONAL = (*VALUES, "dataset", "target_cfg", "corunner_cfg", "metric", "slowdown")
PLAIN = ("", "1", "ratio")  # units of plain numbers
_FEW, _MANY = 0.9, 10.0  # a median of slowdowns that is none of ratios
_TOLERANCE = 0.02  # by how much a published slowdown may differ from that of its two values


SLOWDOWNS = ("ratio", "percent", "added", "added-percent")


@dataclass(frozen=True)
class Measurement:
    """A measured time of a set. seconds: runtime, or seconds per step. place: where it stood, for run_ids."""

    campaign: str
    platform: str
    workload: str
    corunners: tuple[str, ...]
    seconds: float
    metric: str
    place: str


@dataclass(frozen=True)
class PairsImport:
    """Import a CSV file with columns platform, target, corunner, and unit, solo, corun or slowdown.

    Units are times (s, ms, us, ns, min), throughputs (steps/s) or ratio. Zeros are not measurements.
    """

    name: ClassVar[str] = "pairs-csv"
    file: Annotated[
        str | os.PathLike[str] | BinaryIO,
        "A CSV file of pairs; - reads standard input.",
        Positional(),
    ]
    dataset: Annotated[str | None, "Only rows whose column 'dataset' says this."] = None
    separator: Annotated[str, "What parts several co-runners in one cell."] = ";"
    column: Annotated[
        tuple[str, ...], "A column's name, such as target=victim or corun=qps; may be repeated."
    ] = ()
    platform_name: Annotated[
        str | None, "The platform of all rows where no column says it.  [default: the file's name]"
    ] = None
    target_name: Annotated[str | None, "The workload of all rows where no column says it."] = None
    unit: Annotated[str | None, "The unit of all rows where no column says it: ms, qps, ..."] = None
    slowdowns: Annotated[
        str,
        "What numbers of slowdown are: ratio, percent (132), added (.32) or added-percent (32).",
        OneOf(SLOWDOWNS),
    ] = "ratio"
    group: GroupRule = None
    published: Annotated[str | None, "Who published it, and where.", NoOption()] = None
    licence: Annotated[str | None, "Under which licence.", NoOption()] = None
    drop_bad: Annotated[
        bool, "Set bad rows aside in rejected/ with the reason, and take the others."
    ] = False

    def __post_init__(self) -> None:
        if not self.separator:
            raise UsageError("the separator of co-runners is empty")
        require_pattern(self.group)

    @understands("file")
    def read(self) -> Imported:
        """Return each distinct solo value of a workload becomes a run alone; both sides of a pair get one
        window.

        Raises UnreadableFile, UnknownName for a missing column or dataset, and BadRows naming the
        lines of bad rows unless drop_bad sets them aside.
        """
        content, where = file_bytes(self.file)
        foreign = in_rows(content, where, self)
        has = foreign.table.column_names
        lacks = [name for name in REQUIRED if name not in has]
        if lacks or not {"corun", "slowdown"} & set(has):
            what = lacks[0] if lacks else "corun"
            raise BadData(
                f"no column holds {_WHAT[what]}", where=where,
                fix=f"Say by `column` which, such as {what}=NAME, of {', '.join(has[:20])}.",
            )  # fmt: skip
        self._ask(foreign)
        stem = hashlib.sha256(content).hexdigest()[:12]
        bad: list[tuple[int, str]] = list(foreign.ragged)
        solo: dict[tuple[str, str, str, float], Measurement] = {}
        corun: list[Measurement] = []
        skipped = 0
        seen: Counter[int] = Counter()  # a line may hold several pairs
        for line, row in _chosen(foreign, self.dataset):
            seen[line] += 1
            place = f"{stem}:{line}" + (f"-{seen[line]}" if seen[line] > 1 else "")
            try:
                pair = _row(row, place, self.separator, self.slowdowns)
            except ValueError as error:
                bad.append((line, str(error)))
                continue
            if pair is None:
                skipped += 1
                continue
            alone, beside = pair
            if alone is not None:
                key = (alone.campaign, alone.platform, alone.workload, alone.seconds)
                solo.setdefault(key, alone)
            corun.append(beside)
        bad.sort()
        rejected = rejected_rows(foreign, bad, self.drop_bad and bool(corun))
        if not corun:
            text = f"no row holds a measurement ({skipped} hold zeros or nothing)"
            raise BadData(text, where=where, fix="Give a table with measurements.")
        every = [*solo.values(), *corun]
        origins = [
            Origin(campaign, self.published or where, self.licence)
            for campaign in sorted({run.campaign for run in every})
        ]
        runs = runs_of(every, origins, where=where, group=self.group)
        return Imported(runs, where, bad, rejected, skipped)

    def _ask(self, foreign: ForeignTable) -> None:
        """Raises BadData for slowdowns that look as if they were no ratios."""
        if self.slowdowns != "ratio" or "slowdown" not in foreign.table.column_names:
            return
        values = []
        for cell in foreign.table.column("slowdown").to_pylist():
            try:
                values.append(float(_as_ratio(str(cell or ""), "ratio")))
            except ValueError:
                continue
        median = float(np.median(values)) if values else 1.0
        if not _FEW <= median <= _MANY:
            raise BadData(
                f"the median of its slowdowns is {median:.3g}: are they ratios?",
                where=foreign.where,
                fix="Say by `slowdowns`: ratio, percent (132), added (.32) or added-percent (32).",
            )


def runs_of(
    measured: Sequence[Measurement],
    origins: Sequence[Origin],
    workload_features: pa.Table | None = None,
    *,
    where: str,
    group: str | None = None,
) -> Runs:
    """Return runs from measurements: rows that are sides of one co-run share a window, campaign by
    campaign."""
    names = sorted({n for m in measured for n in (m.workload, *m.corunners)})
    code = {name: number for number, name in enumerate(names)}
    places = sorted({(m.campaign, m.platform) for m in measured})
    place = {name: number for number, name in enumerate(places)}
    window = np.arange(len(measured))
    degree = np.array([len(m.corunners) for m in measured])
    for d in np.unique(degree[degree > 0]):
        at = np.flatnonzero(degree == d).tolist()
        firsts = windows_of(
            np.array([place[measured[i].campaign, measured[i].platform] for i in at]),
            np.array([code[measured[i].workload] for i in at]),
            np.array([sorted(code[n] for n in measured[i].corunners) for i in at]),
            np.array([measured[i].seconds for i in at]),
        )
        window[at] = np.array(at)[firsts]
    run_id = [m.place for m in measured]
    table = columns_table(
        workload=[m.workload for m in measured],
        platform=[m.platform for m in measured],
        corunners=[sorted(m.corunners) for m in measured],
        runtime_seconds=[m.seconds for m in measured],
        campaign=[m.campaign for m in measured],
        run_id=run_id,
        window_id=[run_id[first] for first in window],
        metric=[m.metric for m in measured],
    )
    table = with_group(conform(with_origins(table, origins), where), group)
    return Runs(table, workload_features, where=where)


def _chosen(foreign: ForeignTable, dataset: str | None) -> list[tuple[int, dict[str, Any]]]:
    """Return (line, row) of the rows wanted."""
    rows = list(zip(foreign.numbers.tolist(), foreign.table.to_pylist(), strict=True))
    if dataset is None:
        return rows
    foreign.require(["dataset"])
    known = sorted({str(row["dataset"]).strip() for _, row in rows})
    require_known("dataset", dataset, known, where=foreign.where)
    return [(line, row) for line, row in rows if str(row["dataset"]).strip() == dataset]


def _row(
    row: dict[str, Any], place: str, separator: str, slowdowns: str
) -> tuple[Measurement | None, Measurement] | None:
    """Return (alone, where that is known, beside), or None where nothing was measured. Raises ValueError with
    the reason."""
    every = {name: row.get(name) for name in (*REQUIRED, *OPTIONAL)}
    text = {name: "" if cell is None else str(cell).strip() for name, cell in every.items()}
    text |= {name: "" for name in ("solo", "corun", "slowdown") if is_nothing(text[name])}
    text["slowdown"] = _as_ratio(text["slowdown"], slowdowns)
    names = [text["target"], *(name.strip() for name in text["corunner"].split(separator))]
    if text["target"] and len(names) == 2 and is_nobody(names[1]) and text["corunner"]:
        names = names[:1]
    configurations = [text["target_cfg"], *map(str.strip, text["corunner_cfg"].split(separator))]
    configurations += [""] * (len(names) - len(configurations))
    if not all(names):
        raise ValueError("the target or a co-runner has no name")
    if not text["platform"]:
        raise ValueError("platform is empty")
    workload, *beside = [
        f"{name}:{cfg}" if cfg else name for name, cfg in zip(names, configurations, strict=False)
    ]
    rate = "throughput" in text["metric"].lower()
    unit = "ratio" if text["unit"] in PLAIN else text["unit"]
    rate = rate if unit == "ratio" else _is_rate(unit)
    seconds = _seconds(text, unit, rate)
    if seconds is None:
        return None
    common = (text["dataset"], text["platform"], workload)
    metric = text["metric"] or ("throughput" if rate else "time")
    alone, beside_others = seconds
    if not beside:  # itself measured alone
        return None, Measurement(*common, (), beside_others, metric, place)
    return (
        Measurement(*common, (), alone, metric, f"{place}:solo") if alone else None,
        Measurement(*common, tuple(beside), beside_others, metric, place),
    )


def _seconds(text: dict[str, str], unit: str, rate: bool) -> tuple[float, float] | None:
    """Return (seconds alone, 0.0 where not known, seconds beside), or None where nothing was measured. Raises
    ValueError."""
    values = {name: _number(text[name], name) for name in ("solo", "corun", "slowdown")}
    if any(text[name] and not values[name] for name in values):  # a zero
        if text["slowdown"] and not values["slowdown"]:
            raise ValueError("slowdown is 0: not a measurement")
        return None
    solo, corun, slowdown = values["solo"], values["corun"], values["slowdown"]
    if not corun and not slowdown:
        return None
    is_inverse = rate and unit == "ratio"
    alone, beside = (
        seconds_of(1.0 / value if is_inverse else value, unit) if value else 0.0
        for value in (solo, corun)
    )
    if not slowdown:
        return alone, beside
    if alone and beside:
        if abs(beside / alone / slowdown - 1) > _TOLERANCE:
            raise ValueError(
                f"slowdown is {slowdown:g}, but solo and corun make it {beside / alone:.4g}: a wrong unit?"
            )
        return alone, beside
    if beside:
        return beside / slowdown, beside
    return (alone or 1.0), (alone or 1.0) * slowdown


def _as_ratio(cell: str, slowdowns: str) -> str:
    """Return a slowdown as a ratio: 1.32x, 132% and +32% say what they are. Raises ValueError."""
    text = cell.strip().rstrip("xX×").strip()
    if not text:
        return ""
    is_added = slowdowns.startswith("added") or text.startswith("+")
    is_percent = text.endswith("%") or slowdowns.endswith("percent")
    value = _number(text.lstrip("+").rstrip("% "), "slowdown")
    value = value / 100 if is_percent else value
    return repr(1 + value if is_added else value)


def _number(cell: str, name: str) -> float:
    """Return a value that is not negative; 0.0 where the cell is empty. Raises ValueError."""
    if not cell:
        return 0.0
    try:
        value = float_of(cell)
    except ValueError:
        raise ValueError(f"{name} {cell!r} is not a number") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {cell}: not a measurement")
    return value


def _is_rate(unit: str) -> bool:
    """Return whether a unit is one of throughput. Raises ValueError for a unit that is neither."""
    if unit in UNITS or unit.lower() in SECONDS:
        return False
    if not rate_seconds(unit.removeprefix("1")):
        raise ValueError(f"unknown unit {unit!r}: use {', '.join(UNITS)}, or steps/s")
    return True


def seconds_of(value: float, unit: str) -> float:
    """Return seconds of a time above 0, seconds per step of a throughput above 0. Raises ValueError where
    they are more or less than a number can hold."""
    if _is_rate(unit):
        seconds = rate_seconds(unit.removeprefix("1")) / value
    else:
        multiplier, divisor = UNITS.get(unit) or (SECONDS[unit.lower()], 1)
        seconds = value * multiplier / divisor
    if not 0 < seconds < math.inf:
        raise ValueError(f"{value:g} {unit} is {seconds:g} seconds: not a measurement")
    return seconds
