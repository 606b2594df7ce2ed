"""The service's side: worker processes, who gets which call, and what happens when one is lost."""

import os
import socket
import subprocess
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count as counting
from threading import Event, Lock, Thread

from app.answering.operations import Inquiry, Operation, Reply
from app.answering.sources import Documents
from app.base import python
from app.base.errors import DeadlinePassed, TooManyRequests, Unavailable
from app.base.ticket import CLASSES, Class, Ticket, listener, stage
from app.workers.messages import (
    Call,
    Closed,
    Done,
    Failed,
    FromWorker,
    Head,
    WantDocument,
    WantHead,
    limit_waits,
    raised,
    receive,
    send,
    supply,
)

MOST_NAMES = 65_536
GRACE_SECONDS = 10.0
"""Past its deadline a worker gets this long to reach a safe point; then it is stuck and is replaced."""
TRIAL_SECONDS = 5.0
"""That a worker may take to start and answer something small when it is tried."""
LATE_SECONDS = 3.0
"""Past its deadline a worker that has not answered for this long is told of as one that can't work."""
QUIET_SECONDS = 20.0
"""A worker that has answered nothing for so long is tried when somebody asks who can work. Longer than a worker waits
before it tidies its memory."""


CLOSING = "the service is shutting down"


class _Waiter:
    """``worker``: the only one that will do, None for any. ``given``: the one that it may use now; ``dropped``: none,
    for others have their turn first."""

    __slots__ = ("dropped", "given", "served", "ticket", "worker")

    def __init__(self, ticket: Ticket, worker: int | None) -> None:
        self.ticket = ticket
        self.worker = worker
        self.given: int | None = None
        self.dropped = False
        self.served = Event()


class Turns:
    """Who uses a worker next: classes take turns, within a class those who ask do, and of theirs what came first goes
    first. So a queue of large requests delays one about a snapshot by what runs now, not by all that waits; and all
    that one caller has waiting delays another's by one.

    Hands out ``count`` workers, each to one caller at a time. Thread-safe; its lock is held for moments only.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = set(range(count))
        self._waiting: list[_Waiter] = []
        self._latest = dict.fromkeys(CLASSES, -1)
        self._served: dict[str, int] = {}
        """When each of those who have something waiting had a turn."""
        self._numbers = counting()
        self._closed = False
        self._guard = Lock()

    def take(self, ticket: Ticket, worker: int | None = None) -> int:
        """The worker to use until ``give``. ``worker``: no other will do. Raises DeadlinePassed, TooManyRequests,
        Unavailable."""
        waiter = _Waiter(ticket, worker)
        with self._guard:
            if self._closed:
                raise Unavailable(CLOSING, retry_after=1)
            # The last free one: snapshots are spread from the first one on, so that large requests keep away from them.
            free = max(self._free, default=None) if worker is None else worker if worker in self._free else None
            if free is not None:
                self._free.discard(free)
                self._serve(ticket)
                return free
            self._waiting.append(waiter)
        waiter.served.wait(ticket.left)
        with self._guard:
            if waiter.given is not None:
                return waiter.given
            if self._closed:
                raise Unavailable(CLOSING, retry_after=1)
            if waiter.dropped:
                raise TooManyRequests("many of your requests wait, and others ask as well")
            self._waiting.remove(waiter)
        raise DeadlinePassed(ticket.seconds)

    def drop(self, ticket: Ticket) -> bool:
        """Whether it waited; it does no longer."""
        with self._guard:
            waiter = next((waiter for waiter in self._waiting if waiter.ticket is ticket), None)
            if waiter is None:
                return False
            self._waiting.remove(waiter)
            waiter.dropped = True
            waiter.served.set()
            return True

    def give(self, worker: int) -> None:
        """``worker`` is free: whoever is next has it."""
        with self._guard:
            able = [waiter for waiter in self._waiting if waiter.worker in (None, worker)]
            if not able:
                self._free.add(worker)
                return
            chosen = min(able, key=self._turn)
            self._waiting.remove(chosen)
            self._serve(chosen.ticket)
            chosen.given = worker
            chosen.served.set()

    def close(self) -> None:
        """Nobody gets a worker any more; who waits is told."""
        with self._guard:
            self._closed = True
            for waiter in self._waiting:
                waiter.served.set()
            self._waiting.clear()

    def waiting(self) -> Counter[Class]:
        """How many wait, by class."""
        with self._guard:
            return Counter(waiter.ticket.of for waiter in self._waiting)

    def busy(self) -> int:
        """How many workers are in use."""
        with self._guard:
            return self._count - len(self._free)

    def _turn(self, waiter: _Waiter) -> tuple[int, int]:
        return self._latest[waiter.ticket.of], self._served.get(waiter.ticket.who, -1)

    def _serve(self, ticket: Ticket) -> None:
        here = {waiter.ticket.who for waiter in self._waiting}
        self._served = {who: turn for who, turn in self._served.items() if who in here}
        self._latest[ticket.of] = self._served[ticket.who] = next(self._numbers)


@dataclass(frozen=True, slots=True)
class Limits:
    """``snapshot_bytes``: of all workers together; ``snapshot_idle``: seconds that an unused snapshot is kept."""

    snapshot_bytes: int
    snapshot_idle: float


class _Worker:
    """One process and its connection; replaced when it dies. ``snapshot_totals``: how many it has, and
    their bytes, as last heard."""

    def __init__(self, start: Callable[[], tuple[subprocess.Popen[bytes], socket.socket]]) -> None:
        self._start = start
        self.snapshot_totals: tuple[int, int] = (0, 0)
        self.process, self.connection = start()

    def restart(self) -> None:
        """A fresh process; the snapshots of the old one are lost."""
        self.kill()
        self.process.wait()
        self.connection.close()
        self.snapshot_totals = (0, 0)
        self.process, self.connection = self._start()

    def kill(self) -> None:
        """End the process, whatever it does: all that it has is in memory. Who waits for its answer is told."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.process.kill()


