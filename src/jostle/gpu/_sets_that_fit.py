"""Which sets of services and batch jobs may share a device, and how: `within_limits` of every set.

One more tenant never turns a no into a yes, as in placement: a set fits where it and every smaller one in it
stays within its limits, so only such sets are simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from jostle._base.progress import Progress, no_progress
from jostle.errors import UsageError
from jostle.gpu._device import Device
from jostle.gpu._device_tenants import check_mode
from jostle.gpu._measured_residual import LearnedRest
from jostle.gpu._sharing_decision import WITHIN, TenantSet, Wish, within_limits

MOST_WISHES = 10


@dataclass(frozen=True)
class SharingSets:
    """Which tenants may share a device.

    alone: each by itself.
    fitting: sets of two and more that fit and that no larger one holds, the largest first.
    others: sets that were simulated and do not fit, the largest first.
    simulated: number of simulations.
    """

    alone: tuple[TenantSet, ...]
    fitting: tuple[TenantSet, ...]
    others: tuple[TenantSet, ...]
    simulated: int

    @property
    def all_fit(self) -> bool:
        """True if all tenants fit together."""
        return bool(self.fitting) and len(self.fitting[0].members) == len(self.alone)


def sets_that_fit(
    wishes: Sequence[Wish],
    device: Device,
    modes: Sequence[str],
    *,
    memory_bytes: float | None = None,
    seed: int = 0,
    rest: LearnedRest | None = None,
    progress: Progress = no_progress,
) -> SharingSets:
    """Find the sets of wishes that stay within their limits, in any of the modes.

    memory_bytes, seed, rest: as for `within_limits`.
    progress: called with (sets done, sets, NaN).
    Raises UsageError.
    """
    if not 1 <= len(wishes) <= MOST_WISHES:
        raise UsageError(
            f"{len(wishes)} tenants are not 1 to {MOST_WISHES}",
            fix="jostle place assign spreads any number over devices.",
        )
    if len({wish.name for wish in wishes}) < len(wishes):
        raise UsageError("two tenants have the same name")
    for mode in modes:
        check_mode(device, mode)
    known: dict[tuple, TenantSet] = {}
    found: dict[tuple[int, ...], TenantSet] = {}
    sets = [part for k in range(1, len(wishes) + 1) for part in combinations(range(len(wishes)), k)]
    for done, part in enumerate(sets, start=1):
        smaller = [found.get(less) for less in combinations(part, len(part) - 1) if less]
        if all(one is not None and one.verdict == WITHIN for one in smaller):
            order = sorted(part, key=lambda n: wishes[n].kind)
            key = tuple(wishes[n].kind for n in order)
            if key not in known:
                options = {"memory_bytes": memory_bytes, "seed": seed, "rest": rest}
                members = [wishes[n] for n in order]
                known[key] = within_limits(members, device, modes, **options)
            names = [wishes[n].name for n in part]
            found[part] = known[key].for_names(names, [order.index(n) for n in part])
        progress(done, len(sets), float("nan"))
    largest_first = sorted(found, key=lambda part: (-len(part), part))
    fitting: list[tuple[int, ...]] = []
    for part in largest_first:
        inside = any(set(part) <= set(f) for f in fitting if found[f].is_bounded is not False)
        if len(part) > 1 and found[part].verdict == WITHIN and not inside:
            fitting.append(part)
    others = [part for part in largest_first if len(part) > 1 and found[part].verdict != WITHIN]
    return SharingSets(
        tuple(found[n,] for n in range(len(wishes))),
        tuple(found[part] for part in fitting),
        tuple(found[part] for part in others),
        sum(one.simulated for one in known.values()),
    )
