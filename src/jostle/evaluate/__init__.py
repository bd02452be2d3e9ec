"""The papers' protocols, tables and figures as commands, and the tour.

This file is the room's whole public face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._ablations import STUDY_NAMES, Study, Variant, study_named
    from ._accelerator import (
        AcceleratorEvaluation,
        evaluate_accelerator_magus,
        evaluate_accelerator_pairs,
        evaluate_accelerator_scale_out,
        evaluate_accelerator_v100,
    )
    from ._baselines import Blind, GradientBoosting, LinearScaling
    from ._baselines_neural import Attention, MatrixFactorization, NeuralNetwork
    from ._factorization import (
        Evaluation,
        Split,
        evaluate_factorization,
        file_split,
        metrics_of,
        observed_split,
    )
    from ._figures import draw_studies, summary_rows
    from ._figures_embedding import draw_embeddings
    from ._protocol import Cell, run_protocol
    from ._tour import (
        Tour,
        TourPlan,
        hold_out_sets,
        learn_tour,
        mape,
        measure_tour,
        pick_examples,
        solo_medians,
    )


_HOMES = {
    "AcceleratorEvaluation": "_accelerator",
    "evaluate_accelerator_magus": "_accelerator",
    "evaluate_accelerator_pairs": "_accelerator",
    "evaluate_accelerator_scale_out": "_accelerator",
    "evaluate_accelerator_v100": "_accelerator",
    "Attention": "_baselines_neural",
    "Blind": "_baselines",
    "Cell": "_protocol",
    "Evaluation": "_factorization",
    "GradientBoosting": "_baselines",
    "LinearScaling": "_baselines",
    "MatrixFactorization": "_baselines_neural",
    "NeuralNetwork": "_baselines_neural",
    "STUDY_NAMES": "_ablations",
    "Split": "_factorization",
    "Study": "_ablations",
    "Tour": "_tour",
    "TourPlan": "_tour",
    "Variant": "_ablations",
    "draw_embeddings": "_figures_embedding",
    "draw_studies": "_figures",
    "evaluate_factorization": "_factorization",
    "file_split": "_factorization",
    "hold_out_sets": "_tour",
    "learn_tour": "_tour",
    "mape": "_tour",
    "measure_tour": "_tour",
    "metrics_of": "_factorization",
    "observed_split": "_factorization",
    "pick_examples": "_tour",
    "run_protocol": "_protocol",
    "solo_medians": "_tour",
    "study_named": "_ablations",
    "summary_rows": "_figures",
}

__all__ = [
    "STUDY_NAMES",
    "AcceleratorEvaluation",
    "Attention",
    "Blind",
    "Cell",
    "Evaluation",
    "GradientBoosting",
    "LinearScaling",
    "MatrixFactorization",
    "NeuralNetwork",
    "Split",
    "Study",
    "Tour",
    "TourPlan",
    "Variant",
    "draw_embeddings",
    "draw_studies",
    "evaluate_accelerator_magus",
    "evaluate_accelerator_pairs",
    "evaluate_accelerator_scale_out",
    "evaluate_accelerator_v100",
    "evaluate_factorization",
    "file_split",
    "hold_out_sets",
    "learn_tour",
    "mape",
    "measure_tour",
    "metrics_of",
    "observed_split",
    "pick_examples",
    "run_protocol",
    "solo_medians",
    "study_named",
    "summary_rows",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
