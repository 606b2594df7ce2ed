"""Snapshots in the memory of one process.

A snapshot is an immutable version: a delta builds the next one and swaps the reference, so a running decision
keeps what it has and never waits for a writer. Idle ones expire; past the memory budget the least used goes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock

from app.base.errors import Conflict, NotFound
from app.solver import solve
from app.solver.delta import apply_delta, asks_after, asks_in_order, in_delta
from app.solver.model.configuration import Configuration
from app.solver.model.decision import ConfigurationUsed
from app.solver.model.problems import InvalidInput, Problem
from app.solver.model.state import Delta, State, Workload
from app.solver.question import safe_point
from app.solver.solve import NOTHING_BESIDE, Beside, Configured, Loaded

BYTES_PER_JSON_BYTE = 6
"""Memory of a kept state, decoded and compiled, by byte of its JSON; measured on Kueue and YuniKorn at 50,000."""


Own = tuple[str | Configuration, str | None]
"""A configuration as it was given, by name or in full, and the engine."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One generation of a state. ``own``: what it was put with; ``used``: what that was when last compiled: a question
    may bring another configuration, for which ``loaded`` is compiled meanwhile. Instants in seconds of the store's
    clock; ``size`` is an estimate in bytes, ``tasks`` how many there are, which would take long to count each time."""

    name: str
    loaded: Loaded
    own: Own
    used: ConfigurationUsed
    generation: int
    created_at: float
    size: int
    tasks: int

    @property
    def items(self) -> int:
        """Nodes, workloads and asks."""
        state = self.loaded.state
        return len(state.nodes) + len(state.workloads) + len(self.loaded.beside.asks)


def _tasks(workload: Workload | None) -> int:
    return 0 if workload is None else len(workload.tasks)


def _after(old: Snapshot, delta: Delta) -> Snapshot:
    """The generation after ``old``. Raises InvalidInput."""
    state, index, changes = apply_delta(old.loaded.state, old.loaded.index, delta)
    try:
        loaded = solve.update(old.loaded, state, index, changes, generation=old.generation + 1)
    except InvalidInput as invalid:
        raise InvalidInput(in_delta(invalid.problems, state, delta)) from None
    loaded = solve.with_beside(loaded, _beside_after(old.loaded.beside, delta))
    tasks = old.tasks + sum(_tasks(new) - _tasks(before) for _, before, new in changes.workloads)
    grown = replace(old, loaded=loaded, generation=old.generation + 1, tasks=tasks)
    return replace(grown, size=old.size * max(1, grown.items) // max(1, old.items))


def _beside_after(old: Beside, delta: Delta) -> Beside:
    versions = old.resource_versions if delta.resource_versions is None else delta.resource_versions
    return Beside(asks_after(old.asks, delta), versions)


def check_generation(snapshot: Snapshot, generation: int) -> None:
    """Raises Conflict unless ``snapshot`` is still at ``generation``."""
    now = snapshot.generation
    if generation != now:
        raise Conflict(
            f"snapshot {snapshot.name!r} is at generation {now}, not {generation}",
            problems=[Problem(pointer="/generation", detail=f"stale: the snapshot is at {now}")],
            extra={"code": "stale_generation", "generation": now},
        )


class SnapshotStore:
    """``budget`` in bytes, ``idle`` in seconds; ``clock`` gives seconds and never goes back."""

    def __init__(self, *, budget: int, idle: float, clock: Callable[[], float]) -> None:
        self._budget = budget
        self._idle = idle
        self._clock = clock
        self._snapshots: dict[str, Snapshot] = {}
        self._used: dict[str, float] = {}
        self._lock = Lock()

    def put(
        self, name: str, configured: Configured, state: State, json_bytes: int, own: Own | None = None,
        beside: Beside = NOTHING_BESIDE,
    ) -> Snapshot:  # fmt: skip
        """Keep ``state``, replacing what had the name; the generation goes on counting. ``own``: None where it is
        the compiled configuration. Raises InvalidInput."""
        loaded = solve.with_beside(solve.load(configured, state, snapshot=name), beside)
        # Only now: what is wrong with an ask was named by its place in the request.
        loaded = replace(loaded, beside=replace(beside, asks=asks_in_order(beside.asks)))
        tasks = sum(len(w.tasks) for w in state.workloads)
        own = own or (configured.configuration, configured.engine.name)
        snapshot = Snapshot(
            name, loaded, own, configured.used, 0, self._clock(), json_bytes * BYTES_PER_JSON_BYTE, tasks
        )
        safe_point()  # the last one: from here on it is kept, and the answer says so
        with self._lock:
            old = self._snapshots.get(name)
            generation = old.generation + 1 if old is not None else 1
            return self._keep(replace(snapshot, loaded=replace(loaded, generation=generation), generation=generation))

    def apply(self, name: str, delta: Delta) -> Snapshot:
        """The next generation. Raises NotFound, Conflict for a stale generation, InvalidInput; then nothing changes."""
        while True:
            with self._lock:
                old = self._live(name)
            check_generation(old, delta.generation)
            new = _after(old, delta)
            safe_point()
            with self._lock:
                if self._live(name) is old:
                    return self._keep(new)
            # Somebody was faster: with a change, which makes this one stale, or by compiling the same state again.

    def get(self, name: str) -> Snapshot:
        """The current version. Raises NotFound with code ``snapshot_lost``: send it again."""
        with self._lock:
            snapshot = self._live(name)
            self._used[name] = self._clock()
            return snapshot

    def peek(self, name: str) -> Snapshot | None:
        """The current version, where there is one; looking is no use of it."""
        with self._lock:
            return self._snapshots.get(name)

    def own(self, name: str) -> Own:
        """The configuration and the engine that it was put with. Raises NotFound."""
        return self.get(name).own

    def loaded(self, configured: Configured, name: str) -> Loaded:
        """The state compiled against ``configured``: again when the configuration has been revised since, never
        mixed. Raises NotFound, Conflict when the configuration is for another engine."""
        snapshot = self.get(name)
        have = snapshot.loaded.configured
        if have.used.digest == configured.used.digest and have.engine is configured.engine:
            if have.used == configured.used:
                return snapshot.loaded
            return replace(snapshot.loaded, configured=configured)
        if have.engine is not configured.engine:
            raise Conflict(
                f"snapshot {name!r} is kept for {have.engine.name}, the configuration is for {configured.engine.name}",
                problems=[Problem(pointer="/state/snapshot", detail=f"kept for engine {have.engine.name}")],
                extra={"code": "snapshot_of_another_engine"},
            )
        loaded = solve.load(configured, snapshot.loaded.state, snapshot=name, generation=snapshot.generation)
        loaded = replace(loaded, beside=snapshot.loaded.beside)
        with self._lock:
            if self._snapshots.get(name) is snapshot:
                used = (
                    configured.used
                    if snapshot.used.name and snapshot.used.name == configured.used.name
                    else snapshot.used
                )
                self._snapshots[name] = replace(snapshot, loaded=loaded, used=used)
        return loaded

    def delete(self, name: str) -> None:
        """Raises NotFound."""
        with self._lock:
            self._live(name)
            self._drop(name)

    def names(self) -> list[str]:
        """What is kept now, in order of name."""
        with self._lock:
            self._expire()
            return sorted(self._snapshots)

    @property
    def totals(self) -> tuple[int, int]:
        """How many there are, and their estimated bytes."""
        with self._lock:
            return len(self._snapshots), sum(snapshot.size for snapshot in self._snapshots.values())

    def idle_seconds(self, name: str) -> float:
        """Since the snapshot was last used."""
        return self._clock() - self._used.get(name, self._clock())

    def age_seconds(self, snapshot: Snapshot) -> float:
        """Since its state was last put whole."""
        return self._clock() - snapshot.created_at

    def _live(self, name: str) -> Snapshot:
        self._expire()
        if (snapshot := self._snapshots.get(name)) is None:
            raise NotFound(
                f"no snapshot {name!r}: it was never put, has expired or had to make room; put it again",
                problems=[Problem(pointer="/state/snapshot", detail=f"no snapshot {name!r}")],
                extra={"code": "snapshot_lost"},
            )
        return snapshot

    def _keep(self, snapshot: Snapshot) -> Snapshot:
        self._snapshots[snapshot.name] = snapshot
        self._used[snapshot.name] = self._clock()
        self._expire()
        while len(self._snapshots) > 1 and sum(s.size for s in self._snapshots.values()) > self._budget:
            least = min((n for n in self._snapshots if n != snapshot.name), key=lambda n: self._used[n])
            self._drop(least)
        return snapshot

    def _expire(self) -> None:
        oldest = self._clock() - self._idle
        for name in [n for n, used in self._used.items() if used < oldest]:
            self._drop(name)

    def _drop(self, name: str) -> None:
        del self._snapshots[name]
        del self._used[name]
