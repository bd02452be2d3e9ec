"""The model's equations, written once for NumPy and JAX (`xp` is either array module).

Source: Pitot (MLSys 2025), Eq. 9. With base_i, base_j and w_i, p_j the baseline and the embeddings,

    log C(i, j, K) = base_i + base_j + <w_i, p_j> + log slowdown(i, j, K).

Every form of the slowdown first makes two numbers per interference type t: how susceptible the target
is there, S_t = <target_i,t , v_s(j,t)>, and how hard each co-runner presses, G_t(k) = <corunner_k,t ,
v_g(j,t)>. Then

- ``paper``:      sum_t S_t * leaky_relu(sum_k G_t(k)), slope 0.1, with target = corunner = w (Eq. 9);
- ``product``:    sum_t softplus(S_t - 1) * sum_k softplus(G_t(k) - 1): never below 0, and never less
                  when a co-runner is added;
- ``saturating``: log(1 + the same): slowdown itself rather than its logarithm adds up over
                  co-runners, so it extrapolates to more of them than were ever seen together.

Beside anyone at all, whoever and however many, a platform may also be another one than alone (its clock
and its caches' state change with the second busy core, and some run faster then): the last two forms
add <w_i, c_j> + gamma_j with c_j, gamma_j kept small. Adding a co-runner to others never speeds up.
"""

from __future__ import annotations

from typing import Any

FORMS = ("paper", "product", "saturating")
CORUN_SCALE = {"paper": 0.0, "product": 0.03, "saturating": 0.03}  # scale of c_j and gamma_j
SHIFT = {"paper": 0.0, "product": 1.0, "saturating": 1.0}  # starts the slowdown near none
LEAK = 0.1  # slope of the leaky rectifier below 0, as in the paper


def softplus(x: Any, xp: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-xp.abs(x)))


def pressure_of(form: str, shifted_intensity: Any, xp: Any) -> Any:
    """Compute what one co-runner adds to the pressure of a type; same shape as its argument."""
    return shifted_intensity if form == "paper" else softplus(shifted_intensity, xp)


def log_slowdown(
    form: str,
    shifted_susceptibility: Any,
    pressure: Any,
    type_weight: Any,
    xp: Any,
    leak: float = LEAK,
) -> Any:
    """Compute (...) log slowdowns from both (..., types), pressures summed up; type_weight (types,).

    leak: slope of the paper's activation below 0; 1 makes it the identity.
    """
    if form == "paper":
        active = xp.where(pressure > 0, pressure, leak * pressure)
        return (shifted_susceptibility * active * type_weight).sum(-1)
    total = (softplus(shifted_susceptibility, xp) * pressure * type_weight).sum(-1)
    return xp.log1p(total) if form == "saturating" else total
