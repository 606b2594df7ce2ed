"""What the history endpoints answer."""

from typing import Any

import msgspec

from app.configurations.schemas import ConfigurationSummary
from app.solver.model.base import Wire


class RevisionPage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Revisions of one configuration, newest first."""

    items: list[ConfigurationSummary]
    next_cursor: str | None = None


class ValueChange(Wire, frozen=True, kw_only=True):
    """A value that differs. ``pointer`` leads to it in the newer document, in the older one where it is only there.

    Without ``old`` it was not said before, without ``new`` it is not said any more: then the default holds.
    """

    pointer: str
    old: Any = msgspec.UNSET
    new: Any = msgspec.UNSET


class ElementChanges(Wire, frozen=True, kw_only=True):
    """Queues or flavors that differ, by name."""

    added: list["Element"] = []
    removed: list["Element"] = []
    changed: list["ChangedElement"] = []


class Element(Wire, frozen=True, kw_only=True):
    """A queue or flavor that only one of the revisions has."""

    name: str
    pointer: str
    value: dict[str, Any]


class ChangedElement(Wire, frozen=True, kw_only=True):
    """A queue or flavor that both have, not alike."""

    name: str
    changes: list[ValueChange]


class ConfigurationDiff(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What became of revision ``against`` in ``revision``; against 0, the empty document, everything is added.

    ``reordered``: queues or flavors that both have stand in another order.
    """

    name: str
    revision: int
    against: int
    identical: bool
    settings: list[ValueChange]
    flavors: ElementChanges
    queues: ElementChanges
    reordered: bool
