from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jostle._base.progress import Progress
from jostle.operations import BulkScore, Ends, Goal, Least, Rankings, SafeAnswers, Walltimes
from jostle.placement import Assignment

class PlacementVerbs:
    def assign(
        self,
        requests: Any,
        goal: Goal = "most_accepted",
        limit_seconds: float = 2.0,
        seed: int = 0,
        *,
        progress: Progress = ...,
    ) -> Assignment: ...
    def at(
        self, requests: Any = (), on: Sequence[str] | str | None = None, *, progress: Progress = ...
    ) -> Ends: ...
    def rank(
        self,
        requests: Any,
        least: Least = "bound",
        top: int | None = None,
        *,
        progress: Progress = ...,
    ) -> Rankings: ...
    def safe(
        self,
        requests: Any,
        on: Sequence[str] | str | None = None,
        together: bool = False,
        explain: bool | None = None,
        *,
        progress: Progress = ...,
    ) -> SafeAnswers: ...
    def score(
        self,
        table: Path,
        output: Path,
        columns: Mapping[str, str] | None = None,
        scheduler: str | None = None,
        *,
        progress: Progress = ...,
    ) -> BulkScore: ...
    def walltime(
        self,
        requests: Any,
        on: Sequence[str] | str | None = None,
        step_seconds: float = 1.0,
        throughout: bool = False,
        *,
        progress: Progress = ...,
    ) -> Walltimes: ...
