"""What is kept of each round so that its request can be told again without deciding anything.

One line a round: what has changed in the state since the round before, and the asks that are new. Now and then a line
has the whole state; the next does once those in between are longer than it, so that records grow as the changes do and
a request is made of no more than twice a state.
"""

from collections.abc import Callable, Iterable

import msgspec

from app.simulations.core.asked import in_words
from app.solver.model.kube_scheduler import DisruptionBudget
from app.solver.model.request import Explain, Mode, Options
from app.solver.model.state import Ask, Delta, Node, QueueState, Reservation, State, Workload
from app.solver.question import Question
from app.solver.solve import Configured

_LEAST = 64 << 10
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
    """Told of what changes between rounds, and of each round; makes the line of each."""

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
            self._whole, self._size, self._room = False, 0, max(_LEAST, len(line))
        else:
            self._size += len(line)
        self._deltas = []
        return line

    def _news(self, asks: Iterable[Ask]) -> list[Ask]:
        known, news = self._asks, list[Ask]()
        for ask in asks:
            told = known.get(ask.id)
            if told is not ask:
                known[ask.id] = ask
                if told != ask:
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
            workloads |= {one.id: one for one in delta.workloads.change}
            for name in delta.workloads.remove:
                del workloads[name]
            workloads |= {one.id: one for one in delta.workloads.add}
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
