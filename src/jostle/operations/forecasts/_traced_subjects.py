"""The subjects of a forecast: traces or saved forecasts, by workload, platform and co-runners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jostle._base.option_fields import NoOption, Short
from jostle.errors import BadData, UsageError, require_known

if TYPE_CHECKING:
    from jostle.data import Trace, Traces, Windows
    from jostle.usage import Bridge, Forecast, LiveForecast


@dataclass(frozen=True, kw_only=True)
class TracedRuns:
    """A choice of traced runs; beside: None for any one set of co-runners."""

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
        NoOption(),
    ] = False

    def forecasts(self, datasets: Sequence[Path], settings: Bridge) -> list[tuple[str, Forecast]]:
        """Make (name, forecast) of every chosen workload, in the order of the folders, then of the names."""
        import jostle
        from jostle.data import read_traces
        from jostle.usage import Forecast

        sources: dict[Path, Traces | Forecast] = {}
        for folder in datasets:
            is_saved = (folder / "forecast.json").is_file()
            sources[folder] = Forecast.load(folder) if is_saved else read_traces(folder)
        names = {
            folder: set(one.traced.column("workload").to_pylist())
            for folder, one in sources.items()
            if not isinstance(one, Forecast)
        }
        known = set().union(*names.values())
        require_known("workload", self.workload, known)
        fitted: list[tuple[str, Forecast]] = []
        forecasts: dict[tuple[Path, str | None], Forecast] = {}
        for folder in datasets:
            one = sources[folder]
            if isinstance(one, Forecast):
                fitted.append((folder.name, one))
                continue
            for name in (
                [n for n in self.workload if n in names[folder]] if self.workload else [None]
            ):
                if (folder, name) not in forecasts:
                    forecasts[folder, name] = jostle.forecast(self.select(one, name), settings)
                fitted.append((name or folder.resolve().name, forecasts[folder, name]))
        return fitted

    def select(self, traces: Traces, workload: str | None) -> Traces | Windows:
        """Keep the runs of a workload (None: of any) on the platform and beside the co-runners that are asked
        about. Raises UnknownName, BadData if none is left."""
        from jostle.data import Windows

        rows = traces.traced.to_pylist()
        if self.platform is not None:
            known = sorted({row["platform"] for row in rows})
            require_known("platform", self.platform, known)
            rows = [row for row in rows if row["platform"] == self.platform]
        rows = [row for row in rows if self._fits(row, workload)]
        if not rows:
            raise BadData("no traced run is of that workload and platform beside those co-runners")
        if len(rows) < len(traces):
            traces = traces.select([row["run_id"] for row in rows])
        return Windows.of(traces) if self.windows else traces

    def _fits(self, row: dict[str, Any], workload: str | None) -> bool:
        """Check whether a run is chosen; of windows, whether the whole window is, by all its members."""
        others = sorted(row["corunners"] or [])
        beside = None if self.beside is None else sorted(self.beside)
        if not self.windows:
            return workload in (None, row["workload"]) and beside in (None, others)
        members = sorted([*others, row["workload"]])
        first = [] if workload is None else [workload]
        return all(name in members for name in first) and (
            beside is None or members == sorted([*first, *beside])
        )


def live_of(
    folder: Path, fitted: Sequence[tuple[str, Forecast]], core: int
) -> tuple[str, LiveForecast]:
    """Return (run_id, forecast) of the only run traced in a folder. Raises UsageError, UnreadableFile."""
    if len(fitted) != 1:
        raise UsageError("`given` is for one workload at a time", fix="Say `workload`.")
    trace = only_trace(folder, core)
    return trace.run_id, fitted[0][1].given(trace, core)


def only_trace(folder: Path, core: int) -> Trace:
    """Read the trace of the only run in a folder. Raises UsageError, UnreadableFile."""
    from jostle.data import read_traces

    mine = [trace for trace in read_traces(folder) if trace.core == core]
    if len(mine) != 1:
        raise UsageError(
            f"{len(mine)} runs are traced on core {core}, not one",
            where=str(folder),
            fix="Give a folder with the trace of the live run only.",
        )
    return mine[0]
