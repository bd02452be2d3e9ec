"""What is asked of a server, and how often."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LoadSettings:
    """rate: requests per second, sent at that rate whatever the answers take. url: what is requested, and
    what says that the server is ready, by any answer below 500. ready: instead of that a command line that
    ends with 0 when it is. load: a command line instead of requests, which prints seconds of latency, one a
    line, and is started again when it ends. quantile: of the latencies, what a run's time is. directory,
    environment: of all command lines. `{port}` in words and url is a free port, `{rate}` the rate.
    """

    rate: float
    url: str = ""
    ready: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    quantile: float = 0.99
    directory: str = ""
    environment: tuple[tuple[str, str], ...] = ()

    def to_message(self) -> dict[str, Any]:
        """As a slot is told it."""
        return {
            "rate": self.rate,
            "url": self.url,
            "ready": list(self.ready),
            "load": list(self.load),
            "quantile": self.quantile,
            "directory": self.directory or None,
            "environment": dict(self.environment),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return hashlib.sha256(repr(self.to_message()).encode("utf-8", "surrogatepass")).hexdigest()
