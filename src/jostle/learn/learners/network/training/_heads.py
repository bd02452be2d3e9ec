"""Quantile heads: several workload embeddings, one per quantile, over a shared platform side.

Source: Pitot (MLSys 2025), Sec. 3.4: pinball loss on log runtime, xi * (y - yhat) for y > yhat and
(1 - xi) * (yhat - y) otherwise. The heads start from the trained model; only the workload tower's last
layer is trained on, so they cost little.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jostle.learn.learners.network._network_equation import (
    CORUN_SCALE,
    SHIFT,
    log_slowdown,
    pressure_of,
)
from jostle.learn.learners.network.training._train import PROGRAMS, Parameters, Shape, embed
from jostle.learn.learners.network.training._training_rows import Feed, Rows

STEPS, BATCH, RATE = 300, 4096, 1e-3  # of Adam, the last at first


def train_heads(
    parameters: Parameters,
    solo: Rows,
    corun: Rows,
    features: Any,
    shape: Shape,
    quantiles: tuple[float, ...],
    seed: int,
) -> dict[str, np.ndarray]:
    """head_main (h, workloads, rank), head_bias (h, workloads) for h quantiles."""
    e = embed(parameters, features, shape)
    start = {
        "main": jnp.broadcast_to(e["workload_main"], (len(quantiles), *e["workload_main"].shape)),
        "bias": jnp.broadcast_to(e["workload_bias"], (len(quantiles), *e["workload_bias"].shape)),
    }
    xi = jnp.asarray(quantiles)[:, None]
    # A head starts a normal quantile's distance from the median, scaled to the typical error.
    start["bias"] = start["bias"] + 0.05 * jax.scipy.stats.norm.ppf(xi)
    random = np.random.default_rng([seed, 2])
    feeds = (Feed(solo, BATCH // 4, random), Feed(corun, BATCH, random))
    whole = tuple(feed.whole for feed in feeds)
    head = _run(start, e, whole, tuple(feed.draw(STEPS) for feed in feeds), xi, shape)
    return {f"head_{name}": np.asarray(value) for name, value in head.items()}


@partial(jax.jit, static_argnames=("shape",))
def _run(head: Any, e: Any, whole: Any, drawn: Any, xi: jax.Array, shape: Shape) -> Any:
    """Train the heads for STEPS steps of pinball loss."""
    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, STEPS, 0.05))

    def predict(head: Any, rows: Any) -> jax.Array:
        """Predict (h, n) log runtimes minus the baseline."""
        workload, platform, corunner, _ = rows

        def main(side: str) -> jax.Array:
            if shape.grid:
                return jnp.einsum("hwr,pr->hwp", head["main"], e[side])[:, workload, platform]
            return jnp.einsum("hnr,nr->hn", head["main"][:, workload], e[side][platform])

        out = main("platform_main")
        out = out + head["bias"][:, workload] + e["platform_bias"][platform]
        if corunner.shape[1] == 0:
            return out
        if CORUN_SCALE[shape.form]:
            corun = main("platform_corun") + e["platform_corun_bias"][platform]
            out = out + jnp.where((corunner >= 0).any(1), corun, 0.0)
        there = jnp.where(corunner >= 0, corunner, 0)
        each = (
            jnp.einsum("nctk,ntk->nct", e["corunner"][there], e["intensity"][platform])
            - SHIFT[shape.form]
        )
        each = pressure_of(shape.form, each, jnp) * (corunner >= 0)[..., None]
        target = head["main"][:, workload][:, :, None, :] if shape.form == "paper" else None
        if target is None:
            s = jnp.einsum("ntk,ntk->nt", e["target"][workload], e["susceptibility"][platform])
        else:
            s = jnp.einsum("hnuk,ntk->hnt", target, e["susceptibility"][platform])
        return out + log_slowdown(
            shape.form, s - SHIFT[shape.form], each.sum(1), 1.0, jnp, shape.leak
        )

    def loss_of(head: Any, batch: Any) -> jax.Array:
        total = jnp.zeros(())
        for rows in batch:
            if len(rows[0]):
                error = rows[3] - predict(head, rows)
                total += jnp.maximum(xi * error, (xi - 1) * error).mean()
        return total

    def step(carry: Any, drawn: Any) -> Any:
        head, state = carry
        batch = tuple(x if y is None else y for x, y in zip(whole, drawn, strict=True))
        slope = jax.grad(loss_of)(head, batch)
        updates, state = optimiser.update(slope, state)
        return (optax.apply_updates(head, updates), state), None

    carry = (head, optimiser.init(head))
    return jax.lax.scan(step, carry, drawn, length=STEPS)[0][0]


PROGRAMS.append(_run)
