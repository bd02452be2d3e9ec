"""Files cut off, damaged or made up to mislead: every importer of pairs says which, where and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jostle.errors import JostleError
from jostle.runs import GavelImport, MagusImport, PairsImport
from tests.runs.test_import_pairs import GAVEL, HEAD, PAIRS, TRACE, magus

TEXT = json.dumps(GAVEL, indent=4)
MB = 1 << 20


def message(importer: Any, path: Path) -> str:
    with pytest.raises(JostleError) as caught:
        importer(path).read()
    assert caught.value.exit_code == 4
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1: not readable as JSON"),
        (TEXT[:200].encode(), "line 10: not readable as JSON"),
        (TEXT.replace("4.0", "NaN").encode(), "'null': throughput nan is negative or not finite"),
        (TEXT.replace("4.0", "1e999").encode(), "'null': throughput inf"),
        (TEXT.replace("4.0", "5e-324").encode(), "'null': a step at throughput 5e-324 would never"),
        (TEXT.replace("4.0", "1" * 400).encode(), "'null': throughput 111"),
        (TEXT.replace("4.0", "1" * 9000).encode(), "4300 digits"),
        (TEXT.replace("4.0", "true").encode(), "'null': True is not a throughput"),
        (TEXT.replace("4.0", '{"a": 1}').encode(), "'null': {'a': 1} is not a throughput"),
        (TEXT.replace('"A3C": [', '"LM (batch size 5)": [').encode(), "'LM (batch size 5)' stands twice"),
        (TEXT.replace('"k80"', '""').encode(), "'' / 'LM (batch size 5)' / 'null': a name cannot be"),
        (TEXT.replace('"k80"', '"\\ud800"').encode(), "'\\ud800' / 'LM (batch size 5)' / 'null': a name"),
        (TEXT.replace('"A3C": [', '"('  # a pair that is cut off
            + "'A3C', \": [").encode(), "\"('A3C', \": a name cannot be stored"),
        (TEXT.replace('"A3C": {', '" ": {').encode(), "'k80' / ' ' / 'null': a name cannot be stored"),
        (("[" * 100_000).encode(), "objects inside objects without end"),
        (("\n\n" + '{"a":' * 100_000).encode(), "objects inside objects without end"),
        (TEXT.encode("utf-16"), "line 1: not text in UTF-8"),
        (TEXT.encode().replace(b"A3C", b"A\xff3C", 1), "line 9: not text in UTF-8"),
        (TEXT.encode().replace(b"A3C", b"A\x003C", 1), "line 9: a zero byte"),
        (b"[1, 2]", "the file: [1, 2] is no object"),
        (b'{"k80":\n [1]}', "'k80': [1] is no object"),
        (b'{"k80":\n {"a": 3}}', "'k80' / 'a': 3 is no object"),
        (b"{}", "no measurement"),
    ],
)  # fmt: skip
def test_gavel(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "oracle_throughputs.json"
    path.write_bytes(content)
    text = message(GavelImport, path)
    assert "oracle_throughputs.json" in text
    assert reason in text
    assert len(text) < 2000


PLAIN = "one,gpu,a,,b,,t,ms,4,8,2\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (HEAD.encode(), "no row holds a measurement"),
        ((HEAD + PLAIN).encode().replace(b"gpu", b"g\xffpu"), "line 2: not text in UTF-8"),
        ((HEAD + PLAIN).encode().replace(b"gpu", b"g\x00pu"), "line 2: a zero byte"),
        ((HEAD + PLAIN).encode("utf-16"), "line 1: not text in UTF-8"),
        ((HEAD + PLAIN + 'one,gpu,"a,,b,,t,ms,4,8,2\n' + PLAIN).encode(), "line 3"),
        ((HEAD + PLAIN + PLAIN.replace("one", '"' + "x" * MB)).encode(), "line 3"),
        ((HEAD + PLAIN + PLAIN.replace(",4,", ",1_000,")).encode(), "line 3: solo '1_000'"),
        ((HEAD + PLAIN + PLAIN.replace(",4,8,2", ",1e-330,8,")).encode(), None),
        ((HEAD + PLAIN + PLAIN.replace(",ms,4,8,2", ",ns,1e-320,8,")).encode(), "line 3: 9.99989e-321 ns"),
        ((HEAD + PLAIN + PLAIN.replace(",ms,4,8,2", ",min,1e308,8,")).encode(), "line 3: 1e+308 min"),
        ((HEAD + PLAIN + PLAIN.replace(",ms,4,8,2", ",1/s,5e-324,8,")).encode(), "line 3: 4.9"),
        ((HEAD + PLAIN + PLAIN.replace("a,,b,", "a,,b;,")).encode(), "line 3: the target or a co"),
        ((HEAD + PLAIN + PLAIN.replace("a,,b,", ",,b,")).encode(), "line 3: the target or a co"),
        ((HEAD.replace("solo", "corun") + PLAIN).encode(), "the column 'corun' is there more than"),
        ((HEAD + PLAIN + PLAIN.strip() + ",9\n").encode(), "line 3: 12 cells where there are 11"),
    ],
)  # fmt: skip
def test_pairs(tmp_path: Path, content: bytes, reason: str | None) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(content)
    if reason is None:  # a number that is zero in double precision says that nothing was measured
        assert PairsImport(path).read().skipped == 1
        return
    text = message(PairsImport, path)
    assert "pairs.csv" in text
    assert reason in text
    assert len(text) < 2000


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("traces/a_trace.csv", '"Name"', '"Size"', "2 columns 'size', not one"),
        ("traces/a_trace.csv", '"Duration"', '"Time"', "0 columns 'duration'"),
        (
            "traces/a_trace.csv",
            "ms,us,,MB,",
            "ms,us,,bits,",
            "line 4: size is '2', no number in unit 'bits'",
        ),
        ("traces/a_trace.csv", "500", "-500", "line 4: duration is '-500'"),
        ("traces/a_trace.csv", "500", "1_500", "line 4: duration is '1_500', no number"),
        ("traces/a_trace.csv", "500", "inf", "line 4: duration is 'inf'"),
        ("traces/a_trace.csv", ',2,"[CUDA', ',2,3,"[CUDA', "line 4 has 6 columns, the header 5"),
        ("traces/a_trace.csv", '"[CUDA', '"[CU"DA', "cut off inside a text in quotes"),
        ("traces/a_trace.csv", "[CUDA", "x" * MB, "cannot be read as CSV"),
        ("traces/a_trace.csv", TRACE, "", "0 columns 'duration'"),
        ("metrics/a_metrics.csv", '"k",2,"executed_ipc"', '"k",3,"executed_ipc"', "3 invocations"),
        (
            "metrics/a_metrics.csv",
            '"k",2,"executed_ipc",1.5',
            '"k",2,"inst_misc",1',
            "stands there",
        ),
        ("metrics/a_metrics.csv", "80%", "80 %%", "line 14: avg is '80 %%', no number"),
        ("metrics/a_metrics.csv", '"k",2,"executed_ipc",1.5\n', "", "kernel 'k' has no 'executed"),
        ("pairs.csv", "ms,100,200,2", "ms,100,200,3", "line 2: slowdown is 3"),
    ],
)
def test_magus(tmp_path: Path, file: str, old: str, new: str, reason: str) -> None:
    magus(tmp_path)
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1))
    text = message(MagusImport, tmp_path)
    assert Path(file).name in text
    assert reason in text
    assert len(text) < 2000


damage = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 12), st.binary(max_size=6)),
    min_size=1,
    max_size=4,
)


def damaged(content: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """Pieces cut out and others put in."""
    for place, length, piece in changes:
        at = place % (len(content) + 1)
        content = content[:at] + piece + content[at + length :]
    return content


@given(changes=damage)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_damage_is_an_error_or_harmless(
    tmp_path: Path, changes: list[tuple[int, int, bytes]]
) -> None:
    """Whatever is changed, the answer is runs or an error with an exit code, never a traceback."""
    magus(tmp_path)
    files = {
        tmp_path / "oracle_throughputs.json": (TEXT.encode(), GavelImport),
        tmp_path / "table.csv": (PAIRS.encode(), PairsImport),
        tmp_path / "traces" / "a_trace.csv": (TRACE.encode(), lambda path: MagusImport(tmp_path)),
        tmp_path / "metrics" / "a_metrics.csv": (
            (tmp_path / "metrics" / "a_metrics.csv").read_bytes(),
            lambda path: MagusImport(tmp_path),
        ),
    }
    for path, (content, importer) in files.items():
        path.write_bytes(damaged(content, changes))
        try:
            runs = importer(path).read().runs
        except JostleError as error:
            assert path.name in str(error)  # noqa: PT017
        else:
            assert (runs.runtime_seconds > 0).all()
        path.write_bytes(content)
