"""The state of a run, compiled and followed change by change, and what is kept of it so that rounds can be told again.

Nodes, and what runs at the start, are in order of name, whatever the order of the request.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from app.simulations.core.sink import Amounts, in_words
from app.solver import solve
from app.solver.apply import Index
from app.solver.delta import Changes, apply_delta
from app.solver.model.base import Resources, parse_quantity, scale_of
from app.solver.model.request import Explain, Mode, Options
from app.solver.model.state import (
    Ask,
    Delta,
    DisruptionBudget,
    Node,
    NodeChanges,
    QueueState,
    Reservation,
    ReservationChanges,
    ReservationName,
    State,
    Workload,
    WorkloadChanges,
)
from app.solver.question import Question
from app.solver.rounds import Ahead, Turn
from app.solver.solve import Configured, Loaded

LEAST_BYTES = 64 << 10
"""Bytes of changes that never bring a whole state about, however small it is."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One round. ``base``: the last round, this one or an earlier one, whose record has the whole ``state``;
    ``deltas``: what has changed since the round before, in order; ``asks``: those asked for that are not, as they are,
    in a record since ``base``; ``ids``: all of them in order; ``configuration``: which is in force, 0 for the
    request's, ``i`` for that of change ``i - 1``; ``now`` in microseconds."""

    base: int
    now: int
    ids: list[str]
    configuration: int = 0
    state: State | None = None
    deltas: list[Delta] = []
    asks: list[Ask] = []
    mode: Mode = "independent"
    options: Options = Options()
    explain: Explain = "none"


class _Base(msgspec.Struct, frozen=True):
    base: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode


class Recorder:
    """Told of what changes between rounds, and of each round; makes the line of each, so that its request can be told
    again without deciding anything.

    One line a round: what has changed in the state since the round before, and the asks that are new. Now and then a
    line has the whole state; the next does once those in between are longer than it, so that records grow as the
    changes do and a request is made of no more than twice a state.
    """

    def __init__(self) -> None:
        self._deltas: list[Delta] = []
        self._asks: dict[str, Ask] = {}
        self._base = 0
        self._whole = True
        self._configuration = 0
        self._size = self._room = 0

    def changed(self, delta: Delta) -> None:
        """The state has followed ``delta``."""
        self._deltas.append(delta)

    def replaced(self) -> None:
        """The state is another."""
        self._whole = True

    def configured(self, number: int) -> None:
        """The configuration of change ``number - 1`` is in force."""
        self._configuration = number
        self._whole = True

    def round(self, n: int, state: State, question: Question) -> bytes:
        """The line of round ``n``, from 1, which is asked of ``state``."""
        whole = self._whole or self._size > self._room
        if whole:
            self._base, self._asks = n, {}
        line = _encode(
            Record(
                base=self._base, now=question.now, ids=[ask.id for ask in question.asks],
                configuration=self._configuration, state=state if whole else None,
                deltas=[] if whole else self._deltas, asks=self._news(question.asks),
                mode=question.mode, options=question.options, explain=question.explain,
            )
        )  # fmt: skip
        if whole:
            self._whole, self._size, self._room = False, 0, max(LEAST_BYTES, len(line))
        else:
            self._size += len(line)
        self._deltas = []
        return line

    def _news(self, asks: Iterable[Ask]) -> list[Ask]:
        known, news = self._asks, list[Ask]()
        for ask in asks:
            before = known.get(ask.id)
            if before is not ask:
                known[ask.id] = ask
                if before != ask:
                    news.append(ask)
        return news


def base_of(line: bytes) -> int:
    """The round with whose line ``request_of`` has to begin."""
    return msgspec.json.decode(line, type=_Base).base


