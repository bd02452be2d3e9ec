"""Every snippet and command of README and docs, as it stands: each page in its order, nothing replaced."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import traceback
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pyarrow.csv
import pytest
from typer.main import get_command

import jostle
import studies
from jostle.cli import exit_code
from jostle.learn import Prepared, StackedMethod
from tests.command_line import application
from tests.core_alone import in_core
from tests.packages.data.traces.profiles_samples import nsys

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
# Of the table that the tutorial writes; every fit to it takes the time of its rows.
ROWS_OF_TUTORIAL = 200
# These have tests of their own, in folders that are not the tutorial's.
ELSEWHERE = {
    "CONTRIBUTING.md": "tests/contracts/test_contributing.py",
    "docs/placement.md": "tests/packages/placement/test_docs.py",
    "docs/service.md": "tests/packages/server/test_docs.py",
}
PAGES = [
    page
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    if page != TUTORIAL and str(page.relative_to(ROOT)) not in ELSEWHERE
]
LANGUAGES = {"python", "console", "csv", "json", "text", "toml"}
# What no test can run, by how the command begins. Its options are still those of the real command line.
NOT_RUN = {
    "make ": "the suite itself, and a tour of minutes",
    "pip ": "installs packages",
    "jostle measure": "measures this machine, for minutes",
    "jostle trace": "measures this machine, for minutes",
    "jostle serve": "serves until it is ended; tests/packages/server starts it",
    "jostle evaluate": "fits for minutes",
    "jostle fit traces": "fits for minutes",
    "python -m studies": "fits for minutes",
    "nsys ": "needs a graphics processor",
    "podman ": "builds an image",
    "kubectl ": "needs a cluster",
    "helm ": "needs a cluster",
    "deploy/helm": "needs a cluster; tests/packages/server reads what it prints",
    "sbatch ": "needs a cluster",
    "sacct ": "needs a cluster",
    "scontrol ": "needs a cluster",
    "curl ": "needs a service; tests/packages/server sends the same requests",
}
# Of these beginnings, what runs all the same.
RUN = (
    "jostle measure -o fleet --plan",
    "jostle trace -o traced",
    "jostle evaluate fleet",
    "jostle evaluate limits",
)


# Entry points, and a file.
NO_NAMES = {"jostle.env"} | {
    f"jostle.{group}"
    for group in (
        "methods",
        "importers",
        "interfaces",
        "learners",
    )
}


@dataclass(frozen=True)
class Block:
    """A block of code of a page. name: its title, the file that it holds."""

    page: Path
    line: int
    language: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text, listed = page.read_text("utf-8"), []
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        language, _, title = match[1].partition(" title=")
        line = text.count("\n", 0, match.start()) + 1
        listed.append(Block(page, line, language, title.strip('"'), match[2]))
    return listed


def commands(block: Block) -> list[str]:
    return [line for line in block.text.replace("\\\n", " ").splitlines() if line.strip()]


def reason_not_to_run(line: str) -> str | None:
    if line.startswith(RUN):
        return None
    return next((NOT_RUN[start] for start in NOT_RUN if line.startswith(start)), None)


def parsed(words: list[str]) -> None:
    """Raises click.UsageError for what the real command line, of Jostle or of its studies, does not take."""
    is_study = words[:3] == ["python", "-m", "studies"]
    command: Any = get_command(studies.application()) if is_study else application()
    rest, name, parent = words[3 if is_study else 1 :], words[0], None
    while True:
        if not hasattr(command, "list_commands"):
            command.make_context(name, rest, parent=parent)
            return
        parent = click.Context(command, info_name=name, parent=parent)
        usual = "factorization" if name == "fit" and not _is_command(command, parent, rest) else ""
        name = usual or (rest.pop(0) if rest else "")
        command = command.get_command(parent, name)
        if command is None:
            raise click.UsageError(f"no command {name!r}")


def _is_there(words: list[str]) -> bool:
    return find_spec(words[1]) is not None if words[0] == "-m" else (ROOT / words[0]).is_file()


def _is_command(group: Any, context: click.Context, rest: list[str]) -> bool:
    return bool(rest) and rest[0] in group.list_commands(context)


def run_command(line: str) -> str | None:
    """What went wrong, if anything did. 1 is an answer: no. 3 is one of `jostle safe` and `jostle limit`: no
    bound holds, as where a busy machine left holes in the traces that the page has made."""
    words = shlex.split(line, comments=True)
    if words[0] != "jostle":
        return f"{words[0]} is neither run nor among what no test can run"
    code = exit_code(words[1:])
    answers = (0, 1, 3) if words[1] in ("safe", "limit") else (0, 1)
    return None if code in answers else f"exit code {code}"


def run_page(page: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Everything on it in its order, in the working folder; what went wrong."""
    names: dict[str, Any] = {"__name__": "__page__"}
    wrong: list[str] = []
    for block in blocks(page):
        if block.language in ("csv", "json") and block.name:
            Path(block.name).write_text(block.text)
        elif block.language == "python":
            try:
                exec(compile(block.text, str(block), "exec"), names)
            except Exception:
                wrong.append(f"{block}: {traceback.format_exc(limit=-1)}")
            if page == TUTORIAL:
                keep_first_rows(Path("times.csv"), ROWS_OF_TUTORIAL)
        elif block.language == "console":
            for line in commands(block):
                problem = None if reason_not_to_run(line) else run_command(line)
                if problem is not None:
                    wrong.append(f"{block}: {line}: {problem}\n{capsys.readouterr().err[-1000:]}")
    for name, value in names.items():
        if isinstance(value, jostle.Model):
            value.save(Path("of-page") / name)
    return wrong


