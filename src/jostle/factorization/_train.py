"""Training in JAX: many steps per call with `lax.scan`, the best validation checkpoint kept.

The towers of Pitot (MLSys 2025, Sec. 3.3) with the training that was measured to do better: the smoothed
relative error itself as loss, AdamW with a warm-up and a cosine, an average of the weights over time.
While the workload x platform grid is small enough, products are taken over the whole grid (one matrix
product) and runs pick their cells; else they are taken run by run, so that memory grows with the runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jostle.factorization._equation import LEAK, SHIFT, log_slowdown, pressure_of
from jostle.factorization._features import Features

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """Training rows as arrays. workload, platform: (n,); corunner: (n, width) padded with -1;
    target: (n,) log runtime minus baseline."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.target)

    def take(self, index: np.ndarray) -> Rows:
        return Rows(
            self.workload[index], self.platform[index], self.corunner[index], self.target[index]
        )


@dataclass(frozen=True)
class Shape:
    """Sizes and switches that the compiled functions depend on."""

    form: str
    rank: int
    types: int
    type_rank: int
    hidden: int
    table_width: int
    grid: bool
    leak: float = LEAK


def initial_parameters(
    key: jax.Array, shape: Shape, workload: Features, platform: Features
) -> Parameters:
    keys = iter(jax.random.split(key, 64))
    shared = shape.form == "paper"
    w_out = [shape.rank, 1] + ([] if shared else [shape.types * shape.type_rank] * 2)
    inner = shape.types * (shape.rank if shared else shape.type_rank)
    p_out = [shape.rank, 1, inner, inner]

    def tower(features: Features, outputs: list[int]) -> Parameters:
        width = features.numeric.shape[1] + shape.table_width * (1 + features.category.shape[1])
        sizes = [width, shape.hidden, shape.hidden]
        layers = [
            {
                "w": jax.random.normal(next(keys), (a, b)) * jnp.sqrt(2.0 / a),
                "b": jnp.zeros(b),
            }
            for a, b in pairwise(sizes)
        ]
        heads = [
            {
                "w": jax.random.normal(next(keys), (shape.hidden, n))
                * jnp.sqrt(0.5 / shape.hidden),
                "b": jnp.zeros(n),
            }
            for n in outputs
        ]
        count = len(features.numeric)
        return {
            "layers": layers,
            "heads": heads,
            "own": jax.random.normal(next(keys), (count, shape.table_width)) * 0.3,
            "tables": [
                jax.random.normal(next(keys), (size, shape.table_width)) * 0.3
                for size in features.category_sizes
            ],
            "offset": jnp.zeros((count, shape.rank)),
        }

    return {"workload": tower(workload, w_out), "platform": tower(platform, p_out)}


def run_tower(tower: Parameters, features: Any, shape: Shape) -> list[jax.Array]:
    numeric, category = features
    parts = [numeric, tower["own"]]
    parts += [table[category[:, c]] for c, table in enumerate(tower["tables"])]
    x = jnp.concatenate(parts, axis=1)
    for layer in tower["layers"]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    out = [x @ head["w"] + head["b"] for head in tower["heads"]]
    out[0] = out[0] + tower["offset"]
    return out


@partial(jax.jit, static_argnames=("shape",))
def embed(parameters: Parameters, features: Any, shape: Shape) -> dict[str, jax.Array]:
    """All embeddings: what is saved and answered from. (count, rank), (count,), (count, types, k)."""
    w = run_tower(parameters["workload"], features[0], shape)
    p = run_tower(parameters["platform"], features[1], shape)
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
        "susceptibility": p[2].reshape(cut),
        "intensity": p[3].reshape(cut),
    }


def residual(e: dict[str, jax.Array], rows: Any, shape: Shape) -> jax.Array:
    """Predicted log runtime minus baseline of rows without (width 0) or with co-runners."""
    workload, platform, corunner = rows
    bias = e["workload_bias"][workload] + e["platform_bias"][platform]
    if shape.grid:
        solo = (e["workload_main"] @ e["platform_main"].T)[workload, platform]
    else:
        solo = (e["workload_main"][workload] * e["platform_main"][platform]).sum(-1)
    if corunner.shape[1] == 0:
        return solo + bias
    present = corunner >= 0
    other = jnp.where(present, corunner, 0)
    move = SHIFT[shape.form]
    if shape.grid:
        s_grid = jnp.einsum("wtk,ptk->tpw", e["target"], e["susceptibility"])
        g_grid = pressure_of(
            shape.form, jnp.einsum("wtk,ptk->tpw", e["corunner"], e["intensity"]) - move, jnp
        )
        s = s_grid[:, platform, workload].T
        g = jnp.moveaxis(g_grid[:, platform[:, None], other], 0, -1)
    else:
        s = (e["target"][workload] * e["susceptibility"][platform]).sum(-1)
        g = pressure_of(
            shape.form,
            (e["corunner"][other] * e["intensity"][platform][:, None]).sum(-1) - move,
            jnp,
        )
    pressure = (g * present[..., None]).sum(1)
    return solo + bias + log_slowdown(shape.form, s - move, pressure, 1.0, jnp, shape.leak)


