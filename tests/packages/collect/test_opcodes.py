"""Instruction counts by rewriting equal wasmtime's fuel and what is counted by hand."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import wasmtime

from jostle.collect import count_opcodes, make_engine, shipped_workloads
from jostle.collect.kernels.opcodes._rewrite import rewrite
from jostle.errors import BadData

FUEL = 10**15


def fuel_of(module: bytes, calls: list[tuple[str, tuple[int, ...]]]) -> int:
    """What wasmtime's own counter says about these calls, traps included."""
    store = wasmtime.Store(make_engine("speed", fuel=True))
    store.set_fuel(FUEL)
    used = 0
    exports: Any = wasmtime.Instance(store, wasmtime.Module(store.engine, module), []).exports(
        store
    )
    for name, arguments in calls:
        before = store.get_fuel()
        with contextlib.suppress(wasmtime.Trap):
            exports[name](store, *arguments)
        used = before - store.get_fuel()
    return used


def counts_of(
    module: bytes, call: str, arguments: tuple[int, ...]
) -> tuple[dict[str, int], int, Any]:
    """(histogram, bulk units, result) of one call of the rewritten module."""
    counting = rewrite(module)
    store = wasmtime.Store(make_engine("speed"))
    compiled = wasmtime.Module(store.engine, counting.module)
    exports: Any = wasmtime.Instance(store, compiled, []).exports(store)
    start = counting.read(store, exports)
    try:
        result = exports[call](store, *arguments)
    except wasmtime.Trap:
        result = "trap"
    end = counting.read(store, exports)
    executions, moved, other = (
        [b - a for a, b in zip(*pair, strict=True)] for pair in zip(start, end, strict=True)
    )
    return counting.histogram(executions), moved[0] + other[0], result


CONTROL_FLOW = {
    "straight": """
        (func (export "f") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))""",
    "block_and_branch": """
        (func (export "f") (param i32) (result i32)
          (block $out (result i32)
            (drop (br_if $out (i32.const 7) (i32.gt_s (local.get 0) (i32.const 3))))
            (nop) (i32.mul (local.get 0) (i32.const 3))))""",
    "loop": """
        (func (export "f") (param i32) (result i32) (local $sum i32)
          (loop $again
            (local.set $sum (i32.add (local.get $sum) (local.get 0)))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
          (local.get $sum))""",
    "nested_loops_with_if": """
        (func (export "f") (param i32) (result i32) (local $i i32) (local $j i32) (local $n i32)
          (block $done
            (loop $outer
              (br_if $done (i32.ge_u (local.get $i) (local.get 0)))
              (local.set $j (i32.const 0))
              (loop $inner
                (if (i32.and (local.get $j) (i32.const 1))
                  (then (local.set $n (i32.add (local.get $n) (i32.const 2))))
                  (else (local.set $n (i32.sub (local.get $n) (i32.const 1)))))
                (local.set $j (i32.add (local.get $j) (i32.const 1)))
                (br_if $inner (i32.lt_u (local.get $j) (i32.const 5))))
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br $outer)))
          (local.get $n))""",
    "if_without_else": """
        (func (export "f") (param i32) (result i32)
          (if (local.get 0) (then (local.set 0 (i32.const 40))))
          (i32.add (local.get 0) (i32.const 2)))""",
    "br_table": """
        (func (export "f") (param i32) (result i32)
          (block $two (block $one (block $zero
            (br_table $zero $one $two (local.get 0)))
            (return (i32.const 10)))
            (local.set 0 (i32.add (local.get 0) (i32.const 5)))
            (return (i32.mul (local.get 0) (i32.const 20))))
          (i32.const 30))""",
    "early_return": """
        (func (export "f") (param i32) (result i32)
          (if (i32.eqz (local.get 0)) (then (return (i32.const -1))))
          (i32.rem_u (i32.const 100) (local.get 0)))""",
    "unreachable": """
        (func (export "f") (param i32) (result i32)
          (if (i32.eq (local.get 0) (i32.const 3)) (then (unreachable)))
          (i32.const 1) (br 0) (drop) (i32.add (i32.const 1) (i32.const 2)))""",
    "recursion": """
        (func $f (export "f") (param i32) (result i32)
          (if (result i32) (i32.lt_u (local.get 0) (i32.const 2))
            (then (local.get 0))
            (else (i32.add (call $f (i32.sub (local.get 0) (i32.const 1)))
                           (call $f (i32.sub (local.get 0) (i32.const 2)))))))""",
    "indirect_calls": """
        (type $t (func (param i32) (result i32)))
        (table funcref (elem $a $b))
        (func $a (type $t) (i32.add (local.get 0) (i32.const 1)))
        (func $b (type $t) (i32.shl (local.get 0) (i32.const 2)))
        (func (export "f") (param i32) (result i32)
          (call_indirect (type $t) (local.get 0) (i32.and (local.get 0) (i32.const 1))))""",
    "tail_calls": """
        (func $down (param i32 i32) (result i32)
          (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
          (return_call $down (i32.sub (local.get 0) (i32.const 1))
                             (i32.add (local.get 1) (i32.const 2))))
        (func (export "f") (param i32) (result i32)
          (return_call $down (local.get 0) (i32.const 0)))""",
    "multi_value": """
        (func $both (param i32) (result i32 i32) (local.get 0) (i32.const 9))
        (func (export "f") (param i32) (result i32)
          (call $both (local.get 0))
          (block (param i32 i32) (result i32) (i32.add))
          (loop (param i32) (result i32) (i32.const 1) (i32.add)))""",
    "bulk_memory": """
        (memory 2) (data $d "abcdefgh")
        (func (export "f") (param i32) (result i32)
          (memory.fill (i32.const 0) (i32.const 3) (i32.mul (local.get 0) (i32.const 10)))
          (if (local.get 0) (then (memory.copy (i32.const 100) (i32.const 0) (local.get 0))))
          (memory.init $d (i32.const 200) (i32.const 1) (i32.const 4))
          (drop (memory.grow (i32.const 1)))
          (i32.load8_u (i32.const 203)))""",
    "tables": """
        (table $t 20 100 funcref) (elem $e func $g $g $g) (func $g)
        (func (export "f") (param i32) (result i32)
          (table.init $t $e (i32.const 0) (i32.const 0) (i32.const 2))
          (table.copy (i32.const 4) (i32.const 0) (local.get 0))
          (table.fill $t (i32.const 10) (ref.null func) (i32.const 3))
          (drop (table.grow $t (ref.func $g) (i32.const 2)))
          (table.set $t (i32.const 1) (table.get $t (i32.const 0)))
          (i32.add (table.size $t) (ref.is_null (table.get $t (i32.const 0)))))""",
    "globals_are_kept_apart": """
        (global $mine (export "mine") (mut i32) (i32.const 5)) (global f64 (f64.const 1))
        (func (export "f") (param i32) (result i32)
          (global.set $mine (i32.add (global.get $mine) (local.get 0))) (global.get $mine))""",
    "vectors": """
        (memory 1)
        (func (export "f") (param i32) (result i32) (local v128)
          (local.set 1 (i32x4.add (i32x4.splat (local.get 0)) (v128.const i32x4 1 2 3 4)))
          (v128.store (i32.const 16) (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
            (local.get 1) (v128.load offset=0 (i32.const 0))))
          (v128.store16_lane 3 (i32.const 40) (local.get 1))
          (i32x4.extract_lane 2 (v128.load (i32.const 16))))""",
    "every_constant_and_conversion": """
        (func (export "f") (param i32) (result i32)
          (i32.trunc_sat_f64_s (f64.promote_f32 (f32.convert_i64_s
            (i64.extend8_s (i64.add (i64.const -9223372036854775808)
              (i64.reinterpret_f64 (f64.const -1.5))))))))""",
    "exceptions": """
        (tag $e (param i32))
        (func $throws (param i32) (if (local.get 0) (then (throw $e (local.get 0)))))
        (func (export "f") (param i32) (result i32)
          (block $caught (result i32)
            (try_table (catch $e $caught) (call $throws (local.get 0)))
            (return (i32.const 0)))
          (i32.add (i32.const 1)))""",
}


