"""Pitot as it was published: its sizes, losses and training, written down from the text alone.

Source: Pitot (MLSys 2025), Sec. 3.2 to 3.5, App. A, B.1 to B.3: the linear-scaling baseline of the runs
alone; two towers (two hidden layers of 128, GELU) on the features and q = 1 learned feature a name;
embeddings of width 32; s = 2 interference types with a leaky ReLU of slope 0.1 over the sum of the
co-runners' pressures (Eq. 9); squared error of the log residual (Eq. 1), for bounds a second fit with a
workload embedding per quantile and the pinball loss (Eq. 13). AdaMax at 1e-3, 20 000 steps in batches of
2048, weight 1 alone and 0.5 beside others, the best of the checkpoints taken every 200 steps. The text
leaves open which of its embeddings a neighbour has where there is one per quantile: here it is their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle._base.progress import share_of
from studies.rivals.linear import additive_effects
from studies.rivals.neural import (
    CHUNK,
    Trained,
    by_degree,
    layers_of,
    network,
    padded,
)
from studies.rivals.rival import RivalAnswers, alone

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostle._base.progress import Progress
    from jostle.conformal import Candidates
    from jostle.data import Colocations
    from jostle.learn import Baseline, Prepared
    from studies.rivals.vocabulary import Vocabulary

LEAK = 0.1
QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True)
class PublishedPitot(Trained):
    """rank: the paper's r. types: s. own: q, learned features a name. quantiles: of the second fit, which
    bounds; none: no second fit."""

    rank: int = 32
    types: int = 2
    own: int = 1
    hidden: int = 128
    corun_weight: float = 0.5
    quantiles: tuple[float, ...] = QUANTILES
    steps: int = 20_000
    batch: int = 2048

    name: ClassVar[str] = "published_pitot"

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> _PublishedAnswers:
        """Raises NotEnoughRuns where no run is without co-runners, and MissingExtra without JAX."""
        vocabulary, runs, validation = self.seen(prepared)
        baseline = additive_effects(vocabulary, alone(runs))
        data, held = (
            by_degree(vocabulary, part, lambda query: _scaled(vocabulary, baseline, query))
            for part in (runs, validation)
        )
        plain = replace(self, quantiles=())
        parts = 2 if self.quantiles else 1
        point = plain.train(vocabulary, data, held, seed, share_of(progress, 0, parts))
        heads = (
            self.train(vocabulary, data, held, seed, share_of(progress, 1, parts))
            if self.quantiles
            else None
        )
        return _PublishedAnswers(vocabulary, baseline, point, heads, self.quantiles)

    def start(self, key: Any, features: Any) -> Any:
        import jax

        keys = jax.random.split(key, 4)
        hidden = (self.hidden, self.hidden)
        shapes = {
            "workload": (features[0], self.rank * (len(self.quantiles) or 1)),
            "platform": (features[1], self.rank * (1 + 2 * self.types)),
        }
        results = {}
        for at, (side, (table, outputs)) in enumerate(shapes.items()):
            names, width = table.shape
            results[side] = {
                "own": jax.random.normal(keys[2 * at], (names, self.own)),
                "layers": layers_of(keys[2 * at + 1], (width + self.own, *hidden, outputs)),
            }
        return results

    def answer(self, p: Any, features: Any, rows: Any) -> Any:
        """(n,) log residual; with quantiles (h, n)."""
        import jax
        import jax.numpy as jnp

        def tower(side: str, table: Any) -> Any:
            x = jnp.concatenate([table, p[side]["own"]], 1)
            every = jnp.arange(len(table))
            return network(p[side]["layers"], (x, every))

        workload, platform, corunner = rows
        several = tower("workload", features[0])
        heads = several.reshape(len(several), -1, self.rank)
        sides = tower("platform", features[1]).reshape(len(features[1]), -1, self.rank)[platform]
        main, suffers, presses = jnp.split(sides, (1, 1 + self.types), axis=1)
        out = jnp.einsum("nhr,nr->hn", heads[workload], main[:, 0])
        if corunner.shape[1]:
            other = heads.mean(1)[jnp.maximum(corunner, 0)]
            pressure = jnp.einsum("nkr,ntr->nkt", other, presses)
            pressure = jnp.where((corunner >= 0)[..., None], pressure, 0.0).sum(1)
            felt = jnp.einsum("nhr,ntr->hnt", heads[workload], suffers)
            out = out + (felt * jax.nn.leaky_relu(pressure, LEAK)).sum(-1)
        return out if self.quantiles else out[0]

    def loss(self, answer: Any, target: Any) -> Any:
        """Squared error, or the pinball loss with equal weight for each quantile (Eq. 13)."""
        import jax.numpy as jnp

        if not self.quantiles:
            return super().loss(answer, target)
        xi = jnp.asarray(self.quantiles)[:, None]
        over = target - answer
        return jnp.maximum(xi * over, (xi - 1) * over).mean()


@dataclass(frozen=True, eq=False)
class _PublishedAnswers(RivalAnswers):
    vocabulary: Vocabulary
    baseline: Baseline
    point: Callable[[Any], np.ndarray]
    heads: Callable[[Any], np.ndarray] | None
    quantiles: tuple[float, ...]

    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds; NaN where no chain of runs connects workload and platform."""
        return np.exp(self._log(self.point, query))

    def candidates(self, query: Colocations) -> Candidates:
        from jostle.conformal import Candidates

        centre = self._log(self.point, query)[None]
        names = ["same everywhere"]
        if self.heads is not None:
            centre = np.vstack([centre, self._log(self.heads, query)])
            names += [f"quantile {quantile:g}" for quantile in self.quantiles]
        return Candidates(tuple(names), centre, np.ones_like(centre))

    def _log(self, answer: Callable[[Any], np.ndarray], query: Colocations) -> np.ndarray:
        """(n,) or (h, n) log seconds."""
        parts = [
            _scaled(self.vocabulary, self.baseline, part) + answer(padded(self.vocabulary, part))
            for start in range(0, len(query), CHUNK)
            for part in [query.take(slice(start, start + CHUNK))]
        ]
        return np.concatenate(parts, axis=-1) if parts else np.zeros(0)


def _scaled(vocabulary: Vocabulary, baseline: Baseline, query: Colocations) -> np.ndarray:
    """(n,) log seconds of linear scaling."""
    workload, platform, _ = vocabulary.codes(query)
    known = (workload >= 0) & (platform >= 0)
    known &= baseline.workload_component[workload] == baseline.platform_component[platform]
    known &= baseline.workload_component[workload] >= 0
    return np.where(known, baseline.workload[workload] + baseline.platform[platform], np.nan)
