"""The instruction mix from counts: every instruction has its place, and shares are those counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.bag import Bag, FittedBag
from jostle.bag._mix import group_of_opcode, instruction_mix
from jostle.kernels.opcodes._opcodes import COUNTED
from jostle.methods import learn
from jostle.runs import Runs


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("vector", "v128"),
        ("integer", "i32.add i64.sub i32.and i32.eqz i64.lt_u i32.wrap_i64 i64.extend8_s select"),
        ("shift_multiply", "i32.mul i64.div_s i32.rem_u i32.shl i64.shr_u i32.rotl"),
        ("float", "f32.add f64.lt f64.convert_i32_s i32.trunc_f64_s i32.trunc_sat_f32_u f32.abs"),
        ("memory_read", "i32.load i64.load8_s f64.load"),
        ("memory_write", "i32.store8 f32.store i64.store"),
        ("stack", "local.get local.tee global.set i32.const f64.const"),
        ("string", "memory.copy memory.fill"),
        ("control", "br br_if br_table if call call_indirect return_call function_entry"),
        ("other", "memory.size memory.grow ref.null"),
    ],
)
def test_groups_of_instructions(group: str, names: str) -> None:
    assert {group_of_opcode(name) for name in names.split()} == {group}


def described_by(fitted: FittedBag) -> Any:
    assert fitted.trees is not None
    return fitted.trees.described


def test_few_instructions_fall_in_no_group() -> None:
    other = {name for name in COUNTED if group_of_opcode(name) == "other"}
    assert {name.partition(".")[0] for name in other} <= {"memory", "data", "elem", "table", "ref"}


def test_shares_by_hand() -> None:
    nan = np.nan
    mix = instruction_mix(
        {
            "opcode_i32_add": np.array([2.0, nan, 0.0]),
            "opcode_i32_load": np.array([6.0, nan, 0.0]),
            "opcode_br": np.array([2.0, nan, 0.0]),
            "instructions": np.array([10.0, 5.0, 0.0]),
        }
    )
    assert set(mix) == {"mix_integer_ratio", "mix_memory_read_ratio", "mix_control_ratio"}
    assert mix["mix_integer_ratio"] == pytest.approx([0.2, nan, nan], nan_ok=True)
    assert mix["mix_memory_read_ratio"] == pytest.approx([0.6, nan, nan], nan_ok=True)
    assert mix["mix_control_ratio"] == pytest.approx([0.2, nan, nan], nan_ok=True)
    assert instruction_mix({"instructions": np.array([1.0])}) == {}


def counted(columns: dict[str, Any]) -> Runs:
    apps = ["a", "b", "c"]
    pairs = [(w, o) for w in apps for o in apps]
    return Runs.from_columns(
        workload=[*apps, *(w for w, _ in pairs)],
        platform=["gpu"] * 12,
        corunners=[[], [], [], *([o] for _, o in pairs)],
        runtime_seconds=[1.0, 2.0, 3.0, *(2.0 + number for number in range(9))],
        workload_features={"workload": apps, **columns},
    )


def test_counts_become_the_mix_of_a_bag() -> None:
    runs = counted(
        {
            "opcode_i32_add": [1, 2, 3],
            "opcode_i32_load": [9, 8, 7],
            "instructions": [10, 10, 10],
            "kernel": ["a", "b", "c"],
            "module_sha256": ["f", "e", "d"],
        }
    )
    fitted = learn(Bag(learner="tree"), runs)
    own = dict(zip(described_by(fitted).columns, described_by(fitted).groups, strict=True))
    assert own["mix_integer_ratio"] == own["mix_memory_read_ratio"] == "mix"
    assert not any(name.startswith(("opcode_", "module_")) for name in own)  # in the shares already
    assert own["kernel=a"] == "other"
    at = described_by(fitted).columns.index("mix_integer_ratio")
    assert described_by(fitted).numbers[:, at].tolist() == pytest.approx([0.1, 0.2, 0.3])


def test_a_given_mix_is_left_as_it_is() -> None:
    runs = counted({"mix_fp_ratio": [0.1, 0.2, 0.3], "opcode_i32_add": [1, 2, 3]})
    own = described_by(learn(Bag(learner="tree"), runs)).columns
    assert own == ("mix_fp_ratio", "opcode_i32_add")
