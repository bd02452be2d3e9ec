"""For all tests: no time limit on a single example, which a busy machine would break; one place for what
training compiles, so that the workers and the next run find it; bytecode is kept, beside the modules, for
the many processes that tests start (what pip installed has its own there already); one thread each, since
there are as many workers as cores; and programs compiled in haste, since what is trained here is small:
compiling takes longer than running."""

import os
import sys
from pathlib import Path

_KEPT = Path(__file__).resolve().parents[1] / ".pytest_cache"
os.environ.setdefault("JOSTLE_PROGRAMS", str(_KEPT / "programs"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before anything imports NumPy
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

from hypothesis import settings  # noqa: E402

settings.register_profile("jostle", deadline=None)
settings.load_profile("jostle")