def questions(folder: Path) -> dict[str, list[str]]:
    """{checksum: a command line that asks the model} of all models below a folder."""
    asked = {}
    for path in sorted(folder.rglob("model.json")):
        model = jostle.load(path.parent)
        names = model.predictor
        words = ["-w", names.workload_names[0], "-p", names.platform_names[0], "--throughout"]
        asked[path.read_text("utf-8")] = ["predict", str(path.parent), *words]
    return asked


def keep_first_rows(table: Path, count: int) -> None:
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[: count + 1]))


def numberless(text: str) -> str:
    """What is printed of more or fewer runs alike: any number and blanks, and a time in any unit."""
    return re.sub(r" +", " ", re.sub(r"[0-9][0-9.]*( (s|ms|µs)\b)?", "N", text))


def prepare(folder: Path) -> None:
    """Beside what the tutorial leaves: the profiles that pages say a reader has."""
    for name in ("asr", "md"):
        nsys(folder / f"{name}.sqlite")


@pytest.fixture
def alike_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pages fit with the same settings and seed to the same runs is learned once and kept for the next,
    whatever ids the runs were given when they were read."""
    learn, known = StackedMethod.fit_left_out, []

    def once(
        method: StackedMethod, prepared: Prepared, *, seed: int = 0, progress: Any = None
    ) -> Any:
        runs = prepared.together()
        tables = [runs.table.drop_columns(["run_id", "window_id"])]
        tables += [runs.workload_features, runs.platform_features]
        asked = (method, seed, runs.window.tolist(), tables)
        for others, learned in known:
            if others == asked:
                return learned
        known.append((asked, learn(method, prepared, seed=seed, progress=progress)))
        return known[-1][1]

    monkeypatch.setattr(StackedMethod, "fit_left_out", once)


@pytest.mark.usefixtures("alike_once")
def test_every_page_runs_as_it_stands(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The tutorial in an empty folder, on the first rows of its table, and every other page in a copy of
    what it leaves. Each model that a page makes answers where nothing is installed but the core."""
    pyplot: Any = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    home = tmp_path_factory.mktemp("tutorial")
    monkeypatch.chdir(home)
    wrong = run_page(TUTORIAL, capsys)
    assert not wrong, "\n".join(wrong)
    printed = capsys.readouterr().out
    assert f"{ROWS_OF_TUTORIAL} runs" in printed
    assert "calibrated: holds in about 90 of 100 such answers (" in printed
    told = [block.text for block in blocks(TUTORIAL) if block.language == "text"]
    assert told
    for line in numberless("".join(told)).splitlines():
        assert line in numberless(printed), line
    answers = pyarrow.csv.read_csv("answers.csv")
    assert answers.column("status").to_pylist() == ["calibrated"] * 6
    assert answers.column("ticket").to_pylist() == ["A-1"] * 6
    models = questions(home)
    for page in PAGES:
        folder = tmp_path_factory.mktemp(page.stem) / "page"
        shutil.copytree(home, folder)
        prepare(folder)
        monkeypatch.chdir(folder)
        wrong += run_page(page, capsys)
        models |= questions(folder)
        pyplot.close("all")
    assert not wrong, "\n".join(wrong)
    assert len(models) > 5
    for words, (code, complaint) in zip(models.values(), in_core([*models.values()]), strict=True):
        assert code in (0, 3), f"{words}: {complaint}"


