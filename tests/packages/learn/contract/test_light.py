"""Finding a method, as loading a model does, brings nothing that only learning needs."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["alignment", "bag", "factorization", "slowdown"])
def test_a_method_is_found_without_what_learning_needs(name: str) -> None:
    code = (
        "import sys; from jostle.learn import method_named; method_named(sys.argv[1])\n"
        "print(*(n for n in ('pyarrow', 'jax', 'sklearn', 'scipy') if n in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True)
    assert run.stdout.split() == [], run.stderr
    assert run.returncode == 0, run.stderr
