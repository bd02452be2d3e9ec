"""`jostle safe`: how many batch instances fit beside a service on one accelerator."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from jostle.cli._people import duration, print_json, print_table


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("safe")(safe)


def safe(
    dataset: Annotated[
        Path, typer.Argument(help="A folder with solo profiles (see jostle import profile).")
    ],
    target: Annotated[str, typer.Option(help="The service whose latency must hold.")],
    batch: Annotated[str, typer.Option(help="The batch workload to put beside it.")],
    qos: Annotated[
        str, typer.Option(help="Slowdown allowed, such as 2.0x; 'none' for none.")
    ] = "2.0x",
    latency: Annotated[
        str | None, typer.Option(help="Latency allowed, with its unit: 100ms, 0.5s.")
    ] = None,
    statistic: Annotated[str, typer.Option(help="What must hold: mean, p95, p99 or max.")] = "mean",
    instances: Annotated[
        int | None, typer.Option(help="Ask whether so many are safe, instead of how many.", min=0)
    ] = None,
    most: Annotated[int, typer.Option(help="Look no further than this.", min=0, max=1000)] = 15,
    gpu: Annotated[
        str | None, typer.Option(help="The device, instead of the profiles' own.")
    ] = None,
    kernels: Annotated[
        str,
        typer.Option(help="How kernels share: concurrent, sequential, time-sliced or a plug-in."),
    ] = "concurrent",
    bus: Annotated[str, typer.Option(help="per_direction or shared.")] = "per_direction",
    placement: Annotated[str, typer.Option(help="Blocks on PEs: pack or spread.")] = "pack",
    pinned: Annotated[
        bool, typer.Option("--pinned", help="Transfers that do not say were from pinned memory.")
    ] = False,
    memory_need: Annotated[
        float | None, typer.Option(help="Bytes/s per PE of kernels whose profile has none.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Queries per second, at random times; else back to back.")
    ] = None,
    queries: Annotated[int, typer.Option(help="Queries to simulate.", min=1)] = 50,
    model: Annotated[
        Path | None, typer.Option(help="A fitted model, for bounds from measured co-runs.")
    ] = None,
    platform: Annotated[str | None, typer.Option(help="With --model: the platform's name.")] = None,
    confidence: Annotated[float, typer.Option(help="Of the bound.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the arrivals.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """How many instances of a batch workload may share the device. Exit code 0: safe, 1: not even one
    (or not as many as asked), 3: a model was given and no bound is valid."""
    from dataclasses import replace

    from jostle.accelerator import (
        Target,
        causes,
        how_many_fit,
        poisson_arrivals,
        read_applications,
    )
    from jostle.errors import UnknownName

    allowed = Target(_slowdown(qos), _seconds(latency), statistic)
    applications, device = read_applications(dataset, gpu, pinned=pinned, memory_need=memory_need)
    for name in (target, batch):
        if name not in applications:
            raise UnknownName("workload", name, sorted(applications), where=str(dataset))
    device = replace(device, bus=bus, placement=placement)
    how = {
        "queries": queries,
        "arrivals": None if rate is None else poisson_arrivals(rate, queries, seed),
        "kernels": kernels,
    }
    service, other = applications[target], applications[batch]
    fit = how_many_fit(
        service, other, device, allowed, most=most if instances is None else instances, **how
    )
    beside = min(fit.instances + 1, most) or 1
    cause = causes(service, [other] * beside, device, **how)
    guaranteed = None
    bounds = []
    if model is not None:
        bounds, guaranteed = _bounds(model, platform, target, batch, fit, confidence)
    fits = fit.instances if guaranteed is None else min(fit.instances, guaranteed)
    wanted = 1 if instances is None else instances
    is_safe = fits >= wanted
    code = 0 if is_safe else 1
    if not is_safe and model is not None and not any(b["bound_seconds"] for b in bounds):
        code = 3
    notes = sorted({f"{app.name}: {note}" for app in (service, other) for note in app.notes})
    if json_:
        print_json(
            {
                "schema": "safe/v1",
                "target": target,
                "batch": batch,
                "safe": is_safe,
                "instances": max(fit.instances, 0),
                "guaranteed_instances": guaranteed,
                "solo_seconds": fit.solo_seconds,
                "limit_seconds": fit.limit_seconds,
                "limit": fit.limit,
                "statistic": statistic,
                "reason": fit.reason,
                "lost_to_kernels_seconds": cause.kernels_seconds,
                "lost_to_transfers_seconds": cause.transfers_seconds,
                "confidence": confidence if model else None,
                "bounds": bounds,
                "mixes": [
                    {
                        "instances": mix.instances,
                        "latency_seconds": allowed.of(mix.latency),
                        "mean_seconds": mix.latency.mean_seconds,
                        "p95_seconds": mix.latency.p95_seconds,
                        "p99_seconds": mix.latency.p99_seconds,
                        "slowdown_ratio": mix.slowdown_ratio,
                        "safe": mix.safe,
                    }
                    for mix in fit.mixes
                ],
                "notes": notes,
            }
        )
        raise typer.Exit(code)
    typer.echo(
        f"{max(fit.instances, 0)} of {batch} fit beside {target}: {fit.reason}."
        if fit.instances > 0
        else f"No {batch} fits beside {target}: {fit.reason}."
    )
    typer.echo(
        f"Of that, {beside} of its co-runners' kernels alone cost {duration(cause.kernels_seconds)}, "
        f"their transfers alone {duration(cause.transfers_seconds)}."
    )
    said = {bound["instances"]: bound for bound in bounds}
    rows = []
    for mix in fit.mixes:
        row = [str(mix.instances), duration(mix.latency.mean_seconds)]
        row += [duration(mix.latency.p95_seconds), f"{mix.slowdown_ratio:.2f}x"]
        if model is not None:
            bound = said.get(mix.instances)
            row.append(
                duration(bound["bound_seconds"])
                if bound and bound["bound_seconds"] is not None
                else f"none ({bound['outcome']})"
                if bound
                else ""
            )
        rows.append([*row, "yes" if mix.safe else "no"])
    heads = ["instances", "mean", "p95", "slowdown"]
    heads += [f"bound {confidence:g}"] if model is not None else []
    print_table([*heads, "safe"], rows, right=range(len(heads)))
    for note in notes:
        typer.echo(f"Note: {note}.", err=True)
    raise typer.Exit(code)


def _bounds(model, platform, target, batch, fit, confidence):
    """([{instances, bound_seconds, outcome}], the most instances whose bound keeps the limit)."""
    import jostle
    from jostle.errors import UsageError

    loaded = jostle.load(model)
    places = getattr(loaded.predictor, "platform_names", None)
    if platform is None and places is not None and len(places) == 1:
        platform = places[0]
    if platform is None:
        raise UsageError("say --platform: the platform of the measured co-runs")
    counts = [mix.instances for mix in fit.mixes]
    asked = jostle.Colocations.from_columns(
        workload=[target] * len(counts),
        platform=[platform] * len(counts),
        corunners=[[batch] * n for n in counts],
    )
    found = loaded.bound(asked, confidence)
    rows, guaranteed, going = [], 0, True
    for n, seconds, outcome in zip(counts, found.seconds, found.outcome, strict=True):
        valid = bool(seconds < float("inf"))
        rows.append(
            {
                "instances": n,
                "bound_seconds": float(seconds) if valid else None,
                "outcome": str(outcome),
            }
        )
        if n > 0:
            going = going and valid and float(seconds) <= fit.limit_seconds
            guaranteed = n if going else guaranteed
    return rows, guaranteed


def _slowdown(text: str) -> float | None:
    from jostle.errors import UsageError

    if text.lower() == "none":
        return None
    try:
        return float(text.lower().removesuffix("x"))
    except ValueError:
        raise UsageError(f"--qos {text!r} is no slowdown", fix="Such as 2.0x.") from None


def _seconds(text: str | None) -> float | None:
    from jostle.errors import UsageError

    if text is None:
        return None
    match = re.fullmatch(r"([0-9.]+(?:e-?\d+)?)\s*(s|ms|us|µs)", text.strip())
    try:
        return float(match[1]) * {"s": 1, "ms": 1e-3}.get(match[2], 1e-6)  # pyright: ignore
    except (TypeError, ValueError):
        raise UsageError(f"--latency {text!r} is no time", fix="Such as 100ms or 0.5s.") from None
