"""What a service is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jostle._confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._options import Limits, Positional, Short
from jostle.errors import UsageError


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
        str, "Where placements and observed runs are kept: a SQLite file, or postgresql://…"
    ] = "jostle-state.sqlite"
    dataset: Annotated[
        Path | None, "A dataset that observed runs are added to, in batches, beside the state."
    ] = None
    learn: Annotated[
        int,
        "Learn observed runs each time so many have come, into the folder of the model; 0: never.",
        Limits(0),
    ] = 0
    api_key_file: Annotated[
        Path | None, "A file whose first line callers must send as Authorization: Bearer …"
    ] = None
    kubernetes: Annotated[
        str | None,
        "The API server that pods are bound through; `in-cluster` for that of the pod this runs in.",
    ] = None
    confidence: Annotated[
        float, "How sure bounds are where a request does not say.", Short("-c")
    ] = DEFAULT_CONFIDENCE
    hold_seconds: Annotated[float, "How long a place is held between prioritize and bind."] = 10.0
    stay_seconds: Annotated[float, "How long a placement lives that does not say."] = 3600.0
    most_body_bytes: Annotated[int, "The largest request.", Limits(1024)] = 8 << 20
    most_items: Annotated[int, "The most items in one request.", Limits(1)] = 10_000
    most_seconds: Annotated[
        float, "The longest that a request may take to arrive or to be answered."
    ] = 10.0

    def __post_init__(self) -> None:
        """Raises UsageError."""
        exact_confidence(self.confidence)
        for name in ("hold_seconds", "stay_seconds", "most_seconds"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise UsageError(f"`{name}` is {value}, not a finite number above 0")
        for name, least in (("most_body_bytes", 1024), ("most_items", 1), ("learn", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"`{name}` is {getattr(self, name)}, under {least}")

    def api_key(self) -> str | None:
        """The key that callers must send, if any. Raises UsageError for a file without one."""
        if self.api_key_file is None:
            return None
        try:
            lines = self.api_key_file.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError("the API key cannot be read", where=str(self.api_key_file)) from error
        key = lines[0].strip() if lines else ""
        if not key or not key.isascii():
            raise UsageError("the first line holds no API key", where=str(self.api_key_file))
        return key
