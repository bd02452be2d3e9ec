"""Training in JAX: many steps per call with `lax.scan`, the best validation checkpoint kept.

The towers of Pitot (MLSys 2025, Sec. 3.3) with the training that was measured to do better: the smoothed
relative error itself as loss, AdamW with a warm-up and a cosine, an average of the weights over time.
While the workload x platform grid is small enough, products are taken over the whole grid (one matrix
product) and runs pick their cells; else they are taken run by run, so that memory grows with the runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jostle._base.progress import Progress
from jostle.learn.learners.network._network_equation import (
    CORUN_SCALE,
    SHIFT,
    log_slowdown,
    pressure_of,
)
from jostle.learn.learners.network.training._programs import keep_programs
from jostle.learn.learners.network.training._shape import (
    Parameters,
    Shape,
    TrainingSchedule,
    calls_of,
    initial_parameters,
)
from jostle.learn.learners.network.training._start import Start, start_of
from jostle.learn.learners.network.training._training_rows import Feed, TrainingData
from jostle.learn.training._encoded_features import Features

# Every program for another shape of data takes some 250 of the 65 530 memory maps that Linux grants a
# process, and a process that fits again and again must not run out of them.
SHAPES_KEPT = 20
_shapes_met: set[Any] = set()


@dataclass(frozen=True)
class Layout:
    """How the parameters lie in one vector. One vector compiles much faster than many small arrays."""

    tree: Any
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, parameters: Parameters) -> Layout:
        leaves, tree = jax.tree.flatten(parameters)
        return cls(tree, tuple(leaf.shape for leaf in leaves))

    def ravel(self, parameters: Parameters) -> np.ndarray:
        return np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(parameters)])

    def unravel(self, vector: Any) -> Parameters:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        starts = [0, *ends[:-1]]
        parts = [
            vector[a:b].reshape(shape)
            for a, b, shape in zip(starts, ends, self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.tree, parts)


def hidden_of(tower: Parameters, features: Any) -> jax.Array:
    """Compute (count, width) what the layers before the last make of the features."""
    numeric, category = features
    parts = [numeric, tower["own"]]
    parts += [table[category[:, c]] for c, table in enumerate(tower["tables"])]
    x = jnp.concatenate(parts, axis=1)
    for layer in tower["layers"]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return x


def run_tower(tower: Parameters, features: Any, outputs: tuple[int, ...]) -> list[jax.Array]:
    """Compute the outputs, (count, width) of each of these widths. One product for all compiles faster."""
    x = hidden_of(tower, features)
    ends = np.cumsum(outputs)[:-1].tolist()
    out = jnp.split(x @ tower["head"]["w"] + tower["head"]["b"], ends, axis=1)
    out[0] = out[0] + tower["offset"]
    return out


@partial(jax.jit, static_argnames=("shape",))
def embed(parameters: Parameters, features: Any, shape: Shape) -> dict[str, jax.Array]:
    """Compute all embeddings: what is saved and answered from. (count, rank), (count,), (count, types, k)."""
    w = run_tower(parameters["workload"], features[0], shape.workload_outputs)
    p = run_tower(parameters["platform"], features[1], shape.platform_outputs)
    scale = shape.rank**-0.5
    cut = (-1, shape.types, shape.rank if shape.form == "paper" else shape.type_rank)
    if shape.form == "paper":
        target = corunner = jnp.broadcast_to(w[0][:, None, :], (len(w[0]), *cut[1:])) * scale
    else:
        target, corunner = w[2].reshape(cut), w[3].reshape(cut)
    return {
        "workload_bias": w[1][:, 0] * 0.3,
        "platform_bias": p[1][:, 0] * 0.3,
        "workload_main": w[0] * scale,
        "platform_main": p[0],
        "target": target,
        "corunner": corunner,
        "platform_corun": p[4] * CORUN_SCALE[shape.form],
        "platform_corun_bias": p[5][:, 0] * CORUN_SCALE[shape.form],
        "susceptibility": p[2].reshape(cut),
        "intensity": p[3].reshape(cut),
    }


def residual(e: dict[str, jax.Array], rows: Any, shape: Shape) -> jax.Array:
    """Predicted log runtime minus baseline of rows without (width 0) or with co-runners."""
    workload, platform, corunner = rows
    bias = e["workload_bias"][workload] + e["platform_bias"][platform]

    def main(side: str) -> jax.Array:
        if shape.grid:
            return (e["workload_main"] @ e[side].T)[workload, platform]
        return (e["workload_main"][workload] * e[side][platform]).sum(-1)

    solo = main("platform_main")
    if corunner.shape[1] == 0:
        return solo + bias
    present = corunner >= 0
    if CORUN_SCALE[shape.form]:
        corun = main("platform_corun") + e["platform_corun_bias"][platform]
        solo = solo + jnp.where(present.any(1), corun, 0.0)
    other = jnp.where(present, corunner, 0)
    move = SHIFT[shape.form]
    if shape.grid:
        s_grid = jnp.einsum("wtk,ptk->tpw", e["target"], e["susceptibility"])
        g_grid = jnp.einsum("wtk,ptk->tpw", e["corunner"], e["intensity"])
        s = s_grid[:, platform, workload].T
        g = jnp.moveaxis(g_grid[:, platform[:, None], other], 0, -1)
    else:
        s = (e["target"][workload] * e["susceptibility"][platform]).sum(-1)
        g = (e["corunner"][other] * e["intensity"][platform][:, None]).sum(-1)
    g = pressure_of(shape.form, g - move, jnp)
    pressure = (g * present[..., None]).sum(1)
    return solo + bias + log_slowdown(shape.form, s - move, pressure, 1.0, jnp, shape.leak)


def objective_of(objective: str, error: jax.Array) -> jax.Array:
    """Compute what a log error costs, see Factorization.objective.

    `relative` is |exp(error) - 1|, the metric itself, but quadratic under 0.02, where errors are noise,
    and linear past a factor e^1.5, so that it cannot explode.
    """
    if objective == "squared_log":
        return jnp.square(error)
    size = jnp.abs(jnp.expm1(jnp.clip(error, -8.0, 1.5))) + jnp.maximum(error - 1.5, 0.0) * 4.5
    if objective == "squared_relative":
        return jnp.square(size)
    smooth = 0.02
    return jnp.where(size < smooth, size * size / (2 * smooth) + smooth / 2, size)


@dataclass(frozen=True)
class Program:
    """What `run_steps` is compiled for."""

    layout: Layout
    shape: Shape
    schedule: TrainingSchedule
    steps: int


@dataclass(frozen=True)
class TrainedParameters:
    """Parameters, and the features that they turn into embeddings."""

    parameters: Parameters
    features: Any


def train(
    data: TrainingData,
    shape: Shape,
    schedule: TrainingSchedule,
    seed: int,
    progress: Progress | None = None,
) -> TrainedParameters:
    """Train; return the checkpoint with the least score, the last one without scores.

    With `last_layer_steps`, training starts in closed form (`start_of`), and ends with so many steps of the
    towers' last layers and the names' offsets alone, over the other layers as they are by then.
    """
    keep_programs()
    forget_programs_before((shape, schedule, len(data.solo), len(data.corun)))
    features = device_features(data.workload, data.platform)
    parameters = initial_parameters(seed, shape, data.workload, data.platform)
    random = np.random.default_rng([seed, 1])
    feeds = [Feed(rows, schedule.batch, random) for rows in (data.solo, data.corun)]
    steps, last = schedule.steps, schedule.last_layer_steps
    whole = replace(schedule, steps=steps + last)
    stages = _Stages(feeds, shape, data.score_of, progress, whole.steps)
    if not last:
        return TrainedParameters(stages.run(parameters, features, whole, steps)[1], features)
    start = start_of(data.solo, data.workload, data.platform, shape.rank, seed)
    if start is not None:
        parameters = _begun(parameters, start, shape.rank)
    parameters, _ = replace(stages, score_of=None).run(parameters, features, whole, steps)
    parameters, features = _last_layer(parameters, features)
    stages = replace(stages, before=steps)
    ending = replace(schedule, steps=last)
    return TrainedParameters(stages.run(parameters, features, ending, last)[1], features)


@dataclass(frozen=True)
class _Stages:
    """What every stage of training shares. before: steps done in earlier ones, of `total`."""

    feeds: list[Feed]
    shape: Shape
    score_of: Callable[[dict[str, np.ndarray]], float] | None
    progress: Progress | None
    total: int
    before: int = 0

    def run(
        self, parameters: Parameters, features: Any, schedule: TrainingSchedule, steps: int
    ) -> tuple[Parameters, Parameters]:
        """Return (the last parameters, the averaged ones of the best checkpoint) after so many steps of the
        schedule, rounded up to calls of equal length, so that one compilation serves all."""
        calls, each = calls_of(steps)
        if schedule.steps == steps:
            schedule = replace(schedule, steps=calls * each)
        layout = Layout.of(parameters)
        start, decays = layout.ravel(parameters), layout.ravel(_decays(parameters))
        program = Program(layout, self.shape, schedule, each)
        carry = (start, start, optimiser_of(schedule, decays).init(start))
        best, best_parameters = np.inf, start
        for call in range(1, calls + 1):
            carry, loss = run_steps(
                carry,
                features,
                tuple(feed.whole for feed in self.feeds),
                tuple(feed.draw(each) for feed in self.feeds),
                decays,
                program=program,
            )
            if self.score_of is None:
                best_parameters = carry[1]
            else:
                averaged = layout.unravel(carry[1])
                score = self.score_of(embeddings_of(averaged, features, self.shape))
                if score <= best:
                    best, best_parameters = score, carry[1]
            if self.progress:
                done = min(self.before + call * each, self.total)
                self.progress(done, self.total, float(loss))
        return layout.unravel(np.asarray(carry[0])), layout.unravel(np.asarray(best_parameters))


def _begun(parameters: Parameters, start: Start, rank: int) -> Parameters:
    """Start the names' offsets where their products are the start's."""
    scale = rank**0.25  # see `embed`: the workloads' half is divided by the root of the rank
    begun = dict(parameters)
    for side, numbers in (("workload", start.workload), ("platform", start.platform)):
        offset = parameters[side]["offset"].copy()
        offset[:, : numbers.shape[1]] = numbers * np.float32(scale)
        begun[side] = {**parameters[side], "offset": offset}
    return begun


def _last_layer(parameters: Parameters, features: Any) -> tuple[Parameters, Any]:
    """Make towers of the last layer alone, over what the others make of the features: the same model."""
    outer, inner = {}, []
    for side, known in zip(("workload", "platform"), features, strict=True):
        tower = parameters[side]
        hidden = np.asarray(hidden_of(tower, known))
        nothing = np.zeros((len(hidden), 0), np.float32)
        outer[side] = {
            "layers": [],
            "head": tower["head"],
            "own": nothing,
            "tables": [],
            "offset": tower["offset"],
        }
        inner.append((jnp.asarray(hidden), jnp.asarray(nothing, jnp.int32)))
    return outer, tuple(inner)


def forget_programs_before(key: Any) -> None:
    """Drop what was compiled for earlier shapes where this one would make them more than SHAPES_KEPT."""
    if key not in _shapes_met and len(_shapes_met) >= SHAPES_KEPT:
        _shapes_met.clear()
        for program in PROGRAMS:
            program.clear_cache()
    _shapes_met.add(key)


def optimiser_of(schedule: TrainingSchedule, decays: Any) -> optax.GradientTransformation:
    """AdamW, clipped, warmed up to the learning rate and down again by a cosine, for the parameters as one
    vector (many small arrays take long to compile). decays: 1 where the weight decay applies, else 0."""

    def decayed(slope: Any, vector: Any) -> Any:
        return slope + schedule.weight_decay * decays * vector

    rise = min(100, schedule.steps // 3 + 1)
    warm = optax.linear_schedule(schedule.learning_rate * 0.05, schedule.learning_rate, rise)
    fall = optax.cosine_decay_schedule(schedule.learning_rate, max(schedule.steps - rise, 1), 0.01)
    return optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.99),
        optax.stateless(decayed),
        optax.scale_by_learning_rate(optax.join_schedules([warm, fall], [rise])),
    )


def device_features(workload: Features, platform: Features) -> Any:
    """Return ((numeric, category) of the workloads, of the platforms) as JAX arrays."""
    sides = ((workload.numeric, workload.category), (platform.numeric, platform.category))
    return jax.tree.map(jnp.asarray, sides)


def embeddings_of(parameters: Parameters, features: Any, shape: Shape) -> dict[str, np.ndarray]:
    """Return all embeddings as NumPy arrays, see `embed`."""
    return {name: np.asarray(value) for name, value in embed(parameters, features, shape).items()}


def _decays(parameters: Parameters) -> Any:
    """1 for every weight, 0 for every bias."""
    return jax.tree.map(lambda x: np.full(x.shape, float(x.ndim > 1), np.float32), parameters)


def concerned(
    parameters: Parameters, features: Any, batch: Any, shape: Shape
) -> tuple[Parameters, Any, Any]:
    """Select (parameters, features, batch) of only those workloads that occur in the batch, numbered anew, if
    that is fewer: a step then costs what its batch costs, however many workloads there are."""
    flat = [codes.reshape(-1) for rows in batch for codes in (rows[0], rows[2])]
    if shape.grid or sum(len(codes) for codes in flat) >= len(features[0][0]):
        return parameters, features, batch
    ids = jnp.maximum(jnp.concatenate(flat), 0)
    start, renumbered = 0, []
    for workload, platform, corunner, target in batch:
        middle = start + workload.size
        end = middle + corunner.size
        beside = jnp.arange(middle, end, dtype=jnp.int32).reshape(corunner.shape)
        renumbered.append(
            (
                jnp.arange(start, middle, dtype=jnp.int32),
                platform,
                jnp.where(corunner >= 0, beside, -1),
                target,
            )
        )
        start = end
    tower = parameters["workload"]
    tower = {**tower, "own": tower["own"][ids], "offset": tower["offset"][ids]}
    numeric, category = features[0]
    return (
        {**parameters, "workload": tower},
        ((numeric[ids], category[ids]), features[1]),
        tuple(renumbered),
    )


@partial(jax.jit, static_argnames=("program",))
def run_steps(
    carry: Any,
    features: Any,
    whole: Any,
    drawn: Any,
    decays: jax.Array,
    *,
    program: Program,
) -> Any:
    """Run the program's steps from `carry` = (parameters as one vector, their average, optimiser state).

    whole: rows given at every step, or None; drawn: rows (steps, batch, ...) of each, or None.
    Compiled once per shape of the data: members of an ensemble share it.
    """
    layout, shape, schedule = program.layout, program.shape, program.schedule
    optimiser = optimiser_of(schedule, decays)

    def loss_of(parameters: Parameters, batch: Any) -> jax.Array:
        near, known, batch = concerned(parameters, features, batch, shape)
        e = embed(near, known, shape)
        total = jnp.zeros(())
        for rows, weight in zip(batch, (1.0, schedule.corun_weight), strict=True):
            if len(rows[0]) and weight:
                error = residual(e, rows[:3], shape) - rows[3]
                total += weight * objective_of(schedule.objective, error).mean()
        offsets = [
            jnp.square(parameters[side]["offset"]).sum(1).mean()
            for side in ("workload", "platform")
        ]
        return total + schedule.offset_decay * sum(offsets)

    def step(carry: Any, drawn: Any) -> Any:
        parameters, averaged, state = carry
        batch = tuple(x if y is None else y for x, y in zip(whole, drawn, strict=True))
        # The slope by parts: that of slices of one vector would be a sum of as many padded vectors.
        loss, slopes = jax.value_and_grad(loss_of)(layout.unravel(parameters), batch)
        slope = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(slopes)])
        updates, state = optimiser.update(slope, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        averaged = averaged + (1 - schedule.average) * (parameters - averaged)
        return (parameters, averaged, state), loss

    carry, losses = jax.lax.scan(step, carry, drawn, length=program.steps)
    return carry, losses.mean()


PROGRAMS: list[Any] = [run_steps, embed]
