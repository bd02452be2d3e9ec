"""Options that several commands have, each in one place: annotations for fields of a command's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from jostle._base.option_fields import Positional, Short

Model = Annotated[Path, "The model: a folder written by jostle fit.", Positional()]
Follow = Annotated[
    str | None,
    "Follow what runs: a process by its number, with all it started, or a control group by its path, such as "
    "a container's; or start a command and follow it until it ends.",
]
DatasetOutput = Annotated[Path, "The dataset: a folder, made if need be.", Short("-o")]
