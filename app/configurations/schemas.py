"""What the configuration endpoints answer."""

from datetime import datetime

from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding


class ConfigurationSummary(Wire, frozen=True, kw_only=True):
    """One revision without its document. ``digest`` is the SHA-256 of the document as decoded.

    ``author``: who wrote it, ``comment``: why, ``restored_from``: the earlier revision that it repeats.
    """

    name: str
    """The name of the configuration."""
    revision: int
    """The number of the revision; it counts from 1."""
    digest: str
    """SHA-256 of the document as decoded."""
    created_at: datetime
    """When it was written."""
    author: str
    """Who wrote it."""
    comment: str | None = None
    """Why, as the writer said."""
    restored_from: int | None = None
    """The earlier revision that it repeats. Absent: none."""


class StoredConfiguration(ConfigurationSummary, frozen=True, kw_only=True):
    """One revision with its document."""

    configuration: Configuration
    """The document."""


class ConfigurationWritten(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a write did, or with ``dry_run`` would do.

    ``created``: there was none of that name (of that queue's, where one queue was written). ``changed`` is false when
    the document equals the current revision: then there is no new one. ``findings`` point into the whole document.
    """

    name: str
    """The name of the configuration."""
    revision: int
    """The current revision after the write."""
    digest: str
    """SHA-256 of the document as decoded."""
    dry_run: bool
    """Whether nothing was written."""
    created: bool
    """Whether there was none of that name (of that queue, where one queue was written)."""
    changed: bool
    """Whether the document differs from the current revision; if not, there is no new one."""
    findings: list[Finding]
    """What an administrator should know; pointers lead into the whole document."""


class ConfigurationPage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Configurations by name, current revisions."""

    items: list[ConfigurationSummary]
    """Current revisions, by name."""
    next_cursor: str | None = None
    """Give it as `cursor` for the next page; null on the last."""
