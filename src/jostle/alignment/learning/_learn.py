"""Learners: fitted by scikit-learn, answered by NumPy.

Source: Saeed et al., MLCAD 2021, Sec. IV-B: ridge, lasso, elastic net and linear support vector regression. A
small network stands beside them (see `_network`) for what no weighted sum of features can be.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.alignment.learning._features import Features, pressures, scale_of
from jostle.alignment.learning._network import Network
from jostle.alignment.learning._network import train as train_network
from jostle.alignment.learning._rows import Rows
from jostle.errors import MissingExtra, NotEnoughRuns, UsageError

LEARNERS = ("ridge", "lasso", "elastic_net", "linear_svr", "network")
TARGETS = ("instructions", "slowdown", "speed")
# Regularisation that is tried, times the number of rows where the learner's own scale does that.
STRENGTHS = {
    "ridge": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
    "lasso": (1e-6, 1e-5, 1e-4, 1e-3),
    "elastic_net": (1e-6, 1e-5, 1e-4, 1e-3),
    "linear_svr": (1e-3, 1e-2, 1e-1),
    "network": (1e-1,),
}
MOST_ROWS = 24_000  # rows that are learned from; more are thinned out evenly
MOST_ROWS_OF_NETWORK = 40_000
MOST_ROWS_TO_CHOOSE = 8_000
FOLDS = 4
ROUNDS = 1  # of fits that weigh runs by the errors of the one before
SLOWEST, FASTEST = 50.0, 0.5  # slowdowns beyond are never answered
SEEN_QUANTILE, BEYOND = 0.002, 1.1  # what was seen: all but so few, and a little more


@dataclass(frozen=True)
class Learned:
    """slowdown = f(rates), a weighted sum. weights: (f,), bias: of standardised features. target: of
    TARGETS. mean, spread: (f,) of the features, output: (mean, spread) of the target. limits: the least
    and the largest slowdown that is answered, for a sum goes on straight where nothing was seen."""

    features: Features
    target: str
    strength: float
    mean: np.ndarray
    spread: np.ndarray
    weights: np.ndarray
    bias: float
    output: tuple[float, float]
    limits: tuple[float, float] = (FASTEST, SLOWEST)

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) solo speed over speed beside others, of aligned rates (n, d), instructions first."""
        raw = self._raw(own, others) * self.output[1] + self.output[0]
        if self.target == "slowdown":
            found = 1.0 + raw
            if self.features.form == "interacting":
                # With nothing beside it a workload is as fast as alone, whatever company costs as such.
                found = np.where((others > 0).any(axis=1), found, 1.0)
        elif self.target == "speed":
            found = 1.0 / np.maximum(raw, 1.0 / SLOWEST)
        else:
            found = own[:, 0] / np.maximum(raw * self.features.scale[0], 1e-30)
        return np.clip(found, *self.limits)

    def _raw(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        if self.features.form == "interacting":
            # The same sum without spelling out the products: own' (W pressure).
            own, others = own / self.features.scale, others / self.features.scale
            return ((pressures(own, others) @ self._folded) * own).sum(axis=1) + self._offset
        d = own.shape[1]
        return own @ self._plain[:d] + others @ self._plain[d:] + self._offset

    @cached_property
    def _offset(self) -> float:
        return float(self.bias - (self.mean / self.spread) @ self.weights)

    @cached_property
    def _folded(self) -> np.ndarray:
        d = len(self.features.scale)
        return np.ascontiguousarray((self.weights / self.spread).reshape(d, -1).T)

    @cached_property
    def _plain(self) -> np.ndarray:
        scale = self.features.scale
        return self.weights / self.spread / np.concatenate([scale, scale])

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {
            "scale": self.features.scale,
            "mean": self.mean,
            "spread": self.spread,
            "weights": np.ascontiguousarray(self.weights),
        }
        return arrays, {
            "form": self.features.form,
            "target": self.target,
            "strength": self.strength,
            "bias": self.bias,
            "output": list(self.output),
            "limits": list(self.limits),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], said: dict[str, Any]) -> Learned:
        return cls(
            Features(said["form"], arrays["scale"]),
            said["target"],
            float(said["strength"]),
            arrays["mean"],
            arrays["spread"],
            arrays["weights"],
            float(said["bias"]),
            (float(said["output"][0]), float(said["output"][1])),
            (float(said["limits"][0]), float(said["limits"][1])),
        )


def learned_from_arrays(arrays: dict[str, np.ndarray], said: dict[str, Any]) -> Learned | Network:
    """The inverse of either's to_arrays."""
    kind = Network if said["form"] == "network" else Learned
    return kind.from_arrays(arrays, said)


