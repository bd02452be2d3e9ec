"""One word for one thing, as docs/glossary.md says; words that were replaced stand nowhere any more."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
# In names a word is bounded by underscores, too.
EDGE = r"(?<![A-Za-z]){}(?![A-Za-z])"
# Keys of documents that others read keep their names.
PUBLIC_KEYS = ('"strangers"',)


# Words that are not used, and those that are instead.
REPLACED = {
    **dict.fromkeys(("stray", "strays"), "held-out error"),
    "seen errors": "training error",
    **dict.fromkeys(("ladder", "ladders", "rung", "rungs"), "staged bound"),
    **dict.fromkeys(("stranger", "strangers"), "other processes"),
    **dict.fromkeys(("station", "stations"), "worker"),
    "bench": "slot pool",
    "judged": "assessed",
    "in vain": "rejected",
    "said": "metadata",
    "is no time": "is not a valid time",
    "is no number": "is not a number",
}


def texts() -> list[Path]:
    every = [*ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.pyi"), *ROOT.glob("benchmarks/*.py")]
    every += ROOT.glob("studies/**/*.py")
    every += [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return every


def without_keys(line: str) -> str:
    for key in PUBLIC_KEYS:
        line = line.replace(key, "")
    return line


def test_replaced_words_stand_nowhere() -> None:
    pattern = re.compile("|".join(EDGE.format(re.escape(word)) for word in REPLACED), re.I)
    places = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        for match in pattern.finditer(without_keys(line))
    ]
    assert not places


def test_every_term_of_the_glossary_is_used() -> None:
    text = GLOSSARY.read_text("utf-8")
    terms = re.findall(r"^- \*\*([^*]+)\*\*", text, re.MULTILINE)
    assert len(terms) >= 20
    everything = "\n".join(path.read_text("utf-8") for path in texts()).lower()
    assert not [term for term in terms if term.lower() not in everything]


NAMED = {*("The", "A", "An", "All", "Each", "Every", "Those", "One", "Its", "Some")}
ASKED = {*("What", "Whether", "How", "Which", "Where", "Who", "When", "Why")}
NEITHER = {*("Of", "That", "As", "With", "Without", "For", "From", "In", "At", "By", "Only", "No")}
THINGS = ("property", "cached_property", "contextmanager", "setter")
OTHER_CLASSES = ("learn/ensemble", "learn/training", "learn/learners", "usage", "gpu")
NOT_YET = ("conformal", "learn/ensemble", "learn/training")  # whose properties still ask or elide


def test_what_a_function_does_is_said_by_a_verb() -> None:
    """A function begins with a verb; a property is a thing, but no question, shape or genitive."""
    wrong = []
    for path in (ROOT / "src/jostle").rglob("*.py"):
        home = path.relative_to(ROOT / "src/jostle").as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            text = ast.get_docstring(node) or "Nothing"
            marks = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
            is_thing = bool(marks & set(THINGS))
            if is_thing and home.startswith(NOT_YET):
                continue
            words = ASKED | NEITHER | (set() if is_thing else NAMED)
            if text.split()[0].strip(",.:") in words or text[0] in "({":
                wrong.append(f"{home}:{node.lineno}: {text.splitlines()[0]}")
    assert not wrong, "\n".join(wrong)


def test_what_a_class_is_is_said_before_its_fields() -> None:
    """A public class is named as a thing, or says what it does; its fields come after that sentence."""
    wrong = []
    for path in (ROOT / "src/jostle").rglob("*.py"):
        home = path.relative_to(ROOT / "src/jostle").as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            text = ast.get_docstring(node) or "Nothing"
            begins = text.split()[0].strip(",.:") in ASKED | NEITHER
            if not home.startswith(OTHER_CLASSES) and (
                begins or re.match(r"[a-z_]\w*(, [a-z_]\w*)*: ", text)
            ):
                wrong.append(f"{home}:{node.lineno}: {text.splitlines()[0]}")
    assert not wrong, "\n".join(wrong)
