"""What the configuration endpoints answer."""

from datetime import datetime

from app.solver.model.base import Wire
from app.solver.model.configuration import Configuration
from app.solver.model.problems import Finding


class ConfigurationSummary(Wire, frozen=True, kw_only=True):
    """One revision without its document. ``digest`` is the SHA-256 of the document as decoded."""

    name: str
    revision: int
    digest: str
    created_at: datetime


class StoredConfiguration(ConfigurationSummary, frozen=True, kw_only=True):
    """One revision with its document."""

    configuration: Configuration


class ConfigurationWritten(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a write did, or with ``dry_run`` would do.

    ``created``: there was none of that name. ``changed`` is false when the document equals the current revision: then
    there is no new one.
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


class RevisionPage(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """Revisions of one configuration, newest first."""

    items: list[ConfigurationSummary]
    next_cursor: str | None = None
