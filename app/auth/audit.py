"""The audit log: every write, in its transaction, and a sample of the refusals; never edited."""

from typing import Any

from sqlalchemy.orm import Session

from app.auth import actor, repository


def record(session: Session, action: str, target: str, detail: dict[str, Any] | None = None) -> None:
    """Say what the current actor does, in the transaction that does it: both happen or neither."""
    repository.record(session, actor.current(), action, target, detail)
