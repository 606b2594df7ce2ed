"""Documents that somebody got wrong: seeded mutations of a right one."""

import copy
from random import Random
from typing import Any

EXTREMES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, -(2**63), 10**30, 0.5, -0.0, 1e300, 1e-300,
    "", "0", "-1", "1e9", "1e400", "1.5.2", "NaN", "unlimited", "100m", "1Ki", "\0", "ü", "x" * 600, "1h30m", "-5s",
    "2026-03-02T09:30:00Z", "1970-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
    [], {}, [[]], [None], {"": None}, {"cpu": 1},
)  # fmt: skip


def mutated(document: Any, random: Random, times: int) -> Any:
    """A copy of ``document`` with ``times`` random changes; ``document`` stays as it is."""
    changed = copy.deepcopy(document)
    for _ in range(times):
        places = list(_places(changed))
        container, key = random.choice(places)
        _change(container, key, places, random)
    return changed


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of the document."""
    found: list[tuple[Any, Any]] = []
    todo = [value]
    for container in todo:
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            found.append((container, key))
            if isinstance(container[key], dict | list):
                todo.append(container[key])
    return found


def _change(container: Any, key: Any, places: list[tuple[Any, Any]], random: Random) -> None:
    kind = random.randrange(7)
    value = container[key]
    if kind == 0:
        del container[key]
    elif kind == 1:
        container[key] = copy.deepcopy(random.choice(EXTREMES))
    elif kind == 2 and isinstance(container, list):
        container.insert(random.randrange(len(container) + 1), copy.deepcopy(value))
    elif kind == 3 and isinstance(container, dict):
        container[random.choice(("", "extra", "name", "cpu", "~/"))] = copy.deepcopy(value)
    elif kind == 4 and isinstance(value, int | float) and not isinstance(value, bool):
        container[key] = value * random.choice((-1, 0, 2, 1000, 0.001)) + random.choice((0, 1, -1))
    else:
        same = [other[at] for other, at in places if at == key and other is not container]
        container[key] = copy.deepcopy(random.choice(same)) if same else None
