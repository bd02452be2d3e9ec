"""The documentation: its tutorial runs, and nothing that users can call goes undescribed."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow.csv
import pytest
from typer.main import get_command

from jostle.cli import _app

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text("utf-8")


def test_the_tutorial_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command in its order, with the table that its lines of Python make; a short fit."""
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)
    exec(code, {})
    for name, content in re.findall(r"^```csv (\S+)\n(.*?)^```", TUTORIAL, re.M | re.DOTALL):
        Path(name).write_text(content)
    printed = {}
    lines = re.findall(r"^```console\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)
    assert len(lines) == 8
    for line in lines:
        words = shlex.split(line)[1:]
        if words[0] in ("fit", "evaluate"):
            words += ["--steps", "60"]
        assert _app.run(words) == 0, capsys.readouterr().err
        printed[words[0], words[-1]] = capsys.readouterr().out
    assert "2000 runs" in printed["import", "ms"]
    sure, surer = (printed["predict", level] for level in ("0.9", "0.99"))
    assert "guaranteed: " in sure
    assert "guaranteed: " in surer
    answers = pyarrow.csv.read_csv("answers.csv")
    assert answers.column("status").to_pylist() == ["ok"] * 6
    assert answers.column("ticket").to_pylist() == ["A-1"] * 6
    assert np.all(np.array(answers.column("bound_seconds")) > 0)


def test_every_command_and_option_says_what_it_is_for() -> None:
    silent = []

    def walk(command: Any, name: str) -> None:
        context = click.Context(command, info_name=name)
        if not (command.help or "").strip():
            silent.append(name)
        silent.extend(
            f"{name} {one.name}"
            for one in command.get_params(context)
            if not (getattr(one, "help", None) or "").strip()
        )
        if hasattr(command, "list_commands"):
            for sub in command.list_commands(context):
                walk(command.get_command(context, sub), f"{name} {sub}")

    walk(get_command(_app.build()), "jostle")
    assert not silent


def test_every_public_name_is_described() -> None:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "_site.py")
    assert spec is not None
    assert spec.loader is not None
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    silent = []
    for room, _ in site.ROOMS:
        for home in site._public(room):
            module, _, name = home.rpartition(".")
            path = ROOT / "src" / (module.replace(".", "/") + ".py")
            if not path.exists():
                continue
            for node in ast.parse(path.read_text("utf-8")).body:
                is_it = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name
                if is_it and not ast.get_docstring(node):
                    silent.append(home)
    assert not silent


def test_every_page_is_in_the_menu_and_every_link_leads_somewhere() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = list((ROOT / "docs").rglob("*.md"))
    listed = set(re.findall(r":\s(\S+\.md)$", menu, re.MULTILINE))
    made = {"reference/commands.md", "reference/library.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    assert {str(page.relative_to(ROOT / "docs")) for page in pages} | made == listed
    broken = []
    for page in [*pages, *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if "://" in target or target in made or target.startswith("reference/"):
                continue
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert not broken
