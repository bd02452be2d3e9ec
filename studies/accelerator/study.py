"""`python -m studies accelerator`: what was recorded on GPUs, and the simulator on kernels of known shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from jostle._base.progress import Progress
from jostle._base.report import Report
from studies.contract import report_of
from studies.data import data_folder


@dataclass(frozen=True)
class AcceleratorStudy:
    """Errors and decisions on GPUs, beside simple rules; or the simulator on single kernels."""

    name: ClassVar[str] = "accelerator"

    on: Annotated[
        Literal["recorded", "jobs", "kernels", "magus13", "v100"],
        "What is evaluated: all that was recorded, or one campaign of that; or single kernels.",
    ] = "recorded"
    seed: Annotated[int, "Of what is left out."] = 0

    def run(self, *, progress: Progress) -> Report:
        """Ends the program with a sentence where published measurements are absent."""
        if self.on == "v100":
            from studies.accelerator.v100 import evaluate_accelerator_v100

            tables = [evaluate_accelerator_v100(data_folder("v100_interference/parsed.csv").parent)]
        else:
            from studies.accelerator.recorded_gpus import evaluate_recorded

            tables = evaluate_recorded(self.on, self.seed, progress)
        return report_of(self, self.on, self.seed, tables)
