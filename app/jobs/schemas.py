"""What every kind of job tells of itself."""

from typing import Any, Literal
from uuid import UUID

from sqlalchemy import RowMapping

from app.solver.model.base import Time, Wire

Status = Literal["queued", "running", "done", "failed", "cancelled"]


class JobState(Wire, frozen=True, kw_only=True):
    """How a job stands, whatever its kind."""

    id: UUID
    """Its id."""
    status: Status
    """`queued`, `running`, `done`, `failed` (see `error`) or `cancelled`."""
    created_at: Time
    """When it was asked for."""
    started_at: Time | None = None
    """When it first began. Absent: it has not."""
    ended_at: Time | None = None
    """When it ended. Absent: it has not."""
    attempt: int = 0
    """How often it was begun: again from the start after a worker was lost."""


def state_of(row: RowMapping) -> dict[str, Any]:
    """The fields of a ``JobState``, of a job as it is stored."""
    return {name: row[name] for name in JobState.__struct_fields__}
