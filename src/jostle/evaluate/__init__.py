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
        evaluate_accelerator_pairs,
        evaluate_accelerator_scale_out,
        evaluate_accelerator_v100,
    )
    from ._alignment import AlignmentEvaluation, evaluate_alignment
    from ._bags import BagsEvaluation, bag_methods, evaluate_bags
    from ._baselines import Blind, GradientBoosting, LinearScaling
    from ._baselines_neural import Attention, MatrixFactorization, NeuralNetwork
    from ._bridge import leaks_of_design, made_splits, published_splits, score, trace_splits
    from ._bridge_data import drift, phase_program
    from ._bridge_figures import draw_convergence, draw_forecast, draw_predicted
    from ._bridge_oracle import brute_force_errors
    from ._bridge_report import (
        accuracy_metrics,
        score_document,
        score_rows,
        speed_metrics,
        table_three,
        table_two,
    )
    from ._cells import Cell
    from ._contention import History, Job, Machine, Phase, Program, simulate
    from ._coverage import COVERAGE_KINDS, Covered, coverage_by_group
    from ._factorization import (
        Evaluation,
        Split,
        evaluate_factorization,
        file_split,
        metrics_of,
        observed_split,
    )
    from ._figures import draw_studies, summary_rows
    from ._figures_accelerator import draw_scale_out
    from ._figures_alignment import alignment_rows, draw_alignment
    from ._figures_bag import draw_bags
    from ._figures_embedding import draw_embeddings
    from ._magus import evaluate_accelerator_magus
    from ._pairs import PairsEvaluation, evaluate_pairs, pair_methods
    from ._protocol import run_protocol
    from ._simulated import draw_programs, simulate_campaign
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
    "AcceleratorEvaluation": "_accelerator",
    "AlignmentEvaluation": "_alignment",
    "History": "_contention",
    "Job": "_contention",
    "Machine": "_contention",
    "Phase": "_contention",
    "Program": "_contention",
    "alignment_rows": "_figures_alignment",
    "draw_alignment": "_figures_alignment",
    "draw_programs": "_simulated",
    "evaluate_accelerator_magus": "_magus",
    "evaluate_accelerator_pairs": "_accelerator",
    "evaluate_accelerator_scale_out": "_accelerator",
    "evaluate_accelerator_v100": "_accelerator",
    "evaluate_alignment": "_alignment",
    "simulate": "_contention",
    "simulate_campaign": "_simulated",
    "Attention": "_baselines_neural",
    "BagsEvaluation": "_bags",
    "Blind": "_baselines",
    "COVERAGE_KINDS": "_coverage",
    "Covered": "_coverage",
    "coverage_by_group": "_coverage",
    "Cell": "_cells",
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
    "accuracy_metrics": "_bridge_report",
    "brute_force_errors": "_bridge_oracle",
    "draw_convergence": "_bridge_figures",
    "bag_methods": "_bags",
    "draw_bags": "_figures_bag",
    "draw_embeddings": "_figures_embedding",
    "draw_forecast": "_bridge_figures",
    "draw_predicted": "_bridge_figures",
    "draw_scale_out": "_figures_accelerator",
    "draw_studies": "_figures",
    "drift": "_bridge_data",
    "evaluate_bags": "_bags",
    "evaluate_factorization": "_factorization",
    "evaluate_pairs": "_pairs",
    "file_split": "_factorization",
    "hold_out_sets": "_tour",
    "leaks_of_design": "_bridge",
    "learn_tour": "_tour",
    "made_splits": "_bridge",
    "mape": "_tour",
    "measure_tour": "_tour",
    "metrics_of": "_factorization",
    "observed_split": "_factorization",
    "pair_methods": "_pairs",
    "phase_program": "_bridge_data",
    "pick_examples": "_tour",
    "published_splits": "_bridge",
    "run_protocol": "_protocol",
    "score": "_bridge",
    "score_document": "_bridge_report",
    "score_rows": "_bridge_report",
    "solo_medians": "_tour",
    "speed_metrics": "_bridge_report",
    "study_named": "_ablations",
    "summary_rows": "_figures",
    "table_three": "_bridge_report",
    "table_two": "_bridge_report",
    "trace_splits": "_bridge",
}

__all__ = [
    "COVERAGE_KINDS",
    "STUDY_NAMES",
    "AcceleratorEvaluation",
    "AlignmentEvaluation",
    "Attention",
    "BagsEvaluation",
    "Blind",
    "Cell",
    "Covered",
    "Evaluation",
    "GradientBoosting",
    "History",
    "Job",
    "LinearScaling",
    "Machine",
    "MatrixFactorization",
    "NeuralNetwork",
    "PairsEvaluation",
    "Phase",
    "Program",
    "SoloTime",
    "Split",
    "Study",
    "Tour",
    "TourPlan",
    "Variant",
    "accuracy_metrics",
    "alignment_rows",
    "bag_methods",
    "brute_force_errors",
    "coverage_by_group",
    "draw_alignment",
    "draw_bags",
    "draw_convergence",
    "draw_embeddings",
    "draw_forecast",
    "draw_predicted",
    "draw_programs",
    "draw_scale_out",
    "draw_studies",
    "drift",
    "evaluate_accelerator_magus",
    "evaluate_accelerator_pairs",
    "evaluate_accelerator_scale_out",
    "evaluate_accelerator_v100",
    "evaluate_alignment",
    "evaluate_bags",
    "evaluate_factorization",
    "evaluate_pairs",
    "file_split",
    "hold_out_sets",
    "leaks_of_design",
    "learn_tour",
    "made_splits",
    "mape",
    "measure_tour",
    "metrics_of",
    "observed_split",
    "pair_methods",
    "phase_program",
    "pick_examples",
    "published_splits",
    "run_protocol",
    "score",
    "score_document",
    "score_rows",
    "simulate",
    "simulate_campaign",
    "solo_medians",
    "speed_metrics",
    "study_named",
    "summary_rows",
    "table_three",
    "table_two",
    "trace_splits",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
