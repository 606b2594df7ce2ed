"""Stand-ins for what a test does not run: another function, another clock, other input, another machine."""

import io
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from inspect import Parameter, Signature, signature
from types import ModuleType
from typing import Any, Literal

import pytest


def _alike(fake: Signature, real: Signature) -> bool:
    """Whether some call is one of ``real`` and of ``fake``, whatever they may leave out."""

    def left_out(of: Signature, by_place: int) -> set[str]:
        needed = [one for one in of.parameters.values() if one.default is Parameter.empty]
        placed = [one.name for one in needed if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
        return {one.name for one in needed if one.kind is Parameter.KEYWORD_ONLY}.union(placed[by_place:])

    for by_place in range(max(len(fake.parameters), len(real.parameters)) + 1):
        named = dict.fromkeys(left_out(real, by_place) | left_out(fake, by_place))
        try:
            fake.bind(*range(by_place), **named)
            real.bind(*range(by_place), **named)
        except TypeError:
            continue
        return True
    return False


class Instead:
    """Puts stand-ins in place until the test ends: of public names that are there, and for what is called such as
    may be called alike."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, owner: Any, /, **fakes: Any) -> None:
        """Put ``fakes`` in ``owner``: an object, a class, a module, or a module's name."""
        held = import_module(owner) if isinstance(owner, str) else owner
        for name, fake in fakes.items():
            assert not name.startswith("_"), f"{name} is nobody else's"
            real = getattr(held, name)
            if callable(real) and callable(fake):
                try:
                    alike = _alike(signature(fake), signature(real))
                except ValueError:  # some of C have none
                    alike = True
                assert alike, f"{name}{signature(real)} is not called as {signature(fake)}"
            self._patch.setattr(held, name, fake)


class Clock:
    """A clock that stands at ``now``, or shows ``moments`` one by one. Sleeping moves it on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self._moments = iter(())
        self._patch = patch

    def shows(self, moments: Iterable[float]) -> None:
        """Show another of ``moments`` whenever it is read."""
        self._moments = iter(moments)

    def drives(self, *modules: ModuleType | str) -> None:
        """Be the clock of ``modules``, which import the module of time or what they need of it."""
        for module in modules:
            held = import_module(module) if isinstance(module, str) else module
            read = [name for name in ("time", "monotonic", "perf_counter") if hasattr(held, name)]
            assert read, f"{held.__name__} reads no clock"
            for name in read:
                self._patch.setattr(held, name, self if name == "time" else getattr(self, name))

    def monotonic(self) -> float:
        """The time."""
        self.now = next(self._moments, self.now)
        return self.now

    time = perf_counter = monotonic

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""
        self.now += seconds


class Machine:
    """What the machine says of itself."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def runs(self, platform: str) -> None:
        """Be of ``platform``."""
        self._patch.setattr(sys, "platform", platform)

    def is_used_by(self, user: int) -> None:
        """Be used by ``user``: 0 is root."""
        self._patch.setattr(os, "geteuid", lambda: user)

    def calls(self, *words: str) -> None:
        """Call the program by ``words``, the first of which is its name."""
        self._patch.setattr(sys, "argv", [*words])

    def shows(self, stream: Any, *, of: Literal["stdout", "stderr"] = "stderr") -> None:
        """Have ``stream`` as standard output, or for errors."""
        self._patch.setattr(sys, of, stream)

    def reads(self, text: str | bytes | Any) -> None:
        """Have ``text``, or what a stream yields, as standard input."""
        body = text.encode() if isinstance(text, str) else text
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)) if isinstance(body, bytes) else body)


@pytest.fixture
def instead(monkeypatch: pytest.MonkeyPatch) -> Instead:
    """Puts stand-ins in place for this test."""
    return Instead(monkeypatch)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that this test moves."""
    return Clock(monkeypatch)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The machine, as this test wants it."""
    return Machine(monkeypatch)
