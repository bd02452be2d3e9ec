"""`python -m studies accelerator`: the simulator against measurements."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from jostle._base.progress import Progress
from jostle._base.report import Report
from jostle.errors import UsageError
from studies.accelerator.errors import AcceleratorEvaluation
from studies.contract import document

# In $JOSTLE_DATA.
FOLDERS = {"v100": "v100_interference", "magus13": "magus13", "decisions": "magus13"}
# Metrics printed below the table, where there are such.
NUMBERS = (
    "ten_folds_coverage_90_ratio",
    "ten_folds_coverage_90_standard_error_ratio",
    "ten_folds_margin_90_ratio",
    "pairs_utilisation_ratio",
    "pairs_oracle_utilisation_ratio",
    "pairs_violations_ratio",
    "pairs_worst_violation_ratio",
)


@dataclass(frozen=True)
class AcceleratorStudy:
    """Error of simulated co-runs, or what safe co-locations bring a cluster; baselines beside."""

    name: ClassVar[str] = "accelerator"

    on: Annotated[Literal["v100", "magus13", "scale-out", "decisions"], "What is evaluated."]
    data: Annotated[
        Path | None, "The measurements, but for scale-out.  [default: in $JOSTLE_DATA]"
    ] = None
    figures: Annotated[
        Path | None, "With scale-out: a folder to draw utilisation into (the paper's Fig. 16, 18)."
    ] = None
    seed: Annotated[int, "Of what is made up, and of what is left out."] = 0

    def run(self, *, progress: Progress) -> Report:
        """Raises UsageError where the measurements are not given."""
        if self.figures is not None and self.on != "scale-out":
            raise UsageError(f"there are no figures of {self.on}", fix="Only of scale-out.")
        found, data = self._evaluated(progress)
        drawn = []
        if self.figures is not None:
            from studies.accelerator.cluster import draw_scale_out

            drawn = draw_scale_out(found.drawn, self.figures)
        where = {"on": self.on, "folder": data}
        content = document(self, where, self.seed, metrics=found.metrics)
        numbers = [f"{n}: {found.metrics[n]:.4g}" for n in NUMBERS if n in found.metrics]
        return Report(content, [found.table, *numbers], drawn)

    def _evaluated(self, progress: Progress) -> tuple[AcceleratorEvaluation, str]:
        """What was found, and in which data."""
        if self.on == "scale-out":
            from studies.accelerator.cluster import evaluate_accelerator_scale_out

            return evaluate_accelerator_scale_out(self.seed), "made-up applications"
        data = self.data
        if data is None and "JOSTLE_DATA" in os.environ:
            data = Path(os.environ["JOSTLE_DATA"]) / FOLDERS[self.on]
        if data is None:
            raise UsageError(f"{self.on} needs measurements", fix="Say where their folder is.")
        if self.on == "v100":
            from studies.accelerator.v100 import evaluate_accelerator_v100

            return evaluate_accelerator_v100(data), str(data)
        if self.on == "magus13":
            from studies.accelerator.magus import evaluate_accelerator_magus

            return evaluate_accelerator_magus(data, self.seed, progress), str(data)
        from studies.accelerator.decisions import evaluate_decisions

        return evaluate_decisions(data, self.seed, progress), str(data)
