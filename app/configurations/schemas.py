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
    revision: int
    digest: str
    created_at: datetime
    author: str
    comment: str | None = None
    restored_from: int | None = None


class StoredConfiguration(ConfigurationSummary, frozen=True, kw_only=True):
    """One revision with its document."""

    configuration: Configuration


class ConfigurationWritten(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a write did, or with ``dry_run`` would do.

    ``created``: there was none of that name (of that queue's, where one queue was written). ``changed`` is false when
    the document equals the current revision: then there is no new one. ``findings`` point into the whole document.
    """

    name: str
    revision: int
    digest: str
    dry_run: bool
    created: bool
    changed: bool
    findings: list[Finding]


class ConfigurationPage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Configurations by name, current revisions."""

    items: list[ConfigurationSummary]
    next_cursor: str | None = None
