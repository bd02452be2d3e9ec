"""The verbs about a fleet, `operations/placement`, as methods; the stub beside this says their types."""

from __future__ import annotations

from jostle._base.operation_names import answers_verbs


@answers_verbs("placement")
class PlacementVerbs:
    """Answer every verb about a fleet, by the object's own `ask`."""
