"""Where the public measurements are: $JOSTLE_DATA, or ../shared/data from the project's root."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def pitot_folder() -> Path:
    """The folder with the published Pitot files; ends the program with a sentence where it is absent."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("JOSTLE_DATA", root.parent / "shared" / "data")) / "pitot"
    if not (folder / "data.npz").is_file():
        sys.exit(
            f"no Pitot measurements in {folder}: set JOSTLE_DATA to the folder that holds pitot/"
        )
    return folder


def one_core() -> None:
    """Pin this process to one core, before any library starts its threads."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
