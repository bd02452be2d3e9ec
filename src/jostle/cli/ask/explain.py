"""`jostle explain`: why a prediction is what it is, for one co-location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jostle._options import Short
from jostle._verbs import load_verb
from jostle.answers import ExplainQuestion, Explanations
from jostle.cli.ask._colocation import AboutOne, one_question


@dataclass(frozen=True, kw_only=True)
class AboutExplained(AboutOne):
    """What to explain."""

    workload: Annotated[str, "What runs.", Short("-w")]


def explain(about: AboutExplained, question: ExplainQuestion) -> Explanations:
    from jostle.models import load

    model = load(about.model)
    one = one_question(about, model.answering, about.workload)
    return load_verb("model", "explain").of(model, one, question)


explain.__doc__ = ExplainQuestion.__doc__