def objective_of(objective: str, error: jax.Array) -> jax.Array:
    """What a log error costs, see Factorization.objective.

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
class Schedule:
    """How long and how hard to train."""

    steps: int
    learning_rate: float
    weight_decay: float
    offset_decay: float
    batch: int
    corun_weight: float
    objective: str = "relative"
    average: float = 0.99


def train(
    solo: Rows,
    corun: Rows,
    validation: list[Rows],
    workload: Features,
    platform: Features,
    shape: Shape,
    schedule: Schedule,
    seed: int,
    progress: Callable[[int, int, float], None] | None = None,
    steps_per_call: int = 100,
) -> Parameters:
    """Returns the parameters at the best validation checkpoint (the last one without validation)."""
    features = device_features(workload, platform)
    calls = -(-schedule.steps // steps_per_call)
    steps = -(
        -schedule.steps // calls
    )  # every call runs as many, so that one compilation serves all
    schedule = replace(schedule, steps=calls * steps)
    key = jax.random.key(seed)
    parameters = initial_parameters(key, shape, workload, platform)
    data = jax.tree.map(jnp.asarray, (arrays_of(solo), arrays_of(corun)))
    held = [jax.tree.map(jnp.asarray, arrays_of(rows)) for rows in validation if len(rows)]
    carry = (parameters, parameters, optimiser_of(schedule).init(parameters))
    best, kept = np.inf, parameters
    for call in range(1, calls + 1):
        carry, loss = run_steps(
            carry,
            jax.random.fold_in(key, call),
            features,
            data,
            shape=shape,
            schedule=schedule,
            steps=steps,
        )
        score = float(sum(validate(carry[1], rows, features, shape) for rows in held))
        if not held or score <= best:
            best, kept = score, carry[1]
        if progress:
            progress(call * steps, schedule.steps, float(loss))
    return kept


def optimiser_of(schedule: Schedule) -> optax.GradientTransformation:
    """AdamW, clipped, warmed up to the learning rate and down again by a cosine."""
    rise = min(100, schedule.steps // 3 + 1)
    warm = optax.linear_schedule(schedule.learning_rate * 0.05, schedule.learning_rate, rise)
    fall = optax.cosine_decay_schedule(schedule.learning_rate, max(schedule.steps - rise, 1), 0.01)
    return optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(
            optax.join_schedules([warm, fall], [rise]),
            b2=0.99,
            weight_decay=schedule.weight_decay,
            mask=_decays,
        ),
    )


def device_features(workload: Features, platform: Features) -> Any:
    """((numeric, category) of the workloads, of the platforms) as JAX arrays."""
    sides = ((workload.numeric, workload.category), (platform.numeric, platform.category))
    return jax.tree.map(jnp.asarray, sides)


def embeddings_of(parameters: Parameters, features: Any, shape: Shape) -> dict[str, np.ndarray]:
    """All embeddings as NumPy arrays, see `embed`."""
    return {name: np.asarray(value) for name, value in embed(parameters, features, shape).items()}


def arrays_of(rows: Rows) -> tuple[np.ndarray, ...]:
    """The columns of the rows, a few of them repeated up to a round number: members of an ensemble train
    on nearly as many rows, and equal shapes share one compilation."""
    n = len(rows)
    step = 2 ** max(int(n / 32).bit_length() - 1, 0)
    rows = rows.take(np.resize(np.arange(n), -(-n // step) * step))
    return (
        rows.workload.astype(np.int32),
        rows.platform.astype(np.int32),
        rows.corunner.astype(np.int32),
        rows.target.astype(np.float32),
    )


def _decays(parameters: Parameters) -> Any:
    return jax.tree.map(lambda x: x.ndim > 1, parameters)


def pick(rows: Any, key: jax.Array, batch: int) -> Any:
    """All rows where they are few, else a random batch of them."""
    n, alone = len(rows[0]), rows[2].shape[1] == 0
    if n <= batch * (4 if alone else 1):
        return rows
    index = jax.random.randint(key, (batch,), 0, n)
    return jax.tree.map(lambda x: x[index], rows)


@partial(jax.jit, static_argnames=("shape", "schedule", "steps"))
def run_steps(
    carry: Any,
    key: jax.Array,
    features: Any,
    data: Any,
    *,
    shape: Shape,
    schedule: Schedule,
    steps: int,
) -> Any:
    """`steps` steps of training from `carry` = (parameters, their average, optimiser state).

    Compiled once per shape of the data: members of an ensemble share it.
    """
    optimiser = optimiser_of(schedule)

    def loss_of(parameters: Parameters, batch: Any) -> jax.Array:
        e = embed(parameters, features, shape)
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

    def step(carry: Any, key: jax.Array) -> Any:
        parameters, averaged, state = carry
        a, b = jax.random.split(key)
        batch = (pick(data[0], a, schedule.batch), pick(data[1], b, schedule.batch))
        loss, slope = jax.value_and_grad(loss_of)(parameters, batch)
        updates, state = optimiser.update(slope, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        averaged = jax.tree.map(
            lambda m, x: m + (1 - schedule.average) * (x - m), averaged, parameters
        )
        return (parameters, averaged, state), loss

    carry, losses = jax.lax.scan(step, carry, jax.random.split(key, steps))
    return carry, losses.mean()


@partial(jax.jit, static_argnames=("shape",))
def validate(parameters: Parameters, rows: Any, features: Any, shape: Shape) -> jax.Array:
    """Mean relative error of rows that were not trained on."""
    error = residual(embed(parameters, features, shape), rows[:3], shape) - rows[3]
    return jnp.abs(jnp.expm1(error)).mean()
