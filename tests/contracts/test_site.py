"""The documentation: nothing that users can call goes undescribed, and no page is lost."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import pytest
from typer.main import get_command

import jostle
import studies
from studies import results
from studies.bridge.families import FAMILIES
from tests.command_line import application
from tests.contracts.site_samples import loaded

ROOT = Path(__file__).resolve().parents[2]


def test_every_schema_that_is_written_stands_on_its_page() -> None:
    written = set()
    studies = [path for path in (ROOT / "studies").rglob("*.py") if path.parent.name != "collect"]
    for path in [*(ROOT / "src").rglob("*.py"), *studies]:
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"/v\d", text) else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                written |= set(re.findall(r"^[a-z][a-z_-]*/v\d+$", node.value))
    page = (ROOT / "docs" / "schemas.md").read_text("utf-8")
    described = set(re.findall(r"`([a-z][a-z_-]*/v\d+)`", page))
    assert len(written) > 40
    assert written - described == set()
    assert described - written == {"place_score/v1"} & (described - written)


def test_every_picture_and_raw_table_has_a_command_that_makes_it() -> None:
    made = {
        "docs/pictures/page-light",
        "docs/pictures/page",
    }  # screenshots, of tests/packages/server/test_page.py
    for entry in results.ENTRIES.values():
        for called in entry.pictures.values():
            made.add(str((results.RESULTS / called).resolve().relative_to(ROOT)))
    shown = {
        str(path.relative_to(ROOT).with_suffix("")).removesuffix("-dark")
        for kind in ("png", "svg")
        for path in (ROOT / "docs").rglob(f"*.{kind}")
    }
    assert shown - made == set()
    words = [word for entry in results.ENTRIES.values() for word in shlex.split(entry.command)]
    assert all((ROOT / word).exists() for word in words if word.startswith("src/"))
    raw = {path.stem for path in (results.RESULTS / "raw").iterdir()}
    assert raw <= set(results.ENTRIES)
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    assert not [name for name in raw if f"raw/{name}.txt" not in text]
    made_families = results.ENTRIES["bridge-families"].command
    assert set(re.findall(r"--data (\w+)-7", made_families)) == set(FAMILIES)
    cheap = [name for name, entry in results.ENTRIES.items() if entry.is_cheap]
    assert "papers-accelerator" in cheap


def test_commands_behind_the_results_are_those_of_the_command_line() -> None:
    top = application()
    wrong = []
    for name, entry in results.ENTRIES.items():
        for line in (*entry.first, entry.command):
            words = shlex.split(line)
            is_study = words[:3] == ["python", "-m", "studies"]
            if words[0] == "python" and importlib.util.find_spec(words[2]) is None:
                wrong.append(f"{name}: {words[2]}")
            if words[0] != "jostle" and not is_study:
                continue
            command: Any = get_command(studies.application()) if is_study else top
            rest = words[3:] if is_study else words[1:]
            while hasattr(command, "list_commands"):
                context = click.Context(command)
                known = command.list_commands(context)
                usual = "factorization" if rest[0] not in known else rest.pop(0)
                command = command.get_command(context, usual)
            options = {text for one in command.params for text in (*one.opts, *one.secondary_opts)}
            wrong += [f"{name}: {w}" for w in rest if w.startswith("-") and w not in options]
    assert not wrong


def test_the_citation_names_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {project['version']}\n" in citation
    assert f"\nlicense: {project['license']}\n" in citation
    assert "\ncff-version: 1.2.0\n" in f"\n{citation}"


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
        for kind in getattr(command, "kinds", ()):
            walk(command.of_kind(kind), f"{name} --kind {kind}")

    walk(application(), "jostle")
    walk(get_command(studies.application()), "studies")
    assert not silent


def test_every_public_name_is_described() -> None:
    site = loaded("site_hooks", ROOT / "docs" / "_site.py")
    silent = []
    for package, _ in site.PACKAGES:
        for home in site._public(package):
            module, _, name = home.rpartition(".")
            path = ROOT / "src" / (module.replace(".", "/") + ".py")
            if not path.exists():
                continue
            for node in ast.parse(path.read_text("utf-8")).body:
                is_it = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name
                if is_it and not ast.get_docstring(node):
                    silent.append(home)
    assert not silent


def test_the_reference_has_every_name_of_jostle() -> None:
    public = loaded("site_hooks", ROOT / "docs" / "_site.py")._public("jostle")
    names = {name for name in dir(jostle) if not inspect.ismodule(getattr(jostle, name))}
    assert {home.rpartition(".")[2] for home in public} == names


def test_every_public_name_can_be_collected() -> None:
    """By what makes the reference: a name of its own at the top of its module, not one of a tuple."""
    site = loaded("site_hooks", ROOT / "docs" / "_site.py")
    for home in (home for package, _ in site.PACKAGES for home in site._public(package)):
        module, _, name = home.rpartition(".")
        path = ROOT / "src" / (module.replace(".", "/") + ".py")
        if path.exists():
            assert name in names_at_the_top(path), home


def names_at_the_top(path: Path) -> set[str]:
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {one.asname or one.name for one in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {one.id for one in targets if isinstance(one, ast.Name)}
    return names


def test_every_constant_that_is_set_by_hand_says_what_it_means() -> None:
    site = loaded("site_hooks", ROOT / "docs" / "_site.py")
    assert site.constants_of("A = 2  # one\n# Both.\nB = 0.5\nC, D = 1, 2\n") == [
        ("A = 2", "one"),
        ("B = 0.5", "Both."),
        ("C, D = 1, 2", "Both."),
    ]
    rows = [line for line in site.constants().splitlines() if line.startswith("| `")]
    assert len(rows) > 200
    assert [row for row in rows if row.endswith("|  |")] == []


def test_every_page_is_in_the_menu_and_every_link_leads_somewhere() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = list((ROOT / "docs").rglob("*.md"))
    listed = set(re.findall(r":\s(\S+\.md)$", menu, re.MULTILINE))
    made = {f"reference/{name}.md" for name in ("commands", "constants", "library", "verbs")}
    made |= {"CHANGELOG.md", "CONTRIBUTING.md"}
    assert {str(page.relative_to(ROOT / "docs")) for page in pages} | made == listed
    broken = []
    for page in [*pages, *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if "://" in target or target in made or target.startswith("reference/"):
                continue
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert not broken


def test_pages_stay_short() -> None:
    """As `wc -w docs/*.md docs/*/*.md` counts."""
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")]
    assert sum(len(page.read_text("utf-8").split()) for page in pages) <= 17_000


@pytest.mark.slow
def test_the_built_site_has_no_raw_markdown_and_no_dead_link(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(build, cwd=ROOT, check=True, env=environment, capture_output=True)
    pages = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    assert len(pages) > 30
    wrong: list[str] = []
    for path, html in pages.items():
        prose = re.sub(r"<(pre|code|script)\b.*?</\1>", "", html, flags=re.S)
        raw = re.findall(r"```.*|(?:<p>|\n)(?:- |\d+\. |\|).*|<p>#+ .*", prose)
        wrong += [f"{path.name}: {text.strip()[:80]}" for text in raw]
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', html):
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link) or target.startswith("/"):
                continue  # elsewhere, and what the page of missing pages names from the root
            there = (path.parent / unquote(target)).resolve() if target else path
            is_page = bool(anchor) and there in pages
            has_anchor = not is_page or f'id="{unquote(anchor)}"' in pages[there]
            if not there.exists() or not has_anchor:
                wrong.append(f"{path.name}: {link}")
    assert not wrong, "\n".join(wrong)
