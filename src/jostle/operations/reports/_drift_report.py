"""What drifts, as runs tell that came since the model was fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jostle._base.documents import VerbAnswer
from jostle._base.report import Report, Table
from jostle.models import Drift


@dataclass(frozen=True, repr=False)
class Drifts(VerbAnswer):
    """Names that drift, and the runs that show it. runs: gone through, of which `checked` were compared with
    the model; the rest have unknown names or are what it starts from."""

    runs: int
    checked: int
    unknown_names: int
    drifts: tuple[Drift, ...]
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "drift/v1"

    @classmethod
    def of(cls, watch: Any, label: dict[str, Any] | None) -> Drifts:
        """Read what a DriftWatch has found by now."""
        return cls(watch.runs, watch.checked, watch.unknown, tuple(watch.drifts), label)

    @property
    def exit_code(self) -> int:
        return 1 if self.drifts else 0

    def report(self) -> Report:
        document, text = self.to_document(), f"{self.checked} runs checked"
        if self.unknown_names:
            text += f", {self.unknown_names} of unknown names left out"
        if not self.drifts:
            return Report(document, [f"nothing drifts: {text}"])
        cells = {
            "what": "kind",
            "name": lambda one: one.name or "all of it",
            "change": "change",
            "times as long": lambda one: f"{one.ratio:.2f}",
            "times as wide": lambda one: f"{one.spread_ratio:.1f}",
            "by chance": lambda one: f"{one.chance:.0e}",
            "since": lambda one: f"run {one.first}",
            "after runs": "runs",
            "found at": lambda one: one.at or f"run {one.found}",
        }
        advice = "Fit anew on runs measured since, or ask jostle.DriftWatch(model) for bounds that follow."
        table = Table.of(self.drifts, cells)
        return Report(document, [table, text, advice], exit_code=self.exit_code)
