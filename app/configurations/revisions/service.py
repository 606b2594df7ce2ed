"""Comparing the revisions of a configuration."""

from typing import Any

import msgspec

from app.configurations.revisions.difference import difference
from app.configurations.revisions.schemas import ConfigurationDiff
from app.configurations.service import Configurations


def compare(stored: Configurations, name: str, revision: int, against: int | None) -> ConfigurationDiff:
    """What became of revision ``against`` (by default the one before) in ``revision``. Raises NotFound, Unavailable."""
    base = revision - 1 if against is None else against
    new = stored.get(name, revision)
    old = {} if base == 0 else msgspec.json.decode(stored.get(name, base).document, type=dict[str, Any])
    return difference(name, base, old, revision, msgspec.json.decode(new.document, type=dict[str, Any]))
