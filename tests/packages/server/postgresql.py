"""A real PostgreSQL of the system's packages, in a folder of its own, started and killed at will."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def programs() -> Path | None:
    """The folder of the newest server that is installed and can be started."""
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return None
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Server:
    """address: for --state. It refuses to run as root, so that root runs it as the user `postgres`."""

    def __init__(self, folder: Path) -> None:
        """folder: empty, where that user can get to."""
        self.folder = folder
        self._bin = programs()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self.address = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        (folder / "data").mkdir()
        if self._as:
            for place in (folder, folder / "data"):
                shutil.chown(place, "postgres")
        self._do("initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "--no-sync")
        self.start()

    def _do(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as, f"{self._bin}/{program}", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )

    def start(self) -> None:
        where = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        )
        log = str(self.folder / "data" / "server.log")
        self._do("pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", log, "-o", where, "start")

    def kill(self) -> None:
        """SIGKILL for the server and all its processes, as in a crash; none of them is left then."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(first, signal.SIGSTOP)  # so that it starts no further one meanwhile
        children = subprocess.run(
            ["pgrep", "-P", str(first)], capture_output=True, text=True, check=False
        )
        every = [first, *map(int, children.stdout.split())]
        for pid in every:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # One that is still ending, or not buried yet, keeps a new server from starting.
        while any(Path(f"/proc/{pid}").exists() for pid in every):
            time.sleep(0.02)

    def stop(self) -> None:
        self._do("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")


@contextmanager
def postgresql() -> Iterator[Server]:
    # Every run of pytest closes its own folders to other users, those of another run, too.
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            yield server
        finally:
            server.stop()
