"""How good forecasts of resource use are: on runs that they have not seen, at times that they have not.

Runs, not times, are split: A makes the snapshots and the forecast, B has the truth. The score is W2 in units
of the noise within a snapshot, exact (a linear program). The oracle is A itself at that time: what a perfect
forecast from as many runs would score. All are compared with as many atoms as there are runs: more would look
nearer for their number alone; of a law of more the mean error of four draws counts. CRPS, the Brier score and
reliability are of the whole laws, and are proper: one run of B at a time; all probabilities are corrected
alike for how few runs are behind them. A time whose measurement stands among the training snapshots, bit for
bit, is a leak and is left out; the paper's own design has 8 of 25.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jostle._base.progress import Progress
from jostle.errors import NotEnoughRuns
from jostle.usage import Cloud, Distribution, Forecast, evenly_few
from studies.bridge.rivals import predictions, wasserstein

COMPARED = 500  # atoms of a forecast in a comparison, at most
DRAWS = 4  # from a law of more atoms: single ones differ by a fifth where tails are heavy
MEASURES = ("w2", "crps", "brier", "q95", "q99")
LIMITS = (0.2, 0.5, 0.8, 0.95)  # quantiles of all snapshots pooled, of which exceedance is asked


@dataclass(frozen=True)
class HeldOutTime:
    """One time on one core: the truth of B and A's own measurement there, ended runs as an atom at 0."""

    time_seconds: float
    core: int
    truth: Cloud
    oracle: Cloud
    leaks: bool = False


