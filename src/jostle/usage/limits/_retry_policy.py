"""What a request costs under a retry policy: what is held and not used, and what dies and is run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from jostle._base.option_fields import Limits, NoOption, check_settings
from jostle.errors import UsageError


@dataclass(frozen=True)
class RetryPolicy:
    """What happens to a run that its request is too small for, and what that costs."""

    retry: Annotated[
        Literal["x2", "max", "none"],
        "What a run that dies at its limit gets: twice as much, the most there is, or no second attempt.",
    ] = "x2"
    loses: Annotated[
        float,
        "How much of an attempt is lost when it dies: 1 for all, less where it goes on from a checkpoint.",
        Limits(0, 1),
    ] = 1.0
    gb_hour_price: Annotated[
        float, "The price of a GB-hour that is held and not used.", Limits(above=0), NoOption()
    ] = 1.0
    hour_price: Annotated[float, "The price of an hour that a failure loses.", Limits(0)] = 0.0

    def __post_init__(self) -> None:
        """Raises UsageError for values out of range, and where a failure costs nothing, so that no request is
        the cheapest."""
        check_settings(self)
        if self.retry == "none" and not self.hour_price:
            raise UsageError(
                "without a second attempt the cheapest request is none",
                fix="Say what a lost hour costs by `hour_price`, or a `confidence`.",
            )

    def attempts(self, request: Any, value: Any, most: Any = np.inf) -> tuple[Any, Any, Any]:
        """Count what the attempts of runs hold. request, value: what was asked for and what it takes, in
        one unit; most: what the retry `max` asks for. Returns (failed attempts, the sum of their requests,
        the request of the attempt that ends well, the value itself where there is none)."""
        value = np.maximum(value, 1e-300)
        request = np.maximum(request, value * 2.0**-40)
        if self.retry == "x2":
            steps = np.ceil(np.log2(value) - np.log2(request) - 1e-12)
            failed = np.maximum(steps, 0.0)
            last = np.ldexp(request, np.nan_to_num(failed).astype(np.int64))
            return failed, last - request, last
        failed = np.where(request < value * (1 - 1e-12), 1.0, 0.0)
        again = np.where(np.isfinite(most), np.maximum(most, value), 2 * value)
        last = np.where(failed > 0, again if self.retry == "max" else value, request)
        return failed, failed * request, last

    def cost_per_hour(self, request: Any, value: Any, most: Any = np.inf) -> Any:
        """Price a request of memory in GB for a run that has this peak, for each hour that it takes."""
        failed, held, last = self.attempts(request, value, most)
        return self.gb_hour_price * (last - value + self.loses * held) + (
            self.hour_price * self.loses * failed
        )

    def cost_of_time(self, request: Any, value: Any, most: Any = np.inf) -> Any:
        """Count the hours that a walltime costs a run of `value` hours: asked for and not used, or lost; a
        lost one counts as many times as its price says, at least once."""
        _, held, last = self.attempts(request, value, most)
        return last - value + self.loses * held * max(1.0, self.hour_price)
