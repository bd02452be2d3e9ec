"""The instruction mix from counts: every instruction has its place, and shares are those counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.data import Runs
from jostle.learn import learn
from jostle.learn.learners.bags import Bag
from jostle.learn.learners.bags._instruction_mix import group_of_opcode

# Some instructions of every group.
GROUPS = {
    "vector": "v128",
    "integer": "i32.add i64.sub i32.and i32.eqz i64.lt_u i32.wrap_i64 i64.extend8_s select",
    "shift_multiply": "i32.mul i64.div_s i32.rem_u i32.shl i64.shr_u i32.rotl",
    "float": "f32.add f64.lt f64.convert_i32_s i32.trunc_f64_s i32.trunc_sat_f32_u f32.abs",
    "memory_read": "i32.load i64.load8_s f64.load",
    "memory_write": "i32.store8 f32.store i64.store",
    "stack": "local.get local.tee global.set i32.const f64.const",
    "string": "memory.copy memory.fill",
    "control": "br br_if br_table if call call_indirect return_call function_entry",
    "other": "memory.size memory.grow ref.null",
}


def described(columns: dict[str, Any]) -> tuple[dict[str, str], dict[str, list[float]]]:
    """({column: its group}, {column: its numbers}) of three workloads with these columns."""
    apps = ["a", "b", "c"]
    pairs = [(w, o) for w in apps for o in apps]
    runs = Runs.from_columns(
        workload=[*apps, *(w for w, _ in pairs)],
        platform=["gpu"] * 12,
        corunners=[[], [], [], *([o] for _, o in pairs)],
        runtime_seconds=[1.0, 2.0, 3.0, *(2.0 + number for number in range(9))],
        workload_features={"workload": apps, **columns},
    )
    trees = learn(Bag(learner="tree"), runs).trees
    assert trees is not None
    own = trees.described
    numbers = dict(zip(own.columns, own.numbers.T.tolist(), strict=True))
    return dict(zip(own.columns, own.groups, strict=True)), numbers


def test_groups_of_instructions() -> None:
    for group, names in GROUPS.items():
        assert {group_of_opcode(name) for name in names.split()} == {group}


def test_counts_become_the_mix_of_a_bag() -> None:
    groups, numbers = described(
        {
            "opcode_i32_add": [1, 2, None],
            "opcode_i32_load": [9, 8, None],
            "instructions": [10, 10, 10],
            "kernel": ["a", "b", "c"],
            "module_sha256": ["f", "e", "d"],
        }
    )
    assert groups["mix_integer_ratio"] == groups["mix_memory_read_ratio"] == "mix"
    assert not any(name.startswith(("opcode_", "module_")) for name in groups)  # in shares already
    assert groups["kernel=a"] == "other"
    assert numbers["mix_integer_ratio"] == pytest.approx([0.1, 0.2, np.nan], nan_ok=True)


def test_a_given_mix_is_left_as_it_is() -> None:
    groups, _ = described({"mix_fp_ratio": [0.1, 0.2, 0.3], "opcode_i32_add": [1, 2, 3]})
    assert list(groups) == ["mix_fp_ratio", "opcode_i32_add"]
