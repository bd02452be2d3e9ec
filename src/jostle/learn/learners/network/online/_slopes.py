"""Log runtime of the network and its slopes in the embeddings of a workload, a co-runner or a platform.

The embeddings of a name stand in one row: of a workload [base, main, as target, as co-runner], of a platform
[base, main, co-run effect, its base, susceptibility, intensity].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from jostle.learn.learners.network._codes import Codes
from jostle.learn.learners.network._embeddings import Embeddings, Form
from jostle.learn.learners.network._network_equation import CORUN_SCALE, SHIFT, softplus

WORKLOAD, PLATFORM = "workload", "platform"
PARTS = {
    WORKLOAD: ("workload_base", "workload_main", "target", "corunner"),
    PLATFORM: (
        "platform_base",
        "platform_main",
        "platform_corun",
        "platform_corun_base",
        "susceptibility",
        "intensity",
    ),
}
CHUNK = 16_384  # rows whose slopes are found in one step


def rows_of_names(e: Embeddings, kind: str) -> np.ndarray:
    """Join all that is learned of a name in one row. Returns (names, d)."""
    parts = [np.asarray(getattr(e, name), np.float64) for name in PARTS[kind]]
    flat = [part.reshape(len(part), int(np.prod(part.shape[1:]))) for part in parts]
    return np.concatenate(flat, axis=1)


def with_rows_of_names(e: Embeddings, kind: str, rows: np.ndarray) -> Embeddings:
    """Invert rows_of_names: the embeddings with these rows (names, d). Quantile heads move as far as the
    embedding that they started from."""
    arrays, start = {}, 0
    for name in PARTS[kind]:
        old = getattr(e, name)
        width = int(np.prod(old.shape[1:]))
        part = rows[:, start : start + width].reshape(len(rows), *old.shape[1:])
        arrays[name] = np.ascontiguousarray(part, dtype=old.dtype)
        start += width
    if kind == WORKLOAD and len(e.head_main):
        arrays["head_main"] = e.head_main + (arrays["workload_main"] - e.workload_main)
        arrays["head_base"] = e.head_base + (arrays["workload_base"] - e.workload_base)
        if len(e.head_target):
            arrays["head_target"] = e.head_target + (arrays["target"] - e.target)
    return replace(e, **arrays)


@dataclass(frozen=True)
class Slopes:
    """log_runtime: (n,) of rows. slopes: (k, q) in q directions of the embeddings of a name; name: (k,) which
    one; row: (k,) in which row. A workload has one for each place where it stands in a row."""

    log_runtime: np.ndarray
    slopes: np.ndarray
    name: np.ndarray
    row: np.ndarray

    def take(self, mask: np.ndarray) -> Slopes:
        """Keep the slopes where the mask (k,) is true, of the same rows."""
        return Slopes(self.log_runtime, self.slopes[mask], self.name[mask], self.row[mask])


def slopes_of(
    e: Embeddings,
    form: Form,
    codes: Codes,
    kind: str,
    basis: np.ndarray,
) -> Slopes:
    """basis: (q, d) directions. Rows of names that no run connects are answered as if one did."""
    n = len(codes)
    order = np.argsort(codes.row, kind="stable")
    offsets = np.searchsorted(codes.row[order], np.arange(n + 1))
    parts = []
    for start in range(0, max(n, 1), CHUNK):
        end = min(start + CHUNK, n)
        inside = order[offsets[start] : offsets[end]]
        some = Codes(
            codes.workload[start:end],
            codes.platform[start:end],
            codes.corunner[inside],
            codes.row[inside] - start,
        )
        gradient = _slopes(e, form, some, kind, basis)
        parts.append(replace(gradient, row=gradient.row + start))
    return Slopes(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))


_FIELDS = ("log_runtime", "slopes", "name", "row")


def _slopes(e: Embeddings, form: Form, codes: Codes, kind: str, basis: np.ndarray) -> Slopes:
    w, p, c, row = codes.workload, codes.platform, codes.corunner, codes.row
    n = len(w)
    main_w, main_p = e.workload_main[w].astype(np.float64), e.platform_main[p].astype(np.float64)
    value = e.workload_base[w] + e.platform_base[p] + np.einsum("nr,nr->n", main_w, main_p)
    share = (np.bincount(row, minlength=n) > 0).astype(np.float64)
    susceptibility = e.susceptibility[p].astype(np.float64)
    intensity = e.intensity[p].astype(np.float64)
    target = e.target[w][:, e.type_slot].astype(np.float64)
    corunner = e.corunner[c][:, e.type_slot].astype(np.float64)
    s = np.einsum("ntk,ntk->nt", target, susceptibility) - SHIFT[form.name]
    g = np.einsum("mtk,mtk->mt", corunner, intensity[row]) - SHIFT[form.name]
    each, by_each = _pressure(form.name, g)
    pressure = np.stack([np.bincount(row, one, n) for one in each.T], axis=1)
    slow, by_s, by_pressure = _slowdown(form, s, pressure, e.type_weight)
    corun = np.zeros(n)
    extra = e.platform_corun[p].astype(np.float64)
    if CORUN_SCALE[form.name]:
        corun = np.einsum("nr,nr->n", main_w, extra) + e.platform_corun_base[p]
    else:
        extra = np.zeros_like(extra)
    value = value + share * (slow + corun)
    by_s, by_pressure = share[:, None] * by_s, share[:, None] * by_pressure
    of_slot = _summed_by_slot(e.type_slot, e.target.shape[1])
    if kind == WORKLOAD:
        cut = _cut(basis, [1, main_w.shape[1], *[int(np.prod(e.target.shape[1:]))] * 2])
        as_target = _flat(of_slot(by_s[..., None] * susceptibility))
        mine = cut[0].sum(1) + (main_p + share[:, None] * extra) @ cut[1].T + as_target @ cut[2].T
        pressing = by_pressure[row, :, None] * by_each[..., None] * intensity[row]
        other = _flat(of_slot(pressing)) @ cut[3].T
        names, rows = np.concatenate([w, c]), np.concatenate([np.arange(n), row])
        return Slopes(value, np.concatenate([mine, other]), names, rows)
    inner = int(np.prod(e.susceptibility.shape[1:]))
    cut = _cut(basis, [1, main_w.shape[1], extra.shape[1], 1, inner, inner])
    scaled = (share if CORUN_SCALE[form.name] else np.zeros(n))[:, None]
    by_target = _flat(by_s[..., None] * target)
    pressing = by_pressure[row, :, None] * by_each[..., None] * corunner
    summed = np.zeros((n, *pressing.shape[1:]))
    np.add.at(summed, row, pressing)
    mine = cut[0].sum(1) + main_w @ cut[1].T + (scaled * main_w) @ cut[2].T
    mine = mine + scaled * cut[3].sum(1) + by_target @ cut[4].T + _flat(summed) @ cut[5].T
    return Slopes(value, mine, p, np.arange(n))


def _pressure(form: str, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute (what a co-runner adds to the pressure, its derivative)."""
    if form == "paper":
        return g, np.ones_like(g)
    return softplus(g, np), _logistic(g)


