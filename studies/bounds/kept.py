"""Draws of a study, each in one of several processes, and kept in a file from which they are not made again.

Each line of the file is one draw, so files of several machines are joined by `cat`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from collections.abc import Callable, Hashable, Iterable
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Key = tuple[Hashable, ...]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, default=1, help="draws at once, each on a core")
    parser.add_argument("--kept", type=Path, default=Path("/dev/null"), metavar="FILE")


def drawn(draw: Callable[..., Any], keys: Iterable[Key], options: Any) -> dict[Key, Any]:
    """{key: what draw(options, *key) gives, something that JSON holds}, in the order of the keys.

    options: as parsed. Ctrl-C ends it with what was drawn until then.
    """
    keys, known = list(keys), dict[Key, Any]()
    if options.kept.exists():
        lines = map(json.loads, options.kept.read_text("utf-8").splitlines())
        known = {tuple(key): found for key, found in lines}
    missing = [key for key in keys if key not in known]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, too
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    context = get_context("spawn")  # a forked JAX deadlocks
    turn, workers = context.Value("i", 0), options.workers
    start = (draw, options, turn, workers)
    try:
        with context.Pool(workers, _start, start) as pool:
            for key, found in pool.imap_unordered(_draw, missing):
                known[key] = found
                with options.kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, found], default=float) + "\n")
    except KeyboardInterrupt:
        pass
    return {key: known[key] for key in keys if key in known}


_WORK: list[Any] = []


def _start(draw: Callable[..., Any], options: Any, turn: Any, workers: int) -> None:
    """Take this worker's cores, and end with the parent, even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with turn.get_lock():
        number, turn.value = turn.value, turn.value + 1
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[number % workers :: workers] or cores)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    _WORK[:] = draw, options


def _draw(key: Key) -> tuple[Key, Any]:
    draw, options = _WORK
    try:
        return key, draw(options, *key)
    except SystemExit as why:  # such as data that is not there: the pool would wait for ever
        raise RuntimeError(str(why)) from None
