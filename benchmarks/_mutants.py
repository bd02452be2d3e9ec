"""Small changes to a module, each of which a test should notice: where they are and what they replace."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

COMPARISONS = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
ARITHMETIC = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.BitOr: "&",
    ast.BitAnd: "|",
}
# Functions of which it is all the same in which order they are given their arguments.
SYMMETRIC = {"max", "min", "np.maximum", "np.minimum", "np.fmax", "np.fmin", "np.hypot"}
EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
FALL_THROUGH = (ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """What stands from `start` to `end` (bytes of the module) becomes `text`."""

    kind: str
    line: int
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The module with the change made."""
        return source[: self.start] + self.text.encode() + source[self.end :]


class Finder:
    """Finds all mutants of a module: in what runs, not in annotations, texts and imports."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        lines = source.splitlines(keepends=True)
        self._starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]

    def all(self) -> list[Mutant]:
        """In the order in which they stand."""
        found = {(m.start, m.end, m.text): m for m in self._in(ast.parse(self.source))}
        return sorted(found.values(), key=lambda m: (m.start, m.end, m.text))

    def _in(self, node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr)):
            return
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        yield from self._of(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            if isinstance(node, ast.ExceptHandler) and name == "type":
                continue  # the order of exceptions means nothing
            children = value if isinstance(value, list) else [value]
            yield from self._in_order(children)
            for child in children:
                if isinstance(child, ast.AST):
                    yield from self._in(child)

    def _of(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left=left, ops=[one], comparators=[right]):
                for operator in COMPARISONS[type(one)]:
                    yield self._new("comparison", node, f"{_t(left)} {operator} {_t(right)}")
            case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str()) | ast.JoinedStr()):
                pass  # a path, which can only go wrong
            case ast.BinOp(left=left, op=one, right=right) if type(one) in ARITHMETIC:
                yield self._new(
                    "arithmetic", node, f"{_t(left)} {ARITHMETIC[type(one)]} {_t(right)}"
                )
            case ast.BoolOp(op=one, values=values):
                word = " or " if isinstance(one, ast.And) else " and "
                yield self._new("condition", node, f"({word.join(map(_t, values))})")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._new("condition", node, _t(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield self._new("arithmetic", node, _t(operand))
            case ast.Constant(value=bool() as value):
                yield self._new("constant", node, str(not value))
            case ast.Constant(value=int() | float() as value):
                for more in (1, -1):
                    yield self._new("constant", node, repr(value + more))
            case ast.Call():
                yield from self._of_call(node)
            case ast.comprehension(ifs=[condition]):
                yield self._new("condition", condition, "True")
            case ast.IfExp(test=test):
                yield self._new("condition", test, f"not {_t(test)}")
            case ast.stmt():
                yield from self._of_statement(node)

    def _of_call(self, node: ast.Call) -> Iterator[Mutant]:
        if isinstance(node.func, ast.Name) and node.func.id in EXCHANGED:
            yield self._new("call", node.func, EXCHANGED[node.func.id])
        match node.args:
            case _ if _t(node.func) in SYMMETRIC:
                pass
            case [first, second, *_] if not isinstance(first, ast.Starred | ast.Constant):
                if not isinstance(second, ast.Starred | ast.Constant) and _t(first) != _t(second):
                    text = f"{_t(second)}, {_t(first)}"
                    yield self._between("arguments", first, second, text)

    def _of_statement(self, node: ast.stmt) -> Iterator[Mutant]:
        match node:
            case ast.Expr(value=ast.Call()) | ast.AugAssign():
                yield self._new("statement", node, "pass")
            case ast.If(test=test, orelse=orelse):
                if not isinstance(
                    test, ast.Compare | ast.UnaryOp
                ):  # those have such a mutant already
                    yield self._new("condition", test, f"not {_t(test)}")
                yield self._new("branch", test, "False")
                if orelse:
                    yield self._new("branch", test, "True")
            case ast.With(items=items) if all(i.optional_vars is None for i in items):
                yield self._between("statement", node, items[-1].context_expr, "if True")
        if isinstance(node, FALL_THROUGH):
            yield self._new("statement", node, "pass")

    def _in_order(self, children: list[object]) -> Iterator[Mutant]:
        """Neighbours that could stand the other way round: calls one after the other, members of a list."""
        for one, two in pairwise(children):
            match one, two:
                case ast.Expr(value=ast.Call()), ast.Expr(value=ast.Call()):
                    indent = "\n" + " " * one.col_offset
                    yield self._between("order", one, two, f"{_t(two)}{indent}{_t(one)}")
        for child in children:
            members = _members(child)
            if 2 <= len(members) <= 6 and _t(members[0]) != _t(members[-1]):
                first, *middle, last = map(_t, members)
                text = ", ".join([last, *middle, first])
                if isinstance(child, ast.Dict):
                    keys = [_t(key) for key in child.keys if key is not None]
                    keys = [keys[-1], *keys[1:-1], keys[0]]
                    values = [last, *middle, first]
                    pairs = zip(keys, values, strict=True)
                    text = ", ".join(f"{key}: {value}" for key, value in pairs)
                    yield self._new("order", child, f"{{{text}}}")
                else:
                    yield self._between("order", members[0], members[-1], text)

    def _new(self, kind: str, node: ast.AST, text: str) -> Mutant:
        return self._between(kind, node, node, text)

    def _between(self, kind: str, first: ast.AST, last: ast.AST, text: str) -> Mutant:
        start = self._starts[first.lineno - 1] + first.col_offset  # type: ignore[attr-defined]
        end = self._starts[last.end_lineno - 1] + last.end_col_offset  # type: ignore[attr-defined]
        return Mutant(kind, first.lineno, start, end, text)  # type: ignore[attr-defined]


def _members(node: object) -> list[ast.expr]:
    match node:
        case ast.Tuple(elts=members, ctx=ast.Load()) | ast.List(elts=members, ctx=ast.Load()):
            return [] if any(isinstance(m, ast.Constant) for m in members) else members
        case ast.Dict(keys=keys, values=values) if all(key is not None for key in keys):
            return values
    return []


def _t(node: ast.AST) -> str:
    text = ast.unparse(node)
    simple = (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript, ast.stmt)
    return text if isinstance(node, simple) else f"({text})"


def mutants(source: bytes, keep: Callable[[Mutant], bool] = lambda one: True) -> list[Mutant]:
    """All mutants of a module that are Python and that `keep` takes."""
    found = []
    for one in Finder(source).all():
        try:
            compile(one.applied(source), "mutant", "exec")
        except SyntaxError:
            continue
        if keep(one):
            found.append(one)
    return found
