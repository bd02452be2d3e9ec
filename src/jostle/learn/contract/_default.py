"""The method that is fitted where none is named."""

from __future__ import annotations

from jostle.learn.contract._data import Data
from jostle.learn.contract._method_registry import DEFAULT_METHOD

MANY_RUNS = 1_000_000  # past which one network learns all
OF_MANY, OF_TRACES = "factorization", "alignment"


def default_method(data: Data) -> str:
    """Name the default method: all base learners that the data allow; of very many runs the network; and of
    traces without runs what learns from counters alone."""
    from jostle.data import Dataset

    if not data.has_runs:
        return OF_TRACES if data.has_traces else DEFAULT_METHOD
    if not data.has_given_runs and data.path is not None:
        return OF_MANY if Dataset(data.path).number_of_runs() > MANY_RUNS else DEFAULT_METHOD
    return OF_MANY if len(data.runs) > MANY_RUNS else DEFAULT_METHOD
