"""What every importer must do with a file that is whole, broken, odd or foreign.

An importer is here with a whole file and with where its numbers, columns and rows stand; the laws below are
the same for all. A new importer needs one more entry in EXAMPLES: a test fails until it has one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from jostle.data import ImportedLog, all_names, importer_names
from jostle.errors import JostleError
from tests.command_line import jostle
from tests.packages.data.runs.import_contract_samples import (
    EXAMPLES,
    FOREIGN,
    NUMBERS,
    read,
    refused,
    written,
)

AS_JSON = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "soon": '"soon"', "": "null"}
ODD_NAMES = ("ä ö", "机", "🙂", "-1", "NaN", "None", "it's", "=1+1", "../up", "%s{0}", "x" * 300)
NO_NAMES = ("", " ")
NAMED_ANYHOW = ("jobs", "sacct")  # where others ran beside what has none
EVERY = pytest.mark.parametrize("name", EXAMPLES)


def test_every_importer_has_an_example() -> None:
    assert {example.name for example in EXAMPLES.values()} == set(importer_names())


@EVERY
def test_a_whole_file_is_read_alike_twice_in_any_order_with_what_is_not_known(
    tmp_path: Path, name: str
) -> None:
    example = EXAMPLES[name]
    content = example.packed(example.text)
    rows = read(name, tmp_path, content)
    assert rows == read(name, tmp_path, content)
    assert (tmp_path / example.file).read_bytes() == content
    if name != "perf":  # whose samples follow one another, and whose lines have no header
        assert rows == read(name, tmp_path, example.packed(example.other_order()))
        if name != "perf, listed":  # where a column can mean a run
            assert rows == read(name, tmp_path, example.packed(example.wider()))
    if example.twice:
        assert (
            len(read(name, tmp_path, example.edited(example.row, 2 * example.row))) == example.twice
        )
    elif example.row:
        refused(name, tmp_path, example.edited(example.row, 2 * example.row))


@pytest.mark.parametrize(
    ("name", "wrong"), [(name, wrong) for name, one in EXAMPLES.items() for wrong in one.refused]
)
def test_what_else_is_wrong_is_told(tmp_path: Path, name: str, wrong: tuple[str, str, str]) -> None:
    old, new, message = wrong
    assert message in refused(name, tmp_path, EXAMPLES[name].edited(old, new))


@EVERY
def test_odd_numbers_are_refused_or_left_aside(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    is_json = example.text.startswith("{") and example.cell == "{}" and ":" not in example.number
    for number in NUMBERS:
        try:
            new = example.cell.format(AS_JSON.get(number, number) if is_json else number)
            content = example.edited(example.number, new)
        except ValueError:  # which no file of this kind can hold
            continue
        if number in example.taken:
            assert len(read(name, tmp_path, content)) == example.taken[number], number
        else:
            refused(name, tmp_path, content)


@pytest.mark.parametrize("name", [name for name, one in EXAMPLES.items() if one.named])
def test_odd_names_are_kept_and_nothing_is_without_a_name(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    assert example.named is not None
    old, cell = example.named
    for odd in (*ODD_NAMES, *NO_NAMES):
        content = example.edited(old, cell.replace("{}", odd))
        if odd in NO_NAMES and name not in NAMED_ANYHOW:
            refused(name, tmp_path, content)
            continue
        found = example.importer(written(name, tmp_path, content)).read()
        runs = found.runs() if isinstance(found, ImportedLog) else found.runs
        names = all_names(runs)[0]
        assert all(known.strip() for known in names)
        assert odd in NO_NAMES or any(known.endswith(odd) for known in names), odd


@EVERY
def test_foreign_files_and_a_missing_column_are_refused(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    for content in FOREIGN.values():
        refused(name, tmp_path, content)
    if name != "perf":
        plain = example.column.strip('"')
        refused(
            name, tmp_path, example.edited(example.column, example.column.replace(plain, "red"))
        )
    if example.file.endswith((".csv", ".json", ".txt")) and name not in ("jobs", "sacct"):
        refused(name, tmp_path, example.text.encode() + b"no \xff UTF-8\n")
    path = written(name, tmp_path, b"")
    path.unlink()
    for make in (lambda: None, path.mkdir):  # there is none; it is a folder
        make()
        with pytest.raises(JostleError) as caught:
            example.importer(path).read()
        assert caught.value.fix
        assert path.parent.name in str(caught.value)


@EVERY
def test_a_file_cut_off_anywhere_is_refused_or_known_in_part(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    whole = example.packed(example.text)
    every = Counter(read(name, tmp_path, whole))
    is_log = name in ("jobs", "sacct")  # where company differs when a job is not known
    for length in range(1, len(whole) - 1, max(1, len(whole) // 25)):
        try:
            rows = read(name, tmp_path, whole[:length])
        except JostleError as error:
            assert Path(example.file).name in str(error)  # noqa: PT017
        else:
            assert example.head or name == "perf", length  # else a file that is cut off can be told
            assert len(rows) <= every.total()
            assert is_log or (Counter(rows) - every).total() <= 1


@EVERY
def test_the_command_writes_all_or_nothing(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    out, inside = tmp_path / "out", tmp_path / "in"
    inside.mkdir()
    whole = example.packed(example.text)
    options = [
        word
        for key, value in example.options.items()
        for one in (value if isinstance(value, tuple) else (value,))
        for word in ("--" + key.replace("_", "-"), one)
    ]
    for content in (whole[: len(whole) // 3], b"\0\1", whole):
        path = example.given(written(name, inside, content))
        before = {file: file.read_bytes() for file in inside.rglob("*") if file.is_file()}
        place = path[0] if isinstance(path, tuple) else path
        done = jostle("import", f"--kind={example.name}", place, *options, "-o", out, "--json")
        assert (done.exit_code == 0) == (content is whole) == out.exists(), done.output
        assert "Traceback" not in done.output
        assert before == {file: file.read_bytes() for file in inside.rglob("*") if file.is_file()}
