"""What is drawn: plain numbers, so that they can be sent to another process."""

from typing import Literal

import msgspec

Kind = Literal["usage", "waits", "evictions"]
KINDS: tuple[Kind, ...] = ("usage", "waits", "evictions")


class Panel(msgspec.Struct, frozen=True):
    """Means of one queue by interval, in units of the resource; ``name`` empty: all queues together."""

    name: str
    usage: list[float]
    guarantee: list[float]


class Usage(msgspec.Struct, frozen=True, tag=True):
    """``at``: seconds since 1970 where intervals begin, and the end of the last. ``left_out``: queues not drawn."""

    resource: str
    at: list[float]
    panels: list[Panel]
    left_out: int = 0


class Waits(msgspec.Struct, frozen=True, tag=True):
    """Seconds to the first start, ascending, by what the line is called; ``never``: jobs that did not start."""

    lines: dict[str, list[float]]
    never: int = 0


class Evictions(msgspec.Struct, frozen=True, tag=True):
    """``counts``: by the queue of the evicted, then by that it was evicted for; empty where it was for nobody."""

    counts: dict[str, dict[str, int]]


Picture = Usage | Waits | Evictions


class Drawing(msgspec.Struct, frozen=True):
    """Pictures one below the other."""

    title: str
    pictures: list[Picture]
