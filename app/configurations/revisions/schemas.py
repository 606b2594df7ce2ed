"""What the history endpoints answer."""

from typing import Any

import msgspec

from app.configurations.schemas import ConfigurationSummary
from app.solver.model.base import Wire


class RevisionPage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Revisions of one configuration, newest first."""

    items: list[ConfigurationSummary]
    """Newest first."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page; null on the last."""


class ValueChange(Wire, frozen=True, kw_only=True):
    """A value that differs. ``pointer`` leads to it in the newer document, in the older one where it is only there.

    Without ``old`` it was not said before, without ``new`` it is not said any more: then the default holds.
    """

    pointer: str
    """Where: into the newer document, or into the older one where the value is only there."""
    old: Any = msgspec.UNSET
    """The value before. Absent: the default held."""
    new: Any = msgspec.UNSET
    """The value now. Absent: the default holds."""


class ElementChanges(Wire, frozen=True, kw_only=True):
    """Queues or flavors that differ, by name."""

    added: list["Element"] = []
    """Only in the newer one."""
    removed: list["Element"] = []
    """Only in the older one."""
    changed: list["ChangedElement"] = []
    """In both, not alike."""


class Element(Wire, frozen=True, kw_only=True):
    """A queue or flavor that only one of the revisions has."""

    name: str
    """The name of the queue or flavor."""
    pointer: str
    """Where it stands in its document."""
    value: dict[str, Any]
    """What it says."""


class ChangedElement(Wire, frozen=True, kw_only=True):
    """A queue or flavor that both have, not alike."""

    name: str
    """The name of the queue or flavor."""
    changes: list[ValueChange]
    """What differs in it."""


class ConfigurationDiff(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What became of revision ``against`` in ``revision``; against 0, the empty document, everything is added.

    ``reordered``: queues or flavors that both have stand in another order.
    """

    name: str
    """The name of the configuration."""
    revision: int
    """The newer revision."""
    against: int
    """The older revision; 0 is the empty document."""
    identical: bool
    """Whether nothing differs."""
    settings: list[ValueChange]
    """Settings, and the default engine, that differ."""
    flavors: ElementChanges
    """Flavors that differ."""
    queues: ElementChanges
    """Queues that differ."""
    reordered: bool
    """Whether queues or flavors that both have stand in another order."""
