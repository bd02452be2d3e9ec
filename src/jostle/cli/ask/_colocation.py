"""What a model is asked about: one co-location by options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from jostle._options import Short
from jostle.cli.console._fields import Model

if TYPE_CHECKING:
    from jostle.runs import Colocations


@dataclass(frozen=True, kw_only=True)
class AboutOne:
    """Options of commands that ask a model about one co-location."""

    model: Model
    platform: Annotated[str | None, "Where.  [default: the model's only one]", Short("-p")] = None
    beside: Annotated[
        tuple[str, ...], "A co-runner; repeat for more.  [default: alone]", Short("-b")
    ] = ()


def one_colocation(
    predictor: Any, workload: str, platform: str | None, beside: Sequence[str]
) -> Colocations:
    """Raises UsageError where no platform is named and the model answers on several."""
    from jostle.errors import UsageError
    from jostle.methods import HasInputPlatforms
    from jostle.runs import Colocations

    names = predictor.platform_names
    inputs = predictor.input_platforms if isinstance(predictor, HasInputPlatforms) else ()
    known = [name for name in names if name not in inputs]
    if platform is None and len(known) != 1:
        few = ", ".join(known[:5]) + (", …" if len(known) > 5 else "")
        raise UsageError(f"say --platform: the model knows {len(known)} ({few})")
    return Colocations.from_columns(
        workload=[workload], platform=[platform or known[0]], corunners=[beside]
    )
