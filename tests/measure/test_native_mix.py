"""Native instruction counts equal callgrind's own sum, and loops are counted to the number."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from jostle.errors import BadData, UnreadableFile
from jostle.kernels.opcodes._native_mix import class_of, parse_callgrind
from jostle.measure import (
    Campaign,
    MeasureOptions,
    command_workload,
    measure,
    native_mix,
    read_callgrind,
)
from jostle.runs import Dataset

needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, ("valgrind", "objdump", "gcc"))),
    reason="valgrind, objdump or gcc is not installed",
)
SOURCE = """
#include <stdlib.h>
int main(int count, char **words) {
    volatile double sum = 0;
    long n = atol(words[1]);
    for (long i = 1; i <= n; i++) sum += 1.0 / i;
    return count > 2;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "sum.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", str(tmp_path / "sum.c"), "-o", str(tmp_path / "sum")], check=True)
    return str(tmp_path / "sum")


@needs_tools
def test_each_iteration_is_counted(program: str) -> None:
    fewer, more = native_mix([program, "1000"]), native_mix([program, "4000"])
    grown = {
        name: more.mnemonics[name] - fewer.mnemonics.get(name, 0)
        for name in more.mnemonics
        if more.mnemonics[name] != fewer.mnemonics.get(name, 0)
    }
    divisions = [count for name, count in grown.items() if "div" in name]
    assert divisions == [3000]
    # The loop's instructions come in whole numbers an iteration; parsing digits adds a few.
    iterations = (more.instructions - fewer.instructions) / 3000
    assert abs(iterations - round(iterations)) < 0.02
    columns = more.columns()
    assert columns["native_instructions"] == more.instructions
    accesses = (more.reads or 0) + (more.writes or 0)
    assert sum(value or 0 for value in columns.values()) == 2 * more.instructions + accesses
    assert (columns["native_float"] or 0) > 3000
    # Each iteration reads and writes `sum`.
    for access in ("native_memory_read", "native_memory_write"):
        grown_by = (columns[access] or 0) - (fewer.columns()[access] or 0)
        assert abs(grown_by / 3000 - 1) < 0.02
    assert more.unknown < 0.01 * more.instructions


@needs_tools
def test_failures_are_named(program: str) -> None:
    with pytest.raises(BadData, match="exit code 1"):
        native_mix([program, "1", "fail"])
    with pytest.raises(BadData, match="takes more than"):
        native_mix([program, "100000000"], timeout_seconds=1.0)
    with pytest.raises(UnreadableFile):
        native_mix(["no-such-program-here"])


@needs_tools
def test_a_command_has_its_mix_as_features(program: str, tmp_path: Path) -> None:
    command = command_workload([program, "100"], "sum")
    campaign = Campaign(
        workloads=[command], solo_repeats=1, sets=0, window_seconds=0.02, device="here"
    )
    measure(campaign, tmp_path / "data", MeasureOptions(native_mix=True))
    features = Dataset(tmp_path / "data").read().workload_features
    assert features is not None
    (row,) = features.to_pylist()
    assert row["instructions"] is None
    assert row["native_instructions"] > row["native_branch"] > 100


def test_callgrinds_output_is_read_with_its_abbreviations() -> None:
    text = """# callgrind format
positions: instr line
events: Ir Dr Dw D1mr
summary: 21 8 3
ob=(1) /bin/x
fn=(1) main
0x1000 0 2
+4 0 3 1 0 1
* 0 4
cob=(2) /lib/y
cfn=(2) f
calls=1 0x50 0
+2 0 999
-6 0 5
ob=(2)
0x50 0 6
ob=(1)
0x2000 0 1
"""
    counted = parse_callgrind(text)
    assert counted.totals == {"Ir": 21, "Dr": 8, "Dw": 3, "D1mr": 0}
    assert counted.executed == {
        "/bin/x": {0x1000: 7, 0x1004: 7, 0x2000: 1},
        "/lib/y": {0x50: 6},
    }
    with pytest.raises(BadData, match="not a whole output"):
        parse_callgrind("nothing")
    with pytest.raises(BadData, match="line 8: not a line"):
        parse_callgrind(text.replace("* 0 4", "* 0 x").replace("# callgrind format\n", ""))
    with pytest.raises(BadData, match="dump-instr"):
        parse_callgrind(text.replace("instr line", "line"))


@needs_tools
def test_a_recording_of_a_program_that_is_not_here_is_refused(tmp_path: Path) -> None:
    recorded = Path(__file__).parents[1] / "bag" / "callgrind.out.txt"
    with pytest.raises(BadData, match=r"callgrind\.out\.txt: most instructions are of '/home"):
        read_callgrind(recorded)
    with pytest.raises(UnreadableFile, match="nowhere"):
        read_callgrind(tmp_path / "nowhere")
    (tmp_path / "cut").write_text(recorded.read_text()[:400])
    with pytest.raises(BadData, match="cut: callgrind counted 3473 instructions, of which 0"):
        read_callgrind(tmp_path / "cut")


@pytest.mark.parametrize(
    ("mnemonic", "kind"),
    [
        *(
            ("call", "call"),
            ("jne", "branch"),
            ("ret", "branch"),
            ("mov", "move"),
            ("add", "integer"),
        ),
        *(("addsd", "float"), ("addpd", "vector"), ("vpaddd", "vector"), ("pxor", "vector")),
        *(("push", "stack"), ("pop", "stack"), ("popcnt", "integer"), ("movzbl", "move")),
        *(("imul", "shift_multiply"), ("shrx", "shift_multiply"), ("sarl", "shift_multiply")),
        *(
            ("movsb", "string"),
            ("stos", "string"),
            ("movsbl", "move"),
            ("movsd", "float"),
            ("setge", "integer"),
        ),
        *(("fadd", "float"), ("ldr", "move"), ("cbz", "branch"), ("bl", "call"), ("hlt", "other")),
    ],
)
def test_mnemonics_fall_in_classes(mnemonic: str, kind: str) -> None:
    assert class_of(mnemonic) == kind


@needs_tools
def test_the_command_prints_a_mix(program: str, capsys) -> None:
    from jostle.cli import exit_code

    assert exit_code(["opcodes", "--json", "--", program, "50"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "opcodes/v1"
    assert document["instructions"] == sum(document["opcodes"].values()) + document["unknown"]


def test_the_command_prints_counts_of_a_workload(capsys) -> None:
    from jostle.cli import exit_code

    assert exit_code(["opcodes", "-w", "sort-s", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["workload"] == "sort-s"
    assert document["instructions"] == sum(document["opcodes"].values()) > 1e6
    assert exit_code(["opcodes", "-w", "sort-s"]) == 0
    assert "i32.load" in capsys.readouterr().out
    assert exit_code(["opcodes"]) == 2
