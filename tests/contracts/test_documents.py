"""Saved models and forecasts: any changed bit is noticed; writers, readers and kills at the same time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle._base.tensors import read_document, write_document
from jostle._base.untrusted import require_regular
from jostle.errors import BadData, UnreadableFile

SCHEMA, FIX = "thing/v1", "Save it again."
WRITER = """
import sys
import numpy as np
from jostle._base.tensors import write_document

folder, number, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for turn in range(times):
    value = number * 1000 + turn
    write_document(folder, "thing", "thing/v1", {"value": value}, {"x": np.full(2000, float(value))})
    print(value, flush=True)
"""


def save(folder: Path, value: int) -> None:
    write_document(
        folder, "thing", SCHEMA, {"value": value, "text": "ä b"}, {"x": np.arange(value + 3.0)}
    )


def read(folder: Path) -> tuple[int, np.ndarray]:
    document, arrays = read_document(folder, "thing", SCHEMA, fix=FIX)
    return document["value"], arrays["x"]


def writer(folder: Path, number: int, times: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(number), str(times)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    save(tmp_path, 4)
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        for place in range(8 * len(content)):
            changed = bytearray(content)
            changed[place // 8] ^= 1 << place % 8
            path.write_bytes(changed)
            with pytest.raises((UnreadableFile, BadData)):
                read(tmp_path)
        path.write_bytes(content)
    assert read(tmp_path)[0] == 4


def test_a_changed_document_is_refused(tmp_path: Path) -> None:
    save(tmp_path, 4)
    head = tmp_path / "thing.json"
    document = json.loads(head.read_text()) | {"value": 5}
    head.write_text(json.dumps(document, indent=1))
    with pytest.raises(UnreadableFile, match="truncated or changed"):
        read(tmp_path)


def test_changed_tensors_are_named(tmp_path: Path) -> None:
    save(tmp_path, 4)
    (tensors,) = tmp_path.glob("*.safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-1] + b"x")
    with pytest.raises(UnreadableFile, match="truncated or changed") as raised:
        read(tmp_path)
    assert tensors.name in str(raised.value)


def test_tensors_that_are_missing_are_named(tmp_path: Path) -> None:
    save(tmp_path, 4)
    (tensors,) = tmp_path.glob("*.safetensors")
    tensors.unlink()
    with pytest.raises(UnreadableFile, match="this file of the thing is missing") as raised:
        read(tmp_path)
    assert tensors.name in str(raised.value)


def test_writers_and_a_reader_at_the_same_time(tmp_path: Path) -> None:
    save(tmp_path, 0)
    writers = [writer(tmp_path, number, 40) for number in (1, 2)]
    reads = 0
    while any(process.poll() is None for process in writers):
        value, x = read(tmp_path)
        assert value == 0 or (x == value).all()
        reads += 1
    assert all(process.returncode == 0 for process in writers)
    assert reads > 10
    assert read(tmp_path)[0] in (1039, 2039)
    assert len(list(tmp_path.iterdir())) == 2  # nothing is left of the others


def test_a_file_that_goes_while_it_is_looked_at_is_no_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "thing", Path.stat
    path.touch()

    def looked_at(self: Path, **how: Any) -> Any:
        found = real(self, **how)
        path.unlink()
        return found

    monkeypatch.setattr(Path, "stat", looked_at)
    require_regular(path)


def test_a_killed_writer_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    save(tmp_path, 0)
    for number in range(1, 9):
        process = writer(tmp_path, number, 1000)
        assert process.stdout is not None
        acknowledged = int(process.stdout.readline())
        time.sleep(float(random.uniform(0, 0.01)))
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
        process.wait()
        last = int(rest[-1]) if rest else acknowledged
        assert read(tmp_path)[0] >= last
    save(tmp_path, 7)
    assert len(list(tmp_path.iterdir())) == 2  # what the killed ones left is swept
