"""What a run, or one queue in it, came to, as people read it."""

from collections.abc import Callable
from typing import NamedTuple

from app.console.api import Json
from app.console.words import amount, seconds


class Measure(NamedTuple):
    """One row of a summary. ``of``: its words of a total; ``queues``: whether it is also shown queue by queue."""

    title: str
    says: str
    of: Callable[[Json], str]
    queues: bool


def _count(name: str) -> Callable[[Json], str]:
    return lambda total: amount(total.get(name, 0))


def _spread(name: str, at: str) -> Callable[[Json], str]:
    def words(total: Json) -> str:
        found: Json | None = total.get(name)
        return seconds(None if found is None else found.get(at, 0))

    return words


def _ratio(name: str, at: str) -> Callable[[Json], str]:
    def words(total: Json) -> str:
        found = total.get(name)
        return "–" if found is None else f"{found.get(at, 0):.3g}×"

    return words


def _work(name: str) -> Callable[[Json], str]:
    """Amounts by resource times seconds, in hours."""

    def words(total: Json) -> str:
        kept = {resource: value / 3600 for resource, value in total.get(name, {}).items() if value}
        return ", ".join(f"{amount(value, resource)} {resource}·h" for resource, value in kept.items()) or "none"

    return words


def _shares(name: str) -> Callable[[Json], str]:
    def words(total: Json) -> str:
        return ", ".join(f"{resource} {100 * value:.3g} %" for resource, value in total.get(name, {}).items()) or "–"

    return words


MEASURES = (
    Measure("Jobs", "asked for", _count("jobs"), True),
    Measure("Finished", "of these", _count("finished"), True),
    Measure("Cancelled", "of these", _count("cancelled"), False),
    Measure("Wait, median", "from being asked for to the first start", _spread("wait", "p50"), True),
    Measure("Wait, 90 %", "nine of ten waited no longer", _spread("wait", "p90"), True),
    Measure("Completion, median", "from being asked for to the finish", _spread("completion", "p50"), False),
    Measure("Completion, 90 %", "nine of ten took no longer", _spread("completion", "p90"), True),
    Measure("Slowdown, 90 %", "completion over the job's own duration", _ratio("slowdown", "p90"), False),
    Measure("Evictions", "how often something was stopped", _count("evictions"), True),
    Measure("Most of one job", "evictions", _count("most_evictions"), False),
    Measure("Work lost", "progress that evictions threw away", _work("work_lost"), True),
    Measure("Used", "held over what is guaranteed, over all of the capacity", _shares("utilisation"), True),
    Measure("Missing", "to the guarantee while there was demand", _work("shortfall"), True),
)
