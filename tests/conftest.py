"""For all tests: no time limit on a single example, which a busy machine would break; one place for what
training compiles, so that the workers and the next run find it; bytecode is kept, beside the modules, for
the many processes that tests start (what pip installed has its own there already); one thread each, since
there are as many workers as cores; and programs compiled in haste, since what is trained here is small:
compiling takes longer than running."""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="session")
def world() -> Any:
    """A small synthetic world."""
    from tests.small_world import make_world

    return make_world(1800, 0)


@pytest.fixture(scope="session")
def dataset(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on disk."""
    from jostle.data import Dataset

    folder = tmp_path_factory.mktemp("dataset")
    Dataset(folder).write(world)
    return folder


@pytest.fixture(scope="session")
def model(world: Any) -> Any:
    """A quickly trained model of it."""
    from jostle.models import fit
    from tests.small_world import QUICK_NETWORK

    return fit(world, QUICK_NETWORK, seed=0)


# Modules whose tests take more than five seconds together: `make test-fast` leaves them out.
SLOW = {
    *("contracts/test_documents.py", "contracts/test_site.py", "contracts/test_structure.py"),
    *("journeys/test_first_hours.py", "journeys/test_snippets.py"),
    "packages/cli/test_tour.py",
    *(f"packages/collect/test_{name}.py" for name in ("fleet", "hosts", "jobs", "measure")),
    "packages/collect/test_hostile_modules.py",
    "packages/data/runs/test_dataset_files.py",
    *("packages/gpu/test_commands.py", "packages/gpu/test_within_limits.py"),
    *("packages/learn/bags/test_bag.py", "packages/learn/bags/test_rules.py"),
    "packages/learn/contract/test_contract.py",
    "packages/learn/ensemble/test_ensemble.py",
    "packages/learn/latent_factors/test_laws.py",
    "packages/learn/stressors/test_probes.py",
    "packages/models/test_new_names.py",
    "packages/operations/test_evaluate.py",
    *("packages/server/test_postgresql.py", "packages/server/test_process.py"),
    "packages/usage/test_odd_data.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by where they stand: slow, hostile, figures."""
    for item in items:
        path = item.path.relative_to(Path(__file__).parent)
        if path.parts[0] in ("hostile", "figures"):
            item.add_marker(path.parts[0])
        if str(path) in SLOW:
            item.add_marker("slow")
