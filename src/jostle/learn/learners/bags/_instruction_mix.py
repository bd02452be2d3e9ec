"""The instruction mix from counts: what share of a workload's instructions is of each kind.

Source: Moolchandani et al., Sec. IV: shares of vector (SSE), ALU, memory read, memory write, floating point,
stack, string, shift and multiply, and control instructions. Counted are WebAssembly instructions (columns
`opcode_…`, what `jostle measure` writes).

| group | instructions |
|---|---|
| `mix_vector_ratio` | `v128` |
| `mix_integer_ratio` | integer arithmetic but the next, comparisons, `select` |
| `mix_shift_multiply_ratio` | integer shifts, rotations, products, quotients, remainders |
| `mix_float_ratio` | arithmetic and comparisons of floats, conversions from and to them |
| `mix_memory_read_ratio` | loads |
| `mix_memory_write_ratio` | stores |
| `mix_stack_ratio` | locals, globals and constants: the operands' own traffic |
| `mix_string_ratio` | `memory.copy`, `memory.fill` and the like |
| `mix_control_ratio` | branches, calls, entries of functions |
| `mix_other_ratio` | everything else |

The shares sum to 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

OPCODE = "opcode_"
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


def group_of_opcode(name: str) -> str:
    """Return the group of a WebAssembly instruction, `i32_add` or `i32.add`."""
    plain = name.replace(".", "_")
    return next((g for g, fits in _WEBASSEMBLY.items() if re.fullmatch(fits, plain)), "other")


def instruction_mix(counts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Compute {`mix_GROUP_ratio`: (w,)} from counts of instructions; {} if no column holds any.

    counts: {column: (w,) executions, NaN where unknown}. NaN for a workload without counts, or that executed
    nothing. Groups in which no workload executed anything are left out.
    """
    counted = {name: values for name, values in counts.items() if name.startswith(OPCODE)}
    if not counted:
        return {}
    width = len(next(iter(counts.values())))
    total = {group: np.zeros(width) for group in _GROUPS}
    for name, values in counted.items():
        group = group_of_opcode(name.removeprefix(OPCODE))
        total[group] = total[group] + values
    unknown = np.isnan(np.sum(list(total.values()), axis=0))
    total = {group: np.where(unknown, np.nan, values) for group, values in total.items()}
    whole = np.sum(list(total.values()), axis=0)
    shares = {}
    for group, values in total.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            share = values / whole
        share = np.where(np.isfinite(share), share, np.nan)
        if np.nansum(share) > 0:
            shares[f"mix_{group}_ratio"] = share
    return shares
