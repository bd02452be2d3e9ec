"""Published measurements: their readers, and the folder they are in ($JOSTLE_DATA, or ../shared/data).

`python -m studies.data pitot FOLDER -o DATASET` makes a dataset of them; so do `gavel` and `magus`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def pitot_folder() -> Path:
    """The folder with the published Pitot files; ends the program with a sentence where it is absent."""
    return data_folder("pitot/data.npz").parent


def data_folder(file: str) -> Path:
    """Where the file is; ends the program with a sentence where it is absent."""
    root = Path(__file__).resolve().parents[2]
    results = Path(os.environ.get("JOSTLE_DATA", root.parent / "shared" / "data")) / file
    if not results.is_file():
        sys.exit(f"there is no {results}: set JOSTLE_DATA to the folder that holds {file}")
    return results


def one_core() -> None:
    """Pin this process to one core, before any library starts its threads."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
