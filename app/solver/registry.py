"""Engines and what is known of them by name; a module is imported when somebody first asks for it."""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from app.solver.engine import Engine, Facts
from app.solver.engines import ENGINES


@cache
def engine_of(name: str) -> Engine[Any, Any]:
    """The engine called ``name``; imported on first use, so that a CLI call loads one system only. Raises KeyError."""
    found = _module(name)
    return (found if hasattr(found, "ENGINE") else import_module(f"{found.__name__}.engine")).ENGINE


@cache
def facts_of(name: str) -> Facts:
    """What is known of the engine called ``name``, without its algorithm. Raises KeyError."""
    return _module(name).FACTS


def all_facts() -> list[Facts]:
    """Of every engine, in the order of ``ENGINES``."""
    return [facts_of(name) for name in ENGINES]


def _module(name: str) -> ModuleType:
    return import_module(ENGINES[name])
