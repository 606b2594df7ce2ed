"""ENGINES: one literal table of the systems whose rules Arbiter speaks."""

from functools import cache
from importlib import import_module
from typing import Any

from app.solver.engine import Engine

ENGINES: dict[str, str] = {
    "kueue": "app.solver.engines.kueue",
    "yunikorn": "app.solver.engines.yunikorn",
    "kai": "app.solver.engines.kai",
    "ytsaurus": "app.solver.engines.ytsaurus",
    "kube-scheduler": "app.solver.engines.kube_scheduler",
}


@cache
def engine_of(name: str) -> Engine[Any, Any]:
    """The engine called ``name``; imported on first use, so that a CLI call loads one system only. Raises KeyError."""
    return import_module(ENGINES[name]).ENGINE
