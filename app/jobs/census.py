"""How many jobs wait, run and have ended, for Prometheus: counted in the database when it is asked."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app.base.errors import Unavailable
from app.db import Database
from app.jobs import repository

_SECONDS = 1.0
"""For the database; a scrape without these says more than one that comes too late."""


class Census(Collector):
    """The jobs of ``database``; nothing while it is away or not migrated."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> list[GaugeMetricFamily]:
        """The families without samples, so that registering asks nothing of the database."""
        labels = ["kind", "status"]
        return [
            GaugeMetricFamily("arbiter_jobs", "Jobs that the database keeps.", labels=labels),
            GaugeMetricFamily("arbiter_jobs_seconds", "What those that ended took, summed.", labels=labels),
            GaugeMetricFamily(
                "arbiter_jobs_oldest_seconds", "How long the oldest that waits has waited.", labels=["kind"]
            ),
        ]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Those of now."""
        try:
            with self._database.session(_SECONDS) as session:
                rows = repository.census(session)
        except Unavailable:
            return
        count, seconds, oldest = self.describe()
        for row in rows:
            count.add_metric([row.kind, row.status], row.jobs)
            if row.status == "queued":
                oldest.add_metric([row.kind], row.oldest)
            elif row.seconds is not None:
                seconds.add_metric([row.kind, row.status], row.seconds)
        yield from (count, seconds, oldest)
