"""The paper's neural baselines: matrix factorization, a network with multipliers, and attention.

Source: Pitot (MLSys 2025), Sec. 5.3 and App. B.3, B.4: log runtime, AdaMax at 1e-3, 20 000 steps in
batches of 2048 shared equally among the numbers of co-runners, weight 1 on runs alone and 0.5 on all with
co-runners, the best of the checkpoints taken every 200 steps. What the text leaves open: targets are
centred on their mean; the attention's weights are <key, query> / sqrt(8) and not normalised, since a
softmax over a single co-runner would always be 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.errors import MissingExtra, NotEnoughRuns
from studies.rivals.rival import Rival, RivalAnswers, alone
from studies.rivals.vocabulary import Vocabulary

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.data import Colocations, Runs
    from jostle.learn import Prepared

CHECK_EVERY = 200
CORUN_WEIGHT = 0.5
CHUNK = 32_768


class Trained(Rival, ABC):
    """A rival trained by gradient descent: how its parameters start, and what it answers with them."""

    steps: int
    batch: int
    blind: ClassVar[bool] = False  # to co-runners
    corun_weight: float = CORUN_WEIGHT

    @abstractmethod
    def start(self, key: Any, features: Any) -> Any:
        """Parameters."""

    @abstractmethod
    def answer(self, p: Any, features: Any, rows: Any) -> Any:
        """(n,) centred log runtime. features: of workloads and platforms. rows: as padded gives them."""

    def loss(self, answer: Any, target: Any) -> Any:
        """One number: of what is answered to a batch, against its (n,) centred log runtimes."""
        import jax.numpy as jnp

        return jnp.square(answer - target).mean()

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> RivalAnswers:
        """Raises NotEnoughRuns, and MissingExtra without JAX."""
        vocabulary, runs, validation = self.seen(prepared)
        mean = float(np.log(runs.runtime_seconds).mean())
        answer = self.train(
            vocabulary,
            by_degree(vocabulary, runs, lambda part: np.full(len(part), mean)),
            by_degree(vocabulary, validation, lambda part: np.full(len(part), mean)),
            seed,
            progress,
        )
        return NeuralAnswers(vocabulary, answer, mean, self.blind)

    def seen(self, prepared: Prepared) -> tuple[Vocabulary, Runs, Runs]:
        """Names, and the runs to learn from and to choose a checkpoint by. Raises NotEnoughRuns."""
        runs, validation = prepared.runs, prepared.validation
        if self.blind:
            runs = alone(runs)
            validation = validation.take(validation.colocations.number_of_corunners == 0)
        if len(runs) == 0:
            raise NotEnoughRuns(
                "there is no run to learn from", fix="Measure or import runs first."
            )
        vocabulary = Vocabulary.of(replace(prepared, runs=runs, validation=validation))
        return vocabulary, runs, validation

    def train(
        self,
        vocabulary: Vocabulary,
        data: list[Any],
        held: list[Any],
        seed: int,
        progress: Progress | None,
    ) -> Callable[[Any], np.ndarray]:
        """What answers rows after training. data, held: as by_degree gives them.

        Raises MissingExtra without JAX.
        """
        try:
            import jax
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "fit") from None
        import jax.numpy as jnp

        features = (
            jnp.asarray(vocabulary.workload_matrix, jnp.float32),
            jnp.asarray(vocabulary.platform_matrix, jnp.float32),
        )
        parameters = _train(
            self.start(jax.random.key(seed), features),
            lambda p, rows: self.answer(p, features, rows),
            data,
            held,
            self,
            seed,
            progress,
        )
        compiled = jax.jit(self.answer)
        return lambda rows: np.asarray(compiled(parameters, features, rows))


@dataclass(frozen=True, eq=False)
class NeuralAnswers(RivalAnswers):
    vocabulary: Vocabulary
    answer: Callable[..., np.ndarray]
    mean: float
    blind: bool

    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds."""
        query = query.alone() if self.blind else query
        out = np.zeros(len(query))
        for start in range(0, len(query), CHUNK):
            part = query.take(slice(start, start + CHUNK))
            out[start : start + CHUNK] = self.answer(padded(self.vocabulary, part))
        return np.exp(self.mean + out)


