"""Apply a delta to a state: the result is what a caller would have sent whole, and its problems are the delta's;
digests of states, of which a delta makes only parts anew.

Order is part of a state (ties are broken by it in some engines): what is changed keeps its place, what is removed
closes the gap, what is added comes last, in the delta's order. Nothing is written in place, so a decision that runs on
the old state never sees the new one, and a delta that fails changes nothing.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

import msgspec

from app.solver.apply import Index, without
from app.solver.model.problems import InvalidInput, Problem, pointer
from app.solver.model.state import Ask, Delta, Reservation, State, TaskChanges, Workload
from app.solver.question import safe_point

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changes:
    """What a delta did to the workloads, for engines that keep up instead of compiling again.

    ``workloads``: (position in the old state or -1, old, new) of each one touched; ``moved``: whether removals
    have shifted positions; ``nodes``, ``rest``: whether nodes, or anything else, changed; ``replaced``: positions of
    the nodes that changed where none came or went, else None.
    """

    workloads: list[tuple[int, Workload | None, Workload | None]]
    moved: bool
    nodes: bool
    rest: bool
    replaced: list[int] | None = None


def apply_delta(state: State, index: Index, delta: Delta) -> tuple[State, Index, Changes]:
    """The new state, its index and what changed. Raises InvalidInput with every problem; pointers start at /."""
    problems: list[Problem] = []
    places = index.node_places if _named(delta.nodes) else {}
    nodes = _Merger("node", attrgetter("name"), places, _place("nodes", "name"), problems).merged(
        state.nodes, delta.nodes.add, delta.nodes.change, delta.nodes.remove
    )
    changed = list(delta.workloads.change)
    changed += _with_tasks(state, index, delta, problems)
    workloads = _Merger("workload", attrgetter("id"), index.workloads, _place("workloads", "id"), problems).merged(
        state.workloads, delta.workloads.add, changed, delta.workloads.remove
    )
    reservations = _reservations(state.reservations, delta, problems)
    if problems:
        raise InvalidInput(problems)
    budgets = state.disruption_budgets if delta.disruption_budgets is None else delta.disruption_budgets
    new = State(
        nodes=nodes, workloads=workloads, reservations=reservations, queues={**state.queues, **delta.queues},
        disruption_budgets=budgets, findings=state.findings if delta.findings is None else delta.findings,
    )  # fmt: skip
    stay = not (delta.nodes.add or delta.nodes.remove)
    changes = Changes(
        workloads=_touched(state, index, delta, changed),
        moved=bool(delta.workloads.remove),
        nodes=_named(delta.nodes),
        rest=bool(delta.queues) or reservations is not state.reservations or budgets is not state.disruption_budgets,
        replaced=[places[node.name] for node in delta.nodes.change] if stay and delta.nodes.change else None,
    )
    return new, index.after(new, delta.workloads.remove, [w.id for w in delta.workloads.add], same_nodes=stay), changes


def asks_after(asks: list[Ask], delta: Delta) -> list[Ask]:
    """The asks kept beside a state after ``delta``, see ``asks_in_order``. Raises InvalidInput with every problem."""
    problems: list[Problem] = []
    changes = delta.asks
    place = {ask.id: i for i, ask in enumerate(asks)} if _named(changes) else {}
    merged = _Merger("ask", _ask_id, place, _place("asks", "id"), problems).merged(
        asks, changes.add, changes.change, changes.remove
    )
    if problems:
        raise InvalidInput(problems)
    return asks_in_order(merged) if changes.add else merged


def asks_in_order(asks: Iterable[Ask]) -> list[Ask]:
    """As they are kept: by id, so that who came by a delta is asked for like who was there from the start."""
    return sorted(asks, key=_ask_id)


def _ask_id(ask: Ask) -> str:
    return ask.id


def _place(kind: str, field: str) -> Callable[[str, int], str]:
    def where(operation: str, i: int) -> str:
        return pointer(kind, operation, i) if operation == "remove" else pointer(kind, operation, i, field)

    return where


def _named(changes: Any) -> bool:
    return bool(changes.add or changes.change or changes.remove)


class _Merger(Generic[T]):
    """One list under ``add``, ``change`` and ``remove``, told apart by name; each name may be named once.

    ``place``: positions by name, ``where``: the pointer of the i-th item of an operation, ``kind``: what problems call
    an item."""

    def __init__(
        self, kind: str, key: Callable[[T], str], place: Mapping[str, int], where: Callable[[str, int], str],
        problems: list[Problem],
    ) -> None:  # fmt: skip
        self._kind = kind
        self._key = key
        self._place = place
        self._where = where
        self._problems = problems
        self._named: set[str] = set()

    def merged(self, old: list[T], add: Sequence[T], change: Sequence[T], remove: Sequence[str]) -> list[T]:
        """``old`` changed; ``old`` itself where nothing changes. What is wrong becomes a problem."""
        if not (add or change or remove):
            return old
        out = list(old)
        names = list(map(self._key, change))
        self._named.update(names)
        if len(self._named) == len(names) and self._named <= self._place.keys():
            for name, item in zip(names, change, strict=True):
                out[self._place[name]] = item
        else:
            self._named.clear()
            for i, item in enumerate(change):
                if (place := self._place_of(names[i], "change", i)) is not None:
                    out[place] = item
        gone = [place for i, name in enumerate(remove) if (place := self._place_of(name, "remove", i)) is not None]
        for i, item in enumerate(add):
            name = self._key(item)
            if self._once(name, "add", i) and name in self._place:
                self._wrong("add", i, f"a second {self._kind} {name!r}")
        out = without(out, gone)
        out.extend(add)
        return out

    def _place_of(self, name: str, operation: str, i: int) -> int | None:
        if not self._once(name, operation, i):
            return None
        place = self._place.get(name)
        if place is None:
            self._wrong(operation, i, f"no {self._kind} {name!r}")
        return place

    def _once(self, name: str, operation: str, i: int) -> bool:
        if name in self._named:
            self._wrong(operation, i, f"{self._kind} {name!r} is named twice in this delta")
            return False
        self._named.add(name)
        return True

    def _wrong(self, operation: str, i: int, detail: str) -> None:
        self._problems.append(Problem(pointer=self._where(operation, i), detail=detail))


def _with_tasks(state: State, index: Index, delta: Delta, problems: list[Problem]) -> list[Workload]:
    """The workloads whose tasks the delta names one by one, with these tasks replaced."""
    changes = delta.tasks
    out: list[Workload] = []
    for identity, (first, of) in _by_owner(changes).items():
        position = index.workloads.get(identity)
        if position is None:
            problems.append(Problem(pointer=pointer("tasks", *first, "workload"), detail=f"no workload {identity!r}"))
            continue
        workload = state.workloads[position]
        merger = _Merger(
            f"task of {identity!r}", attrgetter("name"), {t.name: i for i, t in enumerate(workload.tasks)},
            lambda operation, i, of=of: pointer("tasks", operation, of[operation][i], "task"), problems,
        )  # fmt: skip
        tasks = merger.merged(
            workload.tasks,
            [changes.add[i].task for i in of["add"]],
            [changes.change[i].task for i in of["change"]],
            [changes.remove[i].task for i in of["remove"]],
        )
        out.append(msgspec.structs.replace(workload, tasks=tasks))
    return out


def _by_owner(changes: TaskChanges) -> dict[str, tuple[tuple[str, int], dict[str, list[int]]]]:
    """By workload named: the place that names it first, and the indices of its changes by operation."""
    owners: dict[str, tuple[tuple[str, int], dict[str, list[int]]]] = {}
    for operation in ("add", "change", "remove"):
        for i, item in enumerate(getattr(changes, operation)):
            own = owners.get(item.workload)
            if own is None:
                own = owners[item.workload] = ((operation, i), {"add": [], "change": [], "remove": []})
            own[1][operation].append(i)
    return owners


def _reservations(old: list[Reservation], delta: Delta, problems: list[Problem]) -> list[Reservation]:
    changes = delta.reservations
    if not (changes.add or changes.remove):
        return old
    held = {(r.node, r.ask.id): r for r in old}
    for i, name in enumerate(changes.remove):
        if held.pop((name.node, name.ask), None) is None:
            where = pointer("reservations", "remove", i)
            problems.append(Problem(pointer=where, detail=f"no reservation of {name.node!r} for {name.ask!r}"))
    for i, reservation in enumerate(changes.add):
        if (reservation.node, reservation.ask.id) in held:
            where = pointer("reservations", "add", i)
            problems.append(
                Problem(pointer=where, detail=f"{reservation.node!r} is reserved for {reservation.ask.id!r} already")
            )
        held[(reservation.node, reservation.ask.id)] = reservation
    return list(held.values())


def _touched(
    state: State, index: Index, delta: Delta, changed: list[Workload]
) -> list[tuple[int, Workload | None, Workload | None]]:
    place, old = index.workloads, state.workloads
    touched: list[tuple[int, Workload | None, Workload | None]] = [(place[w.id], old[place[w.id]], w) for w in changed]
    touched += [(place[name], old[place[name]], None) for name in delta.workloads.remove]
    touched += [(-1, None, w) for w in delta.workloads.add]
    return touched


_ITEM = re.compile(r"/state/(workloads|nodes|reservations)/([0-9]+)(.*)", re.DOTALL)
_TASK = re.compile(r"/tasks/([0-9]+)(.*)", re.DOTALL)


def in_delta(problems: Iterable[Problem], state: State, delta: Delta) -> Iterator[Problem]:
    """``problems`` of ``state``, which ``delta`` led to, as problems of the delta: pointers into what the caller sent.
    What the delta did not bring but broke is put down to the node that it removed; what can't be put down to anything
    keeps its pointer."""
    sent = _Sent(delta)
    for problem in problems:
        safe_point()
        match = _ITEM.fullmatch(problem.pointer)
        if match is None:
            yield Problem(pointer=problem.pointer.removeprefix("/state"), detail=problem.detail)
        else:
            yield _item(problem, match[1], int(match[2]), match[3], state, sent)


class _Sent:
    """Where a delta names what: each kind is looked through once, however much is wrong. The last of a name counts."""

    def __init__(self, delta: Delta) -> None:
        self._delta = delta

    @cached_property
    def workloads(self) -> dict[str, str]:
        return self._where("workloads", lambda workload: workload.id)

    @cached_property
    def tasks(self) -> dict[tuple[str, str], str]:
        return self._where("tasks", lambda of: (of.workload, of.task.name))

    @cached_property
    def nodes(self) -> dict[str, str]:
        return self._where("nodes", lambda node: node.name)

    @cached_property
    def reservations(self) -> dict[tuple[str, str], str]:
        return {
            (held.node, held.ask.id): pointer("reservations", "add", i)
            for i, held in enumerate(self._delta.reservations.add)
        }

    @cached_property
    def nodes_removed(self) -> dict[str, str]:
        named = self._delta.nodes.remove
        return {named[i]: pointer("nodes", "remove", i) for i in reversed(range(len(named)))}

    def _where(self, kind: str, name: Callable[[Any], Any]) -> dict[Any, str]:
        """What is both added and changed is where it is added."""
        changes = getattr(self._delta, kind)
        return {
            name(item): pointer(kind, operation, i)
            for operation in ("change", "add")
            for i, item in enumerate(getattr(changes, operation))
        }


def _item(problem: Problem, kind: str, index: int, rest: str, state: State, sent: _Sent) -> Problem:
    if kind == "workloads":
        where = _workload(state.workloads[index].id, rest, state, index, sent)
    elif kind == "nodes":
        where = sent.nodes.get(state.nodes[index].name)
    else:
        held = state.reservations[index]
        where = sent.reservations.get((held.node, held.ask.id))
    if where is not None:
        return Problem(pointer=where + ("" if where.startswith("/tasks") else rest), detail=problem.detail)
    return _collateral(problem, kind, index, rest, state, sent)


def _workload(name: str, rest: str, state: State, index: int, sent: _Sent) -> str | None:
    where = sent.workloads.get(name)
    task = _TASK.fullmatch(rest)
    if where is not None or task is None:
        return where
    where = sent.tasks.get((name, state.workloads[index].tasks[int(task[1])].name))
    return None if where is None else f"{where}/task{task[2]}"


def _collateral(problem: Problem, kind: str, index: int, rest: str, state: State, sent: _Sent) -> Problem:
    """Something that stays names a node that this delta removes."""
    task = _TASK.fullmatch(rest)
    node: str | None = None
    if kind == "workloads" and task is not None:
        node = state.workloads[index].tasks[int(task[1])].node
    elif kind == "reservations":
        node = state.reservations[index].node
    if node is None or node not in sent.nodes_removed:
        return problem
    of = state.workloads[index].id if kind == "workloads" else state.reservations[index].ask.id
    return Problem(pointer=sent.nodes_removed[node], detail=f"{of!r} still needs node {node!r}")


_STRETCH = 64
_SAMPLE = 16

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def digest(document: Any, *path: str) -> str:
    """``path``: where the document stands in the body. Raises InvalidInput for integers past 64 bits, which only the
    blocks of other engines can still hold."""
    try:
        return hashlib.sha256(_encoder.encode(document)).hexdigest()
    except OverflowError:
        raise _too_large(document, path) from None


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
        gone = [place for place, _, workload in changes.workloads if workload is None]
        unchanged = min(whole, min(gone, default=len(self._state.workloads)) // self._stretch)
        new._stretches = self._stretches[:unchanged]
        for place, _, _ in changes.workloads:
            if 0 <= place // self._stretch < len(new._stretches):
                new._stretches[place // self._stretch] = None
        return new

    def _encode(self, workloads: list[Workload], buffer: bytearray) -> None:
        """``buffer`` becomes what MessagePack makes of the list."""
        if self._known is None:
            _encoder.encode_into(workloads, buffer)
            return
        known, workloads_by_id = self._known
        if len(known) > 2 * len(self._state.workloads) + _STRETCH:
            alive = {id(workload) for workload in self._state.workloads}
            for gone in known.keys() - alive:
                del known[gone], workloads_by_id[gone]
        try:  # in C, for nearly always all of them are known
            parts = list(map(known.__getitem__, map(id, workloads)))
        except KeyError:
            for workload in workloads:
                if id(workload) not in known:
                    known[id(workload)], workloads_by_id[id(workload)] = _encoder.encode(workload), workload
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
        stretches = self._stretches + [None] * (count - len(self._stretches))
        for i, known in enumerate(stretches):
            if known is None:
                self._encode(workloads[i * size : (i + 1) * size], buffer)
                stretches[i] = sha256(buffer).digest()
        self._stretches = stretches
        budgets = [state.disruption_budgets] if state.disruption_budgets else []
        findings = [state.findings] if state.findings else []
        rest = _encoder.encode([state.reservations, state.queues, *budgets, *findings])
        return sha256(b"".join([self._nodes, sha256(rest).digest(), *cast(list[bytes], stretches)])).hexdigest()


def _head(count: int) -> bytes:
    """What MessagePack writes before an array of so many."""
    return _encoder.encode([None] * count)[:-count] if count else _encoder.encode([])


def _stretch(workloads: list[Workload]) -> int:
    """How many workloads go into a stretch: a power of two, by the number of tasks of the first few."""
    sample = workloads[:_SAMPLE]
    tasks = sum(len(w.tasks) for w in sample) // max(1, len(sample))
    return max(1, _STRETCH >> max(0, tasks - 1).bit_length())


def _too_large(document: Any, path: Iterable[str | int]) -> InvalidInput:
    pointers = _past_64_bits(msgspec.to_builtins(document), tuple(path))
    return InvalidInput(Problem(pointer=where, detail="an integer past 64 bits") for where in pointers)


def _past_64_bits(value: Any, path: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in cast(dict[str, Any], value).items():
            yield from _past_64_bits(child, (*path, key))
    elif isinstance(value, list):
        for i, child in enumerate(cast(list[Any], value)):
            yield from _past_64_bits(child, (*path, i))
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        yield pointer(*path)
