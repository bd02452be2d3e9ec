"""How soon each kind of change is told, and what bounds cover before, until they settle, and after.

    python -m studies.bounds.watched [--laws NAME,...] [--draws 3] [--fitted 1000] [--method NAME]
        [--workers 1] [--kept FILE]

On made campaigns (studies.worlds.drift_laws): the default model is fitted to so many runs, and 3 000 more are
watched, of which those of one device change after a third, or 900, of which all do. Beside: the model's own
bounds.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from studies.bounds.kept import add_options, drawn
from studies.worlds.drift_laws import LAWS, campaign, devices_of, scaled
from studies.worlds.noisy_worlds import Additive

LENGTH = {"one device": 3000, "fleet": 900}
BATCH = 50
CONFIDENCE = 0.9
KINDS = (
    *("none", "mean x1.2", "mean x1.1", "mean x1.05", "ramp to x1.3", "spread .10", "spread .15"),
    *("spread .30", "a fifth x2", "period x0.9 to x1.1"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--laws", default=",".join(LAWS[:4]))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--fitted", type=int, default=1000)
    parser.add_argument(
        "--method", help=f"by default what `jostle fit` takes; {Additive.name} is quick"
    )
    parser.add_argument("--seed", type=int, default=10, help="the first one")
    add_options(parser)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.draws)
    rows: dict[tuple[str, str], list[list[float]]] = {}
    keys = ((law, seed) for law in options.laws.split(",") for seed in seeds)
    for found in drawn(_rows, keys, options).values():
        for kind, where, row in found:
            rows.setdefault((kind, where), []).append(row)
    heads = "told|runs until the first sign|until told, median|nine in ten|before|until told"
    heads += "|settled|all of it|model's own|bounds x|others told"
    print(f"| change | where | {heads.replace('|', ' | ')} |")
    print("|" + "---|" * 13)
    for (kind, where), some in rows.items():
        print(f"| {kind} | {where} | " + " | ".join(_cells(np.array(some, float))) + " |")


def _rows(options: Any, law: str, seed: int) -> list[tuple[str, str, tuple[float, ...]]]:
    make = campaign(law, seed)
    model = _fitted(make(options.fitted), options.method, seed)
    every = ((kind, where) for where in LENGTH for kind in KINDS)
    return [(kind, where, one(model, make, kind, where, seed)) for kind, where in every]


def _fitted(runs: Any, method: str | None, seed: int) -> Any:
    import jostle
    from jostle.learn import method_named

    if method == Additive.name:
        return jostle.fit(runs, Additive(), seed=seed)
    return jostle.fit(runs, *([] if method is None else [method_named(method)()]), seed=seed)


def _cells(found: np.ndarray) -> list[str]:
    """Of (draws, numbers) of `one`."""
    told = found[np.isfinite(found[:, 1]), 1]
    n = len(found)

    def share(column: int) -> str:
        known = found[np.isfinite(found[:, column]), column]
        if not len(known):
            return "–"
        if len(known) == 1:
            return f"{known[0]:.3f}"
        return f"{known.mean():.3f} ± {known.std(ddof=1) / np.sqrt(len(known)):.3f}"

    def middle(column: int, q: float) -> str:
        # What was never told came later than all that was.
        value = float(np.sort(found[:, column])[min(int(np.ceil(q * n)), n) - 1])
        return f"{value:.0f}" if np.isfinite(value) else "–"

    cells = [f"{len(told)} of {n}", middle(0, 0.5), middle(1, 0.5), middle(1, 0.9)]
    cells += [share(column) for column in range(2, 7)]
    return [*cells, f"{np.nanmean(found[:, 7]):.2f}", f"{found[:, 8].sum():.0f}"]


def one(model: Any, make: Any, kind: str, where: str, seed: int) -> tuple[float, ...]:
    """(runs that changed until the first sign, until told; coverage before, until told, from then on, over
    all that changed, of the model's own bounds; ratio of the bounds; drifts told elsewhere)."""
    from jostle.models import DriftWatch

    n = LENGTH[where]
    stream, random, at = make(n), np.random.default_rng([seed, 7]), np.arange(n)
    device = devices_of(stream)
    name = np.unique(device)[2]
    inside = device == name if where == "one device" else np.ones(n, bool)
    on = inside & (at >= n // 3)
    factor = np.where(on, change(kind, n, random), 1.0)
    watch, runs = DriftWatch(model, CONFIDENCE), scaled(stream, factor)
    own = model.bound(runs.colocations, CONFIDENCE).seconds
    given, adapts = [], []
    for first in range(0, n, BATCH):
        part = runs.take(at[first : first + BATCH])
        bounds = watch.bound(part.colocations)
        given.append(bounds.seconds)
        adapts.append(bounds.outcome == "adapting")
        watch.update(part)
    seconds, adapting = np.concatenate(given), np.concatenate(adapts)
    covered, finite = runs.runtime_seconds <= seconds, np.isfinite(own)
    mine = [d for d in watch.drifts if _is_there(d, where, name) and d.found >= n // 3]
    told = float(on[: mine[0].found + 1].sum()) if mine and kind != "none" else np.inf
    signs = np.flatnonzero(adapting & on)
    sign = float(on[: signs[0]].sum()) if len(signs) and kind != "none" else np.inf
    so_far = np.cumsum(on)

    ratio = np.divide(seconds, own, where=finite, out=np.ones(n))

    def mean(values: np.ndarray, which: np.ndarray) -> float:
        which = which & finite
        return float(values[which].mean()) if which.any() else np.nan

    return (
        *(sign, told, mean(covered, inside & (at < n // 3)), mean(covered, on & (so_far <= told))),
        *(mean(covered, on & (so_far > told)), mean(covered, on)),
        mean(runs.runtime_seconds <= own, on),
        mean(ratio, on),
        len(watch.drifts) - len(mine),
    )


def _is_there(drift: Any, where: str, name: str) -> bool:
    # A device with one platform is that platform.
    return drift.kind == "fleet" if where == "fleet" else drift.name.rpartition(":")[2] == name


def change(kind: str, n: int, random: np.random.Generator) -> np.ndarray:
    """(n,) how many times as long runs take."""
    at, word = np.arange(n), kind.split()[0]
    if word == "mean":
        return np.full(n, float(kind.partition("x")[2]))
    if word == "spread":
        return np.exp(float(kind.split()[1]) * random.normal(size=n))
    if word == "ramp":
        return 1 + 0.3 * np.maximum(at - n // 3, 0) / (n - n // 3)
    if word == "a":
        return np.where(random.random(n) < 0.2, 2.0, 1.0)
    return 1 + 0.1 * np.sin(at / (n / 15)) if word == "period" else np.ones(n)


if __name__ == "__main__":
    main()
