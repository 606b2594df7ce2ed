"""Structured logs: JSON lines for machines, coloured lines on a terminal; libraries' own logs join in.

Our own lines are rendered once and go straight to the stream. Through ``logging``, which libraries use, a line takes
ten times as long: as much as a quarter of a small decision.
"""

import json
import logging
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from threading import Lock
from typing import Any, TextIO

import msgspec
import structlog
from structlog.tracebacks import ExceptionDictTransformer

from app.base.settings import Settings

_LEVELS = {name.lower(): level for name, level in logging.getLevelNamesMapping().items()} | {"exception": logging.ERROR}


class _Stream:
    """Where lines of ``level`` and above go. Lines of several threads don't mix."""

    def __init__(self) -> None:
        self.level = logging.WARNING
        self._to: TextIO | None = None
        self._lock = Lock()

    def open(self, to: TextIO, level: int) -> None:
        """Write to ``to`` from now on, what is at least of ``level``."""
        self._to, self.level = to, level

    def line(self, text: str) -> None:
        """Write ``text`` and a line break. Nobody's work ends because a line can't be written."""
        to = self._to or sys.stderr
        with self._lock, suppress(OSError, ValueError):
            to.write(text + "\n")
            to.flush()


_stream = _Stream()
_processors: list[structlog.typing.Processor] = []
"""Changed in place: a logger keeps the list that there was when it was first used."""


class _Named:
    """What ``structlog`` takes for a logger."""

    def __init__(self, name: str = "arbiter") -> None:
        self.name = name
        self.debug = self.info = self.warning = self.error = self.exception = self.critical = _stream.line


def configure(settings: Settings) -> None:
    """Set up logging of this process, once, before anything logs."""
    json_lines = settings.log_format == "json" or (settings.log_format == "auto" and not sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.typing.Processor] = (
        [structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)), _as_json]
        if json_lines
        else [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    )
    level = _LEVELS[settings.log_level]
    _stream.open(sys.stderr, level)
    _processors[:] = [_drop_below_level, *shared, *last]
    structlog.configure(
        processors=_processors,
        logger_factory=_Named,
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for chatty in ("alembic", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _drop_below_level(_logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if _LEVELS[method] < _stream.level:
        raise structlog.DropEvent
    return event


def _as_json(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    """``event`` as one line of JSON. What has no such form, a lone surrogate too, is written as best it can be."""
    try:
        return msgspec.json.encode(event).decode()
    except (TypeError, ValueError, RecursionError):
        return json.dumps(event, default=repr)