class Pool:
    """``count`` workers. Calls that name a snapshot go to the worker that keeps it, others to whichever is free.

    A new snapshot goes to the worker that keeps the fewest, so that a few snapshots are spread evenly too."""

    def __init__(self, count: int, documents: Documents, limits: Limits) -> None:
        self._documents = documents
        self._limits = limits
        self._count = count
        self._workers: list[_Worker] = []
        self._turns = Turns(count)
        self._owners: OrderedDict[str, int] = OrderedDict()
        self._putting: Counter[str] = Counter()
        self._closing = False
        self._guard = Lock()
        self._failing: dict[int, datetime] = {}
        self._due: dict[int, float] = {}
        self._heard: dict[int, float] = {}
        self._trials: dict[int, Thread] = {}

    def start(self) -> None:
        """Start the processes; before that nobody can be called."""
        self._workers = [_Worker(partial(spawned, self._limits, self._count)) for _ in range(self._count)]

    def __len__(self) -> int:
        return self._count

    def owner(self, name: str) -> int:
        """The worker that keeps snapshot ``name``; any for a name that none keeps."""
        with self._guard:
            return self._owners.get(name, 0)

    def call(
        self, asked: Inquiry, body: bytes, ticket: Ticket, *, worker: int | None = None, reference: str | None = None
    ) -> Reply:
        """Run one operation in a worker. ``reference``: the configuration that the body names, where that is known: it
        saves asking back. Raises what it raises, DeadlinePassed and Unavailable."""
        heads = self._heads(reference)
        with self._routed(asked) as owner:
            with stage("waiting"):
                free = self._turns.take(ticket, owner if worker is None else worker)
            try:
                call = Call(asked, ticket.end, ticket.seconds, heads, traced=listener() is not None)
                return self._talk(free, call, body)
            finally:
                self._turns.give(free)

    def alive(self) -> int:
        """How many workers run."""
        return sum(worker.process.poll() is None for worker in self._workers)

    def failing(self) -> dict[int, datetime]:
        """Workers that ended, or are past the deadline of a call, and have answered nothing since, and since when. They
        are tried meanwhile, and so are those that nobody has asked for a while: one that can work again is not among
        them for long, one that hangs is soon."""
        now = time.monotonic()
        for number, worker in enumerate(self._workers):
            if worker.process.poll() is not None or now > self._due.get(number, now) + LATE_SECONDS:
                self._failing.setdefault(number, datetime.now(UTC))
            trial = self._trials.get(number)
            tried = trial is not None and trial.is_alive()
            if not tried and (number in self._failing or now > self._heard.setdefault(number, now) + QUIET_SECONDS):
                self._trials[number] = Thread(target=self._try, args=(number,), name="trial", daemon=True)
                with suppress(RuntimeError):  # no thread to be had now: it is tried when somebody asks next
                    self._trials[number].start()
        return dict(self._failing)

    def drop(self, ticket: Ticket) -> bool:
        """Whether a call with that ticket waited for a worker; it does no longer, and its caller gets
        TooManyRequests."""
        return self._turns.drop(ticket)

    def waiting(self) -> Counter[Class]:
        """How many calls wait for a worker, by class."""
        return self._turns.waiting()

    def busy(self) -> int:
        """How many workers answer a call."""
        return self._turns.busy()

    def snapshot_totals(self) -> tuple[int, int]:
        """Snapshots in the memory of all workers, and their bytes."""
        return sum(worker.snapshot_totals[0] for worker in self._workers), sum(
            worker.snapshot_totals[1] for worker in self._workers
        )

    def close(self) -> None:
        """Stop every worker at once, also one that is at work: its caller gets Unavailable."""
        self._closing = True
        self._turns.close()
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.process.wait()
            worker.connection.close()

    def _try(self, worker: int) -> None:
        """Ask it something small: the first call on one that has ended starts another, the second asks that one."""
        ticket = Ticket.now("small", TRIAL_SECONDS)
        while ticket.left and not self._closing:
            with suppress(Unavailable, DeadlinePassed):
                self.call(Inquiry(Operation.SNAPSHOT_LIST, datetime.now(UTC)), b"", ticket, worker=worker)
            if worker not in self._failing:
                return

    @contextmanager
    def _routed(self, asked: Inquiry) -> Generator[int | None]:
        """The worker that keeps the snapshot, or is to keep it. While a put is under way its name stays there, so that
        two of them can't end up in two places."""
        snapshot = asked.snapshot
        if not snapshot:
            yield None
            return
        if not asked.operation.way.puts:
            yield self.owner(snapshot)
            return
        owner = self._claim(snapshot)
        try:
            yield owner
        finally:
            with self._guard:
                self._putting[snapshot] -= 1
                self._putting = +self._putting  # drops zeros

    def _claim(self, name: str) -> int:
        with self._guard:
            self._putting[name] += 1
            owner = self._owners.pop(name, None)
            if owner is None:
                owners = list(self._owners.values())
                owner = min(range(self._count), key=owners.count)
            self._owners[name] = owner
            if len(self._owners) > MOST_NAMES:
                self._owners.popitem(last=False)
            return owner

    def _forget(self, names: Iterable[str]) -> None:
        with self._guard:
            for name in names:
                if not self._putting[name]:
                    self._owners.pop(name, None)

    def _replace(self, worker: int) -> bool:
        """A fresh worker for one that is gone or stuck. Whether snapshots were lost with it. Raises Unavailable where
        none can be started now: whoever asks next, or a trial, tries again."""
        lost = self._workers[worker].snapshot_totals != (0, 0)
        with self._guard:
            names = [name for name, owner in self._owners.items() if owner == worker]
        self._forget(names)
        self._failing.setdefault(worker, datetime.now(UTC))
        try:
            self._workers[worker].restart()
        except OSError as error:  # no memory, or too many processes or files
            raise Unavailable(f"no solver process can be started: {error.strerror}", retry_after=1) from error
        if self._closing:
            self._workers[worker].kill()
        return lost

    def _talk(self, number: int, call: Call, body: bytes) -> Reply:
        worker = self._workers[number]
        self._due[number] = call.end
        try:
            limit_waits(worker.connection, max(call.end - time.monotonic(), 0) + GRACE_SECONDS)
            send(worker.connection, call, body)
            while True:
                received, answer = receive(worker.connection, FromWorker)
                header: FromWorker = received
                self._failing.pop(number, None)
                self._heard[number] = time.monotonic()
                _tell(header)
                match header:
                    case Done():
                        worker.snapshot_totals = header.snapshot_totals
                        if call.asked.operation.way.deletes:
                            self._forget([call.asked.snapshot])
                        return Reply(answer, header.facts, header.seconds, header.documents, header.logged)
                    case Failed():
                        raise raised(header)
                    case WantHead() | WantDocument():
                        supply(worker.connection, header, self._documents)
        except Closed:
            if self._closing:
                raise Unavailable(CLOSING, retry_after=1) from None
            if not self._replace(number) and time.monotonic() >= call.end:
                raise DeadlinePassed(call.seconds) from None
            raise Unavailable("the solver process stopped; its snapshots must be sent again", retry_after=1) from None
        finally:
            self._due.pop(number, None)

    def _heads(self, reference: str | None) -> dict[str, Head]:
        if reference is None:
            return {}
        try:
            return {reference: Head(*self._documents.head(reference))}
        except Exception:  # the worker will ask, and be told
            return {}


def spawned(limits: Limits, count: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """One of ``count`` worker processes, and the connection to it."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [
            *python(), "-m", "app.workers.worker", str(theirs.fileno()),
            str(limits.snapshot_bytes // count), str(limits.snapshot_idle),
        ]  # fmt: skip
        try:
            process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env={**os.environ, "PYTHONHASHSEED": "0"})
        except OSError:
            ours.close()
            raise
    return process, ours


def _tell(header: FromWorker) -> None:
    """Tell of the stages that a worker went through."""
    if (listening := listener()) is not None and isinstance(header, Done | Failed):
        for stage in header.stages:
            listening(stage)
