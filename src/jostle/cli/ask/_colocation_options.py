"""What a model is asked about: one co-location by options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from jostle._base.option_fields import Short
from jostle.cli.console._shared_options import Model
from jostle.errors import UsageError, require_known

if TYPE_CHECKING:
    import numpy as np

    from jostle.data import Colocations
    from jostle.models import Timelines


@dataclass(frozen=True, kw_only=True)
class AboutOne:
    """Options of commands that ask a model about one co-location."""

    model: Model
    platform: Annotated[str | None, "Where.  [default: the model's only one]", Short("-p")] = None
    beside: Annotated[
        tuple[str, ...], "A co-runner; repeat for more.  [default: alone]", Short("-b")
    ] = ()
    set_: Annotated[
        Mapping[str, str] | None,
        "What is known of the run before it starts, such as input_bytes=3e9; repeat for more.  [default: as "
        "is usual of the workload]",
    ] = None
    then: Annotated[
        tuple[str, ...],
        "Who is beside it from a moment of its run on, instead: 2min=sort,fft, or 5min= for nobody; repeat "
        "for more.",
    ] = ()
    elapsed: Annotated[str | None, "For how long it has run already, such as 90s."] = None
    done: Annotated[
        float | None,
        "The share of its work that is done by then, by its own count, from 0 to 1.  [default: by the time]",
    ] = None
    future: Annotated[
        bool,
        "Those beside it end in their turn, and others come: refused where no log tells of them.",
    ] = False

    @property
    def is_timed(self) -> bool:
        """True if its company changes, or it runs already."""
        return bool(self.then or self.future or self.elapsed is not None or self.done is not None)


def one_question(
    about: AboutOne, of: Any, workload: str, *, throughout: bool = False
) -> Colocations | Timelines:
    """Make the question that the options ask. of: the model. throughout: see over_time. Raises UsageError."""
    from jostle.data.tables import cells
    from jostle.models import Timelines, over_time

    if about.future and throughout:
        raise UsageError("say either --future or --throughout")
    predictor = of.predictor
    one = one_colocation(predictor, workload, about.platform, about.beside)
    covariates = _covariates(predictor, about.set_ or {})
    one = replace(one, covariates=covariates)
    if not about.is_timed:
        return one
    stretches: list[tuple[float, Sequence[str]]] = [(0.0, about.beside)]
    try:
        for text in about.then:
            at, is_given, names = text.partition("=")
            start = cells.seconds(at, "its time") if is_given else None
            if start is None:
                raise ValueError("it is not TIME=NAME,NAME")
            is_one = names in predictor.workload_names  # which may hold commas
            parts = [names] if is_one else [name for name in names.split(",") if name]
            stretches.append((start, parts))
    except ValueError as error:
        raise UsageError(
            f"the timeline cannot be read: {error}", fix="Such as --then 2min=sort,fft"
        ) from None
    elapsed = None
    if about.elapsed not in ("0", "0s"):
        elapsed = cells.asked(cells.seconds, about.elapsed, "`elapsed`", "--elapsed 90s")
    timed = Timelines.from_columns(
        workload=[workload],
        platform=[one.platform_names[0]],
        stretches=[stretches],
        elapsed_seconds=[elapsed or 0.0],
        done_ratio=[about.done],
        future=about.future,
    )
    every = {name: one.repeat(len(timed.colocations)) for name, one in covariates.items()}
    timed = replace(timed, colocations=replace(timed.colocations, covariates=every))
    return over_time(of, timed, throughout=throughout)


def _covariates(predictor: Any, given: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return numbers and texts as arrays of one. Raises UnknownName for what the model does not know."""
    from jostle.data import covariate_of

    known = tuple(getattr(predictor, "covariate_names", ()))
    require_known("covariate", given, known)
    out = {}
    for name, text in given.items():
        try:
            value: float | str = float(text)
        except ValueError:
            value = text
        out[name] = covariate_of([value])
    return out


def one_colocation(
    predictor: Any, workload: str, platform: str | None, beside: Sequence[str]
) -> Colocations:
    """Raises UsageError where no platform is named and the model answers on several."""
    from jostle.data import Colocations

    names = predictor.platform_names
    inputs = getattr(predictor, "input_platforms", ())
    known = [name for name in names if name not in inputs]
    if platform is None and len(known) != 1:
        few = ", ".join(known[:5]) + (", …" if len(known) > 5 else "")
        raise UsageError(f"say --platform: the model knows {len(known)} ({few})")
    return Colocations.from_columns(
        workload=[workload], platform=[platform or known[0]], corunners=[beside]
    )
