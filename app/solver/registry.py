"""ENGINES: one literal table of the systems whose rules Arbiter speaks."""

from functools import cache
from importlib import import_module
from typing import Any

from app.solver.engine import Engine

ENGINES: dict[str, tuple[str, str]] = {
    "kueue": ("app.solver.engines.kueue", "KueueEngine"),
    "yunikorn": ("app.solver.engines.yunikorn", "YuniKornEngine"),
    "kai": ("app.solver.engines.kai", "KaiEngine"),
    "ytsaurus": ("app.solver.engines.ytsaurus", "YtsaurusEngine"),
}


@cache
def engine_of(name: str) -> Engine[Any, Any]:
    """The engine called ``name``; imported on first use, so that a CLI call loads one system only. Raises KeyError."""
    module, attribute = ENGINES[name]
    return getattr(import_module(module), attribute)()
