"""What `jostle forecast` is asked about: traces or saved forecasts, by workload, platform and co-runners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jostle._options import Flag, Short

if TYPE_CHECKING:
    from jostle.bridge import Bridge, Contexts, Forecast, LiveForecast
    from jostle.traces import Traces, Windows


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which traced runs are asked about; beside: None for any one set of co-runners."""

    workload: Annotated[
        tuple[str, ...], "What runs; repeat for several.  [default: the only one]", Short("-w")
    ] = ()
    platform: Annotated[str | None, "Where.  [default: the only one]", Short("-p")] = None
    beside: Annotated[
        tuple[str, ...] | None,
        "A co-runner; repeat for more.  [default: any one set]",
        Short("-b"),
    ] = None
    windows: Annotated[
        bool,
        "Members traced side by side are the cores of one run.",
        Flag("--windows/--no-windows"),
    ] = False


def fitted_ones(
    datasets: Sequence[Path], chosen: Chosen, settings: Bridge
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
    names = {
        folder: _workloads(one) for folder, one in read.items() if not isinstance(one, Forecast)
    }
    known = set().union(*names.values())
    for name in chosen.workload:
        if name not in known:
            raise UnknownName("workload", name, sorted(known))
    fitted: list[tuple[str, Forecast]] = []
    made: dict[tuple[Path, str | None], Forecast] = {}
    for folder in datasets:
        one = read[folder]
        if isinstance(one, Forecast):
            fitted.append((folder.name, one))
            continue
        for name in (
            [n for n in chosen.workload if n in names[folder]] if chosen.workload else [None]
        ):
            if (folder, name) not in made:
                made[folder, name] = jostle.forecast(_select(one, name, chosen), settings)
            fitted.append((name or folder.resolve().name, made[folder, name]))
    return fitted


def _workloads(traces: Traces) -> set[str]:
    return set(traces.traced.column("workload").to_pylist())


def _select(traces: Traces, workload: str | None, chosen: Chosen) -> Traces | Windows:
    """Only the runs asked for. Raises UnknownName, BadData where none is left."""
    from jostle.errors import BadData, UnknownName
    from jostle.traces import Windows

    rows = traces.traced.to_pylist()
    if chosen.platform is not None:
        known = sorted({row["platform"] for row in rows})
        if chosen.platform not in known:
            raise UnknownName("platform", chosen.platform, known)
        rows = [row for row in rows if row["platform"] == chosen.platform]
    rows = [row for row in rows if _fits(row, workload, chosen)]
    if not rows:
        raise BadData("no traced run is of that workload and platform beside those co-runners")
    if len(rows) < len(traces):
        traces = traces.select([row["run_id"] for row in rows])
    return Windows.of(traces) if chosen.windows else traces


def _fits(row: dict[str, Any], workload: str | None, chosen: Chosen) -> bool:
    """Whether a run is asked about; of windows, whether its whole window is: by all its members."""
    others = sorted(row["corunners"] or [])
    beside = None if chosen.beside is None else sorted(chosen.beside)
    if not chosen.windows:
        return workload in (None, row["workload"]) and beside in (None, others)
    members = sorted([*others, row["workload"]])
    first = [] if workload is None else [workload]
    return all(name in members for name in first) and (
        beside is None or members == sorted([*first, *beside])
    )


def contexts_of(values: Sequence[float], fitted: Sequence[tuple[str, Forecast]]) -> Contexts:
    from jostle.bridge import Contexts
    from jostle.errors import UsageError

    if len(values) != len(fitted) or len(set(values)) < len(values):
        raise UsageError(
            f"{len(values)} contexts for {len(fitted)} forecasts",
            fix="Say --context once for each, all different.",
        )
    return Contexts({value: one for value, (_, one) in zip(values, fitted, strict=True)})


@dataclass(frozen=True)
class Live:
    """One run that goes on, and the forecast of what it does next."""

    run_id: str
    forecast: LiveForecast

    def soon(self, limits: Mapping[str, float], within: float | None) -> float | None:
        """P(over any limit within so many seconds), None where that is not asked."""
        from jostle.errors import UsageError

        if within is None:
            return None
        if not limits:
            raise UsageError("--within needs a --limit", fix="Say --limit COUNTER=RATE.")
        return self.forecast.exceedance_ratio(limits, within)

    def document(self, within: float | None, soon: float | None) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "until_seconds": self.forecast.now_seconds,
            "within_seconds": within,
            "exceedance_within_ratio": soon,
        }


def live_of(folder: Path, fitted: Sequence[tuple[str, Forecast]], core: int) -> Live:
    """The only run traced in a folder. Raises UsageError, UnreadableFile."""
    from jostle.errors import UsageError
    from jostle.traces import read_traces

    if len(fitted) != 1:
        raise UsageError("--given is for one workload at a time", fix="Say -w NAME.")
    mine = [trace for trace in read_traces(folder) if trace.core == core]
    if len(mine) != 1:
        raise UsageError(
            f"{len(mine)} runs are traced on core {core}, not one",
            where=str(folder),
            fix="Give a folder with the trace of the live run only.",
        )
    return Live(mine[0].run_id, fitted[0][1].given(mine[0], core))