@dataclass(frozen=True)
class MatrixFactorization(Trained):
    """log runtime = mean + <workload, platform>, learned vectors of width `rank`; no features, and
    blind to co-runners (runs with any are discarded)."""

    rank: int = 32
    steps: int = 20_000
    batch: int = 2048

    name: ClassVar[str] = "matrix_factorization"
    blind: ClassVar[bool] = True

    def start(self, key: Any, features: Any) -> Any:
        import jax

        a, b = jax.random.split(key)
        scale = self.rank**-0.25
        return {
            "workload": jax.random.normal(a, (len(features[0]), self.rank)) * 0.3 * scale,
            "platform": jax.random.normal(b, (len(features[1]), self.rank)) * 0.3 * scale,
        }

    def answer(self, p: Any, features: Any, rows: Any) -> Any:
        return (p["workload"][rows[0]] * p["platform"][rows[1]]).sum(-1)


@dataclass(frozen=True)
class NeuralNetwork(Trained):
    """A network on the features of workload and platform, times one multiplier per co-runner from a
    second network on the features of both workloads and the platform. Two hidden layers of `hidden`."""

    hidden: int = 256
    steps: int = 20_000
    batch: int = 2048

    name: ClassVar[str] = "neural_network"

    def start(self, key: Any, features: Any) -> Any:
        import jax

        w, p = features[0].shape[1], features[1].shape[1]
        a, b = jax.random.split(key)
        hidden = (self.hidden, self.hidden)
        return {
            "base": layers_of(a, (w + p, *hidden, 1)),
            "multiplier": layers_of(b, (w + w + p, *hidden, 1)),
        }

    def answer(self, p: Any, features: Any, rows: Any) -> Any:
        import jax.numpy as jnp

        workload, platform, corunner = rows
        out = network(p["base"], (features[0], workload), (features[1], platform))[:, 0]
        for place in range(corunner.shape[1]):
            other = corunner[:, place]
            here = (
                (features[0], workload),
                (features[0], jnp.maximum(other, 0)),
                (features[1], platform),
            )
            out = out + jnp.where(other >= 0, network(p["multiplier"], *here)[:, 0], 0.0)
        return out


@dataclass(frozen=True)
class Attention(Trained):
    """As NeuralNetwork, but with one multiplier for all co-runners: the base network's query weighs
    each co-runner's value by its key, and a small network reads the weighted sum."""

    hidden: int = 256
    width: int = 8
    output_hidden: int = 32
    steps: int = 20_000
    batch: int = 2048

    name: ClassVar[str] = "attention"

    def start(self, key: Any, features: Any) -> Any:
        import jax

        w, p = features[0].shape[1], features[1].shape[1]
        a, b, c = jax.random.split(key, 3)
        hidden = (self.hidden, self.hidden)
        return {
            "base": layers_of(a, (w + p, *hidden, 1 + self.width)),
            "beside": layers_of(b, (w + p, *hidden, 2 * self.width)),
            "output": layers_of(c, (self.width, self.output_hidden, 1)),
        }

    def answer(self, p: Any, features: Any, rows: Any) -> Any:
        import jax
        import jax.numpy as jnp

        workload, platform, corunner = rows
        base = network(p["base"], (features[0], workload), (features[1], platform))
        out, query = base[:, 0], base[:, 1:]
        if corunner.shape[1] == 0:
            return out
        width = query.shape[1]
        read = jnp.zeros_like(query)
        for place in range(corunner.shape[1]):
            other = corunner[:, place]
            beside = network(
                p["beside"], (features[0], jnp.maximum(other, 0)), (features[1], platform)
            )
            key, value = beside[:, :width], beside[:, width:]
            weight = (key * query).sum(-1, keepdims=True) / width**0.5
            read = read + jnp.where((other >= 0)[:, None], weight * value, 0.0)
        (first, bias), (second, end) = p["output"]
        multiplier = (jax.nn.gelu(read @ first + bias) @ second + end)[:, 0]
        return out + jnp.where((corunner >= 0).any(1), multiplier, 0.0)


def padded(vocabulary: Vocabulary, colocations: Colocations) -> tuple[np.ndarray, ...]:
    """(workload (n,), platform (n,), co-runners (n, most) with -1 where there are fewer)."""
    workload, platform, corunner = vocabulary.codes(colocations)
    counts = colocations.number_of_corunners
    padded = np.full((len(counts), int(counts.max(initial=0))), -1, np.int32)
    row = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(corunner)) - np.repeat(colocations.corunner_offsets[:-1], counts)
    padded[row, place] = corunner
    return workload, platform, padded


