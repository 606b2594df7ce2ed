"""What the label endpoints take and answer."""

from datetime import datetime
from typing import Annotated

import msgspec

from app.solver.model.base import Wire


class LabelRequest(Wire, frozen=True, kw_only=True):
    """``PUT`` of a label: the revision that it shall mean."""

    revision: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    """The revision that the label shall mean."""


class Label(Wire, frozen=True, kw_only=True):
    """A label and the revision that it means; ``name@label`` is a reference to it."""

    name: str
    """The name of the configuration."""
    label: str
    """The label; `name@label` is a reference to its revision."""
    revision: int
    """The revision that it means."""
    updated_at: datetime
    """When it was last moved."""
    author: str
    """Who moved it."""
    comment: str | None = None
    """Why, as the mover said."""


class LabelList(Wire, frozen=True, kw_only=True):
    """The labels of one configuration, by name."""

    items: list[Label]
    """By name of the label."""
