"""Options that several commands have, each in one place: annotations for fields of a command's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from jostle._base.option_fields import Positional, Short

Model = Annotated[Path, "The model: a folder written by jostle fit.", Positional()]
DatasetOutput = Annotated[Path, "The dataset: a folder, made if need be.", Short("-o")]