def by_degree(
    vocabulary: Vocabulary, runs: Runs, centre: Callable[[Colocations], np.ndarray]
) -> list[Any]:
    """((workload, platform, co-runners), log runtime less its centre) for each number of co-runners; runs
    whose centre is NaN are left out."""
    degree = runs.colocations.number_of_corunners
    parts = []
    for d in np.unique(degree):
        inside = np.flatnonzero(degree == d)
        target = np.log(runs.runtime_seconds[inside]) - centre(runs.colocations.take(inside))
        kept = np.isfinite(target)
        if kept.any():
            rows = padded(vocabulary, runs.colocations.take(inside[kept]))
            parts.append((rows, target[kept].astype(np.float32)))
    return parts


def _train(
    parameters: Any,
    predict: Callable[[Any, Any], Any],
    data: list[Any],
    held: list[Any],
    method: Trained,
    seed: int,
    progress: Progress | None,
) -> Any:
    """The parameters with the least validation loss; the last without validation runs."""
    import jax
    import jax.numpy as jnp
    import optax

    steps, batch = method.steps, method.batch
    optimiser = optax.adamax(1e-3, b1=0.9, b2=0.999)
    data, held = jax.tree.map(jnp.asarray, data), jax.tree.map(jnp.asarray, held)
    several = max(sum(rows[2].shape[1] > 0 for rows, _ in data), 1)

    def weight(rows: Any) -> float:
        return method.corun_weight / several if rows[2].shape[1] else 1.0

    def loss_of(parameters: Any, parts: Any) -> Any:
        losses = [
            weight(rows) * method.loss(predict(parameters, rows), target) for rows, target in parts
        ]
        return sum(losses, jnp.zeros(()))

    def pick(part: Any, key: Any) -> Any:
        index = jax.random.randint(key, (batch // len(data),), 0, len(part[1]))
        return jax.tree.map(lambda x: x[index], part)

    def step(carry: Any, key: Any) -> Any:
        parameters, state = carry
        keys = jax.random.split(key, len(data))
        parts = [pick(part, k) for part, k in zip(data, keys, strict=True)]
        loss, slope = jax.value_and_grad(loss_of)(parameters, parts)
        updates, state = optimiser.update(slope, state, parameters)
        return (optax.apply_updates(parameters, updates), state), loss

    @jax.jit
    def run(carry: Any, keys: Any) -> Any:
        return jax.lax.scan(step, carry, keys)

    check = jax.jit(loss_of)
    carry = (parameters, optimiser.init(parameters))
    best, kept = np.inf, parameters
    keys = jax.random.split(jax.random.key(seed + 1), steps)
    for start in range(0, steps, CHECK_EVERY):
        carry, losses = run(carry, keys[start : start + CHECK_EVERY])
        score = float(check(carry[0], held)) if held else -np.inf
        if score <= best:
            best, kept = score, carry[0]
        if progress:
            progress(min(start + CHECK_EVERY, steps), steps, float(losses.mean()))
    return kept


def layers_of(key: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Weights and biases of a network, its outputs near 0 at first."""
    import jax
    import jax.numpy as jnp

    layers = []
    for number, (a, b) in enumerate(pairwise(sizes)):
        last = number == len(sizes) - 2
        scale = 0.1 if last else 1.4
        key, used = jax.random.split(key)
        layers.append((jax.random.normal(used, (a, b)) * scale / max(a, 1) ** 0.5, jnp.zeros(b)))
    return layers


def network(layers: list[Any], *parts: tuple[Any, Any]) -> Any:
    """The network's outputs for concatenated inputs, each given as (table, codes).

    The first layer of a concatenation is a sum of products with the tables, which are far shorter than
    the rows that pick from them.
    """
    import jax

    weights, bias = layers[0]
    start, x = 0, bias
    for table, codes in parts:
        stop = start + table.shape[1]
        x = x + (table @ weights[start:stop])[codes]
        start = stop
    for weights, bias in layers[1:]:
        x = jax.nn.gelu(x) @ weights + bias
    return x
