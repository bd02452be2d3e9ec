"""A machine's part in a campaign over many: what runs in a Dask worker.

A worker measures one window at a time and sends back what came out. It keeps its slots, and what it
knows of its cores' usual speed, from window to window; a fresh one starts anew. Only one worker at a
time measures on a core, however many a machine has.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jostle._base.version import VERSION
from jostle.collect.campaign._campaign import Campaign
from jostle.collect.campaign._campaign_storage import platform_rows
from jostle.collect.campaign._campaign_summary import MeasureOptions
from jostle.collect.campaign._slot_pool import SlotPool
from jostle.collect.window._assess import WindowResult
from jostle.collect.workloads._workloads import (
    Workload,
    command_workload,
    find_workloads,
    shipped_workloads,
)
from jostle.errors import NotPermitted

Packed = Mapping[str, Any]


@dataclass(frozen=True)
class WorkerReport:
    """Answer of a worker: its campaign, the rows of its platforms' features, and the Jostle that it has."""

    campaign: Campaign
    platforms: list[dict[str, Any]]
    version: str  # without a default: an older worker's report would seem to have it


@dataclass(frozen=True)
class Order:
    """A window that a worker is to measure. window_seconds: how long it must be."""

    key: str
    window_seconds: float
    options: MeasureOptions


def pack(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a campaign's settings as they travel: modules as bytes, command lines as words."""
    members = find_workloads(settings.get("workloads"))
    shipped = {one.name: one for one in shipped_workloads()}
    workloads = []
    for one in members:
        if shipped.get(one.name) == one:
            workloads.append(one.name)
        else:
            workloads.append((one, None if one.kind == "command" else one.module_bytes))
    return {**settings, "workloads": workloads}


def describe(packed: Packed, name: str) -> WorkerReport:
    """Return the campaign as it is on this worker, and its platforms. name: the worker's."""
    campaign = _worker_of(packed, name).campaign
    # What the other side needs of files that it may not have.
    for member in campaign.members:
        _ = member.digest
    _ = campaign.identity
    return WorkerReport(campaign, platform_rows(campaign), VERSION)


def measure_window(packed: Packed, name: str, order: Order) -> WindowResult:
    """Return the window, measured here and now."""
    return _worker_of(packed, name).measure(order)


class _CampaignWorker:
    """Slots and speeds of one campaign on this machine."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self._planned = {planned.key: planned for planned in campaign.plan()}
        self._most = max(len(planned.members) for planned in self._planned.values())
        self._pool: SlotPool | None = None
        # Slots die with the thread that made them: it must be this one, which stays.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="jostle-worker")

    def measure(self, order: Order) -> WindowResult:
        """Return one window, while no one else measures on these cores."""
        return self._thread.submit(self._measure, order).result()

    def close(self) -> None:
        """Let the slots go."""
        self._thread.submit(self._stop).result()
        self._thread.shutdown()

    def _measure(self, order: Order) -> WindowResult:
        with _cores_held(self.campaign.core_numbers):
            if self._pool is None or self._pool.options != order.options:
                self._stop()
                self._pool = SlotPool(self.campaign, self._most, order.options)
            return self._pool.measure(self._planned[order.key], order.window_seconds)

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool = None


_workers: dict[str, _CampaignWorker] = {}
_lock = threading.Lock()


def _worker_of(packed: Packed, name: str) -> _CampaignWorker:
    """Return this worker's, kept; another campaign's is let go."""
    key = hashlib.sha256(pickle.dumps((sorted(packed.items(), key=str), name))).hexdigest()
    with _lock:
        if key not in _workers:
            for other in list(_workers):
                _workers.pop(other).close()
            _workers[key] = _CampaignWorker(_campaign(packed, name))
        return _workers[key]


def _campaign(packed: Packed, name: str) -> Campaign:
    settings = dict(packed)
    keep_apart = settings.pop("keep_apart", False)
    workloads = [one if isinstance(one, str) else _unpacked(*one) for one in settings["workloads"]]
    campaign = Campaign(**{**settings, "workloads": workloads})
    return replace(campaign, device=f"{campaign.device_name}-{name}") if keep_apart else campaign


def _unpacked(one: Workload, content: bytes | None) -> Workload:
    """Return the workload with its module in a file of this machine, or its program found here."""
    if content is None:
        local = command_workload([str(one.module), *one.arguments], one.name)
        return replace(one, module=local.module)
    path = _modules() / hashlib.sha256(content).hexdigest()[:32] / one.module.name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        partial = path.with_name(f".{os.getpid()}-{threading.get_ident()}")
        partial.write_bytes(content)
        partial.replace(path)
    return replace(one, module=path)


def _modules() -> Path:
    """Return the folder of modules in the temporary directory, which is everybody's: so it has to be the
    user's own.

    Raises NotPermitted.
    """
    folder = Path(tempfile.gettempdir()) / f"jostle-modules-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise NotPermitted(
            "modules are not run from a folder that somebody else made or may write to",
            where=str(folder),
            fix="Have it removed.",
        )
    return folder


@contextmanager
def _cores_held(cores: tuple[int, ...]) -> Iterator[None]:
    """Wait until no other process of this machine measures on these cores."""
    files = []
    try:
        for core in sorted(cores):  # always in this order, so nobody waits in a circle
            path = Path(tempfile.gettempdir()) / f"jostle-core-{core}.lock"
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            files.append(file)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        for file in files:
            os.close(file)
