"""Samples and helpers for tests of import contract, and for others that need them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

from jostle.data import Imported, ImportedLog, Profile, Runs, importer_named
from jostle.errors import JostleError
from tests.hostile.readers.recordings import PROMETHEUS, SERIES
from tests.hostile.readers.samples import parquet
from tests.packages.data.runs.import_kubernetes_samples import ITEMS
from tests.packages.data.runs.import_pairs_samples import HEAD, PAIRS
from tests.packages.data.runs.logs_samples import HEADER as SACCT_HEADER
from tests.packages.data.runs.windows_samples import histogram
from tests.packages.data.traces.perf_stat_samples import LINES
from tests.packages.data.traces.profiles_samples import NVPROF

NUMBERS = ("nan", "inf", "-inf", "-1", "0", "1e400", "soon", "", "1_0", "٣", "9" * 5000)
FOREIGN = {
    "empty": b"",
    "empty line": b"\n",
    "zeros": b"\0" * 500,
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "other table": b"a,b,c\n1,2,3\n",
    "other JSON": b"{}",
    "null": b"null",
    "list": b"[]",
    "number": b"3",
    "archive": b"PK\x03\x04 something",
    "half of a character": b"\xff\xfe\x00",
}


@dataclass(frozen=True)
class Example:
    """name: of the importer. text: a whole file, of which `packed` makes bytes. file: its name in a folder,
    of which `rest` writes the others. given: what the importer is given. options: its own. number: one
    that stands in the text, and `cell` how another takes its place. column: the name of one that is needed.
    taken: {number put there: how many runs remain}; every other is refused. head, parts: lines of a table's
    header, and what parts its cells. turned: the text with its rows in another order. row: one that is
    written twice; then there are so many runs as `twice` says, or it is refused where that is 0. refused:
    edits that make what else is wrong in such a file, each with what the error says. named: where the name of
    a workload stands in the text, and how another takes its place; none where the options name it."""

    name: str
    text: str
    file: str
    options: dict[str, Any]
    number: str
    column: str
    cell: str = "{}"
    taken: dict[str, int] = field(default_factory=dict)
    head: int = 0
    parts: str = ","
    turned: Callable[[str], str] | None = None
    row: str = ""
    twice: int = 0
    refused: tuple[tuple[str, str, str], ...] = ()
    named: tuple[str, str] | None = None
    packed: Callable[[str], bytes] = lambda text: text.encode()
    given: Callable[[Path], Any] = lambda path: path

    def importer(self, path: Path) -> Any:
        return importer_named(self.name)(self.given(path), **self.options)

    def edited(self, old: str, new: str) -> bytes:
        assert old in self.text
        return self.packed(self.text.replace(old, new, 1))

    def wider(self) -> str:
        """With a column, or an item, that nobody knows."""
        if not self.head:
            return self.text.replace("{", '{"colour": ["red"], ', 1)
        lines = self.text.splitlines()
        ends = ["colour", *["red"] * len(lines)]
        at = next(number for number, line in enumerate(lines) if self.column in line)
        wide = [line + self.parts + end for line, end in zip(lines[at:], ends, strict=False)]
        return "\n".join([*lines[:at], *wide]) + "\n"

    def other_order(self) -> str:
        if self.turned is not None:
            return self.turned(self.text)
        lines = self.text.splitlines(keepends=True)
        return "".join([*lines[: self.head], *reversed(lines[self.head :])])


def as_parquet(text: str) -> bytes:
    return parquet(pyarrow.csv.read_csv(io.BytesIO(text.encode())))


def turned(text: str) -> str:
    """JSON whose keys, and whose items or series, stand the other way round."""

    def other(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: other(one, name) for name, one in reversed(value.items())}
        return value[::-1] if key in {"items", "result"} else value

    return json.dumps(other(json.loads(text)))


CSV = "job,host,beside,wall,note\na,pi,b;c,1.5,x\nb,pi,,2.5,y\nc,pi,a,0.3,z\n"


COLUMNS = {"workload": "job", "platform": "host", "corunners": ("beside",), "runtime": "wall"}


EDGES = {"since": "2025-12-31T00:00:00", "until": "2026-02-01T00:00:00"}


DAY = "2026-01-01T0"


JOBS = [
    f"1,n1,{DAY}1:00:00,{DAY}2:00:00,a,COMPLETED\n",
    f"2,n1,{DAY}1:30:00,{DAY}3:00:00,b,COMPLETED\n",
    f"3,n1,{DAY}4:00:00,{DAY}5:00:00,a,COMPLETED\n",
]


SACCT = [
    f"1|ann|a|n1|{DAY}1:00:00|{DAY}2:00:00|COMPLETED|3600\n",
    f"2|ann|b|n1|{DAY}1:30:00|{DAY}3:00:00|COMPLETED|5400\n",
    f"3|ann|a|n1|{DAY}4:00:00|{DAY}5:00:00|COMPLETED|3600\n",
]


MARCH = {"since": "2026-03-01T07:00:00", "until": "2026-03-01T10:00:00"}


PLAIN = "one,gpu,b,,a,,throughput,steps/s,8,2,4\n"


PAIRS_WRONG = (
    (PAIRS, HEAD, "no row holds a measurement"),
    (PLAIN, PLAIN.replace("gpu", "g\0pu"), "line 3: a zero byte"),
    (PLAIN, 'one,gpu,"a,,b,,t,ms,4,8,2\n' + PLAIN, "line 3"),
    (PLAIN, '"' + "x" * (1 << 20), "line 3"),
    (PLAIN, "one,gpu,a,,b,,t,ns,1e-320,8,\n", "line 3: 9.99989e-321 ns"),
    (PLAIN, "one,gpu,a,,b,,t,min,1e308,8,\n", "line 3: 1e+308 min"),
    (PLAIN, "one,gpu,a,,b,,t,1/s,5e-324,8,\n", "line 3: 4.9"),
    (PLAIN, "one,gpu,a,,b;,,t,ms,4,8,2\n", "line 3: the target or a co"),
    (PLAIN, "one,gpu,,,b,,t,ms,4,8,2\n", "line 3: the target or a co"),
    ("solo", "corun", "the column 'corun' is there more than"),
    (PLAIN, PLAIN.strip() + ",9\n", "line 3: 12 cells where there are 11"),
)


PODS_WRONG = (
    ('"items": [', '"items": 3, "more": [', "no list of pods"),
    ('"items": [', '"items": [3, ', "no list of pods"),
    ('"items": [', '"items": [{"spec": {}}, ', "no list of pods"),
)


CHAT_WRONG = (
    ('"le": "0.1"', '"le": "soon"', "without a bound"),
    ('"le": "0.1"', '"le": "nan"', "up to NaN"),
)


CHAT = {"resultType": "matrix", "result": histogram("chat", "0", [4, 8, 4], [0.1, 0.2, 0.12])}


NAMED = {"workload": "api", "platform": "prod"}


LEFT_ASIDE: dict[str, int] = dict.fromkeys(
    NUMBERS, 2
)  # a time that is none: of three jobs two remain


NOT_READ: dict[str, int] = dict.fromkeys(("nan", "inf", "-inf", "0", "1e400", "9" * 5000), 2)


EXAMPLES = {
    "csv": Example(
        "csv",
        CSV, "a.csv", COLUMNS | {"unit": "s"}, "2.5", "wall", head=1, row="b,pi,,2.5,y\n", twice=4,
        named=("b,pi,,", "{},pi,,"),
    ),
    "parquet": Example(
        "parquet",
        CSV, "a.parquet", COLUMNS | {"unit": "s"}, "2.5", "wall", head=1, packed=as_parquet,
        row="b,pi,,2.5,y\n", twice=4, named=("b,pi,,", "{},pi,,"),
    ),
    "pairs-csv": Example(
        "pairs-csv",
        PAIRS, "a.csv", {}, ",4,2,", "corun", ",{},2,", {"0": 4, "": 6, "nan": 6}, head=1,
        row="one,gpu,b,,a,,throughput,steps/s,8,2,4\n", twice=7,
        refused=PAIRS_WRONG, named=("one,gpu,b,,a,", "one,gpu,{},,a,"),
    ),
    "jobs": Example(
        "jobs",
        "job,node,start,end,workload,state\n" + "".join(JOBS), "a.csv", EDGES, f"{DAY}2:00:00", "end",
        taken=LEFT_ASIDE, head=1, row=JOBS[1], twice=3, named=(",b,", ",{},"),
    ),
    "sacct": Example(
        "sacct",
        SACCT_HEADER + "".join(SACCT), "a.txt", EDGES, f"{DAY}2:00:00", "NodeList", taken=LEFT_ASIDE, head=1,
        parts="|", row=SACCT[1], twice=3, named=("|ann|b|", "|ann|{}|"),
    ),
    "kubernetes": Example(
        "kubernetes",
        json.dumps({"kind": "List", "items": ITEMS}, indent=1), "a.json", MARCH, "2026-03-01T08:45:00Z",
        "items", taken=dict.fromkeys(NUMBERS, 5), turned=turned, refused=PODS_WRONG,
    ),
    "windows": Example(
        "windows",
        json.dumps(CHAT), "a.json", {"platform": "p"}, '"480.0"', '"result"', '"{}"',
        dict.fromkeys(NOT_READ, 3), turned=turned, given=lambda path: (path,), refused=CHAT_WRONG,
    ),
    "prometheus": Example(
        "prometheus",
        json.dumps(PROMETHEUS), "a.json", NAMED, '"30"', '"result"', '"{}"', NOT_READ, turned=turned,
        given=lambda path: (str(path),),
    ),
    "series": Example(
        "series",
        SERIES.decode(), "a.csv", NAMED | {"instance": "host"}, ",9,", "time", ",{},", NOT_READ | {"": 2},
        head=1, given=lambda path: (path,), row="1767225600,b,3,1\n",
    ),
    "perf": Example("perf", LINES, "a.csv", NAMED, ",1000,", "instructions:u", ",{},", {"0": 1}),
    "profile": Example(
        "profile",
        NVPROF, "a.csv", {}, "20.0", '"Duration"', taken={"0": 3}, head=4,
        row=NVPROF.splitlines(keepends=True)[5], twice=4,
    ),
}  # fmt: skip


def read(name: str, folder: Path, content: bytes) -> list[str]:
    """Runs, samples or tasks, in an order of their own, without names that the importer makes."""
    path = written(name, folder, content)
    found = EXAMPLES[name].importer(path).read()
    found = found.runs() if isinstance(found, ImportedLog) else found
    found = found.runs if isinstance(found, Imported) else found
    if isinstance(found, Runs):
        table = found.table
        free = {"run_id", "window_id", "source_row", "note", "colour"} & set(table.column_names)
        rows = table.drop_columns(sorted(free)).to_pylist()
    elif isinstance(found, Profile):
        rows = found.tasks.drop_columns(["sequence"]).to_pylist()
    else:
        rows = []
        for one in found:
            counters = sorted((key, values.tolist()) for key, values in one.counters.items())
            rows.append(
                (one.workload, one.corunners, one.core, one.time_seconds.tolist(), counters)
            )
    return sorted(map(repr, rows))


def written(name: str, folder: Path, content: bytes) -> Path:
    path = folder / EXAMPLES[name].file
    path.write_bytes(content)
    return path


def refused(name: str, folder: Path, content: bytes) -> str:
    """With a sentence, which is returned, that names the file and says what to do."""
    with pytest.raises(JostleError) as caught:
        read(name, folder, content)
    assert Path(EXAMPLES[name].file).name in str(caught.value)
    assert caught.value.fix
    assert caught.value.exit_code in (2, 4)
    return str(caught.value)
