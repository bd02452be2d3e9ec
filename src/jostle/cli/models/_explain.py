"""`jostle explain`: why a prediction is what it is, for one co-location."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jostle.cli.console import duration, percent, print_json, print_table
from jostle.cli.models._predict import one_colocation

EVIDENCE = {
    "same_colocation": "of exactly this co-location",
    "pair_alone": "of the workload alone on this platform",
    "pair": "of the workload on this platform, whatever beside",
    "workload": "of the workload anywhere",
    "platform": "of anything on this platform",
    "corunner_on_platform": "with the co-runner on this platform (the fewest of any)",
    "beside_workload": "of the workload beside the co-runner anywhere (the fewest of any)",
}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("explain")(explain)


def explain(
    model: Annotated[Path, typer.Argument(help="The model: a folder written by jostle fit.")],
    workload: Annotated[str, typer.Option("--workload", "-w", help="What runs.")],
    platform: Annotated[
        str | None,
        typer.Option("--platform", "-p", help="Where.  [default: the model's only one]"),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option("--beside", "-b", help="A co-runner; repeat for more.  [default: alone]"),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option("--dataset", "-d", help="The runs it was fitted on, to count the evidence."),
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", "-c", help="How sure the bound is, under 1.")
    ] = 0.99,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Take one prediction apart: baseline, pair, each co-runner by interference type, what is near,
    and what stands behind the prediction and its bound. For a bag model: the questions its tree asked."""
    from jostle.errors import UsageError
    from jostle.factorization import FittedFactorization, explain
    from jostle.models import load
    from jostle.runs import read_runs

    fitted = load(model)
    predictor = fitted.predictor
    method = str(fitted.said.get("method"))
    if method not in ("factorization", "bag"):
        raise UsageError(f"only a factorization or a bag model can be explained, not {method}")
    asked = one_colocation(predictor, workload, platform, beside or [])
    runs = None if dataset is None else read_runs(dataset)
    bounds = fitted.bound(asked, confidence)
    if not isinstance(predictor, FittedFactorization):
        document = _of_bag(predictor, asked, runs) | _of_bound(bounds)
        if json_:
            print_json(document)
        else:
            _print_bag(document)
        return
    found = explain(predictor, asked, runs=runs)
    document = {
        "schema": "explain/v1",
        "workload": found.workload,
        "platform": found.platform,
        "corunners": [
            {
                "name": share.name,
                "factor_ratio": share.factor,
                "log_slowdown": {
                    kind: float(part)
                    for kind, part in zip(found.type_names, share.log_slowdown, strict=True)
                },
            }
            for share in found.corunners
        ],
        "runtime_seconds": found.runtime_seconds,
        "baseline_seconds": found.baseline_seconds,
        "pair_factor_ratio": found.pair_factor,
        "company_factor_ratio": found.company_factor,
        "nearest_workloads": [vars(near) for near in found.workloads],
        "nearest_platforms": [vars(near) for near in found.platforms],
        "evidence_runs": found.runs,
        "model_runs": fitted.said.get("runs", {}),
        **_of_bound(bounds),
    }
    if json_:
        print_json(document)
    else:
        _print(document)


def _of_bound(bounds: Any) -> dict[str, Any]:
    return {
        "bound": {
            "confidence": bounds.confidence,
            "seconds": float(bounds.seconds[0]),
            "outcome": str(bounds.outcome[0]),
            "pool": str(bounds.pool[0]),
            "calibration_runs": int(bounds.n[0]),
            "rank": int(bounds.rank[0]),
        }
    }


def _of_bag(predictor: Any, asked: Any, runs: Any) -> dict[str, Any]:
    """The decision path of a bag model."""
    from jostle.bag import explain_bag
    from jostle.factorization import evidence

    found = explain_bag(predictor, asked)
    return {
        "schema": "explain-bag/v1",
        "workload": found.workload,
        "platform": found.platform,
        "corunners": list(found.corunners),
        "runtime_seconds": found.runtime_seconds,
        "solo_seconds": found.solo_seconds,
        "learner": predictor.learner,
        "trees": found.trees,
        "path": [vars(step) for step in found.path],
        "uses": found.uses,
        "evidence_runs": None if runs is None else evidence(runs, asked),
    }


