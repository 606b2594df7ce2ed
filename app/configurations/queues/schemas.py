"""What the queue endpoints take and answer."""

from typing import Annotated, Any

import msgspec

from app.configurations.schemas import ConfigurationSummary
from app.solver.model.configuration import Queue


class QueueDocument(Queue, frozen=True, kw_only=True):
    """A queue to be stored. ``name`` may be left out: it is the path's."""

    name: Annotated[str, msgspec.Meta(max_length=512)] = ""
    """The name of the queue; may be left out, it is the path's."""

    def named(self, name: str) -> Queue:
        """The same queue as configurations hold it."""
        said: dict[str, Any] = {field: getattr(self, field) for field in Queue.__struct_fields__}
        said["name"] = name
        return Queue(**said)


class StoredQueue(ConfigurationSummary, frozen=True, kw_only=True):
    """One queue, and the revision that it was read from."""

    queue: Queue
    """The queue."""
