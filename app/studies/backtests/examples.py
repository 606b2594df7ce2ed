"""A backtest as the OpenAPI document shows it."""

from typing import Any

BACKTEST: dict[str, Any] = {
    "since": "2026-03-01T00:00:00Z",
    "engine": "kueue",
    "variants": [{"name": "fair", "settings": {"kueue": {"fair_sharing": True}}}],
}
