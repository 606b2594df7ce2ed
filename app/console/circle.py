"""Who stops whom, drawn on a circle: a curve from each source to whom it stops, so that loops show as such."""

import math
from collections import Counter
from typing import NamedTuple

_EVERY = 120
_RADIUS = 150.0


class Edge(NamedTuple):
    """Work of ``to`` stopped ``times`` times for ``source``, drawn as a curve between two points."""

    source: str
    to: str
    times: int
    path: str
    mutual: bool


class Dot(NamedTuple):
    """A queue or a job on the circle; the middle is at 250, 200."""

    name: str
    x: float
    y: float


def circle(pairs: Counter[tuple[str, str]], most: int = 12) -> tuple[list[Dot], list[Edge]]:
    """The ``most`` that stop or are stopped oftenest, and the curves between them: two that stop one another show as a
    loop."""
    names = list(dict.fromkeys(name for pair, _ in pairs.most_common() for name in pair))[:most]
    dots = {
        name: Dot(name, 250 + _RADIUS * math.cos(at), 200 + _RADIUS * math.sin(at))
        for i, name in enumerate(names)
        for at in [2 * math.pi * i / max(len(names), 1) - math.pi / 2]
    }
    edges: list[Edge] = []
    for (source, to), count in pairs.most_common():
        if source in dots and to in dots:
            mutual = source != to and (to, source) in pairs
            edges.append(Edge(source, to, count, _curve(dots[source], dots[to]), mutual))
    return list(dots.values()), edges[:_EVERY]


def _curve(a: Dot, b: Dot) -> str:
    if a.name == b.name:
        return f"M {a.x:.0f} {a.y:.0f} c -60 40 60 40 2 2"
    x, y = (a.x + b.x) / 2 + (b.y - a.y) * 0.18, (a.y + b.y) / 2 - (b.x - a.x) * 0.18
    return f"M {a.x:.0f} {a.y:.0f} Q {x:.0f} {y:.0f} {b.x:.0f} {b.y:.0f}"
