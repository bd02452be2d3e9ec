from typing import Any

from jostle._base.progress import Progress
from jostle.operations import LimitAnswer

class LimitVerbs:
    def ask(self, verb: Any, items: Any, question: Any, progress: Progress = ...) -> Any: ...
    def limit(
        self,
        confidence: float | None = None,
        over: float | None = None,
        *,
        progress: Progress = ...,
    ) -> LimitAnswer: ...
