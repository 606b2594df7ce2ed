"""What was installed: its name, the folders that come with the code and are no code, and how it starts processes; and
what is kept to be used again, within bounds."""

import sys
from collections import OrderedDict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Generic, Literal, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_APP = Path(__file__).parents[1]

DISTRIBUTION = "arbiter-preemption"
"""What this is called where packages come from: `arbiter` is somebody else's there. The command is `arbiter`."""


@cache
def shipped(name: Literal["examples", "migrations"]) -> Path:
    """The folder ``name``: inside the package where it was installed (the wheel puts it there), else in the checkout.

    Raises `FileNotFoundError` where neither is: the installation is broken.
    """
    for folder in (_APP / name, _APP.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder {name} is missing: it comes with Arbiter, beside or inside {_APP}")


@cache
def installed_version() -> str:
    """The version of what runs; `0` where it runs from a folder and was not installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0"


def python() -> list[str]:
    """The interpreter, as a command begins: what is imported is what is installed, never what happens to lie in the
    folder that the service was started in (``-P``)."""
    return [sys.executable, "-P"]


class Lru(Generic[K, V]):
    """A mapping that forgets what was not used for longest, past ``most`` entries or ``budget`` bytes. Thread-safe.

    What was put in last always stays: an entry larger than the budget is kept alone.
    """

    def __init__(self, most: int, budget: int) -> None:
        self._most = most
        self._budget = budget
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The value of ``key``, which counts as a use of it; None where it is not kept."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep ``value``, which counts as ``size`` bytes."""
        with self._lock:
            before = self._entries.pop(key, None)
            self._size += size - (0 if before is None else before[1])
            self._entries[key] = (value, size)
            while len(self._entries) > 1 and (len(self._entries) > self._most or self._size > self._budget):
                self._size -= self._entries.popitem(last=False)[1][1]

    def has_room(self, size: int) -> bool:
        """Whether ``size`` bytes more would push nothing out."""
        with self._lock:
            return len(self._entries) < self._most and self._size + size <= self._budget

    def __contains__(self, key: K) -> bool:
        """Without counting as a use."""
        with self._lock:
            return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
