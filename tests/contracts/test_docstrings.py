"""Docstrings of public names, held to numpydoc's checks."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jostle
from tests.contracts.site_samples import loaded

ROOT = Path(__file__).resolve().parents[2]
# There is one; its first sentence begins with a capital letter and a verb, and ends with a full stop.
CHECKS = {"GL08", "SS02", "SS03", "SS04", "SS05"}
# Functions of `jostle` have a section that names each parameter, no other, in their order, with what it is.
# Types stand in the signature.
OF_PARAMETERS = {"PR01", "PR02", "PR03", "PR07"}


def public() -> Iterator[tuple[str, Any]]:
    """Public functions and classes of the packages, and functions of these classes, by where they are."""
    site = loaded("site_hooks", ROOT / "docs" / "_site.py")
    for home in sorted({home for package, _ in site.PACKAGES for home in site._public(package)}):
        module, _, name = home.rpartition(".")
        thing = getattr(importlib.import_module(module), name, None)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            yield home, thing
        for own, member in vars(thing).items() if inspect.isclass(thing) else ():
            member = getattr(member, "__func__", member)
            if not own.startswith("_") and isinstance(member, (property, type(public))):
                yield f"{home}.{own}", getattr(thing, own)


def test_docstrings_of_public_names() -> None:
    validate = pytest.importorskip("numpydoc.validate").validate
    names, wrong, functions = list(public()), [], 0
    face = {getattr(jostle, name) for name in dir(jostle)}
    for home, thing in names:
        errors = dict(validate(home)["errors"])
        if inspect.getdoc(thing):
            errors.pop("GL08", None)  # what a class inherits is described where it comes from
        is_function = inspect.isfunction(thing) and thing in face
        functions += is_function
        checks = CHECKS | (OF_PARAMETERS if is_function else set())
        wrong += [f"{home}: {errors[check]}" for check in sorted(checks & set(errors))]
    assert len(names) > 750
    assert functions >= 9
    assert not wrong, "\n".join(wrong)
