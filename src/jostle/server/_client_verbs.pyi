from collections.abc import Sequence
from typing import Any, Literal

from jostle._base.progress import Progress
from jostle.data import Colocations, Runs
from jostle.models import Drift, Timelines
from jostle.operations import Ends, Explanations, Goal, Least, Rankings, SafeAnswers, Walltimes
from jostle.placement import Assignment, Fleet, Request, Standard

_Row = dict[str, Any]

class ClientVerbs:
    def assign(
        self,
        requests: Any,
        goal: Goal = "most_accepted",
        limit_seconds: float = 2.0,
        seed: int = 0,
        *,
        progress: Progress = ...,
        fleet: Any = None,
        standard: Standard | None = None,
    ) -> Assignment: ...
    def at(
        self,
        requests: Any = (),
        on: Sequence[str] | str | None = None,
        *,
        progress: Progress = ...,
        fleet: Any = None,
        standard: Standard | None = None,
    ) -> Ends: ...
    def rank(
        self,
        requests: Any,
        least: Least = "bound",
        top: int | None = None,
        *,
        progress: Progress = ...,
        fleet: Any = None,
        standard: Standard | None = None,
    ) -> Rankings: ...
    def safe(
        self,
        requests: Any,
        on: Sequence[str] | str | None = None,
        together: bool = False,
        explain: bool | None = None,
        *,
        progress: Progress = ...,
        fleet: Any = None,
        standard: Standard | None = None,
    ) -> SafeAnswers: ...
    def walltime(
        self,
        requests: Any,
        on: Sequence[str] | str | None = None,
        step_seconds: float = 1.0,
        throughout: bool = False,
        *,
        progress: Progress = ...,
        fleet: Any = None,
        standard: Standard | None = None,
    ) -> Walltimes: ...
    def explain(
        self,
        items: Colocations | Timelines,
        confidence: float = 0.9,
        throughout: bool = False,
        dataset: None = None,
        full: bool = False,
        *,
        campaign: str | None = None,
        progress: Progress = ...,
    ) -> Explanations: ...
    def add_runs(self, items: Runs | list[_Row]) -> list[str]: ...
    def observed_runs(self, after: int = 0, limit: int = 100) -> list[_Row]: ...
    def put_placement(
        self,
        id: str,
        request: Request | str,
        node: str,
        *,
        ttl_seconds: float | None = None,
        require: Literal["slot", "safe", "nothing"] = "slot",
    ) -> float: ...
    def delete_placement(self, id: str) -> bool: ...
    def placements(self) -> list[_Row]: ...
    def fleet(self) -> Fleet: ...
    def coverage(self) -> list[_Row]: ...
    def drifts(self) -> list[Drift]: ...
    def models(self) -> list[_Row]: ...
    def step_back(self, version: str) -> str: ...
