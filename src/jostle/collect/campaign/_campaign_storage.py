"""Between a campaign and its dataset: what is there, rows to write, features of what is new."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.collect.campaign._campaign import CHOSEN, Campaign, PlannedWindow
from jostle.collect.campaign._journal import Journal, Row, campaigns_with_journal
from jostle.collect.host._facts import engine_facts, machine_facts
from jostle.collect.kernels.opcodes._opcode_counting import DEFAULT_TIMEOUT_SECONDS, OpcodeCounts
from jostle.collect.window._assess import WindowResult, worst_status
from jostle.collect.window._foreign_load import foreign_columns
from jostle.collect.workloads._opcode_counts import count_opcodes
from jostle.collect.workloads._workloads import Workload
from jostle.errors import BadData, UsageError

if TYPE_CHECKING:
    from jostle.data import Runs


# Arrow types of columns that can be null in every row of a file.
_FLOATS = (
    "foreign_load_ratio foreign_cores outside_cores stolen_ratio pressure_cpu_ratio pressure_io_ratio "
    "raw_runtime_seconds disturbance_ratio runtime_error_ratio repetitions cpu_seconds run_delay_seconds "
    "lateness_seconds window_seconds nominal_frequency_hertz maximum_frequency_hertz"
)
_WHOLE = (
    "slot attempt beats involuntary_switches cores threads_per_core main_memory_bytes niceness "
    "cache_level1_bytes cache_level2_bytes cache_level3_bytes"
)
_TEXTS = "estimator governor architecture cpu_model cpu_vendor cpu_family cpu_model_number engine_version"
_COUNTS = OpcodeCounts.column_names()
_TYPES = {
    **dict.fromkeys(_FLOATS.split(), "float64"),
    **dict.fromkeys([*_WHOLE.split(), *_COUNTS], "int64"),
    **dict.fromkeys(_TEXTS.split(), "string"),
    "chosen": "bool_",
    **dict.fromkeys(["virtual_machine", "engine_checks_bounds"], "bool_"),
}


@dataclass(eq=False)
class Storage:
    """The dataset of a campaign; path: its folder, made with the first file.

    counting_seconds: how long counting a module's instructions may take.
    stopped: whether to give up.
    """

    path: Path
    campaign: Campaign
    counting_seconds: float = DEFAULT_TIMEOUT_SECONDS
    stopped: Callable[[], bool] = lambda: False
    warnings: list[str] = field(default_factory=list)

    def journal(self, clock: Callable[[], float]) -> Journal:
        """Return this campaign's journal, opened. Raises UsageError where another process holds it."""
        return _journal(self.path, self.campaign.identity, clock)

    def history(self, plan: Iterable[PlannedWindow]) -> dict[str, tuple[str | None, int]]:
        """Return {key of a window: (how it ended, None where it needs another try; contaminated tries)}."""
        statuses = _window_statuses(self.path, self.campaign.identity)
        history = {}
        for planned in plan:
            tries = 0
            while status := statuses.get(self.campaign.window_id(planned, tries)):
                if status != "contaminated":
                    break
                tries += 1
            history[planned.key] = status, tries
        return history

    def rows(self, planned: PlannedWindow, attempt: int, result: WindowResult) -> list[Row]:
        """Return one row per member of a window, as columns of a run."""
        window_id = self.campaign.window_id(planned, attempt)
        names = [member.name for member in planned.members]
        return [
            {
                "workload": names[slot],
                "platform": self.campaign.platform(planned.engine),
                "corunners": names[:slot] + names[slot + 1 :],
                "measured_at": result.measured_at,
                "campaign": self.campaign.identity,
                "window_id": window_id,
                "run_id": f"{window_id}-{slot}",
                "slot": slot,
                "attempt": attempt,
                **({"chosen": True} if planned.ordinal >= CHOSEN else {}),
                "window_seconds": result.window_seconds,
                **foreign_columns(result.foreign),
                **{name: value for name, value in asdict(member).items() if name != "extra"},
                **member.extra,
            }
            for slot, member in enumerate(result.members)
        ]

    def write_features(self, platforms: list[Row] | None = None) -> None:
        """Write the features of workloads and platforms that are new to the dataset.

        A key's features are written once: what has changed since becomes a warning. A workload that
        cannot be counted keeps null counts, with a warning. platforms: their rows; None means this
        machine's.
        """
        known_workloads, known_platforms = _features(self.path)
        if platforms is None:
            platforms = platform_rows(self.campaign)
        workloads = []
        for member in self.campaign.members:
            row = {
                "workload": member.name,
                "kernel": member.kernel,
                "family": member.family,
                "size": member.size,
                "argument": member.argument,
                "repeats": member.repeats,
                "module_sha256": member.digest,
                "kind": member.kind,
                "arguments": " ".join(member.arguments),
            }
            if self.stopped():
                return
            if member.name not in known_workloads:
                row |= self._counts(member)
            workloads.append(row)
        if self.stopped():  # some may not have been counted: they are when it goes on
            return
        new = [
            self._new(workloads, "workload", known_workloads),
            self._new(platforms, "platform", known_platforms),
        ]
        if any(new):
            _write(self.path, [], workloads=new[0], platforms=new[1])

    def _new(self, rows: list[Row], key: str, known: dict[str, Row]) -> list[Row]:
        """Return rows whose key is not known; a warning for each known one that differs now."""
        for row in rows:
            before = known.get(row[key])
            changed = [n for n, v in row.items() if before and n in before and before[n] != v]
            if changed:
                self.warnings.append(
                    f"{row[key]}: {', '.join(changed)} changed since the dataset's features were "
                    "written, which stay as they are"
                )
        return [row for row in rows if row[key] not in known]

    def _counts(self, member: Workload) -> dict[str, int | None]:
        counts: dict[str, int | None] = dict.fromkeys(_COUNTS)
        try:
            if member.kind != "command":
                counts |= count_opcodes(
                    member, timeout_seconds=self.counting_seconds, stopped=self.stopped
                ).columns()
        except BadData as error:
            self.warnings.append(str(error))
        return counts


