"""Options that several commands have, each in one place: annotations for fields of a command's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from jostle._options import Positional, Short
from jostle.errors import UsageError

Json = Annotated[bool, "Print one JSON document."]
Model = Annotated[Path, "The model: a folder written by jostle fit.", Positional()]
DatasetOutput = Annotated[Path, "The dataset: a folder, made if need be.", Short("-o")]
Confidence = Annotated[float, "How sure the bound is, under 1.", Short("-c")]
Device = Annotated[
    str | None, "What the platform is called after the engine.  [default: from the CPU]"
]
Cores = Annotated[tuple[int, ...] | None, "A core to use; may be repeated.  [default: all allowed]"]


def named_values(texts: tuple[str, ...]) -> dict[str, str]:
    """{NAME: VALUE} of options such as --column workload=job. Raises UsageError."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"{text!r} is not NAME=VALUE")
        found[name.strip()] = value.strip()
    return found
