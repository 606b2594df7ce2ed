"""A worker for jobs in this process: does what waits when it is told to."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.base.settings import Settings
from app.db.database import Database
from app.jobs.worker import Worker
from app.service.background import worker_of


@contextmanager
def working(settings: Settings) -> Iterator[Worker]:
    """A worker on the database of ``settings``."""
    database = Database(settings.database_url, settings)
    try:
        yield worker_of(database, settings, abandon=lambda: None)
    finally:
        database.close()