def request_of(lines: Iterable[bytes], configured: Callable[[int], Configured]) -> bytes:
    """The request of the last of ``lines``, which begin with its base. ``configured``: the configuration of a number.

    Raises what ``configured`` does."""
    nodes, workloads = dict[str, Node](), dict[str, Workload]()
    reservations, queues = dict[tuple[str, str], Reservation](), dict[str, QueueState]()
    budgets: list[DisruptionBudget] = []
    asks, record = dict[str, Ask](), None
    for line in lines:
        record = _decode(line)
        if record.state is not None:
            nodes = {node.name: node for node in record.state.nodes}
            workloads = {workload.id: workload for workload in record.state.workloads}
            reservations = {(held.node, held.ask.id): held for held in record.state.reservations}
            queues = record.state.queues
            budgets = record.state.disruption_budgets
        for delta in record.deltas:
            nodes |= {node.name: node for node in delta.nodes.change}
            workloads |= {changed.id: changed for changed in delta.workloads.change}
            for name in delta.workloads.remove:
                del workloads[name]
            workloads |= {added.id: added for added in delta.workloads.add}
            for gone in delta.reservations.remove:
                del reservations[gone.node, gone.ask]
            reservations |= {(held.node, held.ask.id): held for held in delta.reservations.add}
            queues = {**queues, **delta.queues}
            budgets = budgets if delta.disruption_budgets is None else delta.disruption_budgets
        asks |= {ask.id: ask for ask in record.asks}
    assert record is not None, "the lines of a round begin with its base"
    state = State(
        nodes=list(nodes.values()), workloads=list(workloads.values()), reservations=list(reservations.values()),
        queues=queues, disruption_budgets=budgets,
    )  # fmt: skip
    question = Question(record.now, [asks[name] for name in record.ids], record.mode, record.options, record.explain)
    return in_words(configured(record.configuration), state, question)


class _Pending:
    """What has changed since a state was followed last. ``workloads``: as they are, None: gone; ``_since_round``: of
    which something was said since the last round; ``_again``: what had gone by an earlier round and came back, and
    comes last."""

    def __init__(self) -> None:
        self.workloads: dict[str, Workload | None] = {}
        self.nodes: dict[str, Node] = {}
        self.queues: dict[str, QueueState] = {}
        self.reservations: list[Reservation] | None = None
        self._since_round: set[str] = set()
        self._again: dict[str, None] = {}

    def set(self, workload: Workload) -> None:
        """It runs from now on, or runs otherwise."""
        name = workload.id
        if name not in self._since_round and self.workloads.get(name, workload) is None:
            self._again[name] = None
            del self.workloads[name]
        self._since_round.add(name)
        self.workloads[name] = workload

    def remove(self, name: str) -> None:
        """It runs no longer. Its place is its own until the round is over: it may come again."""
        self._since_round.add(name)
        self.workloads[name] = None

    def round_begins(self, index: Index) -> None:
        """Of who came and went nobody has to hear. ``index``: of the state as it was followed last."""
        for name in self._since_round:
            if self.workloads.get(name, name) is None and name not in index.workloads:
                del self.workloads[name]
        self._since_round.clear()

    def __bool__(self) -> bool:
        return bool(self.workloads or self.nodes or self.queues) or self.reservations is not None

    def follow(self, state: State, index: Index) -> Iterator[tuple[Delta, State, Index, Changes]]:
        """What comes of ``state``, by one delta after the other."""
        if self._again:
            delta = Delta(generation=0, workloads=WorkloadChanges(remove=list(self._again)))
            state, index, changes = apply_delta(state, index, delta)
            yield delta, state, index, changes
        workloads = self.workloads.items()
        delta = Delta(
            generation=0,
            nodes=NodeChanges(change=list(self.nodes.values())),
            workloads=WorkloadChanges(
                add=[w for name, w in workloads if w is not None and name not in index.workloads],
                change=[w for name, w in workloads if w is not None and name in index.workloads],
                remove=[name for name, w in workloads if w is None and name in index.workloads],
            ),
            reservations=_reservation_changes(state.reservations, self.reservations),
            queues=self.queues,
        )
        yield delta, *apply_delta(state, index, delta)


class Written:
    """The state of a run as of a round, uncompiled, and its digest, for those who keep what rounds were asked of: it
    follows before each of them, and ``recorder`` is told of it."""

    def __init__(self, loaded: Loaded, recorder: Recorder | None) -> None:
        self.state, self._index, self._digest = loaded.state, loaded.index, loaded.digest
        self.pending = _Pending()
        self._recorder = recorder

    def follow(self) -> None:
        """It is that of now."""
        if not self.pending:
            return
        pending, self.pending = self.pending, _Pending()
        for delta, state, index, changes in pending.follow(self.state, self._index):
            self.state, self._index, self._digest = state, index, self._digest.after(state, changes)
            if self._recorder is not None:
                self._recorder.changed(delta)

    @property
    def digest(self) -> str:
        """As answers say it."""
        return self._digest.hexdigest()


