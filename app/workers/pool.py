"""The service's side: worker processes, who gets which call, and what happens when one is lost."""

import os
import socket
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Protocol

from app.decisions.sources import Used
from app.errors import DeadlinePassed, TooManyRequests, Unavailable
from app.workers.desk import Reply
from app.workers.frames import Closed, receive, send
from app.workers.messages import Call, Document, Done, Failed, FromWorker, Head, WantDocument, WantHead, failed, raised

_MOST_NAMES = 65_536
_GRACE_SECONDS = 5.0
"""Past its deadline a worker gets this long to say so; then it is stuck in one call and is replaced."""


class Documents(Protocol):
    """Where the service finds configurations for its workers."""

    def head(self, reference: str) -> tuple[str, int]:
        """Name and revision that ``name`` or ``name@revision`` means now. Raises NotFound, Unavailable."""
        ...

    def document(self, name: str, revision: int) -> bytes:
        """The JSON of a revision. Raises NotFound, Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """``waiting``: calls that may wait for a worker; ``seconds``: the longest any call may take."""

    waiting: int = 64
    seconds: float = 60.0
    snapshot_bytes: int = 4 << 30
    snapshot_idle: float = 3600.0


class _Worker:
    """One process and its connection; replaced when it dies."""

    def __init__(self, start: Callable[[], tuple[subprocess.Popen[bytes], socket.socket]]) -> None:
        self._start = start
        self.lock = Lock()
        self.process, self.connection = start()

    def restart(self) -> None:
        """A fresh process; the snapshots of the old one are lost."""
        self.stop()
        self.process, self.connection = self._start()

    def stop(self) -> None:
        """Close the connection, which ends the process; kill it if it does not listen."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.5)
            return
        self.process.kill()
        self.process.wait()


class Pool:
    """``count`` workers. Calls that name a snapshot go to the worker that keeps it, others to the least busy one.

    A new snapshot goes to the worker that keeps the fewest, so that a few snapshots are spread evenly too."""

    def __init__(self, count: int, documents: Documents, limits: Limits) -> None:
        self._documents = documents
        self._limits = limits
        self._count = count
        self._workers: list[_Worker] = []
        self._queued = [0] * count
        self._owners: OrderedDict[str, int] = OrderedDict()
        self._guard = Lock()

    def start(self) -> None:
        """Start the processes; before that nobody can be called."""
        self._workers = [_Worker(self._spawn(self._limits, self._count)) for _ in range(self._count)]

    def __len__(self) -> int:
        return self._count

    def owner(self, name: str) -> int:
        """The worker that keeps snapshot ``name``; any for a name that none keeps."""
        with self._guard:
            return self._owners.get(name, 0)

    def call(
        self, kind: str, body: bytes, now: datetime, *, snapshot: str | None = None, pinned: Used | None = None,
        seconds: float | None = None, worker: int | None = None, reference: str | None = None,
    ) -> Reply:  # fmt: skip
        """Run one operation in a worker. ``reference``: the configuration that the body names, where that is known: it
        saves asking back. Raises what it raises, TooManyRequests, DeadlinePassed, Unavailable."""
        limit = min(seconds or self._limits.seconds, self._limits.seconds)
        end = time.monotonic() + limit
        if worker is None and snapshot is not None:
            worker = self._claim(snapshot) if kind == "snapshot-put" else self.owner(snapshot)
        at = self._queue(worker)
        try:
            if not self._workers[at].lock.acquire(timeout=limit):
                raise DeadlinePassed(limit)
            try:
                call = Call(kind, now, snapshot or "", end - time.monotonic(), pinned, self._heads(reference))
                return self._talk(at, call, body, limit, end)
            finally:
                self._workers[at].lock.release()
        finally:
            with self._guard:
                self._queued[at] -= 1

    def alive(self) -> int:
        """How many workers run."""
        return sum(worker.process.poll() is None for worker in self._workers)

    def close(self) -> None:
        """Stop every worker."""
        for worker in self._workers:
            worker.stop()

    def _claim(self, name: str) -> int:
        """The worker that is to keep snapshot ``name``."""
        with self._guard:
            found = self._owners.pop(name, None)
            if found is None:
                kept = list(self._owners.values())
                found = min(range(self._count), key=kept.count)
            self._owners[name] = found
            if len(self._owners) > _MOST_NAMES:
                self._owners.popitem(last=False)
            return found

    def _forget(self, name: str) -> None:
        with self._guard:
            self._owners.pop(name, None)

    def _disown(self, worker: int) -> None:
        """The worker's snapshots are lost."""
        with self._guard:
            for name in [name for name, at in self._owners.items() if at == worker]:
                del self._owners[name]

    def _queue(self, worker: int | None) -> int:
        with self._guard:
            if sum(self._queued) >= self._limits.waiting + self._count:
                raise TooManyRequests(f"{self._limits.waiting} requests wait already", retry_after=1)
            at = self._queued.index(min(self._queued)) if worker is None else worker
            self._queued[at] += 1
            return at

    def _talk(self, at: int, call: Call, body: bytes, limit: float, end: float) -> Reply:
        worker = self._workers[at]
        worker.connection.settimeout(max(end - time.monotonic(), 0) + _GRACE_SECONDS)
        try:
            send(worker.connection, call, body)
            while True:
                received, answer = receive(worker.connection, FromWorker)
                header: FromWorker = received
                match header:
                    case Done():
                        if call.kind == "snapshot-delete":
                            self._forget(call.name)
                        return Reply(answer, header.facts, header.seconds)
                    case Failed():
                        raise raised(header)
                    case WantHead() | WantDocument():
                        self._supply(worker.connection, header)
        except Closed:
            overdue = time.monotonic() >= end
            self._disown(at)
            worker.restart()
            if overdue:
                raise DeadlinePassed(limit) from None
            raise Unavailable("the solver process stopped; its snapshots must be sent again", retry_after=1) from None

    def _heads(self, reference: str | None) -> dict[str, Head]:
        if reference is None:
            return {}
        try:
            return {reference: Head(*self._documents.head(reference))}
        except Exception:  # the worker will ask, and be told
            return {}

    def _supply(self, connection: socket.socket, want: WantHead | WantDocument) -> None:
        try:
            if isinstance(want, WantHead):
                send(connection, Head(*self._documents.head(want.reference)))
            else:
                send(connection, Document(), self._documents.document(want.name, want.revision))
        except Closed:
            raise
        except Exception as error:
            send(connection, failed(error))

    @staticmethod
    def _spawn(limits: Limits, count: int) -> Callable[[], tuple[subprocess.Popen[bytes], socket.socket]]:
        def start() -> tuple[subprocess.Popen[bytes], socket.socket]:
            ours, theirs = socket.socketpair()
            with theirs:
                command = [
                    sys.executable, "-m", "app.workers.worker", str(theirs.fileno()),
                    str(limits.snapshot_bytes // count), str(limits.snapshot_idle),
                ]  # fmt: skip
                process = subprocess.Popen(
                    command, pass_fds=[theirs.fileno()], env={**os.environ, "PYTHONHASHSEED": "0"}
                )
            return process, ours

        return start
