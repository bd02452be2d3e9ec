"""What importing costs, by import graph, and the packages' contract."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"numpy", "pyarrow", "jax", "optax", "sklearn", "scipy", "wasmtime", "rich", "typer"}
HEAVY |= {"numba"}


def modules_after(code: str) -> set[str]:
    """Top-level modules loaded by a fresh interpreter that runs `code`."""
    script = f"{code}\nimport sys; print('\\n'.join({{m.split('.')[0] for m in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_import_jostle_is_free() -> None:
    assert not modules_after("import jostle") & HEAVY


def test_faces_of_packages_are_free() -> None:
    packages = sorted(path.parent.name for path in (ROOT / "src" / "jostle").glob("*/__init__.pyi"))
    assert len(packages) >= 10
    loaded = modules_after("import " + ", ".join(f"jostle.{package}" for package in packages))
    assert not loaded & HEAVY


def test_help_loads_only_what_prints_it() -> None:
    loaded = modules_after(
        "import io, contextlib\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    from jostle.cli import exit_code\n"
        "    assert exit_code(['--help']) == 0"
    )
    assert "typer" in loaded
    assert not loaded & (HEAVY - {"typer", "rich"})


def test_every_public_name_is_there() -> None:
    import jostle

    for name in dir(jostle):
        assert getattr(jostle, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = jostle.nonsense  # pyright: ignore[reportAttributeAccessIssue]


def test_packages_import_only_to_their_left() -> None:
    """The contract in pyproject.toml; a module outside the listed packages breaks it too."""
    run = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
