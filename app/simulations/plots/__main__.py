"""A drawing as JSON on standard input, SVG on standard output."""

import os
import sys
from contextlib import suppress

import msgspec

from app.simulations.plots.data import Drawing

_NICE = 10
"""Decisions go first where both want the processor."""


def main() -> None:
    """Draw what is read, and end."""
    with suppress(OSError):
        os.nice(_NICE)
    from app.simulations.plots.drawing import svg

    sys.stdout.buffer.write(svg(msgspec.json.decode(sys.stdin.buffer.read(), type=Drawing)))


if __name__ == "__main__":
    main()
