"""The names of WebAssembly's instructions and the shape of what follows each opcode.

From the WebAssembly core specification, chapters 5.4 (binary format of instructions) and 7 (index
of instructions). Fuel is what wasmtime charges: nothing for the instructions in FREE, one for any
other.
"""

from __future__ import annotations

# Opcode, name, and what follows it: - nothing; i an index or other LEB128 number; b a block type; m a memory
# operand; v a vector of numbers and one more (br_table); t a vector of value types; c catch
# clauses; 4, 8, 16: so many bytes; l one lane byte.
_CONTROL = (
    "00 unreachable -; 01 nop -; 02 block b; 03 loop b; 04 if b; 05 else -; 08 throw i; "
    "0a throw_ref -; 0b end -; 0c br i; 0d br_if i; 0e br_table v; 0f return -; 10 call i; "
    "11 call_indirect ii; 12 return_call i; 13 return_call_indirect ii; 1a drop -; "
    "1b select -; 1c select_typed t; 1f try_table bc; 20 local.get i; 21 local.set i; "
    "22 local.tee i; 23 global.get i; 24 global.set i; 25 table.get i; 26 table.set i; "
    "3f memory.size i; 40 memory.grow i; 41 i32.const i; 42 i64.const i; 43 f32.const 4; "
    "44 f64.const 8; d0 ref.null i; d1 ref.is_null -; d2 ref.func i"
)

_LOADS_AND_STORES = (  # from 0x28
    "i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u "
    "i64.load8_s i64.load8_u i64.load16_s i64.load16_u i64.load32_s i64.load32_u "
    "i32.store i64.store f32.store f64.store "
    "i32.store8 i32.store16 i64.store8 i64.store16 i64.store32"
)
_MEMORY = _LOADS_AND_STORES.split()

_COMPARE = "eqz eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u"
_COMPARE_FLOAT = "eq ne lt gt le ge"
_INTEGER = "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr"
_FLOAT = "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign"
_CONVERT = (
    "i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u "
    "i64.extend_i32_s i64.extend_i32_u "
    "i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u "
    "f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64 "
    "f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32 "
    "i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64 "
    "i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s"
)


def _each(prefix: str, names: str) -> list[str]:
    return [f"{prefix}.{name}" for name in names.split()]


_NUMERIC = [  # from 0x45
    *_each("i32", _COMPARE),
    *_each("i64", _COMPARE),
    *_each("f32", _COMPARE_FLOAT),
    *_each("f64", _COMPARE_FLOAT),
    *_each("i32", _INTEGER),
    *_each("i64", _INTEGER),
    *_each("f32", _FLOAT),
    *_each("f64", _FLOAT),
    *_CONVERT.split(),
]

SINGLE: dict[int, tuple[str, str]] = {
    **{
        int(code, 16): (name, "" if shape == "-" else shape)
        for code, name, shape in map(str.split, _CONTROL.split(";"))
    },
    **{0x28 + at: (name, "m") for at, name in enumerate(_MEMORY)},
    **{0x45 + at: (name, "") for at, name in enumerate(_NUMERIC)},
}

PREFIX_MISC, PREFIX_SIMD, PREFIX_ATOMIC, PREFIX_GC = 0xFC, 0xFD, 0xFE, 0xFB

_SATURATING = (
    "i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u "
    "i64.trunc_sat_f32_s i64.trunc_sat_f32_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u"
)

MISC: dict[int, tuple[str, str]] = {
    **{at: (name, "") for at, name in enumerate(_SATURATING.split())},
    8: ("memory.init", "ii"),
    9: ("data.drop", "i"),
    10: ("memory.copy", "ii"),
    11: ("memory.fill", "i"),
    12: ("table.init", "ii"),
    13: ("elem.drop", "i"),
    14: ("table.copy", "ii"),
    15: ("table.grow", "i"),
    16: ("table.size", "i"),
    17: ("table.fill", "i"),
}

# All vector instructions are counted under one name: their kinds are many and their use is rare.
VECTOR = "v128"


def vector_shape(opcode: int) -> str | None:
    """Return what follows vector opcode 0xFD opcode; None where there is no such instruction."""
    if opcode <= 11 or opcode in (92, 93):
        return "m"
    if opcode in (12, 13):
        return "16"
    if 21 <= opcode <= 34:
        return "l"
    if 84 <= opcode <= 91:
        return "ml"
    return "" if opcode <= 275 else None


# wasmtime's fuel rule (its `fuel_before_op`): these cost nothing, entering a function costs one.
FREE = frozenset(["nop", "drop", "block", "loop", "unreachable", "return", "else", "end"])

# Every name a count can have: the columns of the workload features, whether executed or not.
COUNTED: tuple[str, ...] = (
    "function_entry",
    *(name for name, _ in SINGLE.values() if name not in FREE),
    *(name for name, _ in MISC.values()),
    VECTOR,
)
