"""A package as pip would install it: modules, and entry points in its metadata."""

from __future__ import annotations

from pathlib import Path

import pytest


def install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, module: str, code: str, points: str
) -> None:
    """Put a package with one module into `folder`, from which this process then imports.

    points: the content of entry_points.txt.
    """
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(code)
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(__import__("sys").modules, module, raising=False)