def _print_bag(d: dict[str, Any]) -> None:
    beside = " and ".join(d["corunners"])
    said = f"{d['workload']} on {d['platform']} {f'beside {beside}' if beside else 'alone'}"
    alone = "" if d["solo_seconds"] != d["solo_seconds"] else duration(d["solo_seconds"])
    typer.echo(
        f"{said}: {duration(d['runtime_seconds'])}; alone, as measured, {alone or 'unknown'}"
    )
    rows = [
        [
            step["feature"],
            "unknown" if step["value"] is None else f"{step['value']:.4g}",
            f"{'at most' if step['is_below'] else 'above'} {step['threshold']:.4g}",
        ]
        for step in d["path"]
    ]
    if rows:
        title = "the tree asked" if d["trees"] == 1 else f"the first of {d['trees']} trees asked"
        typer.echo("")
        print_table([title, "here", "so it is"], rows, right=(1,))
    if d["trees"] > 1 and d["uses"]:
        total = sum(d["uses"].values())
        shares = [[name, percent(n / total)] for name, n in list(d["uses"].items())[:10]]
        typer.echo("")
        print_table(["all trees asked about", "share of questions"], shares, right=(1,))
    typer.echo("")
    if d["evidence_runs"] is not None:
        counts = [[str(n), EVIDENCE[name]] for name, n in d["evidence_runs"].items()]
        print_table(["runs", "behind it"], counts, right=(0,))
    _print_bound(d["bound"])


def _print(d: dict[str, Any]) -> None:
    beside = " and ".join(entry["name"] for entry in d["corunners"])
    said = f"{d['workload']} on {d['platform']} {f'beside {beside}' if beside else 'alone'}"
    typer.echo(f"{said}: {duration(d['runtime_seconds'])}\n")
    rows = [
        ["this workload on a platform this fast", duration(d["baseline_seconds"])],
        ["how well the two suit each other", f"× {d['pair_factor_ratio']:.3f}"],
    ]
    if d["corunners"]:
        rows.append(["beside anyone at all", f"× {d['company_factor_ratio']:.3f}"])
    for entry in d["corunners"]:
        rows.append([f"beside {entry['name']}", f"× {entry['factor_ratio']:.3f}"])
        rows += [
            [f"    through {kind}", f"× {_factor(part):.3f}"]
            for kind, part in entry["log_slowdown"].items()
        ]
    print_table(["made of", ""], [*rows, ["in all", duration(d["runtime_seconds"])]], right=(1,))
    typer.echo("")
    near = [
        [kind, entry["name"], percent(_factor(entry["distance"]) - 1)]
        for kind in ("workload", "platform")
        for entry in d[f"nearest_{kind}s"]
    ]
    print_table(["nearest", "", "typically differs by"], near, right=(2,))
    typer.echo("")
    if d["evidence_runs"] is None:
        fitted = d["model_runs"].get("fitted")
        typer.echo(f"fitted on {fitted} runs; give --dataset to count those behind this answer")
    else:
        counts = [[str(n), EVIDENCE[name]] for name, n in d["evidence_runs"].items()]
        print_table(["runs", "behind it"], counts, right=(0,))
    _print_bound(d["bound"])


def _print_bound(bound: dict[str, Any]) -> None:
    from jostle.bounds import OUTCOMES

    at_most = (
        f"at most {duration(bound['seconds'])}" if bound["seconds"] != float("inf") else "no bound"
    )
    pool = (
        f"pool {bound['pool']!r}, score {bound['rank']} of {bound['calibration_runs']}"
        if bound["calibration_runs"]
        else f"no pool {bound['pool']!r}"
    )
    typer.echo(f"\n{at_most} with confidence {bound['confidence']:g} ({pool})")
    typer.echo(f"{bound['outcome']}: {OUTCOMES[bound['outcome']]}")


def _factor(log: float) -> float:
    from math import exp

    return exp(log)