@dataclass(frozen=True)
class ForecastSplit:
    """A forecast from snapshots of A, and the times at which B tests it. period: of the workload's cycle, in
    seconds. others: {name: (forecast, its method)} that are scored too."""

    forecast: Forecast
    held_out: Sequence[HeldOutTime]
    period: float | None = None
    others: Mapping[str, tuple[Forecast, str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Scores:
    """errors: {method: (n, 5 + d)} at the n times that are no leaks, NaN where the method has no answer.

    The first five columns are MEASURES. w2, crps (mean over the components), q95, q99 (mean error of the
    quantiles): in scaled units. brier: mean squared error of P(component > limit) against what a run did,
    over LIMITS. Then W1 of each component, in its own units. claims: {method: (m, 2)} every such P, and the
    share of the runs of B of which it came true; P is corrected for the number of runs.
    """

    name: str
    components: tuple[str, ...]
    errors: Mapping[str, np.ndarray]
    leaks: int
    claims: Mapping[str, np.ndarray] = field(default_factory=dict)

    def came_true(self, method: str, at_least: float = 0.99) -> tuple[float, int]:
        """Of what a method calls so likely, or its opposite, the share that came true, and how often it
        claimed so; NaN and 0 where it never did."""
        return came_true([self.claims[method]], at_least)

    def __len__(self) -> int:
        return len(next(iter(self.errors.values())))

    @property
    def methods(self) -> tuple[str, ...]:
        """Those with any answer, the oracle among them."""
        return tuple(self.errors)

    def mean(self, method: str, measure: str = "w2") -> float:
        """Mean over the times at which every method has an answer."""
        return float(self._known(method)[:, MEASURES.index(measure)].mean())

    def component_errors(self, method: str) -> dict[str, float]:
        """{component: mean W1 in its own units}."""
        values = self._known(method)[:, len(MEASURES) :].mean(axis=0)
        return dict(zip(self.components, values.tolist(), strict=True))

    def ratio(self, method: str) -> float:
        """Mean W2 over the oracle's."""
        return self.mean(method) / self.mean("oracle")

    def paired(self, method: str, other: str = "ot") -> tuple[float, float]:
        """Mean difference of W2 to another method's, and its standard error over (split, time)."""
        gap = self._known(method)[:, 0] - self._known(other)[:, 0]
        return float(gap.mean()), float(gap.std(ddof=1) / len(gap) ** 0.5) if len(gap) > 1 else 0.0

    def skill(self, method: str, base: str = "nearest") -> float:
        """(base - method) / (base - oracle): 0 as good as the base, 1 as good as measuring."""
        room = self.mean(base) - self.mean("oracle")
        return (self.mean(base) - self.mean(method)) / room if room > 0 else float("nan")

    def _known(self, method: str) -> np.ndarray:
        w2 = np.array([errors[:, 0] for errors in self.errors.values()])
        return self.errors[method][np.isfinite(w2).all(axis=0)]


def score(name: str, splits: Sequence[ForecastSplit], progress: Progress | None = None) -> Scores:
    """All methods at all times that do not leak. Raises NotEnoughRuns where there is none."""
    components = splits[0].forecast.components if splits else ()
    every = [(split, held_out) for split in splits for held_out in split.held_out]
    limits = {id(split): _usual_limits(split.forecast) for split in splits}
    claims: dict[str, list[np.ndarray]] = {}
    rows: list[dict[str, np.ndarray]] = []
    for number, (split, held_out) in enumerate(every, start=1):
        if held_out.leaks:
            continue
        at, core = held_out.time_seconds, held_out.core
        clouds = predictions(split.forecast, core, at, split.period)
        for key, (other, method) in split.others.items():
            clouds[key] = other.at(at, core, method=method).cloud
        clouds["oracle"] = held_out.oracle
        scale, limit = split.forecast.scale, limits[id(split)]
        row = {}
        asked = split.forecast.at(at, core)  # how many runs are behind it, and with how much doubt
        # Equal states of several runs count as often: whole numbers or zeros would leave few different ones.
        atoms = round(min(COMPARED, max(asked.runs, 1)))
        for key, cloud in clouds.items():
            law = Distribution.of(cloud, components, key)
            claimed = _claims(
                replace(law, runs=asked.runs, prior=asked.prior), held_out.truth, limit
            )
            claims.setdefault(key, []).append(claimed)
            row[key] = _errors(cloud, held_out.truth, scale, claimed, atoms)
        rows.append(row)
        if progress:
            progress(number, len(every), 0.0)
    if not rows:
        raise NotEnoughRuns(f"{name}: every time leaks, or there is none")
    missing = np.full(len(MEASURES) + len(components), np.nan)
    methods = dict.fromkeys(method for row in rows for method in row)
    errors = {method: np.array([row.get(method, missing) for row in rows]) for method in methods}
    claimed = {method: np.concatenate(parts) for method, parts in claims.items()}
    return Scores(name, components, errors, len(every) - len(rows), claimed)


def came_true(claims: Sequence[np.ndarray], at_least: float) -> tuple[float, int]:
    """See Scores.came_true; claims: (m, 2) of any number of studies."""
    claimed, share = np.concatenate(claims).T
    high, low = claimed >= at_least, claimed <= 1 - at_least
    right = np.concatenate([share[high], 1 - share[low]])
    return (float(right.mean()) if len(right) else float("nan")), len(right)


def _usual_limits(forecast: Forecast) -> np.ndarray:
    """(LIMITS, d) quantiles of the training snapshots, all times pooled."""
    shots = [shot for core in forecast.snapshots.cores.values() for shot in core]
    return np.quantile(np.concatenate([shot.cloud.atoms for shot in shots]), LIMITS, axis=0)


def _claims(guess: Distribution, truth: Cloud, limits: np.ndarray) -> np.ndarray:
    """(LIMITS * d, 2) P(component > limit), corrected as every answer is for how few runs are behind it, and
    how often it was."""
    claimed = [
        guess.exceedance_ratio({name: limit})
        for row in limits
        for name, limit in zip(guess.components, row, strict=True)
    ]
    share = np.einsum("n,nld->ld", truth.weights, truth.atoms[:, None] > limits).ravel()
    return np.stack([claimed, share], axis=1)


def _errors(
    guess: Cloud, truth: Cloud, scale: np.ndarray, claims: np.ndarray, atoms: int
) -> np.ndarray:
    """(5 + d,) MEASURES, and W1 of each component."""
    whole = guess.merged
    draws = [evenly_few(whole, atoms, seed) for seed in range(DRAWS if len(whole) > atoms else 1)]
    w2 = float(np.mean([wasserstein(few.scaled(scale), truth.scaled(scale)) for few in draws]))
    names = [str(i) for i in range(len(scale))]
    tops = [Distribution.of(c, names, "").quantile((0.95, 0.99)) for c in (guess, truth)]
    q95, q99 = np.abs((tops[0] - tops[1]) * scale).mean(axis=1)
    claimed, share = claims.T
    brier = (share * (1 - claimed) ** 2 + (1 - share) * claimed**2).mean()
    areas = np.array([_areas(guess, truth, column) for column in range(len(scale))])
    return np.array([w2, (areas[:, 1] * scale).mean(), brier, q95, q99, *areas[:, 0]])


def _areas(x: Cloud, y: Cloud, column: int) -> tuple[float, float]:
    """W1 of one component, the area between the distribution functions; and the mean CRPS of x against a run
    of y: the area of their squared difference and of y's own F (1 - F)."""
    values = np.concatenate([x.atoms[:, column], y.atoms[:, column]])
    mass = np.concatenate([x.weights, -y.weights])
    order = np.argsort(values)
    apart = np.cumsum(mass[order])[:-1]
    below = np.cumsum(np.maximum(-mass, 0)[order])[:-1]
    width = np.diff(values[order])
    return float(np.abs(apart) @ width), float((apart**2 + below * (1 - below)) @ width)
