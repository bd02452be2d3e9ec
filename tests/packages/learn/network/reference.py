"""The fitted equations answered by JAX, to check the answers of NumPy against."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jostle.learn.learners.network._embeddings import Embeddings, Form
from jostle.learn.learners.network._network_equation import (
    CORUN_SCALE,
    SHIFT,
    log_slowdown,
    pressure_of,
)


def log_runtime_in_jax(
    e: Embeddings, form: Form, workload: np.ndarray, platform: np.ndarray, corunner: np.ndarray
) -> np.ndarray:
    """(n,) log seconds. workload, platform: (n,) codes; corunner: (n, width) codes padded with -1."""
    there = jnp.asarray(corunner >= 0)
    shift = SHIFT[form.name]
    main = jnp.asarray(e.workload_main)[workload]
    out = jnp.asarray(e.workload_base)[workload] + jnp.asarray(e.platform_base)[platform]
    out = out + (main * jnp.asarray(e.platform_main)[platform]).sum(-1)
    target = jnp.asarray(e.target)[workload][:, e.type_slot]
    hit = (target * jnp.asarray(e.susceptibility)[platform]).sum(-1) - shift
    beside = jnp.asarray(e.corunner)[np.maximum(corunner, 0)][:, :, e.type_slot]
    each = (beside * jnp.asarray(e.intensity)[platform][:, None]).sum(-1) - shift
    pressure = (pressure_of(form.name, each, jnp) * there[..., None]).sum(1)
    slow = log_slowdown(form.name, hit, pressure, jnp.asarray(e.type_weight), jnp, form.leak)
    if CORUN_SCALE[form.name]:
        slow = slow + (main * jnp.asarray(e.platform_corun)[platform]).sum(-1)
        slow = slow + jnp.asarray(e.platform_corun_base)[platform]
    lost = e.workload_component[workload] != e.platform_component[platform]
    return np.where(lost, np.nan, np.asarray(out + jnp.where(there.any(1), slow, 0.0), np.float64))