class SimulatedCluster:
    """What runs now, and the same compiled as of the last round that looked at all of it. ``_pending``: what has
    changed since; ``_going``: by node, what occupies it until it is released; ``recorder``: who is told of the state
    before each round; ``written``: whether that method is used."""

    def __init__(
        self, configured: Configured, state: State, recorder: Recorder | None = None, *, written: bool = False
    ) -> None:
        self._recorder = recorder
        sorted_state = replace(
            state,
            nodes=sorted(state.nodes, key=_name),
            workloads=sorted(state.workloads, key=_id),
            findings=[],  # said once, of the run
        )
        self._loaded = _load(configured, sorted_state)
        self._pending = _Pending()
        self._writes = written or recorder is not None
        self._written = Written(self._loaded, recorder) if self._writes else None
        self._going: dict[str, Amounts] = {}
        self._place: dict[str, int] = {node.name: i for i, node in enumerate(sorted_state.nodes)}
        self._ahead: Ahead[Any] | None = None

    @property
    def configured(self) -> Configured:
        """The configuration in force."""
        return self._loaded.configured

    @property
    def nodes(self) -> list[Node]:
        """The nodes, without what occupies them only until it is released."""
        return [self._occupied(self._node(node.name), -1) for node in self._loaded.state.nodes]

    @property
    def holds(self) -> Callable[[str], bool]:
        """Whether one of a name runs, as of a round."""
        follows = self._ahead is None or not self._pending.workloads
        return self._loaded.index.workloads.__contains__ if follows else self._runs

    def _runs(self, name: str) -> bool:
        return self.workload(name) is not None

    def workload(self, name: str) -> Workload | None:
        """One that runs, or None."""
        if name in self._pending.workloads:
            return self._pending.workloads[name]
        index = self._loaded.index.workloads.get(name)
        return None if index is None else self._loaded.state.workloads[index]

    def set(self, workload: Workload) -> None:
        """It runs from now on, or runs otherwise."""
        self._moves(workload.id, workload)
        for pending in self._pendings:
            pending.set(workload)

    def remove(self, name: str) -> None:
        """It runs no longer."""
        self._moves(name, None)
        for pending in self._pendings:
            pending.remove(name)

    @property
    def _pendings(self) -> list[_Pending]:
        """Of the compiled state, and of the one that is written."""
        return [self._pending] if self._written is None else [self._pending, self._written.pending]

    def _moves(self, name: str, after: Workload | None) -> None:
        if self._ahead is not None and not self._ahead.moved(name, after):
            self._stop_ahead()

    def _stop_ahead(self) -> None:
        """From here on the state follows by itself."""
        self._catch_up()
        self._ahead = None

    def _catch_up(self) -> None:
        if self._ahead is not None:
            self.note(self._ahead.left(self._node))

    def _node(self, name: str) -> Node:
        return self._pending.nodes.get(name) or self._loaded.state.nodes[self._place[name]]

    def _set_node(self, node: Node) -> None:
        for pending in self._pendings:
            pending.nodes[node.name] = node

    def occupy(self, name: str, amounts: Amounts, sign: int) -> None:
        """Something that is no workload's any more holds so much of a node, or (``sign`` -1) no longer."""
        if self._ahead is not None and not self._ahead.occupied(name, amounts, sign):
            self._stop_ahead()
        if name in self._place:
            node = self._node(name)
            self._set_node(replace(node, occupied=_added(node.occupied, amounts, sign)))
            going = self._going.setdefault(name, {})
            for resource, amount in amounts.items():
                going[resource] = going.get(resource, 0) + sign * amount

    def change_nodes(self, nodes: NodeChanges) -> None:
        """Nodes come, change and go. Nothing may run on those that go."""
        state = self.loaded().state
        gone, changed = set(nodes.remove), {node.name: self._occupied(node, 1) for node in nodes.change}
        staying = [changed.get(node.name, node) for node in state.nodes if node.name not in gone]
        after = sorted([*staying, *nodes.add], key=_name)
        self._place = {node.name: i for i, node in enumerate(after)}
        held = [reservation for reservation in state.reservations if reservation.node not in gone]
        self._replace(self.configured, replace(state, nodes=after, reservations=held))

    def _occupied(self, node: Node, sign: int) -> Node:
        """``node`` with what occupies it until it is released, or (``sign`` -1) without."""
        going = self._going.get(node.name)
        return replace(node, occupied=_added(node.occupied, going, sign)) if going else node

    def configure(self, configured: Configured) -> None:
        """Another configuration is in force. Raises InvalidInput where what runs has no place in it."""
        state = self.loaded().state
        known = {name: of for name, of in state.queues.items() if name in configured.names or of.kueue is not None}
        self._replace(configured, replace(state, queues=known))

    def note(self, turn: Turn) -> None:
        """What an engine carries over: of workloads, nodes, queues and reservations."""
        for workload in turn.workloads:
            self.set(workload)
        for node in turn.nodes:
            self._set_node(node)
        if turn.queues or turn.reservations is not None:
            for pending in self._pendings:
                pending.queues |= turn.queues
                pending.reservations = pending.reservations if turn.reservations is None else turn.reservations

    def go_ahead(self, ahead: "Ahead[Any] | None") -> None:
        """Of the state as it is: keeps up from now on in place of it, unless None."""
        self._ahead = ahead

    def ahead(self) -> Ahead[Any] | None:
        """Who goes ahead of the state, as of a round; None: nobody does."""
        self._pending.round_begins(self._loaded.index)
        return self._ahead

    def unfollowed(self) -> Loaded | None:
        """The state as it is, which follows once somebody looks at more than who goes ahead of it knows; None: nobody
        does."""
        compiled = None if self._ahead is None else self._ahead.state(lambda: self.loaded().compiled)
        if compiled is None:
            self._stop_ahead()
            return None
        return _Unfollowed(self.loaded, self.configured, compiled, self.workload)

    def loaded(self) -> Loaded:
        """The state as it is, compiled."""
        self._catch_up()
        if self._pending:
            pending, self._pending = self._pending, _Pending()
            for _, state, index, changes in pending.follow(self._loaded.state, self._loaded.index):
                self._loaded = solve.update(self._loaded, state, index, changes, generation=None)
        return self._loaded

    def written(self) -> Written | None:
        """The state as it is, for those who keep what a round was asked of; None: nobody does."""
        if self._written is not None:
            self._catch_up()
            self._written.follow()
        return self._written

    def _replace(self, configured: Configured, state: State) -> None:
        self._ahead = None
        self._loaded = _load(configured, state)
        self._written = Written(self._loaded, self._recorder) if self._writes else None
        if self._recorder is not None:
            self._recorder.replaced()


