"""`python -m studies accelerator`: the simulator against measurements."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from jostle._report import Report
from jostle.errors import UsageError
from jostle.progress import Progress
from studies.accelerator.tables import AcceleratorEvaluation
from studies.cells import Runner
from studies.contract import document
from studies.fields import FitsAtOnce, Kept, listed

FOLDERS = {"v100": "v100_interference", "magus13": "magus13"}  # in $JOSTLE_DATA
# Metrics printed below the table, where there are such.
NUMBERS = (
    *("ten_folds_coverage_90_ratio", "ten_folds_coverage_90_standard_error_ratio"),
    "ten_folds_margin_90_ratio",
    *(
        "unseen_application_coverage_90_ratio",
        "unseen_application_coverage_90_standard_error_ratio",
    ),
    *("unseen_application_margin_90_ratio", "unseen_application_held_out_names_ratio"),
    *("fifth_known_most_over_best_rule_ratio", "six_known_most_over_best_rule_ratio"),
    "pairs_utilisation_ratio",
    "pairs_oracle_utilisation_ratio",
    "pairs_violations_ratio",
    "pairs_worst_violation_ratio",
    "tasks_per_second",
    "study_seconds",
    "scale_out_seconds",
)


@dataclass(frozen=True)
class AcceleratorStudy:
    """Error of simulated co-runs, or what safe co-locations bring a cluster; baselines beside."""

    name: ClassVar[str] = "accelerator"

    on: Annotated[
        Literal["v100", "magus13", "pairs", "scale-out", "decisions"], "What is evaluated."
    ]
    data: Annotated[
        Path | None,
        "The measurements: v100_interference, magus13, or for pairs a dataset with runs and profiles.  "
        "[default: in $JOSTLE_DATA]",
    ] = None
    sharing: Annotated[str, "With pairs: how kernels share."] = "concurrent"
    gpu: Annotated[str | None, "With pairs: the device."] = None
    figures: Annotated[
        Path | None,
        "With scale-out: a folder to draw utilisation and violations into (the paper's Fig. 16 to 19).",
    ] = None
    seed: Annotated[
        int, "With scale-out: of applications and drift; with magus13: of what is left out."
    ] = 0
    tests: Annotated[
        str | None,
        "With magus13: only these, separated by commas: ten_folds, pair_left_out, unseen_application, "
        "other_campaign, fifth_known, six_known.  [default: all]",
    ] = None
    new_names: Annotated[
        bool,
        "With magus13: measure bounds of applications left out, too, by some twenty fits more for each that "
        "leave names out.",
    ] = False
    kept: Kept = None
    workers: FitsAtOnce = 1

    def run(self, *, progress: Progress) -> Report:
        """Raises UsageError where the measurements are not given."""
        from studies.accelerator.figures import draw_scale_out

        for option in ("tests", "kept") if self.on != "magus13" else ():
            if getattr(self, option) is not None:
                raise UsageError(f"`{option}` goes with magus13, not {self.on}")
        if self.new_names and self.on != "magus13":
            raise UsageError(f"`new_names` goes with magus13, not {self.on}")
        if self.figures is not None and self.on != "scale-out":
            raise UsageError(f"there are no figures of {self.on}", fix="Only of scale-out.")
        found, data = self._evaluated(progress)
        drawn = [] if self.figures is None else draw_scale_out(found.drawn, self.figures)
        figures = {"figures": [str(path) for path in drawn]} if drawn else {}
        metrics = {name: float(value) for name, value in found.metrics.items()}
        where = {"on": self.on, "folder": data}
        content = document(self, where, self.seed, metrics=metrics, **figures)
        numbers = [f"{name}: {metrics[name]:.4g}" for name in NUMBERS if name in metrics]
        return Report(content, [found.table, *numbers], drawn)

    def _evaluated(self, progress: Progress) -> tuple[AcceleratorEvaluation, str]:
        """What was found, and in which data."""
        if self.on == "decisions":
            from studies.accelerator.decisions import evaluate_decisions

            given, public = os.environ.get("JOSTLE_DATA"), "made devices"
            magus, v100 = self.data, None
            if given is not None:
                magus, v100 = magus or Path(given) / "magus13", Path(given) / FOLDERS["v100"]
                public += f" and {given}"
            return evaluate_decisions(magus, v100, self.seed, progress), public
        if self.on == "scale-out":
            from studies.accelerator.cluster import evaluate_accelerator_scale_out

            return evaluate_accelerator_scale_out(self.seed), "made-up applications"
        data = self.data
        if data is None and self.on in FOLDERS and "JOSTLE_DATA" in os.environ:
            data = Path(os.environ["JOSTLE_DATA"]) / FOLDERS[self.on]
        if data is None:
            raise UsageError(f"{self.on} needs measurements", fix="Say where their folder is.")
        if self.on == "v100":
            from studies.accelerator.v100 import evaluate_accelerator_v100

            return evaluate_accelerator_v100(data), str(data)
        if self.on == "magus13":
            from studies.accelerator.magus import evaluate_accelerator_magus

            runner = Runner(self.workers, None, self.kept)
            return evaluate_accelerator_magus(
                data,
                self.seed,
                progress,
                runner=runner,
                tests=listed(self.tests),
                new_names=self.new_names,
            ), str(data)
        from studies.accelerator.pairs import evaluate_accelerator_pairs

        return evaluate_accelerator_pairs(data, self.sharing, self.gpu), str(data)
