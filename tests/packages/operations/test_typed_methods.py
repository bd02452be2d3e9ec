"""Verbs as methods: their stubs name the parameters and defaults that the questions have."""

from __future__ import annotations

import ast
from inspect import Parameter, getdoc, getfile, signature
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.placement import DevicePlacement, Placement
from jostle.usage import Peaks, Residents

NAMES = {"_placement_verbs": "PlacementVerbs", "_client_verbs": "ClientVerbs"}


def verbs_of(kind: type) -> type:
    (base,) = [one for one in kind.__mro__ if one.__name__.endswith("Verbs")]
    return base


def stubbed(base: type) -> dict[str, list[tuple[str, Any]]]:
    """{method: (parameter, its default as text) of the stub}; None where it has no default."""
    stub = ast.parse(Path(getfile(base)).with_suffix(".pyi").read_text("utf-8"))
    (kind,) = [node for node in stub.body if isinstance(node, ast.ClassDef)]
    methods = {}
    for node in kind.body:
        assert isinstance(node, ast.FunctionDef)
        plain = node.args.args[1:]
        defaults = [None] * (len(plain) - len(node.args.defaults)) + node.args.defaults
        named = [*zip(plain, defaults, strict=True)]
        named += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        methods[node.name] = [(arg.arg, value and ast.literal_eval(value)) for arg, value in named]
    return methods


def real(base: type, name: str) -> list[tuple[str, Any]]:
    parameters = list(signature(getattr(base, name)).parameters.values())[1:]
    pairs = [(p.name, None if p.default is Parameter.empty else p.default) for p in parameters]
    return [(name, ... if callable(value) else value) for name, value in pairs]


@pytest.mark.parametrize("kind", [Placement, DevicePlacement, Peaks, Residents, jostle.Client])
def test_a_stub_has_every_verb_with_its_parameters(kind: type) -> None:
    base = verbs_of(kind)
    verbs = {name for name in dir(base) if not name.startswith("_")}
    told = stubbed(base)
    assert set(told) == verbs
    for name in verbs:
        assert sorted(told[name], key=str) == sorted(real(base, name), key=str), name


def test_a_verb_helps_with_the_sentences_of_its_question() -> None:
    text = getdoc(Placement.rank) or ""
    assert text.startswith("List all nodes for each request")
    assert "Parameters\n----------\nleast\n    What the best has least of" in text
