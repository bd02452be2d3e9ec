"""What a service is told when it starts."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.option_fields import Limits, NoOption, Positional, Short, check_settings
from jostle.errors import NotPermitted, UsageError


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Answer over HTTP what the library answers: for programs, for schedulers, and as a page for people.

    A new model written into the folder (or a link that is made to point to another folder) is taken while
    serving. Ends on SIGTERM or Ctrl-C, after the answers that are under way.
    """

    model: Annotated[Path, "The model: a folder written by jostle fit.", Positional()]
    host: Annotated[str, "The address to listen on."] = "127.0.0.1"
    port: Annotated[int, "The port; 0 takes a free one.", Limits(0, 65535), Short("-p")] = 8000
    fleet: Annotated[
        Path | None,
        "The fleet: a CSV, Parquet, JSON or Arrow table of nodes, read again when it changes.",
    ] = None
    state: Annotated[
        str | None,
        "Where placements and observed runs are kept: a SQLite file, or postgresql://…; by default a file "
        "in the user's data folder.",
    ] = None
    dataset: Annotated[
        Path | None, "A dataset that observed runs are added to, in batches, beside the state."
    ] = None
    learn: Annotated[
        int,
        "Learn observed runs each time so many have come, into the folder of the model, which may be empty "
        "at first; 0: never.",
        Limits(0),
    ] = 0
    keep_days: Annotated[
        int | None,
        "Forget observed runs after so many days, never before they are in the dataset, if there is one.",
        Limits(1),
    ] = None
    keys: Annotated[
        Path | None,
        "Who may ask: lines NAME ROLE KEY (read, write or administer), sent as Authorization: Bearer KEY.",
    ] = None
    tls_cert: Annotated[Path | None, "The certificate to serve with over TLS."] = None
    tls_key: Annotated[Path | None, "Its private key, unless it is in the same file."] = None
    client_ca: Annotated[
        Path | None, "Who signs certificates of clients, whose keys are the word `certificate`."
    ] = None
    allow_host: Annotated[
        tuple[str, ...],
        "A host name that requests may be sent to; on loopback its names without it.",
    ] = ()
    kubernetes: Annotated[
        str | None,
        "The API server where pods and nodes are seen; `in-cluster` for that of the pod this runs in.",
    ] = None
    scheduler_name: Annotated[str, "Of the pods that are seen there."] = "jostle"
    confidence: Annotated[
        float, "How sure bounds are where a request does not say.", Short("-c")
    ] = DEFAULT_CONFIDENCE
    stay_seconds: Annotated[
        float, "How long a placement lives that does not say.", Limits(above=0)
    ] = 3600.0
    most_body_bytes: Annotated[int, "The largest request.", Limits(1024), NoOption()] = 8 << 20
    most_items: Annotated[int, "The most items in one request.", Limits(1), NoOption()] = 10_000
    most_connections: Annotated[int, "The most connections of one client.", Limits(1)] = 200
    most_per_second: Annotated[
        float, "The most requests of one client in a second.", Limits(above=0)
    ] = 2000.0
    most_seconds: Annotated[
        float, "The longest that a request may take to arrive or to be answered.", Limits(above=0)
    ] = 10.0

    def __post_init__(self) -> None:
        """Raises UsageError."""
        exact_confidence(self.confidence)
        check_settings(self)
        if not self.is_loopback and (self.tls_cert is None or self.keys is None):
            raise UsageError(
                f"{self.host} is reached by others, and there is no certificate or no key",
                fix="Name `tls_cert` and `keys`, or listen on 127.0.0.1.",
            )
        if self.client_ca is not None and (self.tls_cert is None or self.keys is None):
            raise UsageError("`client_ca` needs `tls_cert`, and `keys` with the names of clients")

    @property
    def is_loopback(self) -> bool:
        """True if only this machine reaches it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Names that requests may be sent to, in lower case; all where there is none."""
        own = {self.host, "localhost", "127.0.0.1", "::1"} if self.is_loopback else set()
        return frozenset(name.lower() for name in own | set(self.allow_host))

    def state_file(self) -> str:
        """Return the state's file, or the address of its database. Raises NotPermitted where its folder
        cannot be made."""
        if self.state is not None:
            return self.state
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        folder, model = Path(data) / "jostle" / "service", self.model.resolve()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise NotPermitted(f"no folder for the state: {error}", where=str(folder)) from None
        return str(folder / f"{model.name}-{zlib.crc32(str(model).encode()):08x}.sqlite")
