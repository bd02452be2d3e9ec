"""`jostle evaluate alignment`: run times side by side of programs that were not learned from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle.cli.console import fit_progress, percent, print_json, print_table


def register(app: typer.Typer) -> None:
    """Add the command to the group `evaluate`, which must be there already."""
    for group in app.registered_groups:
        if group.name == "evaluate" and group.typer_instance is not None:
            group.typer_instance.command("alignment")(alignment)
            return
    raise LookupError("the group 'evaluate' must be registered first")


def alignment(
    on: Annotated[
        str, typer.Option(help="simulator, where the truth is exact, or campaign: recorded traces.")
    ] = "simulator",
    data: Annotated[
        Path | None, typer.Option(help="With campaign: the dataset, a folder of traces.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for figures and tables.")
    ] = None,
    programs: Annotated[int, typer.Option(help="Simulated programs.", min=4)] = 32,
    windows: Annotated[int, typer.Option(help="Simulated windows to learn from.", min=2)] = 400,
    seconds: Annotated[float, typer.Option(help="Length of a simulated program.", min=0.01)] = 0.25,
    shortest_ms: Annotated[float, typer.Option(help="Shortest simulated phase.")] = 0.3,
    longest_ms: Annotated[float, typer.Option(help="Longest simulated phase.")] = 40.0,
    period_ms: Annotated[float, typer.Option(help="Simulated sampling period.")] = 1.0,
    noise: Annotated[float, typer.Option(help="Noise of simulated counters, a ratio.")] = 0.0,
    held: Annotated[
        int | None,
        typer.Option(help="Workloads held out of a fold.  [default: 4, of a campaign 2]", min=2),
    ] = None,
    folds: Annotated[int | None, typer.Option(help="Folds at most.", min=1)] = None,
    learner: Annotated[
        str, typer.Option(help="auto, ridge, lasso, elastic_net, linear_svr or network.")
    ] = "auto",
    corunners: Annotated[
        str, typer.Option(help="Whether co-runners run once, or loop until the target ends.")
    ] = "once",
    own_cores: Annotated[
        bool,
        typer.Option(
            "--own-cores",
            help="With campaign: every member had a core of its own, so what it waited for it was taken by "
            "strangers (the recorder among them) and is left out.",
        ),
    ] = False,
    compare: Annotated[
        bool, typer.Option(help="Also the other alignments and the paper's learners.")
    ] = True,
    factorization: Annotated[bool, typer.Option(help="Also factorization, for comparison.")] = True,
    seed: Annotated[int, typer.Option(help="Of the programs, the folds and the training.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Predict from traces alone what takes how long beside what, for workloads that are held out.

    Training and test workloads are disjoint. Beside it: no interference, the mean slowdown, factorization,
    and the same method under other alignments, the printed one among them.
    """
    from jostle.alignment import Alignment
    from jostle.errors import UsageError
    from jostle.evaluate import alignment_rows, draw_alignment, evaluate_alignment

    if on not in ("simulator", "campaign"):
        raise UsageError(f"--on {on!r}", fix="Say simulator or campaign.")
    if (on == "campaign") != (data is not None):
        raise UsageError("--on campaign and --data go together")
    if data is not None:
        from jostle.traces import all_without_waiting, read_traces

        traces = read_traces(data)
        if own_cores:
            traces = all_without_waiting(traces)
        said: dict[str, object] = {"on": on, "dataset": str(data), "own_cores": own_cores}
    else:
        lengths = (shortest_ms / 1e3, longest_ms / 1e3)
        from jostle.evaluate.alignment._simulated import protocol_campaign

        traces = protocol_campaign(
            programs,
            windows,
            held or 4,
            seed,
            seconds=seconds,
            shortest_seconds=lengths[0],
            longest_seconds=lengths[1],
            period_seconds=period_ms / 1e3,
            noise_ratio=noise,
            loop=corunners == "loop",
        )
        said = {
            "on": on,
            "programs": programs,
            "windows": windows,
            "seconds": seconds,
            "shortest_ms": shortest_ms,
            "longest_ms": longest_ms,
            "period_ms": period_ms,
            "noise_ratio": noise,
        }
    method = Alignment(traces, learner=learner, corunners=corunners)
    with fit_progress("fitting and rolling") as report:
        found = evaluate_alignment(
            traces,
            method,
            held=held or (4 if data is None else 2),
            folds=folds,
            compare=compare,
            factorization=factorization,
            seed=seed,
            progress=report,
        )
    drawn = [] if output is None else draw_alignment(found, output)
    columns, rows = alignment_rows(found)
    if json_:
        print_json(
            {
                "schema": "evaluate/v1",
                "name": "alignment",
                "data": said,
                "seed": seed,
                "settings": method.settings,
                "metrics": found.metrics,
                "folds": [list(fold) for fold in found.folds],
                "unsteady": list(found.unsteady),
                "selection": None if found.selection is None else found.selection.document(),
                "table": [dict(zip(columns, row, strict=True)) for row in rows],
                "figures": [str(path) for path in drawn],
            }
        )
        return
    print_table(columns, rows, right=(0, 1, 4, 5, 6, 7))
    typer.echo()
    m = found.metrics
    table = []
    for prefix, label in (
        ("", "alignment"),
        ("section_", "ridge, section"),
        ("continuous_", "ridge, continuous"),
        ("swapped_", "ridge, swapped weights"),
        ("printed_", "ridge, as printed"),
    ):
        if f"{prefix}run_time_error_mean_ratio" in m:
            names = ("run_time_error_mean", "run_time_error_max", "instructions_mae")
            table.append([label, *(percent(m[f"{prefix}{n}_ratio"], 2) for n in names)])
    for prefix in ("no_interference_", "mean_slowdown_", "factorization_"):
        if f"{prefix}error_mean_ratio" in m:
            ends = [percent(m[f"{prefix}error_{n}_ratio"], 2) for n in ("mean", "max")]
            table.append([prefix.replace("_", " ").strip(), *ends, "–"])
    print_table(["", "run time, mean", "max", "per sample"], table, right=(1, 2, 3))
    if "noise_floor_mean_ratio" in m:
        typer.echo(
            f"\nrun times are known to {percent(m['noise_floor_mean_ratio'], 2)} (alone "
            f"{percent(m['solo_noise_floor_mean_ratio'], 2)}); a single run is "
            f"{percent(m['single_run_difference_mean_ratio'], 1)} off; the mean slowdown is "
            f"{m['slowdown_mean_ratio']:.3f}, the largest {m['slowdown_max_ratio']:.2f}"
        )
    if found.unsteady:
        names = ("run_time", "no_interference", "mean_slowdown")
        errors = [percent(m[f"steady_{name}_error_mean_ratio"], 2) for name in names]
        typer.echo(
            f"without {', '.join(found.unsteady)}, whose usual run alone takes over a quarter longer than "
            f"its quiet one: alignment {errors[0]}, no interference {errors[1]}, mean slowdown {errors[2]}"
        )
    if found.learners:
        typer.echo()
        slots = sorted({s for v in found.learners.values() for s in v})
        print_table(
            ["per sample, the paper's features", *(f"core {s}" for s in slots)],
            [
                [name, *(percent(v.get(s, float("nan")), 2) for s in slots)]
                for name, v in found.learners.items()
            ],
            right=range(1, 1 + len(slots)),
        )
    for path in drawn:
        typer.echo(path, err=True)
