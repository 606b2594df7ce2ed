"""Bounds of the product that a test sets so low, or so high, that a small input reaches them."""

from importlib import import_module
from types import ModuleType

import pytest


class Bounded:
    """Sets public bounds until the test ends, and only what already is a bound: a number, or numbers, of that name."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, owner: ModuleType | type | str, **bounds: float | tuple[float, ...]) -> None:
        """Set ``bounds`` of ``owner``: a class, a module, or a module's name."""
        held = import_module(owner) if isinstance(owner, str) else owner
        for name, bound in bounds.items():
            before = getattr(held, name)
            assert name.isupper(), name
            assert not name.startswith("_"), name
            assert isinstance(before, int | float | tuple), name
            self._patch.setattr(held, name, bound)


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> Bounded:
    """Sets bounds of the product for this test."""
    return Bounded(monkeypatch)
