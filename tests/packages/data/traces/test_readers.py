"""Which reader a file needs: by its content, and by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jostle.data import RecordedRun, Traces, read_any, read_profile
from jostle.errors import BadData, UnreadableFile


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("a")
    with pytest.raises(BadData, match="none of kineto"):
        read_any(path, format="nonsense")
    with pytest.raises(UnreadableFile, match="not a profile of a known format"):
        read_any(path)
    for name in ("a.nsys-rep", "a.qdrep", "a.other"):
        path.rename(path := tmp_path / name)
        fix = "Known formats" if name == "a.other" else "nsys export"
        with pytest.raises(UnreadableFile, match=f"not a profile of a known format.*{fix}"):
            read_any(path)


@pytest.mark.parametrize(
    "line",
    [
        "0.01,5,,instructions,10,100.0\n",
        json.dumps({"interval": 0.01, "counter-value": "5", "unit": "", "event": "instructions"}),
    ],
)
def test_counter_samples_by_their_content(tmp_path: Path, line: str) -> None:
    path = tmp_path / "lu.perf"
    path.write_text("# started on Monday\n\n" * line.startswith("0") + line)
    found = read_any(path, RecordedRun(platform="pi"))
    assert isinstance(found, Traces)
    (trace,) = found
    assert (trace.run_id, trace.workload, trace.platform) == ("lu", "lu", "pi")
    with pytest.raises(BadData, match="Say `platform`"):
        read_any(path)
    with pytest.raises(BadData):
        read_profile(path)
