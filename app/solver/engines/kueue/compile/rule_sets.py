"""Kueue's releases. There is one, and it has one rule set: what the scheduler does, feature gates at their defaults."""

from typing import Final, get_args

from app.solver.model.kueue import Release

RELEASES: Final[tuple[Release, ...]] = get_args(Release)
"""The only one is commit ff69552e of August 2026."""
