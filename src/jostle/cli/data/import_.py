"""`jostle import`: bring measurements from elsewhere into a dataset. One command for each importer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jostle._report import Report, duration
from jostle.cli.console import as_typed, group_of, registered_commands
from jostle.cli.console._fields import DatasetOutput
from jostle.cli.data._traces import traces_report
from jostle.runs import importer_named, importer_names

if TYPE_CHECKING:
    from jostle.runs import Imported, Importer
    from jostle.traces import Profile


@dataclass(frozen=True, kw_only=True)
class ImportCommand:
    """What every importer takes besides its own options."""

    output: DatasetOutput


def _import(importer: Importer, command: ImportCommand) -> Report:
    from jostle.runs import Imported
    from jostle.traces import Traces, write_profiles, write_traces

    measured = importer.read()
    if isinstance(measured, Imported):
        return _runs_report(measured, command.output, measured.write(command.output))
    if isinstance(measured, Traces):
        files = write_traces(command.output, measured)
        return traces_report(measured, command.output, files, notes=measured.notes)
    write_profiles(command.output, [measured])
    return _profile_report(measured)


def _runs_report(imported: Imported, output: Path, written: Sequence[Path]) -> Report:
    """What came in; the notes are of rows set aside."""
    from jostle.runs import doubts

    runs, bad = imported.runs, imported.bad
    remarks = doubts(runs)
    alone = int((runs.colocations.number_of_corunners == 0).sum())
    document = {
        "schema": "import/v1",
        "dataset": str(output),
        "source": imported.source,
        "runs": len(runs),
        "alone": alone,
        "workloads": len(runs.colocations.workload_names),
        "platforms": len(runs.colocations.platform_names),
        "rejected": len(bad),
        "not_measured": imported.skipped,
        "doubts": list(remarks),
        "origins": [vars(origin) for origin in runs.origins],
        "files": [str(path) for path in written],
    }
    notes = [f"set aside: row {row}: {reason}" for row, reason in bad[:20]]
    if bad:
        more = f", {len(bad)} rows in all" if len(bad) > 20 else ""
        notes.append(f"with their reasons in {written[0]}{more}")
    if imported.skipped:
        notes.append(f"{imported.skipped} entries are zero or empty: not measured, passed over")
    notes += [f"note: {as_typed(text)}" for text in remarks]
    text = (
        f"{output}: {len(runs)} runs from {imported.source}, {alone} alone and {len(runs) - alone} with "
        f"co-runners; {document['workloads']} workloads, {document['platforms']} platforms"
    )
    return Report(document, [text], notes=notes)


def _profile_report(profile: Profile) -> Report:
    kinds = profile.tasks.column("kind").to_pylist()
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    busy = float(profile.column("duration_seconds").sum())
    devices = {str(d): g.name if g else None for d, g in sorted(profile.gpus.items())}
    document = {
        "schema": "import_profile/v1",
        "workload": profile.workload,
        "run_id": profile.run_id,
        "format": profile.format,
        "tasks": counts,
        "task_seconds": busy,
        "devices": devices,
        "notes": list(profile.notes),
    }
    tasks = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    names = ", ".join(sorted({name or "an unknown device" for name in devices.values()}))
    text = f"{profile.workload}: {tasks}, {duration(busy)} in all on {names} ({profile.format})."
    return Report(document, [text], notes=[f"Note: {text}." for text in profile.notes])


import_ = group_of(
    registered_commands(importer_names, importer_named, _import, ImportCommand),
    "Bring measurements from elsewhere into a dataset.",
)
