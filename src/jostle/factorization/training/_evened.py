"""Slopes evened out: divided by the covariance of what goes into each layer.

What goes into a layer varies much along few directions and little along most, and along those a step by the
slope alone gets nowhere for long. Multiplied by the inverse covariance it goes as far along all (Benzing,
Gradient Descent on Neurons and its Link to Approximate Second-Order Optimization, ICML 2022): five steps then
do what took twelve. Of few runs it learns too much.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

GELU = (2 / np.pi) ** 0.5
MOST_NAMES = 8_192  # that a covariance is of


def inverses_of(parameters: dict[str, Any], features: Any, ridge: float) -> dict[str, Any]:
    """Of both towers, for both layers and the head: the inverse (in, in) of the covariance of what goes in,
    scaled to a mean variance of 1, with the ridge added. In NumPy, which compiles nothing."""
    return {
        side: [
            _inverse(x, ridge)
            for x in _inputs(jax.tree.map(np.asarray, parameters[side]), *map(np.asarray, known))
        ]
        for side, known in zip(("workload", "platform"), features, strict=True)
    }


def _inputs(tower: dict[str, Any], numeric: np.ndarray, category: np.ndarray) -> list[np.ndarray]:
    """(names, in) of both layers and the head."""
    some = slice(None, None, -(-len(numeric) // MOST_NAMES) or None)
    tables = [table[category[some, c]] for c, table in enumerate(tower["tables"])]
    found = [np.concatenate([numeric[some], tower["own"][some], *tables], axis=1)]
    for layer in tower["layers"]:
        z = found[-1] @ layer["w"] + layer["b"]
        found.append(z * (1 + np.tanh(GELU * (z + 0.044715 * z**3))) / 2)
    return found


def _inverse(x: np.ndarray, ridge: float) -> np.ndarray:
    covariance = (x.T @ x).astype(np.float64) / len(x)
    scale = max(float(np.trace(covariance)) / len(covariance), 1e-12)
    return np.linalg.inv(covariance / scale + ridge * np.eye(len(covariance))).astype(np.float32)


def evened(slopes: dict[str, Any], inverse: dict[str, Any]) -> dict[str, Any]:
    """The slopes with those of layers multiplied by the inverses, as long as they were."""

    def same_length(slope: jax.Array, by: jax.Array) -> jax.Array:
        turned = by @ slope
        return turned * (jnp.linalg.norm(slope) / (jnp.linalg.norm(turned) + 1e-12))

    out = {}
    for side, tower in slopes.items():
        *inner, last = inverse[side]
        layers = [
            {**layer, "w": same_length(layer["w"], by)}
            for layer, by in zip(tower["layers"], inner, strict=True)
        ]
        head = {**tower["head"], "w": same_length(tower["head"]["w"], last)}
        out[side] = {**tower, "layers": layers, "head": head}
    return out
