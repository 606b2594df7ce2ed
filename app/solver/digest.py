"""Digests: SHA-256 of decoded documents. JSON key order and white space don't matter, list order does.

A state's is made of digests of its parts, so that the next version of a kept state works out again only the parts
that a delta touched: a stretch of some 64 tasks' workloads each, the nodes, and the rest.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from app.solver.delta import Changes
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import State, Workload

_STRETCH = 64
_SAMPLE = 16

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def digest(document: Any, *at: str) -> str:
    """``at``: where the document stands in the body. Raises InvalidInput for integers past 64 bits, which only the
    blocks of other engines can still hold."""
    try:
        return hashlib.sha256(_encoder.encode(document)).hexdigest()
    except OverflowError:
        raise _too_large(document, at) from None


class StateDigest:
    """The digest of one version of a state; its parts are worked out when first asked for. Immutable, caches aside."""

    __slots__ = ("_known", "_nodes", "_state", "_stretch", "_stretches", "_value")

    def __init__(self, state: State) -> None:
        self._state = state
        self._stretch = _stretch(state.workloads)
        self._nodes: bytes | None = None
        self._stretches: list[bytes | None] = []
        self._value: str | None = None
        self._known: tuple[dict[int, bytes], dict[int, Workload]] | None = None
        """What each workload is encoded as, by its ``id``; and the workloads, so that no other gets their ``id``."""

    def remember(self) -> None:
        """Keep what every workload is encoded as, for the versions that come after too: they cost more memory, and
        less time where workloads go from the middle."""
        self._known = {}, {}

    def hexdigest(self) -> str:
        """Raises InvalidInput like ``digest``."""
        if self._value is None:
            try:
                self._value = self._work_out()
            except OverflowError:
                raise _too_large(self._state, ("state",)) from None
        return self._value

    def after(self, state: State, changes: Changes) -> "StateDigest":
        """That of the next version, which ``changes`` led to."""
        new = StateDigest(state)
        new._known = self._known
        if not changes.nodes:
            new._nodes = self._nodes
        if new._stretch != self._stretch:
            return new
        whole = len(self._state.workloads) // self._stretch
        gone = [at for at, _, workload in changes.workloads if workload is None]
        kept = min(whole, min(gone, default=len(self._state.workloads)) // self._stretch)
        new._stretches = self._stretches[:kept]
        for at, _, _ in changes.workloads:
            if 0 <= at // self._stretch < len(new._stretches):
                new._stretches[at // self._stretch] = None
        return new

    def _encode(self, workloads: list[Workload], buffer: bytearray) -> None:
        """``buffer`` becomes what MessagePack makes of the list."""
        if self._known is None:
            _encoder.encode_into(workloads, buffer)
            return
        known, kept = self._known
        if len(known) > 2 * len(self._state.workloads) + _STRETCH:
            alive = {id(workload) for workload in self._state.workloads}
            for gone in known.keys() - alive:
                del known[gone], kept[gone]
        try:  # in C, for nearly always all of them are known
            parts = list(map(known.__getitem__, map(id, workloads)))
        except KeyError:
            for workload in workloads:
                if id(workload) not in known:
                    known[id(workload)], kept[id(workload)] = _encoder.encode(workload), workload
            parts = list(map(known.__getitem__, map(id, workloads)))
        buffer[:] = b"".join((_head(len(workloads)), *parts))

    def _work_out(self) -> str:
        state, into, sha256 = self._state, _encoder.encode_into, hashlib.sha256
        buffer = bytearray(1 << 14)
        workloads, size = state.workloads, self._stretch
        if self._nodes is None:
            into(state.nodes, buffer)
            self._nodes = sha256(buffer).digest()
        count = -(-len(workloads) // size)
        found = self._stretches + [None] * (count - len(self._stretches))
        for i, known in enumerate(found):
            if known is None:
                self._encode(workloads[i * size : (i + 1) * size], buffer)
                found[i] = sha256(buffer).digest()
        self._stretches = found
        budgets = [state.disruption_budgets] if state.disruption_budgets else []
        findings = [state.findings] if state.findings else []
        rest = _encoder.encode([state.reservations, state.queues, *budgets, *findings])
        return sha256(b"".join([self._nodes, sha256(rest).digest(), *cast(list[bytes], found)])).hexdigest()


def _head(count: int) -> bytes:
    """What MessagePack writes before an array of so many."""
    return _encoder.encode([None] * count)[:-count] if count else _encoder.encode([])


def _stretch(workloads: list[Workload]) -> int:
    """How many workloads go into a stretch: a power of two, by the number of tasks of the first few."""
    sample = workloads[:_SAMPLE]
    tasks = sum(len(w.tasks) for w in sample) // max(1, len(sample))
    return max(1, _STRETCH >> max(0, tasks - 1).bit_length())


def _too_large(document: Any, at: Iterable[str | int]) -> InvalidInput:
    found = _past_64_bits(msgspec.to_builtins(document), tuple(at))
    return InvalidInput(Problem(pointer=where, detail="an integer past 64 bits") for where in found)


def _past_64_bits(value: Any, at: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in cast(dict[str, Any], value).items():
            yield from _past_64_bits(child, (*at, key))
    elif isinstance(value, list):
        for i, child in enumerate(cast(list[Any], value)):
            yield from _past_64_bits(child, (*at, i))
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        yield pointer(*at)
