"""A solver process: ``python -m app.workers.worker FD BUDGET IDLE``, one request at a time."""

import gc
import signal
import socket
import sys
import time
import traceback

from app.decisions.sources import AsWritten
from app.decoding import decode
from app.leftovers import kept
from app.lru import Lru
from app.snapshots.store import SnapshotStore
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.registry import ENGINES, engine_of
from app.solver.solve import Configured, Loaded
from app.solver.stopping import stoppable
from app.workers.desk import Desk
from app.workers.frames import Closed, receive, send
from app.workers.memory import Reserve, keep_freed_blocks
from app.workers.messages import Call, Document, Done, Failed, Head, ToWorker, WantDocument, WantHead, failed, raised
from app.workers.ticket import Ticket

_CONFIGURATIONS = 64
_FULL_COLLECTION_EVERY = 64
_RESERVE_BYTES = 256 << 20


class Remote(AsWritten):
    """Configurations by asking the service; the compiled ones are kept, the least used goes first."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.heads: dict[str, Head] = {}
        self._kept: Lru[tuple[str, int, str | None], Configured] = Lru(_CONFIGURATIONS, sys.maxsize)

    def configured(self, reference: str, engine: str | None) -> Configured:
        """Raises NotFound, Unavailable, as the service says."""
        head = self.heads.get(reference)
        if head is None:
            asked, _ = self._ask(WantHead(reference))
            assert isinstance(asked, Head)
            head = asked
        key = (head.name, head.revision, engine)
        if (kept := self._kept.get(key)) is not None:
            return kept
        _, document = self._ask(WantDocument(head.name, head.revision))
        configuration = decode(document, Configuration)
        configured = solve.configure(configuration, engine, name=head.name, revision=head.revision)
        self._kept.put(key, configured, len(document))
        return configured

    def loaded(self, configured: Configured, snapshot: str) -> Loaded:
        """States are the store's; nothing asks here."""
        raise NotImplementedError

    def _ask(self, want: WantHead | WantDocument) -> tuple[Head | Document, bytes]:
        send(self._connection, want)
        header, body = receive(self._connection, ToWorker)
        if isinstance(header, Failed):
            raise raised(header)
        return header, body


def serve(connection: socket.socket, budget: int, idle: float) -> None:
    """Answer calls until the service closes the connection."""
    remote = Remote(connection)
    store = SnapshotStore(budget=budget, idle=idle, clock=time.monotonic)
    desk = Desk(remote, store)
    for name in ENGINES:
        engine_of(name)  # imported now, not within the first request
    gc.freeze()
    gc.disable()
    keep_freed_blocks()
    reserve = Reserve(_RESERVE_BYTES)
    calls = 0
    while True:
        call, body = receive(connection, ToWorker)
        assert isinstance(call, Call)
        size = len(body)
        remote.heads = call.heads
        with kept():
            header, answer = _answer(desk, store, call, body)
            del body
            send(connection, header, answer)
        calls += 1
        # Collected between requests, never inside one: what a decision allocates dies with it by count.
        gc.collect(2 if calls % _FULL_COLLECTION_EVERY == 0 else 0)
        if not call.name:
            reserve.grow(size)


def _answer(desk: Desk, store: SnapshotStore, call: Call, body: bytes) -> tuple[Done | Failed, bytes]:
    """Work stops at the first safe point past the deadline; what is in the store by then is there to stay."""
    ticket = Ticket("large", call.end, call.seconds)
    try:
        with stoppable(ticket.check):
            ticket.check()
            reply = desk.run(call.kind, body, call.now, call.name, call.pinned)
    except Closed:
        raise
    except Exception as error:
        return failed(error, traceback.format_exc()), b""
    return Done(store.kept, reply.facts, reply.seconds), reply.body


def main() -> None:
    """The process's entry."""
    descriptor, budget, idle = sys.argv[1:4]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service decides when its workers stop
    with socket.socket(fileno=int(descriptor)) as connection:
        try:
            serve(connection, int(budget), float(idle))
        except Closed:
            return


if __name__ == "__main__":
    main()