def platform_rows(campaign: Campaign) -> list[Row]:
    """Return the features of the campaign's platforms, as found on this machine."""
    facts = machine_facts(campaign.core_numbers)
    return [
        {
            "platform": campaign.platform(engine),
            "device": campaign.device_name,
            **engine_facts(engine),
            **facts,
            "cores": len(campaign.core_numbers),
        }
        for engine in campaign.engine_names
    ]


def recover(dataset: str | Path) -> int:
    """Bring into a dataset what killed campaigns left in their journals; how many did.

    A journal that a running campaign holds is left to it.
    """
    path, recovered = Path(dataset), 0
    for campaign in campaigns_with_journal(path):
        try:
            _journal(path, campaign, time.monotonic).close()
        except UsageError:
            continue
        recovered += 1
    return recovered


def _journal(path: Path, campaign: str, clock: Callable[[], float]) -> Journal:
    return Journal(
        path,
        campaign,
        write=lambda rows: _write(path, rows),
        known=lambda: set(_window_statuses(path, campaign)),
        clock=clock,
    )


def _runs(path: Path) -> Runs | None:
    """Return all runs of the dataset; None before its first file."""
    from jostle.data import Dataset

    dataset = Dataset(path)
    return dataset.read() if dataset.exists else None


def _window_statuses(path: Path, campaign: str) -> dict[str, str]:
    """Return {window_id: the worst status of its members} of a campaign."""
    runs = _runs(path)
    if runs is None:
        return {}
    import pyarrow.dataset

    ours = runs.table.filter(pyarrow.dataset.field("campaign") == campaign)
    worst: dict[str, str] = {}
    for row in ours.select(["window_id", "status"]).to_pylist():
        window_id, status = str(row["window_id"]), str(row["status"])
        worst[window_id] = worst_status([status, worst.get(window_id, status)])
    return worst


def _features(path: Path) -> tuple[dict[str, Row], dict[str, Row]]:
    """Return known features of workloads and of platforms, by name."""
    runs = _runs(path)
    if runs is None:
        return {}, {}
    workloads, platforms = (
        {} if table is None else {row[key]: row for row in table.to_pylist()}
        for key, table in (
            ("workload", runs.workload_features),
            ("platform", runs.platform_features),
        )
    )
    return workloads, platforms


def _write(
    path: Path,
    rows: list[Row],
    *,
    workloads: list[Row] | None = None,
    platforms: list[Row] | None = None,
) -> None:
    """Write one immutable file of runs, and one of each kind of features that there are."""
    import pyarrow as pa

    from jostle.data import Dataset, Runs

    def column(table: list[Row], name: str) -> Any:
        values = [row.get(name) for row in table]
        try:
            # Where all are null the type cannot be seen, yet every file must have the same.
            cells = pa.array(values, getattr(pa, _TYPES[name])() if name in _TYPES else None)
            if "struct<" in str(cells.type):
                raise TypeError("it holds a record, where a number, a text or a list is kept")
            return cells
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise BadData(f"{name} of a window cannot be kept: {error}", where=str(path)) from None

    def features(table: list[Row] | None) -> dict[str, Any] | None:
        return {name: column(table, name) for name in table[0]} if table else None

    names = {"workload": None, "platform": None, "corunners": None, "runtime_seconds": None}
    for row in rows:
        names |= dict.fromkeys(row)
    columns: dict[str, Any] = {name: column(rows, name) for name in names}
    runs = Runs.from_columns(
        **columns, workload_features=features(workloads), platform_features=features(platforms)
    )
    Dataset(path).write(runs)