@pytest.mark.parametrize("name", CONTROL_FLOW)
@pytest.mark.parametrize("argument", [0, 1, 2, 3, 6])
def test_control_flow_agrees_with_fuel(name: str, argument: int) -> None:
    if name == "loop" and argument == 0:
        argument = 9  # it would count down from 2^32
    module = bytes(wasmtime.wat2wasm(f"(module {CONTROL_FLOW[name]})"))
    histogram, bulk, result = counts_of(module, "f", (argument,))
    assert sum(histogram.values()) + bulk == fuel_of(module, [("f", (argument,))])
    store = wasmtime.Store(make_engine("speed"))
    exports: Any = wasmtime.Instance(store, wasmtime.Module(store.engine, module), []).exports(
        store
    )
    try:
        expected = exports["f"](store, argument)
    except wasmtime.Trap:
        expected = "trap"
    assert result == expected


def test_a_histogram_counted_by_hand() -> None:
    module = bytes(wasmtime.wat2wasm(f"(module {CONTROL_FLOW['loop']})"))
    histogram, bulk, result = counts_of(module, "f", (10,))
    assert (result, bulk) == (55, 0)
    assert histogram == {
        "function_entry": 1,
        "local.get": 10 * 3 + 1,
        "i32.add": 10,
        "local.set": 10,
        "i32.const": 10,
        "i32.sub": 10,
        "local.tee": 10,
        "br_if": 10,
    }


# Every module in two sizes; the third only repeats more of the same.
COUNTED = [workload for workload in shipped_workloads() if workload.size != "l"]


@pytest.mark.parametrize("workload", COUNTED, ids=[workload.name for workload in COUNTED])
def test_shipped_workloads_agree_with_fuel(workload: Any) -> None:
    """Every repetition executes the same: beats measure progress in instructions."""
    counts = count_opcodes(workload)
    setup, repetition = ("setup", (workload.argument,)), ("run", (workload.repeats,))
    assert counts.fuel == fuel_of(workload.module_bytes, [setup, repetition])
    assert counts.fuel == fuel_of(workload.module_bytes, [setup, repetition, repetition])
    columns = counts.columns()
    opcodes = sum(value for name, value in columns.items() if name.startswith("opcode_"))
    assert columns["instructions"] == opcodes > 0
    assert columns["memory_bytes"] >= 65536


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(memory 1 1 shared) (func (drop (i32.atomic.load (i32.const 0))))", "atomic"),
        ("(type $s (struct (field i32))) (func (drop (struct.new $s (i32.const 1))))", "garbage"),
        ("(type $f (func)) (func (param (ref $f)) (call_ref $f (local.get 0)))", "0x14"),
        ("(type $f (func)) (func (local (ref null $f)))", "typed references"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(text: str, message: str) -> None:
    module = bytes(wasmtime.wat2wasm(f"(module {text})"))
    with pytest.raises(BadData, match=message):
        rewrite(module)


@pytest.mark.parametrize("cut", [0, 4, 8, 9, -1])
def test_what_is_no_module_is_refused(cut: int) -> None:
    module = shipped_workloads()[0].module_bytes[:cut] + (b"\xff" if cut > 8 else b"")
    if cut == 8:
        assert rewrite(module).segments == ()
        return
    with pytest.raises(BadData):
        rewrite(module)
