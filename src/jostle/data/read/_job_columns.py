"""Which column of a log holds what of a job, decided on all names, and how its cells are read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

from jostle._base.untrusted import printable
from jostle.data.read._job_log import ImportedLog
from jostle.data.read._job_presets import EXIT_CODES, JobPreset, preset_for, preset_named
from jostle.data.read._log_cells import WorkloadRule, by_value
from jostle.data.runs._name_columns import filled
from jostle.data.tables.arrow_compute import pc
from jostle.data.tables.moments import NO_TIME, times_of
from jostle.data.tables.quantities import (
    FAILED,
    OK,
    RUNNING,
    SECONDS,
    bytes_in_name,
    duration_of,
    is_nothing,
    outcome_of,
    size_of,
    without_unit,
)
from jostle.errors import BadData

LEAST_BYTES = 1e7  # in the median, from which plain numbers are taken for bytes


def _plain_number(cell: str | None) -> float:
    """Read a number without a unit above 0; NaN for all else."""
    try:
        value = float(cell or "")
    except ValueError:
        return np.nan
    return value if 0 < value < np.inf else np.nan


class JobColumns:
    """Names of a log's columns by role, and how cells are read. options: a JobsImport."""

    def __init__(self, options: Any, names: list[str], where: str) -> None:
        self.where = where
        known = {name.lower(): name for name in names}
        plain = {without_unit(name): name for name in reversed(names)}
        told = dict(text.split("=", 1) for text in options.column if "=" in text)
        self.source = options.preset or options.usual or preset_for(names)
        if self.source == "sacct" and options.preset is None and preset_for(names) != "jobs":
            self.source = preset_for(names)  # of Slurm there are several forms
        self.preset: JobPreset = preset_named(self.source)
        self.rules: dict[str, WorkloadRule] = {}
        for role, spellings in self.preset.columns.items():
            for one in (told[role],) if role in told else spellings:
                is_other = role not in told and one.lower() not in known and not self.preset.needs
                rule = WorkloadRule(plain.get(one, one) if is_other else one)
                if all(name.lower() in known for name in rule.columns):
                    self.rules[role] = rule
                    break
        if options.node is not None:
            node, of = options.node, self.rules.get("node")
            if of is not None and "{" not in node and node.lower() not in known:
                node = f"{{{of.columns[0]}:{node}}}"  # an expression alone
            self.rules["node"] = WorkloadRule(node)
        nothing = dict.fromkeys(names, pa.array([], pa.string()))
        for role in (role for role in told if role not in self.rules):
            WorkloadRule(told[role]).names(nothing, where)
        self._require(names)
        self.workload = self._workload(options, known)
        self.has_steps = self.source == "sacct"
        self.name_of_job = self.rules["job"].columns[0]
        self.name_of_job = known.get(self.name_of_job.lower(), self.name_of_job)
        usual = (one for one in self.preset.covariates if one.rpartition("=")[2] in known)
        self._covariates = {
            text.partition("=")[0]: text.rpartition("=")[2] for text in options.covariate or usual
        }
        for column in self._covariates.values():
            WorkloadRule(column).names(nothing, where)
        named = self.rules["took"].columns[0].lower() if "took" in self.rules else ""
        words = [SECONDS[word] for word in re.split(r"[^a-z]+", named) if word in SECONDS and word]
        self._took = words[-1] if words else self.preset.took
        self._units: dict[str, float] = {}  # bytes of a plain number, by role
        self._without_unit: list[str] = []
        self._rows = 0  # of the parts before
        self._bad: dict[str, np.ndarray] = {}  # of this part, by role: cells that cannot be read
        self._unread: dict[str, tuple[int, str]] = {}  # of all parts: how many, and the first

    def _require(self, names: list[str]) -> None:
        lacks = [role for role in ("job", "node") if role not in self.rules]
        if len({"start", "end", "took"} & set(self.rules)) < 2:
            lacks += [role for role in ("start", "end") if role not in self.rules]
        if lacks:
            spellings = [" or ".join(self.preset.columns[one]) for one in lacks]
            printed = f"Print it so: {self.preset.printed_by}. " if self.preset.printed_by else ""
            such = f"{lacks[0]}=NAME"
            raise BadData(
                f"no column is called {', none '.join(spellings)}",
                where=self.where,
                fix=f"{printed}Say by `column` which is, such as {such}, of {', '.join(names[:20])}.",
            )

    def _workload(self, options: Any, known: dict[str, str]) -> WorkloadRule:
        if options.workload is not None:
            return WorkloadRule(options.workload)
        rules = [WorkloadRule(text) for text in self.preset.workload]
        return next((r for r in rules if all(c.lower() in known for c in r.columns)), rules[0])

    def of(self, cells: dict[str, Any]) -> dict[str, Any]:
        """Return {role: (n,) text}."""
        return {
            role: rule.names(cells, self.where, empty="")
            for role, rule in self.rules.items()
            if role != "node"
        }

    def nodes(self, cells: dict[str, Any], named: dict[str, Any]) -> Any:
        return self.rules["node"].names(cells, self.where, empty="")

    def times(self, key: str, column: Any, zone: str) -> tuple[np.ndarray, np.ndarray]:
        first, second, bad = times_of(column, zone, self.preset.order)
        fix = "Such as 2026-01-31T00:00:00, or seconds since 1970; 01/02/2026 may be either day."
        self._require_read(key, column, bad, "time", fix)
        return first, second

    def _require_read(self, key: str, column: Any, bad: np.ndarray, what: str, fix: str) -> None:
        """Raises BadData for a column most cells of which cannot be read."""
        self._bad[key] = bad
        if bad.sum() > 0.5 * max(len(bad), 1):
            raise BadData(
                f"{self._place(column, int(np.argmax(bad)), key)} is not a valid {what}",
                where=self.where, fix=fix,
            )  # fmt: skip

    def _place(self, column: Any, at: int, key: str) -> str:
        cell = printable(column[at].as_py())[:60]
        return f"row {self._rows + at + 1} of jobs: the {key} {cell!r}"

    def unread(self, named: dict[str, Any], steps: np.ndarray, heads: np.ndarray) -> np.ndarray:
        """Count cells of this part that cannot be read. Returns (n,) which jobs have a time that cannot."""
        bad = np.zeros(len(steps), bool)
        for key, cells in self._bad.items():
            is_time = key in ("start", "end")
            cells = cells & ~heads & ~(steps & is_time)
            bad |= cells & is_time
            if cells.any():
                first = self._place(named[key], int(np.argmax(cells)), key)
                many, first = self._unread.get(key, (0, first))
                self._unread[key] = many + int(cells.sum()), first
        self._rows, self._bad = self._rows + len(bad), {}
        return bad

    def spans(self, column: Any, starts: Any, ends: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return ((n,) microseconds, which cannot be read). The unit of plain numbers is the source's, or
        what fits start and end best."""

        def read(cell: str | None) -> tuple[float, bool]:
            if cell is None or is_nothing(cell):
                return np.nan, False
            try:
                if cell[-1:].isdigit() and ":" not in cell:
                    return float(cell), True
                return duration_of(cell), False
            except ValueError:
                return np.nan, False

        pairs = by_value(column, read)
        values, plain = np.array(pairs, np.float64).reshape(-1, 2).T
        plain = plain.astype(bool)
        bad = np.isnan(values) & ~np.array(by_value(column, lambda cell: is_nothing(cell or "")))
        such = "600, 10m, 00:10:00, 1-02:03:04 or PT10M"
        self._require_read("took", column, bad, "duration", f"Such as {such}.")
        if self._took is None and plain.any():
            length = ends[0].astype(float) - starts[0]
            both = plain & (starts[0] != NO_TIME) & (ends[0] != NO_TIME)
            both &= (length > 0) & (values > 0)
            apart = {
                unit: float(np.median(np.abs(np.log(values[both] * unit * 1e6 / length[both]))))
                for unit in (1.0, 1e-3, 1e-6, 1e-9, 60.0, 3600.0)
            } if both.any() else dict[float, float]()  # fmt: skip
            if not apart:
                raise BadData(
                    f"nothing tells the unit of {self.rules['took'].columns[0]!r}", where=self.where,
                    fix="Call it such as runtime_s or runtime_ms, or write 20m.",
                )  # fmt: skip
            self._took = min(apart, key=lambda unit: apart[unit])
        return np.where(plain, values * (self._took or 1.0), values) * 1e6, bad

    def outcomes(
        self, named: dict[str, Any], cells: dict[str, Any], end: np.ndarray, told: dict[str, int]
    ) -> np.ndarray:
        """Return (n,). Numbers other than 0 in a column of states are asked about. Raises BadData."""
        if "state" not in named:
            return np.where(end == NO_TIME, RUNNING, OK)
        column = self.rules["state"].columns[0].lower()
        known = self.preset.states | told
        texts = pc.unique(named["state"]).to_pylist()
        numbers = {text for text in texts if text and text.lstrip("-").isdigit()}
        asked = sorted(numbers - {"0"} - set(known))
        if asked and column not in EXIT_CODES and not self.preset.states:
            shown = ", ".join(asked[:5])
            raise BadData(
                f"states are numbers, of which only 0 is known: {shown}",
                where=self.where,
                fix=f"Say by `state` what they mean, such as {asked[0]}=failed, or by `column` which "
                "column tells.",
            )

        def read(cell: str | None) -> int:
            text = (cell or "").strip().lower()
            if text in known:
                return known[text]
            return OK if text == "0" else outcome_of(text)

        codes = np.array(by_value(named["state"], read), np.int64)
        for name, column in cells.items():
            if name.lower() in self.preset.exits:
                is_other = filled(pc.match_substring_regex(column, r"^\s*-?0*[1-9]"), False)
                codes = np.where((codes == OK) & is_other.astype(bool), FAILED, codes)
        states = pc.utf8_trim_whitespace(pc.fill_null(named["state"], ""))
        empty = filled(pc.equal(states, ""), True)
        return np.where(empty.astype(bool) & (end == NO_TIME), RUNNING, codes)

    def sizes(self, key: str, column: Any, n: int, cells: dict[str, Any]) -> np.ndarray:
        """Return (n,) bytes, NaN where not known. Of Slurm a task's peak counts for each task, and a CPU's
        limit for each."""
        if column is None:
            return np.full(n, np.nan)
        unit = self._unit_of_size(key, column)
        many = {name.lower(): name for name in cells}

        def read(cell: str | None) -> tuple[float, str, bool]:
            text = (cell or "").strip()
            if is_nothing(text):
                return np.nan, "", False
            is_each = self.source == "sacct" and text[-1:] in "nc" and text[:1].isdigit()
            each = text[-1:] if is_each else ""
            text = text.removesuffix(each)
            try:
                plain = text[-1:].isdigit() or text[-1:] == "."
                value = float(text) * unit if plain else size_of(text, base=self.preset.base)
            except ValueError:
                return np.nan, "", True
            return (value if 0 < value < np.inf else np.nan), each, value < 0 or value == np.inf

        read_cells = by_value(column, read)
        values = np.array([value for value, *_ in read_cells], np.float64)
        of_cpu = np.array([each == "c" for _, each, _ in read_cells], bool)
        self._bad[key] = np.array([bad for *_, bad in read_cells], bool)
        counts = {"peak": ("ntasks",), "requested": ("alloccpus", "reqcpus", "ncpus")}[key]
        times = next((cells[many[name]] for name in counts if name in many), None)
        if self.source == "sacct" and times is not None:
            told = by_value(times, lambda cell: float(cell) if cell and cell.isdigit() else 1.0)
            values = np.where(of_cpu | (key == "peak"), values * np.maximum(told, 1.0), values)
        else:
            values = np.where(of_cpu, np.nan, values)
        return values

    def _unit_of_size(self, key: str, column: Any) -> float:
        """Return the bytes of a plain number: of the unit in the column's name, or as the source prints them.
        NaN for small numbers of no known source, which may be of any unit."""
        names = self.rules[key].columns
        told = bytes_in_name(names[0], base=self.preset.base) if len(names) == 1 else None
        usual = self.preset.peak if key == "peak" else self.preset.requested
        if told or self.preset.needs:
            return told or usual
        if key not in self._units:
            values = np.array(by_value(column, _plain_number), np.float64)
            some = values[np.isfinite(values)]
            if not len(some):
                return usual
            self._units[key] = usual if np.median(some) >= LEAST_BYTES else np.nan
            if np.isnan(self._units[key]):
                self._without_unit.append(names[0])
        return self._units[key]

    def covariates(self, cells: dict[str, Any]) -> dict[str, Any]:
        return {
            name: WorkloadRule(column).names(cells, self.where, empty="")
            for name, column in self._covariates.items()
        }

    def tell(self, log: ImportedLog, options: Any) -> None:
        """Note what was understood, and what is not known of who ran."""
        used = ", ".join(
            f"{role} from {'+'.join(rule.columns)}" for role, rule in self.rules.items()
        )
        log.understood.append(
            f"columns of {self.source}: {used}; workload from {'+'.join(self.workload.columns)}"
        )
        log.understood.append(f"times without an offset are of {options.timezone}")
        if self.workload.not_matched:
            log.notes.append(
                f"{self.workload.not_matched} cells do not match the rule of workloads, and count whole"
            )
        log.notes += [
            f"{many} cells of {key} cannot be read and count as unknown, the first in {first}"
            for key, (many, first) in self._unread.items()
        ]
        log.notes += [
            f"nothing tells the unit of {name!r}, so it counts as unknown: call it such as {name}_mb, or "
            "write 2 GB"
            for name in self._without_unit
        ]
        is_own = self.preset.is_own and "user" not in self.rules
        if (log.users == 1 or is_own) and not options.all_jobs:
            log.is_partial = True
            name = f", {printable(log.a_user)[:40]!r}" if log.users else ""
            log.notes.append(
                f"all jobs are of one user{name}: printed without -a or -A? Who else ran beside them is not "
                "known (print the log of all users, or say `all_jobs`)"
            )
        if self.workload.columns == ("DAGNodeName",):
            log.notes.append("no program is named: a node of DAGMan, or a cluster, counts as one")
