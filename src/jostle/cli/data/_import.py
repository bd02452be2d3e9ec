"""`jostle import`: bring measurements from elsewhere into a dataset. One command for each importer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jostle.cli.collect._trace import print_traces
from jostle.cli.console import as_typed, duration, note, print_json, registered_commands, say
from jostle.cli.console._fields import DatasetOutput, Json
from jostle.runs import importer_named, importer_names

if TYPE_CHECKING:
    from jostle.runs import Imported, Importer
    from jostle.traces import Profile


@dataclass(frozen=True, kw_only=True)
class ImportCommand:
    """What every importer takes besides its own options."""

    output: DatasetOutput
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    commands = registered_commands(importer_names, importer_named, _import, ImportCommand)
    text = "Bring measurements from elsewhere into a dataset."
    app.add_typer(typer.Typer(cls=commands, no_args_is_help=True, help=text), name="import")


def _import(importer: Importer, shared: ImportCommand) -> None:
    from jostle.runs import Imported
    from jostle.traces import Traces, write_profiles, write_traces

    output, json_ = shared.output, shared.json_
    found = importer.read()
    if isinstance(found, Imported):
        _print_runs(found, output, found.write(output), json_)
    elif isinstance(found, Traces):
        files = write_traces(output, found)
        for text in found.notes if not json_ else ():
            note(text)
        print_traces(found, output, [str(file) for file in files], json_)
    else:
        write_profiles(output, [found])
        _print_profile(found, json_)


def _print_runs(found: Imported, output: Path, written: Sequence[Path], as_json: bool) -> None:
    """The result on standard output, rows set aside on standard error."""
    from jostle.runs import doubts

    runs, bad = found.runs, found.bad
    remarks = doubts(runs)
    alone = int((runs.colocations.number_of_corunners == 0).sum())
    document = {
        "schema": "import/v1",
        "dataset": str(output),
        "source": found.source,
        "runs": len(runs),
        "alone": alone,
        "workloads": len(runs.colocations.workload_names),
        "platforms": len(runs.colocations.platform_names),
        "rejected": len(bad),
        "not_measured": found.skipped,
        "doubts": list(remarks),
        "origins": [vars(origin) for origin in runs.origins],
        "files": [str(path) for path in written],
    }
    if as_json:
        print_json(document)
        return
    for row, reason in bad[:20]:
        note(f"set aside: row {row}: {reason}")
    if bad:
        more = f", {len(bad)} rows in all" if len(bad) > 20 else ""
        note(f"with their reasons in {written[0]}{more}")
    if found.skipped:
        text = f"{found.skipped} entries are zero or empty: not measured, passed over"
        note(text)
    for text in remarks:
        note(f"note: {as_typed(text)}")
    say(
        f"{output}: {len(runs)} runs from {found.source}, {alone} alone and {len(runs) - alone} with "
        f"co-runners; {document['workloads']} workloads, {document['platforms']} platforms"
    )


def _print_profile(found: Profile, as_json: bool) -> None:
    kinds = found.tasks.column("kind").to_pylist()
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    busy = float(found.column("duration_seconds").sum())
    devices = {str(d): g.name if g else None for d, g in sorted(found.gpus.items())}
    if as_json:
        print_json(
            {
                "schema": "import_profile/v1",
                "workload": found.workload,
                "run_id": found.run_id,
                "format": found.format,
                "tasks": counts,
                "task_seconds": busy,
                "devices": devices,
                "notes": list(found.notes),
            }
        )
        return
    tasks = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    names = ", ".join(sorted({name or "an unknown device" for name in devices.values()}))
    say(f"{found.workload}: {tasks}, {duration(busy)} in all on {names} ({found.format}).")
    for text in found.notes:
        note(f"Note: {text}.")
