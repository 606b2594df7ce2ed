"""A configuration with one queue put in or taken out; pure."""

import msgspec

from app.solver.model.configuration import Configuration, Queue


def position(configuration: Configuration, name: str) -> int | None:
    """Where the queue stands in the document."""
    return next((i for i, queue in enumerate(configuration.queues) if queue.name == name), None)


def children(configuration: Configuration, name: str) -> list[str]:
    """Queues whose parent it is, in the order of the document."""
    return [queue.name for queue in configuration.queues if queue.parent == name]


def with_queue(configuration: Configuration, queue: Queue) -> Configuration:
    """``queue`` in the place of the one of its name, or as the last one."""
    at = position(configuration, queue.name)
    queues = list(configuration.queues)
    if at is None:
        queues.append(queue)
    else:
        queues[at] = queue
    return msgspec.structs.replace(configuration, queues=queues)


def without_queue(configuration: Configuration, name: str) -> Configuration:
    """All queues but that one."""
    left = [queue for queue in configuration.queues if queue.name != name]
    return msgspec.structs.replace(configuration, queues=left)
