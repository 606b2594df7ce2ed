import time

import pytest

from app.answering.operations import Answerer
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled
from app.base.errors import DeadlinePassed, Unavailable
from app.base.ticket import Ticket, holding
from app.solver.engine import ENGINES
from app.solver.question import safe_point
from app.workers.dispatcher import Dispatcher
from tests.support.instead import Instead
from tests.support.threads import threads


@pytest.fixture
def dispatcher() -> Dispatcher:
    answerer = Answerer(Compiled(None), SnapshotStore(budget=1, idle=1, clock=time.monotonic))
    return Dispatcher(answerer, None, threads(), small=1, seconds=1)


def test_every_engine_is_imported_before_the_first_request(dispatcher: Dispatcher, instead: Instead) -> None:
    imported: list[str] = []
    instead("app.workers.dispatcher", engine_of=imported.append)
    dispatcher.start()
    assert imported == list(ENGINES)


def test_work_here_ends_at_the_deadline_and_when_the_service_ends(dispatcher: Dispatcher) -> None:
    assert dispatcher.here(lambda: 7) == 7
    with holding(Ticket.now("slow", 0)), pytest.raises(DeadlinePassed):
        dispatcher.here(lambda: 7)

    def closing() -> None:
        dispatcher.close()
        while True:  # heard of at a safe point soon after, not at the next one; the deadline is a second away
            safe_point()

    with pytest.raises(Unavailable):
        dispatcher.here(closing)