def _slowdown(
    form: Form, s: np.ndarray, pressure: np.ndarray, type_weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute (log slowdown (n,), its derivatives in s and in the pressure, (n, types) each)."""
    if form.name == "paper":
        leaky = np.where(pressure > 0, 1.0, form.leak)
        active = leaky * pressure * type_weight
        return (s * active).sum(1), active, s * leaky * type_weight
    soft = softplus(s, np)
    total = (soft * pressure * type_weight).sum(1)
    by_s, by_pressure = _logistic(s) * pressure * type_weight, soft * type_weight
    if form.name == "saturating":
        inner = (1.0 / (1.0 + total))[:, None]
        return np.log1p(total), by_s * inner, by_pressure * inner
    return total, by_s, by_pressure


def _logistic(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _summed_by_slot(type_slot: np.ndarray, slots: int) -> Callable[[np.ndarray], np.ndarray]:
    """Make the function that sums types by slot: (n, types, k) to (n, slots, k)."""
    if len(type_slot) == slots:
        return lambda values: values[:, np.argsort(type_slot)]

    def summed(values: np.ndarray) -> np.ndarray:
        out = np.zeros((len(values), slots, values.shape[2]))
        for number, slot in enumerate(type_slot.tolist()):
            out[:, slot] += values[:, number]
        return out

    return summed


def _flat(values: np.ndarray) -> np.ndarray:
    """Flatten the last two axes, (n, t, k) to (n, t * k), also if n is 0."""
    return values.reshape(len(values), values.shape[1] * values.shape[2])


def _cut(basis: np.ndarray, widths: list[int]) -> list[np.ndarray]:
    """Cut a row into the columns of its parts."""
    ends = np.cumsum(widths)
    return [basis[:, end - width : end] for width, end in zip(widths, ends, strict=True)]
