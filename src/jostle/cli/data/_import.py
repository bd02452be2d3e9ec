"""`jostle import`: bring measurements from elsewhere into a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle.cli.data._import_profile import profile

if TYPE_CHECKING:
    from jostle.runs import Imported, Runs

Output = Annotated[
    Path, typer.Option("--output", "-o", help="The dataset: a folder, made if need be.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Workload = Annotated[str, typer.Option(help="Column of the workload's name.")]
Runtime = Annotated[str, typer.Option(help="Column of the measured runtime.")]
Unit = Annotated[str, typer.Option(help="Unit of the runtime: s, ms, us, ns or min.")]
Platform = Annotated[str | None, typer.Option(help="Column of the platform's name.")]
PlatformName = Annotated[
    str | None, typer.Option(help="The platform of all rows, instead of a column.")
]
Corunners = Annotated[
    list[str] | None,
    typer.Option(help="Column of co-runners' names; may be repeated, one column for each."),
]
Separator = Annotated[str, typer.Option(help="What parts several co-runners in one cell.")]
Window = Annotated[
    str | None, typer.Option(help="Column that is equal in rows that were measured together.")
]
RunId = Annotated[
    str | None, typer.Option(help="Column of a unique name.  [default: made from file and row]")
]
Campaign = Annotated[str | None, typer.Option(help="A name for what measured these runs.")]
WorkloadFeatures = Annotated[
    Path | None, typer.Option(help="CSV or Parquet file with a column 'workload' and features.")
]
PlatformFeatures = Annotated[
    Path | None, typer.Option(help="CSV or Parquet file with a column 'platform' and features.")
]
DropBad = Annotated[
    bool,
    typer.Option(
        "--drop-bad", help="Set bad rows aside in rejected/ with the reason, and take the others."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    commands = typer.Typer(
        no_args_is_help=True, help="Bring measurements from elsewhere into a dataset."
    )
    commands.command("pitot")(pitot)
    commands.command("gavel")(gavel)
    commands.command("magus")(magus)
    commands.command("pairs-csv")(pairs_csv)
    commands.command("csv")(csv)
    commands.command("parquet")(parquet)
    commands.command("perf")(perf)
    commands.command("profile")(profile)
    app.add_typer(commands, name="import")


def pitot(
    folder: Annotated[
        Path, typer.Argument(help="Where data.npz and if2.npz are, or the 2023 two_way.npz.")
    ],
    output: Output,
    json_: Json = False,
) -> None:
    """Import the published Pitot measurements: WebAssembly programs on small computers."""
    from jostle.runs import import_pitot
    from jostle.runs.store._adding import add_runs, refuse_mixing

    runs = import_pitot(folder)
    refuse_mixing(output, runs)
    written = add_runs(output, runs, str(folder))
    _report(output, str(folder), runs, [], written, json_)


def gavel(
    path: Annotated[
        Path,
        typer.Argument(
            help="oracle_throughputs.json, simulation_throughputs.json, or their folder."
        ),
    ],
    output: Output,
    campaign: Annotated[
        str | None, typer.Option(help="Which of the two: oracle or simulation.")
    ] = None,
    json_: Json = False,
) -> None:
    """Import the published throughputs of Gavel: training jobs in pairs on three GPUs.

    A run is the time of one step. Its two campaigns go into two datasets.
    """
    from jostle.runs import import_gavel

    imported = import_gavel(path, campaign=campaign)
    _write(imported, output, json_)


def magus(
    folder: Annotated[Path, typer.Argument(help="Where pairs.csv, metrics/ and traces/ are.")],
    output: Output,
    json_: Json = False,
) -> None:
    """Import the published measurements of Magus: CUDA programs in pairs on one GPU, profiled alone."""
    from jostle.runs import import_magus

    _write(import_magus(folder), output, json_)


def pairs_csv(
    file: Annotated[str, typer.Argument(help="A CSV file of pairs; - reads standard input.")],
    output: Output,
    dataset: Annotated[
        str | None, typer.Option(help="Only rows whose column 'dataset' says this.")
    ] = None,
    separator: Separator = ";",
    published: Annotated[str | None, typer.Option(help="Who published it, and where.")] = None,
    licence: Annotated[str | None, typer.Option(help="Under which licence.")] = None,
    drop_bad: DropBad = False,
    json_: Json = False,
) -> None:
    """Import a CSV file with columns platform, target, corunner, unit, solo, corun.

    Units are times (s, ms, us, ns, min) or throughputs (steps/s). Zeros are not measurements.
    """
    from jostle.runs import import_pairs

    imported = import_pairs(
        file,
        dataset=dataset,
        separator=separator,
        published=published,
        licence=licence,
        drop_bad=drop_bad,
    )
    _write(imported, output, json_)


def _write(imported: Imported, output: Path, as_json: bool) -> None:
    from jostle.runs.store._adding import refuse_mixing

    refuse_mixing(output, imported.runs)
    written = imported.write(output)
    _report(
        output,
        imported.source,
        imported.runs,
        imported.bad,
        written,
        as_json,
        imported.skipped,
    )


def csv(
    file: Annotated[str, typer.Argument(help="A CSV file with a header; - reads standard input.")],
    output: Output,
    workload: Workload,
    runtime: Runtime,
    unit: Unit,
    platform: Platform = None,
    platform_name: PlatformName = None,
    corunners: Corunners = None,
    separator: Separator = ";",
    window: Window = None,
    run_id: RunId = None,
    campaign: Campaign = None,
    workload_features: WorkloadFeatures = None,
    platform_features: PlatformFeatures = None,
    delimiter: Annotated[str, typer.Option(help="What parts the cells.")] = ",",
    drop_bad: DropBad = False,
    json_: Json = False,
) -> None:
    """Import a CSV file in which each row is one run.

    Columns that no option names are kept. Bad rows are named, and then nothing is written.
    """
    options = {key: value for key, value in locals().items() if key not in _OWN}
    _import("csv", file, output, json_, options)


def parquet(
    file: Annotated[str, typer.Argument(help="A Parquet file; - reads standard input.")],
    output: Output,
    workload: Workload,
    runtime: Runtime,
    unit: Unit,
    platform: Platform = None,
    platform_name: PlatformName = None,
    corunners: Corunners = None,
    separator: Separator = ";",
    window: Window = None,
    run_id: RunId = None,
    campaign: Campaign = None,
    workload_features: WorkloadFeatures = None,
    platform_features: PlatformFeatures = None,
    drop_bad: DropBad = False,
    json_: Json = False,
) -> None:
    """Import a Parquet file in which each row is one run; co-runners may be lists.

    Columns that no option names are kept. Bad rows are named, and then nothing is written.
    """
    options = {key: value for key, value in locals().items() if key not in _OWN}
    _import("parquet", file, output, json_, options)


_OWN = {"file", "output", "json_"}


def _import(format: str, file: str, output: Path, as_json: bool, options: dict[str, Any]) -> None:
    from jostle.runs import import_table

    options["corunners"] = options["corunners"] or ()
    imported = import_table(file, format=format, **options)
    written = imported.write(output)
    _report(output, imported.source, imported.runs, imported.bad, written, as_json)


def _report(
    output: Path,
    source: str,
    runs: Runs,
    bad: list[tuple[int, str]],
    written: list[Path],
    as_json: bool,
    skipped: int = 0,
) -> None:
    """The result on standard output, rows set aside on standard error."""
    alone = int((runs.colocations.number_of_corunners == 0).sum())
    document = {
        "schema": "import/v1",
        "dataset": str(output),
        "source": source,
        "runs": len(runs),
        "alone": alone,
        "workloads": len(runs.colocations.workload_names),
        "platforms": len(runs.colocations.platform_names),
        "rejected": len(bad),
        "not_measured": skipped,
        "origins": [vars(origin) for origin in runs.origins],
        "files": [str(path) for path in written],
    }
    if as_json:
        import json

        typer.echo(json.dumps(document))
        return
    for row, reason in bad[:20]:
        typer.echo(f"set aside: row {row}: {reason}", err=True)
    if bad:
        more = f", {len(bad)} rows in all" if len(bad) > 20 else ""
        typer.echo(f"with their reasons in {written[0]}{more}", err=True)
    if skipped:
        typer.echo(f"{skipped} entries are zero or empty: not measured, passed over", err=True)
    typer.echo(
        f"{output}: {len(runs)} runs from {source}, {alone} alone and {len(runs) - alone} with "
        f"co-runners; {document['workloads']} workloads, {document['platforms']} platforms"
    )


def perf(
    file: Annotated[Path, typer.Argument(help="What perf stat -I wrote, with -x, or -j.")],
    output: Output,
    workload: Annotated[str, typer.Option(help="The workload's name.")],
    platform: Annotated[str, typer.Option(help="The platform's name.")],
    beside: Annotated[
        list[str] | None, typer.Option("--beside", "-b", help="A co-runner; may be repeated.")
    ] = None,
    window: Annotated[str | None, typer.Option(help="What runs traced together share.")] = None,
    run_id: Annotated[str | None, typer.Option(help="[default: the file's name]")] = None,
    runtime: Annotated[
        float | None, typer.Option(help="Seconds of the whole run, where it had ended.")
    ] = None,
    separator: Annotated[str, typer.Option(help="What perf was given with -x.")] = ",",
    json_: Json = False,
) -> None:
    """Counter samples of one run from `perf stat -I`, into the dataset's traces."""
    from jostle.cli.collect._trace import print_traces
    from jostle.traces import read_perf_stat, write_traces

    found = read_perf_stat(
        file,
        workload=workload,
        platform=platform,
        corunners=tuple(beside or ()),
        run_id=run_id,
        window_id=window,
        runtime_seconds=runtime,
        separator=separator,
    )
    files = write_traces(output, found)
    print_traces(found, output, [str(name) for name in files], json_)
