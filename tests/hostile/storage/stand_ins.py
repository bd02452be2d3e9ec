"""What stands in for a disk that ends, a cluster that measures, and a service in this process."""

from __future__ import annotations

import builtins
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jostle._base import files as _files
from jostle.collect import MeasureOptions, command_workload, measure_fleet
from jostle.collect.window._assess import MemberResult, WindowResult
from jostle.server import Client, ServeSettings, make_app

AT = datetime(2024, 1, 2, tzinfo=UTC)


class Ending:
    """Every call that changes the disk, counted; the call number `at` and all later ones raise."""

    def __init__(
        self, patch: pytest.MonkeyPatch, at: int, error: Callable[[], BaseException]
    ) -> None:
        self.calls, self.at, self.error = 0, at, error
        for name in ("fsync", "link", "replace", "mkdir", "write", "ftruncate"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        if isinstance(error(), OSError):  # who is killed leaves a file in part, whatever part it is
            patch.setattr(_files, "open", self._opened, raising=False)

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls > self.at:
                raise self.error()
            return real(*arguments, **named)

        return call

    def _opened(self, path: Any, mode: str = "r", *more: Any) -> Any:
        if "x" not in mode:
            return builtins.open(path, mode, *more)
        # Opening needs room for a name, and so does what is written.
        file = self._counted(builtins.open)(path, mode, *more)
        disk = self

        class Counted:
            def write(self, data: Any) -> int:
                return disk._counted(file.write)(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def __iter__(self) -> Any:
                return iter(file)

        return Counted()


class Answer:
    """What a worker owes, as Dask's client shows it. error: raised where it is fetched, or by the worker
    where `status` is error."""

    def __init__(self, status: str, value: Any = None, error: Exception | None = None) -> None:
        self.status, self.value, self.error, self.is_cancelled = status, value, error, False

    def result(self, timeout: float) -> Any:
        assert timeout < 120  # whoever waits for ever for a dead worker never ends
        if self.error is not None:
            raise self.error
        return self.value

    def exception(self) -> Exception | None:
        return self.error

    def cancel(self) -> None:
        self.is_cancelled = True


class Cluster:
    """A scheduler with workers in this process, as Dask's client shows them, that measure nothing: each
    window takes a second. Time passes by `step` whenever it is asked who is there. trouble: called with (the
    number of the question to a worker of that name, what it would answer), gives what is answered instead."""

    def __init__(
        self, *names: str, step: float = 0.0, **trouble: Callable[[int, Any], Answer]
    ) -> None:
        self.workers = {f"tcp://{name}": {"name": name} for name in names}
        self.trouble, self.asked, self.step, self.now = trouble, dict.fromkeys(names, 0), step, 0.0

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        self.now += self.step
        return {"workers": dict(self.workers)}

    def submit(
        self, act: Callable[..., Any], packed: Any, name: str, *order: Any, **_: Any
    ) -> Answer:
        if order:
            members = order[0].key.split("/")[1].split("+")
            value: Any = WindowResult(
                tuple(MemberResult("ok", runtime_seconds=1.0) for _ in members), AT, 1.0
            )
        else:
            value = act(packed, name)
        self.asked[name] += 1
        if name in self.trouble:
            return self.trouble[name](self.asked[name], value)
        return Answer("finished", value)


def measured(folder: Path, name: str, cluster: Any = None) -> Any:
    """A campaign of one window over machines."""
    settings = {"workloads": [command_workload(["true"], name)], "engines": ["native"]}
    settings |= {"solo_repeats": 1, "sets": 0, "device": "d"}
    cluster = cluster or Cluster("one")
    return measure_fleet(
        cluster, folder, settings, MeasureOptions(timeout_seconds=1.0), clock=lambda: cluster.now
    )


class Service:
    """One in this process, over a state and a dataset; its client reaches it by `transport`, of the service's
    own."""

    def __init__(self, folder: Path, transport: Callable[[Any], Any] = lambda own: own) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it asks for another HTTP library
            from starlette.testclient import TestClient

            settings = ServeSettings(
                model=folder / "no model",
                allow_host=("testserver",),
                state=str(folder / "state.sqlite"),
                dataset=folder / "observed",
            )
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
        self._http = TestClient(make_app(settings, lambda: 1.8e9))
        self._transport = transport

    def __enter__(self) -> Client:
        http = self._http.__enter__()
        return Client("http://testserver", transport=self._transport(http._transport))

    def __exit__(self, *_: object) -> None:
        self._http.__exit__(None, None, None)
