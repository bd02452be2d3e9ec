"""For all tests: no time limit on a single example, which a busy machine would break; one place for what
training compiles, so that the workers and the next run find it; bytecode is kept, beside the modules, for
the many processes that tests start (what pip installed has its own there already); one thread each, since
there are as many workers as cores; and programs compiled in haste, since what is trained here is small:
compiling takes longer than running."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

_KEPT = Path(__file__).resolve().parents[1] / ".pytest_cache"
os.environ.setdefault("JOSTLE_PROGRAMS", str(_KEPT / "programs"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before anything imports NumPy

# A release that does not know a flag ends the process: the second is told to those where it was tried.
_HASTE = ["--xla_backend_optimization_level=0", "--xla_cpu_use_fusion_emitters=false"]
_TRIED = ("0.10.",)
_given = os.environ.get("XLA_FLAGS", "")
_wanted = _HASTE if version("jaxlib").startswith(_TRIED) else _HASTE[:1]
os.environ["XLA_FLAGS"] = " ".join(
    [_given, *(flag for flag in _wanted if flag.partition("=")[0] not in _given)]
).strip()

from hypothesis import settings  # noqa: E402

settings.register_profile("jostle", deadline=None)
settings.load_profile("jostle")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the folder that they lie in: hostile, figures."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in ("hostile", "figures"):
            item.add_marker(folder)
