"""A connection without a server."""

from typing import Any

from app.db.connecting import PatientConnection


class Nobody(PatientConnection):
    """``gone``: whether it is known to be closed."""

    gone: bool

    def __init__(self) -> None:
        """There is nothing to connect to."""

    def __del__(self, *_: Any) -> None:
        return

    @property
    def closed(self) -> bool:
        return self.gone
