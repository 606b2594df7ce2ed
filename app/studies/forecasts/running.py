"""A forecast as a job."""

import msgspec

from app.answering.sources import Configurations
from app.base.decoding import decode
from app.jobs.repository import Claimed
from app.jobs.worker import Work
from app.studies.forecasts.foretelling import foretell
from app.studies.forecasts.schemas import ForecastRequest

_encode = msgspec.json.Encoder(order="deterministic").encode


class Forecasting:
    """Does jobs of the kind ``forecast``; none looks further ahead than ``days``."""

    def __init__(self, configurations: Configurations, days: float) -> None:
        self._configurations = configurations
        self._days = days

    def do(self, job: Claimed, request: bytes, work: Work) -> bytes:
        """See ``app.jobs.worker.Doing``."""
        del job

        def stop() -> bool:
            work.check()
            return False

        return _encode(foretell(decode(request, ForecastRequest), self._configurations, self._days, stop))
