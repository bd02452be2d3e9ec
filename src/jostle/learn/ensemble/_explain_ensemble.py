"""Why an ensemble answers what it does: what each co-runner adds, and what each base learner says."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from jostle._base.report import Report, Table, duration
from jostle.data import Colocations
from jostle.errors import UsageError
from jostle.learn.ensemble._display_names import in_words, weights_in_words

MOST_EXACT = 8  # co-runners of which every subset is asked about; of more, orders are drawn
# Of up to some 30; of more as many as ask about no more than MOST_ASKED co-runners in all.
ORDERS = 200
MOST_ASKED = 100_000  # co-runners in all drawn orders


def explained(fitted: Any, asked: Colocations) -> Report:
    """fitted: the ensemble, see its `explain`."""
    if len(asked) != 1:
        raise UsageError(f"one co-location can be explained at a time, not {len(asked)}")
    workload, platform, corunners = asked.row(0)
    seconds = float(fitted.predict(asked)[0])
    added = shapley(fitted.predict, workload, platform, tuple(corunners))
    alone = float(fitted.predict(_beside(workload, platform, [()]))[0])
    share = fitted.shares(asked)[0]
    answer = fitted.seconds_of_each(asked)
    parts: list[Table | str] = [f"{workload} on {platform}: {duration(seconds)}", ""]
    rows = [["alone", duration(alone), ""]]
    total = np.log(alone)
    for name, log in zip(corunners, added, strict=True):
        total += log
        rows.append([f"beside {name}", duration(float(np.exp(total))), f"{np.expm1(log):+.1%}"])
    parts.append(Table(["", "runtime", "added"], rows))
    if corunners:
        logs: dict[
            str, float
        ] = {}  # means of logs, as base learners with the same words differ little
        for name, part in share.items():
            logs[in_words(name)] = logs.get(in_words(name), 0.0) + part * np.log(answer[name])
        listed = [
            [words, f"{part:.0%}", duration(float(np.exp(logs[words] / part)))]
            for words, part in weights_in_words(share).items()
        ]
        parts += ["", Table(["the answer is made of", "weight", "says"], listed)]
    document: dict[str, Any] = {
        "schema": "explain-ensemble/v1",
        "workload": workload,
        "platform": platform,
        "corunners": list(corunners),
        "runtime_seconds": seconds,
        "solo_seconds": alone,
        "added": listed_of(corunners, added),
        "learners": [
            {"name": name, "weight": part, "runtime_seconds": answer[name]}
            for name, part in share.items()
        ],
    }
    return Report(document, parts)


def listed_of(names: Any, values: Any) -> list[dict[str, Any]]:
    """List one entry for each co-runner, copies included."""
    return [{"name": n, "log_ratio": float(v)} for n, v in zip(names, values, strict=True)]


def shapley(predict: Any, workload: str, platform: str, corunners: tuple[str, ...]) -> np.ndarray:
    """Compute what each co-runner adds to the log runtime, (d,): the mean over all orders of joining, of many
    co-runners over drawn orders (Shapley 1953). They add up to the log of the runtime beside all over that
    alone."""
    d = len(corunners)
    if d == 0:
        return np.zeros(0)
    if d > MOST_EXACT:
        return _by_orders(predict, workload, platform, corunners)
    subsets = [part for size in range(d + 1) for part in combinations(range(d), size)]
    asked = _beside(workload, platform, [tuple(corunners[at] for at in one) for one in subsets])
    log = dict(zip(subsets, np.log(predict(asked)).tolist(), strict=True))
    out = np.zeros(d)
    for part in subsets:
        weight = (
            factorial(len(part)) * factorial(d - len(part) - 1) / factorial(d)
            if len(part) < d
            else 0
        )
        for at in range(d):
            if at not in part:
                out[at] += weight * (log[tuple(sorted((*part, at)))] - log[part])
    return out


def _by_orders(
    predict: Any, workload: str, platform: str, corunners: tuple[str, ...]
) -> np.ndarray:
    """Average over drawn orders, each with its reverse: what two do to each other is then shared exactly."""
    random, d = np.random.default_rng(0), len(corunners)
    pairs = max(min(ORDERS // 2, MOST_ASKED // (d * (d + 1))), 1)
    drawn = [random.permutation(d) for _ in range(pairs)]
    orders = np.concatenate([drawn, np.flip(drawn, axis=1)])
    asked = [
        tuple(corunners[at] for at in order[:size]) for order in orders for size in range(d + 1)
    ]
    log = np.log(predict(_beside(workload, platform, asked))).reshape(len(orders), d + 1)
    out = np.zeros(d)
    np.add.at(out, orders, np.diff(log, axis=1))
    return out / len(orders)


def _beside(workload: str, platform: str, corunners: list[tuple[str, ...]]) -> Colocations:
    n = len(corunners)
    return Colocations.from_columns(
        workload=[workload] * n, platform=[platform] * n, corunners=corunners
    )
