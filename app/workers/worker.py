"""A solver process: ``python -m app.workers.worker FD BUDGET IDLE``, one request at a time."""

import gc
import select
import signal
import socket
import sys
import time
import traceback

from msgspec.structs import replace

from app.answering.answerer import Answerer
from app.answering.answers import released_at_the_end
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled
from app.base import tracing
from app.solver.registry import ENGINES, engine_of
from app.solver.stopping import stoppable
from app.workers.frames import Closed, receive, send
from app.workers.memory import Reserve, give_back, keep_freed_blocks
from app.workers.messages import Call, Done, Failed, ToWorker, failed
from app.workers.remote import Remote
from app.workers.ticket import Ticket

_CONFIGURATION_BYTES = 512 << 20
_FULL_COLLECTION_EVERY = 64
_RESERVE_BYTES = 256 << 20
_REST_SECONDS = 15.0


def serve(connection: socket.socket, budget: int, idle: float) -> None:
    """Answer calls until the service closes the connection."""
    remote = Remote(connection)
    store = SnapshotStore(budget=budget, idle=idle, clock=time.monotonic)
    answerer = Answerer(Compiled(remote, budget=_CONFIGURATION_BYTES), store)
    for name in ENGINES:
        engine_of(name)  # imported now, not within the first request
    gc.freeze()
    gc.disable()
    keep_freed_blocks()
    reserve = Reserve(_RESERVE_BYTES)
    calls, at_rest = 0, True
    while True:
        if not at_rest and not select.select([connection], [], [], _REST_SECONDS)[0]:
            gc.collect()
            reserve.release()
            give_back()
            at_rest = True
        call, body = receive(connection, ToWorker)
        assert isinstance(call, Call)
        size = len(body)
        remote.heads = call.heads
        with released_at_the_end():
            header, answer = _answer(answerer, store, call, body)
            del body
            send(connection, header, answer)
        calls += 1
        # Collected between requests, never inside one: what a decision allocates dies with it by count.
        gc.collect(2 if calls % _FULL_COLLECTION_EVERY == 0 else 0)
        if not call.asked.snapshot:
            reserve.grow(size)
        at_rest = False


def _answer(answerer: Answerer, store: SnapshotStore, call: Call, body: bytes) -> tuple[Done | Failed, bytes]:
    """Work stops at the first safe point past the deadline; what is in the store by then is there to stay."""
    ticket = Ticket("large", call.end, call.seconds)
    stages: list[tracing.Stage] = []
    try:
        with stoppable(ticket.check), tracing.told(stages.append if call.traced else None):
            ticket.check()
            reply = answerer.run(call.asked, body)
    except Closed:
        raise
    except Exception as error:
        return replace(failed(error, traceback.format_exc()), stages=stages), b""
    return Done(store.kept, reply.facts, reply.seconds, reply.kept, reply.logged, stages), reply.body


def main() -> None:
    """The process's entry."""
    descriptor, budget, idle = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service decides when its workers stop
    with socket.socket(fileno=int(descriptor)) as connection:
        try:
            serve(connection, int(budget), float(idle))
        except Closed:
            return


if __name__ == "__main__":
    main()
