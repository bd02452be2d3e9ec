"""Where the public measurements are: $JOSTLE_DATA, or ../shared/data from the project's root."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A script finds what lies beside it; the studies lie beside its folder.
sys.path.insert(0, str(ROOT))


def pitot_folder() -> Path:
    """The folder with the published Pitot files; ends the program with a sentence where it is absent."""
    return data_folder("pitot/data.npz").parent


def data_folder(file: str) -> Path:
    """Where the file is; ends the program with a sentence where it is absent."""
    found = Path(os.environ.get("JOSTLE_DATA", ROOT.parent / "shared" / "data")) / file
    if not found.is_file():
        sys.exit(f"there is no {found}: set JOSTLE_DATA to the folder that holds {file}")
    return found


def one_core() -> None:
    """Pin this process to one core, before any library starts its threads."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
