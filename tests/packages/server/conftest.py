"""A service in this process over a small calibrated model, with a fleet and a state of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jostle.data import Dataset
from jostle.models import fit
from jostle.server import Client, ServeSettings
from tests.small_world import QUICK_NETWORK, make_world

FLEET = """name,platform,slots,memory,price_per_hour,tenants
east,p0,3,4GiB,1.5,w03@9x
west,p1,2,2GiB,1.2,
south,p2,1,,0.4,
"""


@dataclass
class FakeClock:
    """Seconds since 1970, moved on by hand."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two models of the same small world: the second answers otherwise."""
    folders, data = [], tmp_path_factory.mktemp("world") / "dataset"
    Dataset(data).write(make_world(1800, 0))
    for seed in (0, 1):
        folders.append(tmp_path_factory.mktemp(f"model{seed}") / "model")
        fit(data, QUICK_NETWORK, seed=seed).save(folders[-1])
    return folders[0], folders[1]


@dataclass
class Running:
    """http: asks the application as over HTTP. client: the library's client of it."""

    http: Any
    client: Client
    clock: FakeClock
    settings: ServeSettings
    app: Any = field(repr=False)

    def post(self, path: str, body: Any) -> Any:
        found = self.http.post(path, json=body)
        assert found.status_code == 200, found.text
        return found.json()


Start = Callable[..., Running]


@pytest.fixture
def start(model_folders: tuple[Path, Path], tmp_path: Path) -> Iterator[Start]:
    """Starts services; keywords are settings that differ."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for another HTTP library
        from starlette.testclient import TestClient

    from jostle.server import make_app

    with ExitStack() as stack:

        def make(**changed: Any) -> Running:
            if "fleet" not in changed:
                (tmp_path / "fleet.csv").write_text(FLEET)
                changed["fleet"] = tmp_path / "fleet.csv"
            given = {
                "model": model_folders[0],
                "allow_host": ("testserver",),
                "state": str(tmp_path / "state.sqlite"),
                **changed,
            }
            settings, clock = ServeSettings(**given), FakeClock()
            app = make_app(settings, clock)
            http = stack.enter_context(TestClient(app, raise_server_exceptions=False))
            client = Client("http://testserver")
            client._http = http
            return Running(http, client, clock, settings, app)

        yield make


@pytest.fixture
def service(start: Start) -> Running:
    return start()
