"""Samples and helpers for tests of process, and for others that need them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KEYS = "see read reader-key\ndo write writer-key\nall administer admin-key\n"


@contextmanager
def serving(model: Path, state: Path, *more: str) -> Iterator[tuple[str, Any]]:
    """(address, process). Its log is written beside the state."""
    command = [sys.executable, "-m", "jostle", "serve", str(model), "--port", "0"]
    with open(f"{state}.log", "a") as log:
        process = subprocess.Popen(
            [*command, "--state", str(state), *more],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " on http" in line, line
        yield line.split()[-1], process
    finally:
        process.kill()
        process.wait()


def connected(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=20)
    made.settimeout(20)
    return made


def answer_of(made: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    found = b""
    try:
        while part := made.recv(65536):
            found += part
    except ConnectionError:
        pass
    return found
