"""Samples and helpers for tests of site, and for others that need them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def loaded(name: str, path: Path) -> Any:
    """A module that is no part of a package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
