"""What is drawn: plain numbers, so that they can be sent to another process.

Drawing in a process of its own: it takes a second of processor time, which decisions would have to wait for.
"""

import subprocess
from importlib.util import find_spec
from typing import Literal

import msgspec

from app.base.errors import DeadlinePassed, NotInstalled
from app.base.installation import python
from app.base.ticket import Ticket, held

Kind = Literal["usage", "waits", "evictions", "fragmentation"]


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


class Free(msgspec.Struct, frozen=True, tag=True):
    """What is free, as ``Usage`` has what is used. A panel for each flavor and level of its topology: in place of usage
    what one domain has at most, in place of a guarantee what all have together."""

    resource: str
    at: list[float]
    panels: list[Panel]
    left_out: int = 0


Picture = Usage | Waits | Evictions | Free


class Drawing(msgspec.Struct, frozen=True):
    """Pictures one below the other."""

    title: str
    pictures: list[Picture]


_SECONDS = 60.0


def drawn(drawing: Drawing) -> bytes:
    """SVG, within the time of the request that is being answered. Raises NotInstalled without the extra
    ``arbiter-preemption[plot]``, and DeadlinePassed."""
    require()
    command = [*python(), "-m", "app.simulations.drawing"]
    ticket = held() or Ticket.now("large", _SECONDS)
    try:
        done = subprocess.run(
            command, input=msgspec.json.encode(drawing), capture_output=True, timeout=ticket.left, check=False
        )
    except subprocess.TimeoutExpired:  # by now the process is killed
        raise DeadlinePassed(ticket.seconds) from None
    if done.returncode:
        raise RuntimeError(f"drawing failed: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


def require() -> None:
    """Raises NotInstalled where nothing can be drawn."""
    try:
        found = find_spec("matplotlib")
    except ValueError:  # it was looked for in vain before
        found = None
    if found is None:
        raise NotInstalled("pictures need matplotlib: uv tool install 'arbiter-preemption[plot]'")
