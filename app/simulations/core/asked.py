"""A round as it was asked and answered, in the words of the wire."""

from collections.abc import Callable
from dataclasses import dataclass

from app.answering.answers import encode
from app.simulations.core.times import time_of
from app.solver import solve
from app.solver.model.decision import Result
from app.solver.model.request import DecisionRequest, StateOrReference
from app.solver.question import Question
from app.solver.solve import Loaded


@dataclass(frozen=True, slots=True)
class Asked:
    """``n``: which round, from 1; ``loaded``: the state that it was decided on."""

    n: int
    loaded: Loaded
    question: Question
    result: Result

    def request(self) -> bytes:
        """The decision request, as anybody could post it."""
        state, used = self.loaded.state, self.loaded.configured.used
        request = DecisionRequest(
            engine=self.loaded.configured.engine.name,  # pyright: ignore[reportArgumentType]
            now=time_of(self.question.now), mode=self.question.mode,
            configuration=self.loaded.configured.configuration if used.name is None else f"{used.name}@{used.revision}",
            state=StateOrReference(
                nodes=state.nodes, workloads=state.workloads, reservations=state.reservations, queues=state.queues
            ),
            asks=self.question.asks, options=self.question.options, explain=self.question.explain,
        )  # fmt: skip
        return encode(request)

    def answer(self) -> bytes:
        """The answer, as the service would give it, without ``id`` and ``stats``."""
        return encode(solve.answer_of(self.loaded, self.result))


Watch = Callable[[Asked], None]
