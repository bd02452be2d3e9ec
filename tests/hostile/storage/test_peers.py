"""What everything must do that asks another process or machine: whoever is asked is in `peers.py`, each with
every trouble of TROUBLES. A new one needs one more entry; a test fails until it has one."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import pytest

import jostle
from jostle.errors import JostleError
from tests.hostile.storage.peers import PEERS, SLOT
from tests.waiting import HANGS_SECONDS

TROUBLES = {"none", "cut", "late"}


def test_everyone_is_asked_in_every_trouble() -> None:
    assert all(set(troubles) >= TROUBLES for troubles in PEERS.values())
    root = Path(jostle.__file__).parent
    asks = re.compile(
        r"httpx\.\w*Client\(|urlopen\(|ProcessPoolExecutor\(|measure_fleet\(|class Slot\b"
    )
    found = [path for path in sorted(root.rglob("*.py")) if asks.search(path.read_text())]
    assert len([path for path in found if "/cli/" not in str(path)]) == len(PEERS), found


@pytest.mark.parametrize(
    ("peer", "trouble"), [(peer, one) for peer, all_ in PEERS.items() for one in all_]
)
def test_whoever_does_not_answer_is_told_of_and_nothing_hangs(
    peer: str, trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slot_of_tests.py").write_text(SLOT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ask = PEERS[peer][trouble]
    if trouble == "none":
        ask()
        return
    began = time.monotonic()
    with pytest.raises(JostleError) as caught:
        ask()
    assert caught.value.where
    assert caught.value.fix
    assert time.monotonic() - began < HANGS_SECONDS
