"""predict, bound, explain: what a model says of co-locations, item by item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle._report import finite
from jostle.bounds import ADAPTING, OUTCOMES
from jostle.errors import JostleError, UsageError
from jostle.methods import Explains
from jostle.service.answers._items import AskedItems, failed, read_items
from jostle.service.state._served import Served

if TYPE_CHECKING:
    from jostle.runs import Colocations


def predict_items(served: Served, items: Sequence[Any], confidence: float) -> list[dict[str, Any]]:
    """Seconds of each, at any confidence; null where there is no answer."""
    asked = read_items(items, served)
    if not asked.at:
        return asked.listed([])
    seconds = served.model.predict(asked.colocations).tolist()
    return asked.listed([{"status": "ok", "runtime_seconds": finite(s)} for s in seconds])


def bound_items(served: Served, items: Sequence[Any], confidence: float) -> list[dict[str, Any]]:
    """The bound of each with its outcome; null where none is valid."""
    asked = read_items(items, served)
    return asked.listed(_bounded(served, asked, confidence))


def _bounded(served: Served, asked: AskedItems, confidence: float) -> list[dict[str, Any]]:
    """Of each good item; what was asked lately is not computed again."""
    lately = served.bounds_lately
    found = [lately.get((confidence, key)) for key in asked.keys]
    missing = [row for row, one in enumerate(found) if one is None]
    if missing:
        some = asked.colocations if len(missing) == len(found) else asked.colocations.take(missing)
        for row, one in zip(missing, _computed(served, some, confidence), strict=True):
            found[row] = one
            if one["outcome"] != ADAPTING:  # that changes with every run
                lately.put((confidence, asked.keys[row]), one)
    return found


def _computed(served: Served, asked: Colocations, confidence: float) -> list[dict[str, Any]]:
    found = served.model.bound(asked, confidence)
    columns = zip(
        found.seconds.tolist(),
        found.outcome.tolist(),
        found.pool.tolist(),
        found.n.tolist(),
        found.rank.tolist(),
        found.evidence.tolist(),
        strict=True,
    )
    return [
        {
            "status": "ok",
            "bound_seconds": finite(seconds),
            "outcome": outcome,
            "pool": pool,
            "calibration_runs": n,
            "rank": rank,
            "evidence": evidence,
        }
        for seconds, outcome, pool, n, rank, evidence in columns
    ]


def explain_items(served: Served, items: Sequence[Any], confidence: float) -> list[dict[str, Any]]:
    """Of each: what the prediction is made of, as far as the method can tell, and its bound.

    Raises UsageError where the method explains nothing.
    """
    predictor = served.model.answering
    if not isinstance(predictor, Explains):
        method = served.model.metadata.get("method")
        raise UsageError(f"a model of the method {method} cannot be explained")
    asked = read_items(items, served)
    bounds = _bounded(served, asked, confidence)
    return asked.listed(
        [
            _explained(predictor, asked.colocations.take([row]), bounds[row])
            for row in range(len(asked.at))
        ]
    )


def _explained(predictor: Any, one: Colocations, bound: dict[str, Any]) -> dict[str, Any]:
    try:
        found = predictor.explain(one)
    except JostleError as error:
        return failed(str(error))
    texts = [
        part
        if isinstance(part, str)
        else {
            "title": part.title,
            "columns": list(part.columns),
            "rows": [list(r) for r in part.rows],
        }
        for part in found.tables
    ]
    about = {key: value for key, value in bound.items() if key != "status"}
    about["meaning"] = OUTCOMES[bound["outcome"]]
    return {"status": "ok", "explanation": found.document, "tables": texts, "bound": about}
