"""Rounds of YTsaurus: a fair share update, then a heartbeat of every node in the order of names.

Starvation, since when an element is below its fair share, and volumes of integral guarantees are carried from update to
update; what heartbeats leave behind on nodes is carried to the next ones. A preempted allocation is none of its
operation's any more while it goes: it counts as something else that occupies its node.

Source: YTsaurus ``server/scheduler/strategy`` (fair share update, starvation status, ProcessSchedulingHeartbeat).
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, cast

from msgspec.structs import replace

from app.solver.engines.ytsaurus.configuration import CompiledConfiguration
from app.solver.engines.ytsaurus.starvation import Standing, Updated, update
from app.solver.engines.ytsaurus.state import CompiledState
from app.solver.model import ytsaurus as wire
from app.solver.model.configuration import Configuration
from app.solver.model.decision import PlannedEviction, Result
from app.solver.model.instant import at, micros
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, Node, QueueState, State, Workload
from app.solver.question import Question
from app.solver.rounds import Holds, PlacedRounds, Turn, Unit

_QUIET = Standing("non_starving", None)
_NOTHING = wire.Node()


class YtsaurusRounds(PlacedRounds[CompiledConfiguration, CompiledState]):
    """See the module. ``_standing``: starvation of operations that wait, by id; ``_last``: the last update;
    ``_tried``: the version at which a node last looked for somebody to preempt, by its name; ``_wakes``: when time
    alone could let somebody act."""

    unit: ClassVar[Unit] = "task"
    occupies: ClassVar[bool] = True

    _nodes: Sequence[Node]
    _node_index: dict[str, int]
    _starves: bool
    """Those of the last update, and whether anybody starved then."""

    def __init__(self, configured: CompiledConfiguration, configuration: Configuration, options: RunOptions) -> None:
        super().__init__(configured, configuration, options)
        self._standing: dict[str, Standing] = {}
        self._last: int | None = None
        self._tried: dict[str, int] = {}
        self._wakes: list[int] = []

    def leave(self, job: str) -> None:
        super().leave(job)
        self._standing.pop(job, None)

    def wakes_at(self) -> int | None:
        return min(self._wakes, default=None)

    def asked(self, ask: Ask, holds: Holds) -> Ask:
        if holds(ask.id):
            return replace(ask, workload=ask.id)
        standing = self._standing.get(ask.id, _QUIET)
        if standing == _QUIET:
            return ask
        return replace(ask, ytsaurus=_carried(ask.ytsaurus or wire.Workload(), standing))

    def before(self, loaded: CompiledState, state: State, now: int) -> Turn | None:
        """The fair share update, with everything that waits as demand."""
        running = loaded.operation_index
        asks = [self.asked(ask, running.__contains__) for _, ask in sorted(self.waiting.items())]
        updated = update(loaded, asks, now, self._last)
        self._last, self._starves = now, updated.starves
        self._nodes, self._node_index = state.nodes, loaded.node_index
        self._wakes = [] if updated.changes_at is None else [updated.changes_at]
        waiting = updated.operations
        moved = [(state.workloads[running[name]], standing) for name, standing in updated.moved.items()]
        turn = Turn(
            workloads=[
                replace(workload, ytsaurus=_carried(workload.ytsaurus or wire.Workload(), standing))
                for workload, standing in moved
            ],
            queues=_pools(state, updated),
        )
        differs = bool(turn.workloads or turn.queues)
        self.version += differs or waiting != self._standing
        self._standing = waiting
        return turn if differs else None

    def answered(self, question: Question, result: Result, leaving: Callable[[PlannedEviction], bool]) -> Turn:
        version = self.version
        turn = super().answered(question, result, leaving)
        notes: dict[str, Any] = (result.notes or {}).get("nodes", {})
        settings = self.configured.settings
        known: dict[int, tuple[wire.Node, int | None, bool]] = {}
        wakes: set[int] = set()
        for name, note in notes.items():
            if id(note) not in known:  # most nodes leave the same behind
                after = wire.Node(**note)
                last, since = after.last_preemptive_scheduling_at, after.overcommit_since
                known[id(note)] = after, None if last is None else micros(last), after == _NOTHING
                if since is not None:
                    wakes.add(micros(since) + settings.overcommit_duration + 1)
            after, looked, nothing = known[id(note)]
            node = self._nodes[self._node_index[name]]
            if nothing and node.ytsaurus is None:
                continue
            if after != (node.ytsaurus or _NOTHING):
                turn.nodes.append(replace(node, ytsaurus=after))
            if looked is not None:
                if looked == question.now:
                    self._tried[name] = version
                if self._starves and self._tried.get(name) != self.version:
                    wakes.add(looked + settings.backoff + 1)
        self._wakes += wakes
        return turn

    def evicting(self, workload: Workload, task: str | None) -> Workload:
        return replace(workload, tasks=[one for one in workload.tasks if task is not None and one.name != task])


def _carried(block: wire.Workload, standing: Standing) -> wire.Workload:
    since = None if standing.since is None else at(standing.since)
    return replace(block, starvation=_level(standing), below_fair_share_since=since)


def _level(standing: Standing) -> wire.Starvation:
    return cast(Literal["non_starving", "starving", "aggressively_starving"], standing.starvation)


def _pools(state: State, updated: Updated) -> dict[str, QueueState]:
    """The pools that carry something else than before."""
    found: dict[str, QueueState] = {}
    for name, standing in updated.pools.items():
        had = state.queues.get(name, QueueState()).ytsaurus
        since = None if standing.since is None else at(standing.since)
        volume, ratio = updated.volumes.get(name, (None, None))
        block = wire.PoolState(
            starvation=_level(standing), below_fair_share_since=since, accumulated_volume=volume, last_share_ratio=ratio
        )
        if block != (had or wire.PoolState(starvation="non_starving")):
            found[name] = QueueState(ytsaurus=block)
    return found
