"""What every question about a model may name: the campaign that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    from jostle.models._model import Model


@dataclass(frozen=True, kw_only=True)
class CampaignQuestion:
    """A question that may name a campaign."""

    campaign: Annotated[
        str | None,
        "The campaign, one of the campaigns of its runs, that is asked about.  [default: the usual one]",
    ] = None

    def about(self, model: Model) -> Model:
        """Return the model that answers the query. Raises UsageError, UnknownName."""
        return model if self.campaign is None else model.for_campaign(self.campaign)
