"""The papers' protocols, tables and figures as commands, and the tour.

This file is the room's whole public face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._ablations import STUDY_NAMES, Study, Variant, study_named
    from ._bags import BagsEvaluation, bag_methods, evaluate_bags
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
    from ._figures_bag import draw_bags
    from ._figures_embedding import draw_embeddings
    from ._pairs import PairsEvaluation, evaluate_pairs, pair_methods
    from ._protocol import Cell, run_protocol
    from ._solo_methods import SoloTime
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
    "Attention": "_baselines_neural",
    "BagsEvaluation": "_bags",
    "Blind": "_baselines",
    "Cell": "_protocol",
    "Evaluation": "_factorization",
    "GradientBoosting": "_baselines",
    "LinearScaling": "_baselines",
    "MatrixFactorization": "_baselines_neural",
    "NeuralNetwork": "_baselines_neural",
    "PairsEvaluation": "_pairs",
    "STUDY_NAMES": "_ablations",
    "SoloTime": "_solo_methods",
    "Split": "_factorization",
    "Study": "_ablations",
    "Tour": "_tour",
    "TourPlan": "_tour",
    "Variant": "_ablations",
    "bag_methods": "_bags",
    "draw_bags": "_figures_bag",
    "draw_embeddings": "_figures_embedding",
    "draw_studies": "_figures",
    "evaluate_bags": "_bags",
    "evaluate_factorization": "_factorization",
    "evaluate_pairs": "_pairs",
    "file_split": "_factorization",
    "hold_out_sets": "_tour",
    "learn_tour": "_tour",
    "mape": "_tour",
    "measure_tour": "_tour",
    "metrics_of": "_factorization",
    "observed_split": "_factorization",
    "pair_methods": "_pairs",
    "pick_examples": "_tour",
    "run_protocol": "_protocol",
    "solo_medians": "_tour",
    "study_named": "_ablations",
    "summary_rows": "_figures",
}

__all__ = [
    "STUDY_NAMES",
    "Attention",
    "BagsEvaluation",
    "Blind",
    "Cell",
    "Evaluation",
    "GradientBoosting",
    "LinearScaling",
    "MatrixFactorization",
    "NeuralNetwork",
    "PairsEvaluation",
    "SoloTime",
    "Split",
    "Study",
    "Tour",
    "TourPlan",
    "Variant",
    "bag_methods",
    "draw_bags",
    "draw_embeddings",
    "draw_studies",
    "evaluate_bags",
    "evaluate_factorization",
    "evaluate_pairs",
    "file_split",
    "hold_out_sets",
    "learn_tour",
    "mape",
    "measure_tour",
    "metrics_of",
    "observed_split",
    "pair_methods",
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
