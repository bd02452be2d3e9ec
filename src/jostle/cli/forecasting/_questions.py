"""What `jostle forecast` is asked about: traces or saved forecasts, by workload, platform and company."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from jostle.bridge import Bridge, Contexts, Forecast
    from jostle.traces import Traces, Windows

# How a clock is read, for every command that takes one.
Marks = Annotated[
    list[float] | None,
    typer.Option(help="What the clock has reached where a phase begins; repeat for more."),
]
Period = Annotated[
    int | None, typer.Option(help="Of beats: phases after which the program begins anew.")
]


def fitted_ones(
    datasets: Sequence[Path],
    workloads: Sequence[str] | None,
    platform: str | None,
    beside: list[str] | None,
    windows: bool,
    settings: Bridge,
) -> list[tuple[str, Forecast]]:
    """(name, forecast) of every workload asked for, in the order of the folders and then of the names."""
    import jostle
    from jostle.bridge import Forecast
    from jostle.errors import UnknownName
    from jostle.traces import read_traces

    read: dict[Path, Traces | Forecast] = {}
    for folder in datasets:
        is_saved = (folder / "forecast.json").is_file()
        read[folder] = Forecast.load(folder) if is_saved else read_traces(folder)
    known = {
        name
        for one in read.values()
        if not isinstance(one, Forecast)
        for name in one.traced.column("workload").to_pylist()
    }
    for name in workloads or ():
        if name not in known:
            raise UnknownName("workload", name, sorted(known))
    fitted: list[tuple[str, Forecast]] = []
    made: dict[tuple[Path, str | None], Forecast] = {}
    for folder in datasets:
        one = read[folder]
        if isinstance(one, Forecast):
            fitted.append((folder.name, one))
            continue
        here = set(one.traced.column("workload").to_pylist())
        asked = [name for name in workloads or () if name in here] if workloads else [None]
        for name in asked:
            if (folder, name) not in made:
                chosen = _chosen(one, name, platform, beside, windows)
                made[folder, name] = jostle.forecast(chosen, settings)
            fitted.append((name or folder.resolve().name, made[folder, name]))
    return fitted


def _chosen(
    traces: Traces,
    workload: str | None,
    platform: str | None,
    beside: list[str] | None,
    windows: bool,
) -> Traces | Windows:
    """Only the runs asked for. Raises UnknownName, BadData where none is left."""
    from jostle.errors import BadData, UnknownName
    from jostle.traces import Windows

    rows = traces.traced.to_pylist()
    if platform is not None:
        known = sorted({row["platform"] for row in rows})
        if platform not in known:
            raise UnknownName("platform", platform, known)
        rows = [row for row in rows if row["platform"] == platform]
    if workload is not None and not windows:
        rows = [row for row in rows if row["workload"] == workload]
    company = sorted(beside) if beside is not None else None
    if company is not None or (windows and workload is not None):
        kept = []
        for row in rows:
            others = sorted(row["corunners"] or [])
            if windows:  # a window is kept whole: by all its members
                everyone = sorted([*others, row["workload"]])
                if workload is not None and workload not in everyone:
                    continue
                first = [workload] if workload is not None else []
                if company is not None and everyone != sorted([*first, *company]):
                    continue
            elif others != company:
                continue
            kept.append(row)
        rows = kept
    if not rows:
        raise BadData("no traced run is of that workload, platform and company")
    if len(rows) < len(traces):
        traces = traces.select([row["run_id"] for row in rows])
    return Windows.of(traces) if windows else traces


def contexts_of(values: Sequence[float], fitted: Sequence[tuple[str, Forecast]]) -> Contexts:
    from jostle.bridge import Contexts
    from jostle.errors import UsageError

    if len(values) != len(fitted) or len(set(values)) < len(values):
        raise UsageError(
            f"{len(values)} contexts for {len(fitted)} forecasts",
            fix="Say --context once for each, all different.",
        )
    return Contexts({value: one for value, (_, one) in zip(values, fitted, strict=True)})