def test_blocks_say_what_they_are() -> None:
    """So that nothing that can be run passes for text."""
    wrong = []
    for page in [TUTORIAL, *PAGES, *(ROOT / name for name in ELSEWHERE)]:
        for block in blocks(page):
            if block.language not in LANGUAGES:
                wrong.append(f"{block}: a block of {block.language or 'nothing'}")
            if block.language == "text" and re.search(
                r"^(jostle|python|make|curl) ", block.text, re.M
            ):
                wrong.append(f"{block}: commands in a block of text")
    assert not wrong


def test_commands_that_are_not_run_are_taken_by_the_command_line() -> None:
    """And each reason not to run one is used."""
    wrong, used = [], set()
    for page in [TUTORIAL, *PAGES]:
        for block in blocks(page):
            for line in commands(block) if block.language == "console" else []:
                reason = reason_not_to_run(line)
                if reason is None:
                    continue
                used |= {start for start in NOT_RUN if line.startswith(start)}
                words = shlex.split(line, comments=True)
                if words[0] == "jostle" or words[:3] == ["python", "-m", "studies"]:
                    try:
                        parsed(words)
                    except click.UsageError as error:
                        wrong.append(f"{block}: {line}: {error.format_message()}")
                elif words[0] == "python" and not _is_there(words[1:]):
                    wrong.append(f"{block}: {words[1:3]} is not there")
    assert not wrong, "\n".join(wrong)
    assert used == set(NOT_RUN)


def inline(page: Path) -> list[str]:
    """What stands in backquotes in the text."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.findall(r"`([^`]+)`", text)


def test_commands_inside_the_text_are_there_with_their_options() -> None:
    jostle, papers = application(), get_command(studies.application())
    wrong = []
    for page in [TUTORIAL, *PAGES, *(ROOT / name for name in ELSEWHERE)]:
        for text in inline(page):
            words = text.replace("python -m studies", "studies").split(" -- ")[0].split()
            if len(words) < 2 or words[0] not in ("jostle", "studies"):
                continue
            top: Any = jostle if words[0] == "jostle" else papers
            command, rest, options = top, words[1:], {"--help"}
            while hasattr(command, "list_commands") and rest and not rest[0].startswith("-"):
                context = click.Context(command)
                if rest[0] not in command.list_commands(context):
                    break
                command = command.get_command(context, rest.pop(0))
            if command is top and rest not in (["--help"], ["NAME"]):
                wrong.append(f"{page.name}: {text}")
                continue
            if words[1] == "fit" and hasattr(command, "list_commands"):
                command = command.get_command(click.Context(command), "factorization")
            taken = [command]
            if words[1] == "import":
                # Of the kind that is told; else the file shows it, and a page has no file.
                told = words[words.index("--kind") + 1] if "--kind" in words else None
                kinds = [told] if told in command.kinds else command.kinds
                taken = [command.of_kind(kind) for kind in kinds]
            options |= {
                o for one in taken for p in one.params for o in (*p.opts, *p.secondary_opts)
            }
            wrong += [
                f"{page.name}: {text}: {word}"
                for word in rest
                if re.match(r"--?[a-z]", word) and word.split("=")[0].strip(",.:") not in options
            ]
    assert not wrong, "\n".join(wrong)


def test_names_inside_the_text_are_there() -> None:
    """`jostle.data.from_table(...)` and its like."""
    for page in [TUTORIAL, *PAGES, *(ROOT / name for name in ELSEWHERE)]:
        for text in inline(page):
            for name in re.findall(r"(?<![\w./-])jostle(?:\.\w+)+", text):
                assert name in NO_NAMES or is_there(name), f"{page.name}: {name}"


def is_there(name: str) -> bool:
    """Whether a dotted name is that of a module or of something in one."""
    module, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return "." in name and is_there(module) and hasattr(_thing(module), last)
    return True


def _thing(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(_thing(module), last)