# What `auto` chooses among: (learner, form, target).
CANDIDATES = (("ridge", "interacting", "slowdown"), ("network", "network", "slowdown"))


def choose(
    rows: Rows, offers: Sequence[tuple[str, str, str, tuple[int, ...]]], seed: int = 0
) -> int:
    """Which offer, (learner, form, target, columns of the counters), errs least on the run times of workloads
    that it did not learn from."""
    if len(offers) == 1 or len(np.unique(rows.group)) < 2:
        return 0
    errors = []
    for learner, form, target, columns in offers:
        few = thinned(rows, MOST_ROWS if learner == "network" else MOST_ROWS_TO_CHOOSE)
        folds = folds_of(few, seed)
        mine = few.columns(columns)
        strength = STRENGTHS[learner][len(STRENGTHS[learner]) // 2]
        error = 0.0
        for train, test in folds:
            learned = learn(mine.take(train), learner, form, target, strength=strength, seed=seed)
            error += per_run_error(learned, mine.take(test))
        errors.append(error)
    return int(np.argmin(errors))


def learn(
    rows: Rows,
    learner: str = "ridge",
    form: str = "interacting",
    target: str = "slowdown",
    *,
    strength: float | None = None,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> Learned | Network:
    """Fit one learner. strength: of the regularisation; None chooses it by leaving out workload sets.
    rounds: of fits again, in which runs are weighed by the errors of the fit before.

    Raises UsageError for unknown names, NotEnoughRuns for no rows, MissingExtra without scikit-learn.
    """
    for kind, value, known in (("learner", learner, LEARNERS), ("target", target, TARGETS)):
        if value not in known:
            raise UsageError(f"unknown {kind} {value!r}", fix=f"One of {', '.join(known)}.")
    if len(rows) < 2:
        raise NotEnoughRuns(
            f"{len(rows)} periods are too few to learn from", fix="Trace more windows."
        )
    network = learner == "network"
    if network != (form == "network") or (network and target != "slowdown"):
        raise UsageError(f"{learner} cannot learn the {target} in the form {form!r}")
    choices = STRENGTHS[learner] if strength is None else (strength,)
    best = choices[len(choices) // 2]
    if learner == "network":
        rows = thinned(rows, MOST_ROWS_OF_NETWORK)
        slow, scale = np.clip(rows.slowdown, FASTEST, SLOWEST), scale_of(rows.own)
        weight = rows.solo_seconds / rows.solo_seconds.mean()
        return train_network(
            rows.own, rows.others, slow, scale, seen(slow), weight=weight, decay=best, seed=seed
        )
    rows = thinned(rows, MOST_ROWS)
    features = Features(form, scale_of(rows.own))
    if len(choices) > 1 and len(np.unique(rows.group)) >= 2:
        few = thinned(rows, MOST_ROWS_TO_CHOOSE)
        best = choices[int(np.argmin(_errors(few, learner, features, target, choices, seed)))]
    return _fit(rows, learner, features, target, best, seed, rounds)


def seen(slowdown: np.ndarray) -> tuple[float, float]:
    """The least and the largest slowdown that may be answered after learning from these."""
    low, high = np.quantile(slowdown, [SEEN_QUANTILE, 1 - SEEN_QUANTILE])
    return (
        float(np.clip(low / BEYOND, FASTEST, 1.0)),
        float(np.clip(high * BEYOND, BEYOND, SLOWEST)),
    )


def thinned(rows: Rows, most: int) -> Rows:
    """At most so many rows, evenly taken."""
    if len(rows) <= most:
        return rows
    return rows.take(np.linspace(0, len(rows) - 1, most).astype(np.int64))


def _errors(
    rows: Rows, learner: str, features: Features, target: str, choices: tuple[float, ...], seed: int
) -> np.ndarray:
    """(strengths,) error of the run times of left-out workloads: what is systematic in a run counts, what
    averages out over its samples does not."""
    error = np.zeros(len(choices))
    for train, test in folds_of(rows, seed):
        for i, choice in enumerate(choices):
            learned = _fit(rows.take(train), learner, features, target, choice, seed)
            error[i] += per_run_error(learned, rows.take(test))
    return error


def folds_of(rows: Rows, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Masks of rows to learn from and to test on: of windows without some workloads, and with them. Where
    there are too few workloads for that, whole sets are left out instead."""
    names = sorted({name for group in np.unique(rows.group) for name in rows.sets[group]})
    random = np.random.default_rng(seed)
    found = []
    for held in np.array_split(random.permutation(names), min(FOLDS, len(names))):
        touched = np.array([any(name in held for name in group) for group in rows.sets], bool)
        test = touched[rows.group]
        found.append((~test, test))
    # A fold that leaves too little to learn from would choose for the wrong reason.
    if all(train.sum() >= 0.2 * len(rows) and test.any() for train, test in found):
        return found
    groups = np.unique(rows.group)
    if len(groups) < 2:  # nothing to tell apart by: later periods from earlier ones
        late = np.arange(len(rows)) >= 0.75 * len(rows)
        return [(~late, late)]
    found = []
    for held in np.array_split(random.permutation(groups), min(FOLDS, len(groups))):
        test = np.isin(rows.group, held)
        found.append((~test, test))
    return found


def per_run_error(learned: Learned | Network, rows: Rows) -> float:
    """Mean over runs of |predicted - true| / true time of all their rows together."""
    run = np.unique(rows.run, return_inverse=True)[1].reshape(-1)
    return float(run_errors(learned, rows, run).mean())


def run_errors(learned: Learned | Network, rows: Rows, run: np.ndarray) -> np.ndarray:
    """(runs,) of each run, whose number is run (n,)."""
    predicted = learned.slowdown(rows.own, rows.others) * rows.solo_seconds
    return np.abs(np.bincount(run, predicted) / np.bincount(run, rows.period_seconds) - 1.0)


def per_sample_error(learned: Learned | Network, rows: Rows) -> float:
    """Mean |predicted - true| instructions per period over the mean true ones (the measure of Fig. 2)."""
    predicted = rows.own[:, 0] * rows.period_seconds / learned.slowdown(rows.own, rows.others)
    return float(np.abs(predicted - rows.count).sum() / rows.count.sum())


def _fit(
    rows: Rows,
    learner: str,
    features: Features,
    target: str,
    strength: float,
    seed: int,
    rounds: int = 1,
) -> Learned:
    x = features.of(rows.own, rows.others)
    slowdown = np.clip(rows.slowdown, FASTEST, SLOWEST)
    # A run takes its stretches' times alone, each times its slowdown: so much does an error of one count.
    weight = rows.solo_seconds / rows.solo_seconds.mean()
    if target == "slowdown":
        y = slowdown - 1.0
    elif target == "speed":
        y = 1.0 / slowdown
    else:
        y = rows.count / rows.period_seconds / features.scale[0]
    mean = np.average(x, axis=0, weights=weight)
    spread = np.sqrt(np.mean((x - mean) ** 2, axis=0))
    spread = np.where(spread > 1e-12, spread, 1.0)
    centre = float(np.average(y, weights=weight))
    size = float(np.sqrt(np.mean((y - centre) ** 2))) or 1.0
    x, y = (x - mean) / spread, (y - centre) / size
    estimator = _estimator(learner, strength, len(x), seed)
    limits = seen(slowdown)
    learned = None
    run = np.unique(rows.run, return_inverse=True)[1].reshape(-1)
    of_run = np.ones(run.max() + 1)
    with warnings.catch_warnings():
        # Reaching the step limit is part of choosing: a strength that converges badly predicts badly.
        warnings.simplefilter("ignore")
        for last in (False,) * rounds + (True,):
            estimator.fit(x, y, sample_weight=weight * of_run[run])
            weights = np.asarray(estimator.coef_, np.float64).reshape(-1)
            bias = float(np.asarray(estimator.intercept_).reshape(-1)[0])
            learned = Learned(
                features, target, strength, mean, spread, weights, bias, (centre, size), limits
            )
            if last:
                break
            # So weighted, squares add up to what is asked for, the mean error of a run, and the few runs
            # that nothing explains do not draw all others with them.
            error = run_errors(learned, rows, run)
            of_run = 1.0 / np.maximum(error, max(float(np.median(error)), 1e-3))
            of_run /= of_run.mean()
    assert learned is not None
    return learned


def _estimator(learner: str, strength: float, n: int, seed: int) -> Any:
    try:
        from sklearn.linear_model import ElasticNet, Lasso, Ridge
        from sklearn.svm import LinearSVR
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "alignment") from None
    if learner == "ridge":
        return Ridge(strength * n)
    if learner == "lasso":
        return Lasso(strength, max_iter=300)
    if learner == "elastic_net":
        return ElasticNet(strength, max_iter=300)
    return LinearSVR(
        C=1.0 / (strength * n),
        epsilon=0.01,
        max_iter=300,
        random_state=seed,
    )
