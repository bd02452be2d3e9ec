"""The instruction mix from counts: every instruction has its place, and shares are those counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.bag import Bag, FittedBag
from jostle.bag._mix import group_of_opcode, instruction_mix
from jostle.kernels.opcodes._native_mix import class_of, parse_callgrind
from jostle.kernels.opcodes._opcodes import COUNTED
from jostle.measure import NativeMix
from jostle.methods import learn
from jostle.runs import CsvImport, Dataset, Runs

RECORDED = Path(__file__).parent / "callgrind.out.txt"


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
            "opcode_i32_add": np.array([2.0, nan, nan, 0.0]),
            "opcode_i32_load": np.array([6.0, nan, nan, 0.0]),
            "opcode_br": np.array([2.0, nan, nan, 0.0]),
            "native_integer": np.array([nan, 3.0, nan, nan]),
            "native_call": np.array([nan, 1.0, nan, nan]),
            "native_memory_read": np.array([nan, 2.0, nan, nan]),
            "instructions": np.array([10.0, nan, 5.0, 0.0]),
        }
    )
    assert set(mix) == {"mix_integer_ratio", "mix_memory_read_ratio", "mix_control_ratio"}
    assert mix["mix_integer_ratio"] == pytest.approx([0.2, 0.75, nan, nan], nan_ok=True)
    assert mix["mix_memory_read_ratio"] == pytest.approx([0.6, 0.5, nan, nan], nan_ok=True)
    assert mix["mix_control_ratio"] == pytest.approx([0.2, 0.25, nan, nan], nan_ok=True)
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


def test_a_recording_of_callgrind_becomes_features_of_a_bag(tmp_path: Path) -> None:
    """From a file that callgrind wrote to a tree that asks about it, by way of a table of features."""
    found = parse_callgrind(RECORDED.read_text())
    (executed,) = found.executed.values()
    listing = dict(
        line.split(": ") for line in (RECORDED.parent / "listing.txt").read_text().splitlines()
    )
    names: dict[str, int] = {}
    for address, count in executed.items():
        name = listing[f"{address:x}"]
        names[name] = names.get(name, 0) + count
    mix = NativeMix(names, 0, found.totals["Dr"], found.totals["Dw"])
    assert mix.instructions == found.totals["Ir"] == sum(executed.values())
    first = mix.columns()
    by_class = {
        kind: sum(n for m, n in names.items() if class_of(m) == kind) for kind in ("stack",)
    }
    assert first["native_stack"] == by_class["stack"] > 0
    second = first | {"native_integer": 10 * (first["native_integer"] or 0)}
    header = "workload," + ",".join(first)
    rows = [f"{w}," + ",".join(map(str, c.values())) for w, c in (("a", first), ("b", second))]
    (tmp_path / "features.csv").write_text("\n".join([header, *rows]) + "\n")
    lines = ["app,gpu,beside,s", "a,g,,1", "b,g,,2", "a,g,b,2", "b,g,a,4", "a,g,a,3", "b,g,b,5"]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    imported = CsvImport(
        tmp_path / "runs.csv",
        workload="app",
        runtime="s",
        unit="s",
        platform="gpu",
        corunners=("beside",),
        workload_features=tmp_path / "features.csv",
    ).read()
    imported.write(tmp_path / "data")
    runs = Dataset(tmp_path / "data").read()
    fitted = learn(Bag(learner="tree", groups=("mix",)), runs)
    assert set(fitted.feature_groups) == {"mix"}
    share = described_by(fitted).numbers[:, described_by(fitted).columns.index("mix_integer_ratio")]
    assert share[0] == pytest.approx((first["native_integer"] or 0) / mix.instructions)
    assert share[1] > share[0]
    assert fitted.predict(runs.colocations) == pytest.approx(runs.runtime_seconds)
