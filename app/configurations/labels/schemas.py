"""What the label endpoints take and answer."""

from datetime import datetime
from typing import Annotated

import msgspec

from app.solver.model.base import Wire


class LabelRequest(Wire, frozen=True, kw_only=True):
    """``PUT`` of a label: the revision that it shall mean."""

    revision: Annotated[int, msgspec.Meta(ge=1, le=10**9)]


class Label(Wire, frozen=True, kw_only=True):
    """A label and the revision that it means; ``name@label`` is a reference to it."""

    name: str
    label: str
    revision: int
    updated_at: datetime
    author: str
    comment: str | None = None


class LabelList(Wire, frozen=True, kw_only=True):
    """The labels of one configuration, by name."""

    items: list[Label]