class _Unfollowed(Loaded):
    """Its state is that of ``follow``, for whoever looks at more of it than at single workloads."""

    def __init__(
        self, follow: Callable[[], Loaded], configured: Configured, compiled: Any,
        workload: Callable[[str], Workload | None],
    ) -> None:  # fmt: skip
        self.__dict__.update(configured=configured, compiled=compiled, workload=workload, _follow=follow)

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError where there is no such thing."""
        return getattr(self.__dict__["_follow"](), name)


def _load(configured: Configured, state: State) -> Loaded:
    loaded = solve.load(configured, state)
    loaded.digest.remember()
    return loaded


def _reservation_changes(before: list[Reservation], after: list[Reservation] | None) -> ReservationChanges:
    """All that there were go, and all that there are come, so that their order is that of ``after``."""
    if after is None or after == before:
        return ReservationChanges()
    removed = [ReservationName(node=held.node, ask=held.ask.id) for held in before]
    return ReservationChanges(add=after, remove=removed)


def _added(occupied: Resources, amounts: Amounts, sign: int) -> Resources:
    out: Resources = dict(occupied)
    for resource, amount in amounts.items():
        scale = scale_of(resource)
        steps = (parse_quantity(out[resource], scale) if resource in out else 0) + sign * amount
        out[resource] = steps if scale == 1 else f"{steps}m"
        if not steps:
            del out[resource]
    return out


def _name(node: Node) -> str:
    return node.name


def _id(workload: Workload) -> str:
    return workload.id
