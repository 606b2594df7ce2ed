"""Threads of a service that does next to nothing."""

from app.base.ticket import CLASSES
from app.workers.dispatcher import Offload, Room


def threads(count: int = 1, waiting: int = 1, seconds: float = 20.0) -> Offload:
    """``count`` of each class."""
    return Offload(dict.fromkeys(CLASSES, Room(count, waiting)), seconds)
