"""Feed every reader with files that are nearly good, for as long as asked, and count what goes wrong.

    python benchmarks/fuzz.py --minutes 10 [--only kineto --only nsys] [--seed 0] [--keep FOLDER]

A reader may read a file or refuse it with a sentence. Counted are foreign exceptions, by where they were
raised, those that only the net under all readers turned into a sentence, and files that took longer than a
second of CPU time. With --keep the file that showed each is kept.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
_SLOW_SECONDS = 1.0


def main() -> None:
    """Print a line for each reader."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="for each reader")
    parser.add_argument("--only", action="append", help="a reader; may be repeated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="where to keep the files that were found")
    given = parser.parse_args()

    from tests.fuzz.targets import TARGETS

    warnings.simplefilter("ignore")
    print("| reader | files | refused | foreign exceptions | caught by the net alone | slowest |")
    print("|---|---|---|---|---|---|")
    any_found = False
    for name in given.only or TARGETS:
        found, files, refused, slowest = _tried(name, given.minutes * 60, given.seed, given.keep)
        net = sum(where.startswith("net") for where in found)
        foreign = len(found) - net
        print(f"| {name} | {files} | {refused} | {foreign} | {net} | {slowest:.2f} s |", flush=True)
        for where, last in found.items():
            print(f"    {where}: {last}", file=sys.stderr)
        any_found |= foreign > 0
    sys.exit(any_found)


def _tried(
    name: str, seconds: float, seed: int, keep: Path | None
) -> tuple[dict[str, str], int, int, float]:
    """({place: foreign exception}, files, how many were refused, seconds of the slowest)."""
    from tests.fuzz.targets import TARGETS

    target, rng = TARGETS[name], random.Random(f"{name}/{seed}")
    found: dict[str, str] = {}
    files = refused = 0
    slowest = 0.0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="jostle-fuzz-") as folder:
        while time.monotonic() < end:
            content = target.make(rng, Path(folder))
            files += 1
            began = time.process_time()
            problem = None
            try:
                error = target.tried(content, Path(folder) / "in")
                refused += error is not None
                if error is not None and "cannot be understood (" in str(error) and error.__cause__:
                    problem = f"net: {_place(error.__cause__)}", str(error)[:200]
            except Exception as error:
                problem = _place(error), str(error)[:200]
            took = time.process_time() - began
            slowest = max(slowest, took)
            if took > _SLOW_SECONDS:
                problem = problem or ("slow", f"{took:.1f} s")
            if problem and problem[0] not in found:
                found[problem[0]] = problem[1]
                if keep is not None:
                    (keep / name).mkdir(parents=True, exist_ok=True)
                    (keep / name / f"{len(found):02d}-{target.file.replace('/', '-')}").write_bytes(
                        content
                    )
    return found, files, refused, slowest


def _place(error: BaseException) -> str:
    """Where in Jostle an exception was raised, and its kind."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/src/jostle/" in f.filename] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno} {type(error).__name__}"


if __name__ == "__main__":
    main()
