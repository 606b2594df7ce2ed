"""What tests of levels share with those beside them."""

from app.answering.sources import Compiled
from app.simulations.core.run import simulate
from app.simulations.core.sink import Amounts, Silence
from app.simulations.results import line_of, spare_line_of
from app.simulations.schemas import SimulationRequest, Summary


class Levels(Silence):
    """Keeps the lines of levels."""

    leveled = True

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def level(self, queue: str, since: int, usage: Amounts, waiting: Amounts, guarantee: Amounts) -> None:
        self.lines.append(line_of(queue, since, usage, waiting, guarantee) + b"\n")

    def spare(self, flavor: str, level: str, since: int, free: Amounts, largest: Amounts) -> None:
        self.lines.append(spare_line_of(flavor, level, since, free, largest) + b"\n")


def run(request: SimulationRequest) -> tuple[Summary, list[bytes]]:
    levels = Levels()
    return simulate(request, Compiled(None), levels, lambda: False), levels.lines
