"""A solver process: ``python -m app.workers.worker FD BUDGET IDLE``, one request at a time.

Memory that a large request needed is kept for the next one. Half of what decoding a large body costs is the system
handing out pages, because everything was given back after the request before. A process that answers such requests all
day keeps them, up to a bound; one that has had nothing to do for a while gives them back. All of this is about CPython
and glibc; elsewhere it changes nothing.
"""

import asyncio
import ctypes
import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from app.answering.operations import Answerer
from app.answering.snapshot_store import SnapshotStore
from app.answering.sources import Compiled
from app.base.decoding import prepare_types
from app.base.ticket import Stage, Ticket, heard_by, released_at_the_end
from app.solver.engine import ENGINES, engine_of
from app.solver.question import stoppable
from app.workers.messages import Call, Closed, Done, Failed, Remote, ToWorker, failed, receive, send

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_BLOCK = 32 << 20
_ARENA_BITS = 20
_SMALL, _BLOCK = 400, 448
"""Bytes of an object that comes out of an arena, not out of malloc, and what it takes there."""
_IDLE_SHARE = 0.02
_BYTES_PER_BODY_BYTE = 9
"""Of decoded objects; measured on the bodies of benchmarks/."""


def keep_freed_blocks() -> None:
    """Let malloc keep freed blocks the size of a large body, instead of unmapping each."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, 4 * _LARGEST_BLOCK)


def give_back() -> None:
    """Give the system what malloc keeps of freed blocks; a few milliseconds for each hundred megabytes."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


async def give_back_when_idle(every: float, most: int = 32 << 20) -> None:
    """For as long as it is awaited: where the process has done next to nothing for ``every`` seconds and holds ``most``
    bytes more than when it last gave back, give back."""
    held, used = _resident(), time.process_time()
    while True:
        await asyncio.sleep(every)
        before, used = used, time.process_time()
        if used - before < _IDLE_SHARE * every and _resident() > held + most:
            await asyncio.to_thread(give_back)
            held = _resident()


def _resident() -> int:
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class Reserve:
    """Arenas of small objects that stay mapped: each is pinned by one object of our own that lives in it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._filled = 0
        self._pins: dict[int, bytes] = {}

    def grow(self, body: int) -> None:
        """Keep enough for a body of ``body`` bytes. To be called when its objects are gone."""
        need = body * _BYTES_PER_BODY_BYTE
        if min(need, self._most) <= self._filled:
            return
        # A quarter more than asked for: bodies that grow a little each time must not fill it again each time.
        self._filled = min(need * 5 // 4, self._most)
        filling = [bytes(_SMALL) for _ in range(self._filled // _BLOCK)]
        for block in filling:
            self._pins.setdefault(id(block) >> _ARENA_BITS, block)

    def release(self) -> None:
        """Keep nothing until it grows again."""
        self._filled = 0
        self._pins.clear()

    def __len__(self) -> int:
        """Arenas kept."""
        return len(self._pins)


_CONFIGURATION_BYTES = 512 << 20
_FULL_COLLECTION_AFTER = 100_000
"""Containers that stayed. A full collection looks at all that is kept: 18 ms for 50,000 workloads, where a decision on
them takes two."""
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
    stayed, at_rest = 0, True
    while True:
        if not at_rest and not select.select([connection], [], [], _REST_SECONDS)[0]:
            gc.collect()
            reserve.release()
            give_back()
            stayed, at_rest = 0, True
        call, body = receive(connection, ToWorker)
        assert isinstance(call, Call)
        size = len(body)
        remote.heads = call.heads
        with released_at_the_end():
            header, answer = _answer(answerer, store, call, body)
            del body
            send(connection, header, answer)
        # Collected between requests, never inside one: what a decision allocates dies with it by count.
        stayed += gc.get_count()[0]
        full = stayed > _FULL_COLLECTION_AFTER
        gc.collect(2 if full else 0)
        stayed = 0 if full else stayed
        if not call.asked.snapshot:
            reserve.grow(size)
        at_rest = False


def _answer(answerer: Answerer, store: SnapshotStore, call: Call, body: bytes) -> tuple[Done | Failed, bytes]:
    """Work stops at the first safe point past the deadline; what is in the store by then is there to stay."""
    ticket = Ticket("large", call.end, call.seconds)
    stages: list[Stage] = []
    try:
        with stoppable(ticket.check, time.monotonic, ticket.check()), heard_by(stages.append if call.traced else None):
            reply = answerer.run(call.asked, body)
    except Closed:
        raise
    except Exception as error:
        return replace(failed(error, traceback.format_exc()), stages=stages), b""
    return Done(store.totals, reply.facts, reply.seconds, reply.documents, reply.logged, stages), reply.body


def main() -> None:
    """The process's entry."""
    prepare_types()
    descriptor, budget, idle = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service decides when its workers stop
    with socket.socket(fileno=int(descriptor)) as connection:
        try:
            serve(connection, int(budget), float(idle))
        except Closed:
            return


if __name__ == "__main__":
    main()
