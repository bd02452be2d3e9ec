"""The verbs about recorded runs, `operations/forecasts`, as methods; a stub says their types."""

from __future__ import annotations

from typing import Any

from jostle._base.operation_names import answers_verbs
from jostle._base.progress import no_progress


@answers_verbs("forecasts")
class LimitVerbs:
    """Answer every verb about recorded runs."""

    def ask(self, verb: Any, items: Any, question: Any, progress: Any = no_progress) -> Any:
        """Answer a verb about recorded runs."""
        return verb(self, items, question, progress)
