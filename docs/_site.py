"""What the documentation site is given besides the pages in docs/: the root's pages, and references made from
the code, so that no option and no public name can be missing."""

from __future__ import annotations

import ast
import csv
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
# What packages share among themselves, and is no page for a reader.
NOT_SHOWN = (
    "data.tables",
    "collect.kernels",
    "learn.training",
    "learn.ensemble",
    "learn.learners.simple_rules",
)
PACKAGES = (
    ("jostle", "The library"),
    ("jostle.data", "Runs, traces and profiles"),
    ("jostle.collect", "Measuring"),
    ("jostle.conformal", "Bounds"),
    ("jostle.gpu", "Accelerators"),
    ("jostle.learn", "Methods, and how they are learned"),
    ("jostle.models", "Models"),
    ("jostle.usage", "Forecasts"),
    ("jostle.placement", "Placement"),
    ("jostle.learn.learners.counters", "Alignment"),
    ("jostle.extend", "For other packages"),
)


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that lie in the root, and those made here."""
    for name in PAGES:
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "reference/commands.md", content=commands()))
    files.append(File.generated(config, "reference/library.md", content=library()))
    files.append(File.generated(config, "reference/verbs.md", content=verbs()))
    files.append(File.generated(config, "reference/constants.md", content=constants()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links that leave docs/ on the way to a page of the root stay inside the site."""
    up = "../" * page.file.src_uri.count("/")
    for name in PAGES:
        markdown = markdown.replace(f"](../{up}{name}", f"]({up}{name}")
    markdown = re.sub(rf"\]\(\.\./{up}README\.md(#[^)]*)?\)", f"]({up}index.md)", markdown)
    folder = ROOT / "docs" / Path(page.file.src_uri).parent
    return PICTURE.sub(lambda match: _both(match, folder), markdown)


PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)#]+)\.svg\)")


def _both(match: re.Match[str], folder: Path) -> str:
    """A picture that has a dark brother stands twice, and the page shows the one that suits it."""
    text, name = match.groups()
    if not (folder / f"{name}-dark.svg").exists():
        return match[0]
    return f"![{text}]({name}.svg#only-light)![{text}]({name}-dark.svg#only-dark)"


SHIM = "https://unpkg.com/iframe-worker/shim"  # what the theme would fetch for search in files on the disk


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Nothing is fetched from elsewhere."""
    return output.replace(SHIM, "../" * page.url.count("/") + "assets/iframe-worker.js")


def on_post_template(output: str, template_name: str, config: Any) -> str:
    return output.replace(SHIM, "assets/iframe-worker.js")


def commands() -> str:
    """Every command with every option, as `--help` has them."""
    from typer.main import get_command

    from jostle.cli._command_app import build

    lines = [
        "# Commands",
        "",
        "Made from the commands themselves; `jostle COMMAND --help` says the same.",
        "",
        "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 no valid bound, 4 bad input data, 5 not "
        "permitted here, 70 internal, 130 interrupted.",
        "",
    ]
    _command(get_command(build()), "jostle", lines)
    return "\n".join(lines)


def _command(command: Any, name: str, lines: list[str]) -> None:
    import click

    context = click.Context(command, info_name=name)
    subcommands = getattr(command, "list_commands", None)
    if name != "jostle":
        level = min(1 + name.count(" "), 4)
        lines += [f"{'#' * level} `{name}`", "", _text(command.help), ""]
        rows = [_parameter(one) for one in command.get_params(context) if one.name != "help"]
        if rows:
            lines += ["| option | value | meaning |", "|---|---|---|", *rows, ""]
    for sub in subcommands(context) if subcommands else []:
        below = command.get_command(context, sub)
        if below is not None:
            _command(below, f"{name} {sub}", lines)
    for kind in getattr(command, "kinds", ()):
        _command(command.of_kind(kind), f"{name} --kind {kind}", lines)


def _parameter(one: Any) -> str:
    if one.param_type_name == "argument":
        names, kind = f"`{one.name.upper()}`", "" if one.required else "optional"
    else:
        names = ", ".join(f"`{text}`" for text in [*one.opts, *one.secondary_opts])
        kind = "" if getattr(one, "is_flag", False) else one.type.name
    return f"| {names} | {_cell(kind)} | {_cell(_text(getattr(one, 'help', None)))} |"


def _text(text: str | None) -> str:
    return re.sub(r"\s*\n\s*(?!\n)", " ", (text or "").strip())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def verbs() -> str:
    """What Python, the shell and HTTP call each operation: the table of docs/verbs.csv."""
    with (ROOT / "docs" / "verbs.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    lines = [
        "# The same verbs in Python, in the shell and over HTTP",
        "",
        "A dash says why a verb is missing.",
        "",
        *(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)),
    ]
    return "\n".join(lines)


def constants() -> str:
    """Every number that predictions and bounds rest on and that is not estimated, with what it means."""
    lines = [
        "# Constants",
        "",
        "Made from the code: what is set by hand in `learn` and `conformal`.",
    ]
    for path in sorted(one for p in ("learn", "conformal") for one in (SOURCE / p).rglob("*.py")):
        rows = [
            f"| `{name}` | {_cell(meaning)} |"
            for name, meaning in constants_of(path.read_text("utf-8"))
        ]
        head = ["", f"## `{path.relative_to(SOURCE)}`", "", "| constant | meaning |", "|---|---|"]
        lines += [*head, *rows] if rows else []
    return "\n".join(lines)


SOURCE = ROOT / "src" / "jostle"
CONSTANT = re.compile(r"^[A-Z][A-Z0-9_, ]* = [-+*/.,()\[\]{}\de_ ]*\d[-+*/.,()\[\]{}\de_]*")


def constants_of(text: str) -> list[tuple[str, str]]:
    """Find (assignment, meaning) of the numbers that a module sets: the comment behind it, or that above."""
    found, lines = [], text.splitlines()
    for number, line in enumerate(lines):
        if not (match := CONSTANT.match(line)):
            continue
        meaning = line[match.end() :].lstrip("# ")
        above = number - 1
        while not meaning and above >= 0 and CONSTANT.match(lines[above]):
            above -= 1
        while not line[match.end() :] and above >= 0 and lines[above].startswith("# "):
            meaning, above = f"{lines[above][2:]} {meaning}".strip(), above - 1
        found.append((match[0].strip(), meaning))
    return found


def library() -> str:
    """Every public name of every package, from the stubs that are its faces."""
    lines = ["# Library", ""]
    for package, title in PACKAGES:
        lines += [f"## {title}: `{package}`", ""]
        for home in _public(package):
            lines += [f"::: {home}", ""]
    return "\n".join(lines)


def _public(package: str) -> list[str]:
    """Where each name of a package is at home."""
    folder = ROOT / "src" / package.replace(".", "/")
    stub = folder / "__init__.pyi"
    if not stub.exists():
        return [package]
    homes = []
    for node in ast.parse(stub.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            if f"{package}.{node.module}".removeprefix("jostle.").startswith(NOT_SHOWN):
                continue
            homes += [f"{package}.{node.module}.{one.name}" for one in node.names]
    return sorted(dict.fromkeys(_home(one) for one in homes), key=lambda one: one.rsplit(".", 1)[1])


def _home(name: str) -> str:
    """Follows `jostle.conformal.Bounds` to `jostle.conformal._bounds.Bounds`."""
    package, _, last = name.rpartition(".")
    stub = ROOT / "src" / package.replace(".", "/") / "__init__.pyi"
    if not stub.exists():
        return name
    for node in ast.parse(stub.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and any(one.name == last for one in node.names):
            return _home(f"{package}.{node.module}.{last}")
    return name
