"""A round as it was asked and answered, in the words of the wire."""

from collections.abc import Callable
from dataclasses import dataclass

from app.answering.answers import encode
from app.simulations.core.times import time_of
from app.solver import solve
from app.solver.model.decision import Result
from app.solver.model.request import DecisionRequest, StateOrReference
from app.solver.model.state import State
from app.solver.question import Question
from app.solver.solve import Configured, Loaded


@dataclass(frozen=True, slots=True)
class Asked:
    """``n``: which round, from 1; ``loaded``: the state that it was decided on."""

    n: int
    loaded: Loaded
    question: Question
    result: Result

    def request(self) -> bytes:
        """The decision request, as anybody could post it."""
        return in_words(self.loaded.configured, self.loaded.state, self.question)

    def answer(self) -> bytes:
        """The answer, as the service would give it, without ``id`` and ``stats``."""
        return encode(solve.answer_of(self.loaded, self.result))


def in_words(configured: Configured, state: State, question: Question) -> bytes:
    """The decision request that asks ``question`` of ``state``."""
    used = configured.used
    request = DecisionRequest(
        engine=configured.engine.name,  # pyright: ignore[reportArgumentType]
        now=time_of(question.now), mode=question.mode,
        configuration=configured.configuration if used.name is None else f"{used.name}@{used.revision}",
        state=StateOrReference(
            nodes=state.nodes, workloads=state.workloads, reservations=state.reservations, queues=state.queues,
            disruption_budgets=state.disruption_budgets,
        ),
        asks=question.asks, options=question.options, explain=question.explain,
    )  # fmt: skip
    return encode(request)


Watch = Callable[[Asked], None]
