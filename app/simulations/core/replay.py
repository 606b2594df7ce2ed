"""A round of a run again: the request that it was, and the answer that it got.

A run is a function of its input, so that its rounds need not be kept: it is played again up to the one that is wanted.
"""

from collections.abc import Callable, Iterable

from app.answering.sources import Configurations
from app.simulations.core.asked import Asked
from app.simulations.core.run import run
from app.simulations.core.scenario import scenario_of
from app.simulations.core.sink import Silence
from app.simulations.schemas import Job, SimulationRequest


class _Found(Exception):
    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self.asked = asked


def request_of(
    request: SimulationRequest,
    configurations: Configurations,
    n: int,
    stop: Callable[[], bool],
    jobs: Iterable[Job] | None = None,
) -> bytes | None:
    """The decision request of round ``n``, from 1; None: the run has no such round. Costs what the run did up to there.

    Arguments and errors as of ``simulate``."""
    found = round_of(request, configurations, n, stop, jobs)
    return None if found is None else found.request()


def round_of(
    request: SimulationRequest,
    configurations: Configurations,
    n: int,
    stop: Callable[[], bool],
    jobs: Iterable[Job] | None = None,
) -> Asked | None:
    """The same with its answer."""

    def watch(asked: Asked) -> None:
        if asked.n == n:
            raise _Found(asked)

    try:
        run(scenario_of(request, configurations, jobs), Silence(), stop, watch)
    except _Found as found:
        return found.asked
    return None
