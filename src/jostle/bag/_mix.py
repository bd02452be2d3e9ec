"""The instruction mix from counts: what share of a workload's instructions is of each kind.

Source: Moolchandani et al., Sec. IV: shares of vector (SSE), ALU, memory read, memory write, floating point,
stack, string, shift and multiply, and control instructions. Counted are WebAssembly instructions (columns
`opcode_…`, what `jostle measure` writes) or native ones by class (`native_…`, from callgrind).

| group | WebAssembly | native |
|---|---|---|
| `mix_vector_ratio` | `v128` | `vector` |
| `mix_integer_ratio` | integer arithmetic but the next, comparisons, `select` | `integer` |
| `mix_shift_multiply_ratio` | integer shifts, rotations, products, quotients, remainders | `shift_multiply` |
| `mix_float_ratio` | arithmetic and comparisons of floats, conversions from and to them | `float` |
| `mix_memory_read_ratio` | loads | data reads |
| `mix_memory_write_ratio` | stores | data writes |
| `mix_stack_ratio` | locals, globals and constants: the operands' own traffic | `stack` |
| `mix_string_ratio` | `memory.copy`, `memory.fill` and the like | `string` |
| `mix_control_ratio` | branches, calls, entries of functions | `branch`, `call` |
| `mix_other_ratio` | everything else | `move`, `other` |

WebAssembly's shares sum to 1. Native reads and writes are accesses and not instructions of their own, so
that theirs come on top of the others, which sum to 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

OPCODE, NATIVE = "opcode_", "native_"
_GROUPS = (
    "vector",
    "integer",
    "shift_multiply",
    "float",
    "memory_read",
    "memory_write",
    "stack",
    "string",
    "control",
    "other",
)
# Names without their prefix, `.` written `_`; the first that fits.
_WEBASSEMBLY = {
    "vector": r"v128",
    "memory_read": r"[if](32|64)_load\w*|table_get",
    "memory_write": r"[if](32|64)_store\w*|table_set",
    "string": r"(memory|table)_(copy|fill|init)",
    "stack": r"(local|global)_\w+|[if](32|64)_const",
    "control": r"function_entry|if|br\w*|(return_)?call\w*|throw\w*|try_table",
    "shift_multiply": r"i(32|64)_(mul|div_\w|rem_\w|shl|shr_\w|rotl|rotr)",
    "float": r"f(32|64)_\w+|i(32|64)_(trunc|reinterpret)_\w+",
    "integer": r"i(32|64)_\w+|select\w*",
}
_NATIVE = {
    "call": "control",
    "branch": "control",
    "vector": "vector",
    "float": "float",
    "integer": "integer",
    "shift_multiply": "shift_multiply",
    "stack": "stack",
    "string": "string",
    "move": "other",
    "other": "other",
}
_ACCESSES = ("memory_read", "memory_write")


def group_of_opcode(name: str) -> str:
    """The group of a WebAssembly instruction, `i32_add` or `i32.add`."""
    plain = name.replace(".", "_")
    return next((g for g, fits in _WEBASSEMBLY.items() if re.fullmatch(fits, plain)), "other")


def instruction_mix(counts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """{`mix_GROUP_ratio`: (w,)} of w workloads from their columns; {} where no column counts instructions.

    counts: {column: (w,) executions, NaN where unknown}. A workload with WebAssembly counts is described
    by those, others by native ones; NaN for one without either, or that executed nothing. Groups in which
    no workload executed anything are left out.
    """
    webassembly = {name: values for name, values in counts.items() if name.startswith(OPCODE)}
    native = {
        name: values
        for name, values in counts.items()
        if name.removeprefix(NATIVE) in {*_NATIVE, *_ACCESSES} and name.startswith(NATIVE)
    }
    if not webassembly and not native:
        return {}
    width = len(next(iter(counts.values())))
    first = _summed(webassembly, lambda name: group_of_opcode(name.removeprefix(OPCODE)), width)
    second = _summed(native, lambda name: _NATIVE.get(name.removeprefix(NATIVE)), width)
    for access in _ACCESSES:
        second[access] = native.get(f"{NATIVE}{access}", np.full(width, np.nan))
    shares = {}
    for group in _GROUPS:
        chosen = _share(first, group, _GROUPS)
        other = _share(second, group, tuple(g for g in _GROUPS if g not in _ACCESSES))
        share = np.where(np.isnan(chosen), other, chosen)
        if np.nansum(share) > 0:
            shares[f"mix_{group}_ratio"] = share
    return shares


def _summed(
    counts: Mapping[str, np.ndarray], group_of: Callable[[str], str | None], width: int
) -> dict[str, np.ndarray]:
    """{group: (w,) executions}; NaN where any count of the workload is unknown."""
    total = {group: np.full(width, 0.0 if counts else np.nan) for group in _GROUPS}
    for name, values in counts.items():
        group = group_of(name)
        if group is not None:
            total[group] = total[group] + values
    unknown = np.isnan(np.sum(list(total.values()), axis=0))
    return {group: np.where(unknown, np.nan, values) for group, values in total.items()}


def _share(total: dict[str, np.ndarray], group: str, summands: tuple[str, ...]) -> np.ndarray:
    whole = np.sum([total[name] for name in summands], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = total[group] / whole
    return np.where(np.isfinite(share), share, np.nan)
