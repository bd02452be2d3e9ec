"""For all tests: no time limit on a single example, which a busy machine would break, and one place for
what training compiles, so that the workers and the next run find it."""

import os
from pathlib import Path

from hypothesis import settings

settings.register_profile("jostle", deadline=None)
settings.load_profile("jostle")

os.environ.setdefault(
    "JOSTLE_PROGRAMS", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "programs")
)
