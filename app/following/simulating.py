"""A recording of a cluster as a simulation: what was asked for, when, for how long it ran, and what an administrator
changed of quotas and nodes meanwhile.

`arbiter simulate` runs it as it is, or with other quotas, another engine or another release. Kueue's Workloads say
themselves when they got quota and were done. Of KAI's groups, and of each pod of YuniKorn's and kube-scheduler's, the
pods tell: one that is evicted is asked for again by whoever owns it, and both are one job.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import structs

from app.base.documents import as_list, as_mapping
from app.base.errors import BadRequest
from app.following.grouped import Translated, translate
from app.following.mirror import View
from app.following.objects import FOLLOWED, WORK, evidence, followed_of
from app.following.replaying import Replay, lines, ordered
from app.formats.kai.pods import POD_GROUP
from app.formats.objects import Item, Key, condition, id_of, instant, key_of, part
from app.solver.model.configuration import Configuration, EngineName, Queue
from app.solver.model.state import DisruptionBudget, Node, NodeChanges

_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_LEAST_SECONDS = 1.0
_DONE = ("Succeeded", "Failed")
_DISRUPTED = "DisruptionTarget"
_RAN_ON = "ran on, or were deleted while they ran: as long as they were seen"
_NEVER_RAN = "never ran to an end: left out"
_NO_QUEUE = "in no queue: left out"

BATCH = 5000
"""Objects that are translated at once: what that takes is let go before the next."""

Packed = tuple[bytes, bytes]
Asked = dict[tuple[str, Key], Packed]
"""Objects as they were asked for, without what became of them, by kind and name."""


class _Shelf:
    """Puts objects away in little room: those that are made of one template share what they ask for."""

    def __init__(self) -> None:
        self._specs: dict[bytes, bytes] = {}

    def put(self, item: Item) -> Packed:
        """Without what became of it."""
        spec = {name: value for name, value in part(item, "spec").items() if name != "nodeName"}
        metadata = {name: value for name, value in part(item, "metadata").items() if name != "deletionTimestamp"}
        rest = {name: value for name, value in item.items() if name not in ("spec", "status")}
        packed = msgspec.msgpack.encode(spec)
        return msgspec.msgpack.encode({**rest, "metadata": metadata}), self._specs.setdefault(packed, packed)


def _unpacked(packed: Packed) -> Item:
    rest, spec = packed
    return {**msgspec.msgpack.decode(rest), "spec": msgspec.msgpack.decode(spec)}


@dataclass(slots=True)
class _Life:
    """``ran``: seconds of its last run; None: none has ended yet. ``ended``: when it was done, or gone while it ran."""

    asked: Asked
    submitted: datetime
    began: datetime | None = None
    ran: float | None = None
    ended: datetime | None = None


class _Lives(Protocol):
    def heard(self, kind: str, item: Item, now: datetime, *, gone: bool) -> None:
        """An object of the work came, changed or went."""
        ...

    def handed_over(self) -> list[_Life]:
        """What there was, in the order in which it was asked for. No longer kept here."""
        ...


class _Workloads:
    """Kueue's, by UID."""

    def __init__(self) -> None:
        self._shelf = _Shelf()
        self._lives: dict[str, _Life] = {}

    def heard(self, kind: str, item: Item, now: datetime, *, gone: bool) -> None:
        metadata = part(item, "metadata")
        uid = str(metadata.get("uid") or "/".join(key_of(item)))
        life = self._lives.get(uid)
        if life is None:
            asked: Asked = {(kind, key_of(item)): self._shelf.put(item)}
            life = self._lives[uid] = _Life(asked, instant(metadata.get("creationTimestamp")) or now)
        reserved, finished = condition(item, "QuotaReserved"), condition(item, "Finished")
        if reserved is None:
            life.began = None
        elif life.began is None:
            life.began = instant(reserved.get("lastTransitionTime")) or now
        if finished is not None and life.ran is None:
            life.ended = instant(finished.get("lastTransitionTime")) or now
            life.ran = None if life.began is None else (life.ended - life.began).total_seconds()
        elif gone and life.ended is None:
            life.ended = now

    def handed_over(self) -> list[_Life]:
        lives, self._lives = self._lives, {}
        return list(lives.values())


@dataclass(slots=True)
class _Unit(_Life):
    """Pods that run together. ``alive``: those that are neither done nor gone, and whether each is on a node;
    ``least``: how many must be; ``owner``: who asks for others in place of those that are evicted."""

    alive: dict[Key, bool] = field(default_factory=dict[Key, bool])
    least: int = 1
    done: int = 0
    owner: str = ""
    stopped: bool = False
    evicted_at: datetime | None = None

    def pods(self) -> int:
        """How many it asks for."""
        return sum(kind == "Pod" for kind, _ in self.asked)


class _Pods:
    """KAI's groups, or pods each by itself. ``_evicted``: pods of which an Event says so."""

    def __init__(self, engine: EngineName) -> None:
        self._engine: EngineName = engine
        self._shelf = _Shelf()
        self._units: dict[str, _Unit] = {}
        self._evicted: set[Key] = set()

    def heard(self, kind: str, item: Item, now: datetime, *, gone: bool) -> None:
        match kind:
            case "Event":
                seen = evidence(self._engine, kind, None, item)
                if seen is not None and seen.preempted:
                    self._evicted.add(seen.victim)
            case "PodGroup":
                unit = self._unit(id_of(key_of(item)), item, now)
                least = part(item, "spec").get("minMember")
                unit.least = least if isinstance(least, int) and least > 0 else 1
                unit.asked[kind, key_of(item)] = self._shelf.put(item)
            case _:
                self._pod(item, now, gone=gone)

    def handed_over(self) -> list[_Life]:
        units = sorted(self._units.values(), key=lambda unit: unit.submitted)
        self._units.clear()
        left: dict[str, list[_Unit]] = {}
        lives: dict[int, _Life] = {}
        for unit in units:
            evicted, before = self._was_evicted(unit), left.get(unit.owner, [])
            fitting = next((life for life in before if life.evicted_at and life.evicted_at <= unit.submitted), None)
            if fitting is not None:  # it is asked for again, and waits since the first was asked for
                before.remove(fitting)
                unit.submitted, unit.asked = fitting.submitted, fitting.asked
                del lives[id(fitting)]
            if evicted and unit.owner:
                left.setdefault(unit.owner, []).append(unit)
            lives[id(unit)] = unit
        return list(lives.values())

    def _was_evicted(self, unit: _Unit) -> bool:
        if unit.evicted_at is None and unit.stopped and any(key in self._evicted for _, key in unit.asked):
            unit.evicted_at = unit.ended
        return unit.evicted_at is not None

    def _unit(self, name: str, item: Item, now: datetime) -> _Unit:
        unit = self._units.get(name)
        if unit is None:
            created = instant(part(item, "metadata").get("creationTimestamp"))
            unit = self._units[name] = _Unit({}, created or now)
        return unit

    def _pod(self, item: Item, now: datetime, *, gone: bool) -> None:
        key, metadata, status = key_of(item), part(item, "metadata"), part(item, "status")
        group = part(metadata, "annotations").get(POD_GROUP) if "PodGroup" in WORK[self._engine] else None
        unit = self._unit(f"{key[0]}/{group}" if group else str(metadata.get("uid") or id_of(key)), item, now)
        known, done = key in unit.alive, status.get("phase") in _DONE
        if gone or done or "deletionTimestamp" in metadata:
            if known:
                del unit.alive[key]
                unit.done += done
                unit.stopped = unit.stopped or not done
                if not done and condition(item, _DISRUPTED) is not None:
                    unit.evicted_at = now
        else:
            if not known and unit.ended is not None:  # it goes on, or begins anew
                unit.began, unit.ended, unit.ran = None if unit.ran is None else unit.began, None, None
            unit.alive[key] = bool(part(item, "spec").get("nodeName"))
            if len(unit.alive) > unit.pods():
                unit.asked["Pod", key] = self._shelf.put(item)
                unit.owner = "" if group else _owner(metadata)
        self._turn(unit, instant(status.get("startTime")), now)

    def _turn(self, unit: _Unit, started: datetime | None, now: datetime) -> None:
        """Whether it begins, goes on, or ends."""
        running = sum(unit.alive.values())
        if unit.began is None and running and running + unit.done >= min(unit.least, unit.pods()):
            unit.began, unit.ended, unit.ran = started or now, None, None
        elif unit.began is not None and not running and unit.ended is None:
            if unit.alive:  # a gang that was evicted waits again
                unit.began = None
                return
            unit.ended = now
            if unit.done:
                unit.ran = (now - unit.began).total_seconds()


def _owner(metadata: Item) -> str:
    owners = as_list(metadata.get("ownerReferences"))
    first = next((as_mapping(reference) for reference in owners if isinstance(reference, dict)), dict[str, Any]())
    return str(first.get("uid") or "")


class Recorded:
    """A recording of ``engine`` on its way to a simulation. ``left_out``: work that is no job of it, by why."""

    def __init__(self, engine: EngineName) -> None:
        self._engine: EngineName = engine
        self._replay = Replay(engine)
        self._work = WORK[engine]
        # Kueue places pods by topology: none of its jobs hangs on those that there were.
        self._kinds = tuple(kind.name for kind in FOLLOWED[engine] if kind.name != "Pod" or "Pod" in self._work)
        self._lives: _Lives = _Workloads() if "Workload" in self._work else _Pods(engine)
        self._ever: dict[str, dict[Key, Item]] = {name: {} for name in self._kinds}
        self._settings: list[tuple[datetime, Configuration]] = []
        self._nodes: list[tuple[datetime, dict[str, Node]]] = []
        self.left_out: Counter[str] = Counter()

    def simulation(self, said: Iterator[dict[str, Any]]) -> dict[str, Any]:
        """The body of ``POST /v1/simulations``, of all its lines. Raises BadRequest, and LookupError where there is no
        work in it."""
        dirty, worked = True, False
        for line in said:
            self._replay.hear(line)
            item, word = part(line, "object"), line.get("type")
            kind = str(line.get("kind") or item.get("kind") or "")
            if kind in self._kinds and kind not in self._work:
                dirty = (
                    self._known(kind, item if word in ("ITEM", *_CHANGES) else None, gone=word == "DELETED") or dirty
                )
            elif kind in self._work or kind == "Event":
                dirty = dirty or self._takes_room(kind, item)
                if word in ("ITEM", *_CHANGES):
                    worked = worked or kind in self._work
                    self._lives.heard(kind, item, self._replay.now(), gone=word == "DELETED")
            if dirty and word in ("LISTED", *_CHANGES) and (self._is_whole() or (worked and kind in self._work)):
                self._amended()
                dirty = False
        if not worked:
            raise LookupError(f"no {self._work[-1]} is in the recording")
        if not self._settings:
            self._amended()
        return self._body()

    def _items(self, kind: str) -> dict[Key, Item]:
        return next(of.items for of in self._replay.mirror.kinds() if of.kind.name == kind)

    def _known(self, kind: str, item: Item | None, *, gone: bool) -> bool:
        """Remember an object, or all of a kind; whether that is news."""
        ever = self._ever[kind]
        if item is None:
            ever.update(self._items(kind))
            return True
        key = key_of(item)
        before, ever[key] = ever.get(key), item
        return gone or before != item

    def _is_whole(self) -> bool:
        return all(of.whole for of in self._replay.mirror.kinds() if of.kind.state and of.kind.needed)

    def _with(self, life: _Life) -> Hashable:
        """Lives that are translated together have the same of this."""
        together = followed_of(self._engine).together
        return id(life) if together is None else together(_unpacked(next(iter(life.asked.values()))))

    def _takes_room(self, kind: str, item: Item) -> bool:
        """Whether it is a pod of another scheduler's on a node."""
        scheduler = followed_of(self._engine).scheduler
        spec = part(item, "spec")
        return kind == "Pod" and scheduler is not None and spec.get("schedulerName") != scheduler and "nodeName" in spec

    def _amended(self) -> None:
        """What the configuration and the nodes are now, where they are others than before."""
        items = {name: self._items(name) for name in self._kinds}
        others = {key: item for key, item in items.get("Pod", {}).items() if self._takes_room("Pod", item)}
        translated = self._translated({**items, **{kind: {} for kind in self._work}, "Pod": others})
        now = self._replay.now()
        if not self._settings or self._settings[-1][1] != translated.configuration:
            self._settings.append((now, translated.configuration))
        was = self._nodes[-1][1] if self._nodes else None
        if was != translated.nodes:
            known = was or {}
            nodes = {name: known[name] if known.get(name) == node else node for name, node in translated.nodes.items()}
            self._nodes.append((now, nodes))

    def _translated(self, items: dict[str, dict[Key, Item]]) -> Translated:
        of = {kind: items.get(kind, {}) for kind in self._kinds}
        return translate(self._engine, View(of, {}, None, None, self._replay.now()))

    def _body(self) -> dict[str, Any]:
        jobs, queues, budgets = self._jobs()
        every = {queue.name: queue for _, configuration in self._settings for queue in configuration.queues} | queues
        settings = [(moment, _with_queues(configuration, every)) for moment, configuration in self._settings]
        changes: list[tuple[datetime, dict[str, Any]]] = [
            *(
                (moment, amendment)
                for (_, was), (moment, configuration) in pairwise(settings)
                if (amendment := _amendment(was, configuration)) != _NOTHING
            ),
            *((moment, {"nodes": _between(was, now)}) for (_, was), (moment, now) in pairwise(self._nodes)),
        ]
        state = {"nodes": list(self._nodes[0][1].values()), "disruption_budgets": budgets}
        return {
            "engine": self._engine, "configuration": settings[0][1], "state": {k: v for k, v in state.items() if v},
            "trace": {
                "jobs": jobs,
                "changes": [
                    {"at": moment.isoformat(), **of} for moment, of in sorted(changes, key=lambda change: change[0])
                ],
            },
        }  # fmt: skip

    def _jobs(self) -> tuple[list[msgspec.Raw], dict[str, Queue], list[DisruptionBudget]]:
        """Those that ran, by when they were asked for, and the queues that there were for them: how long others would
        have run is not known."""
        ready, jobs, queues = deque(self._ready()), list[tuple[str, str, msgspec.Raw]](), dict[str, Queue]()
        while True:
            taken: dict[str, dict[Key, Item]] = {kind: {} for kind in self._work}
            lives: dict[str, _Ready] = {}
            while ready and len(lives) < BATCH:
                for asked in ready.popleft():
                    lives |= dict.fromkeys(self._take(asked, taken), asked)
            translated = self._translated({**self._ever, **taken})
            queues |= {queue.name: queue for queue in translated.configuration.queues}
            for ask in translated.asks.values():
                of = lives[ask.id]
                submitted, ran = of.life.submitted.isoformat(), max(of.ran, _LEAST_SECONDS)
                job = msgspec.json.encode({"ask": ask, "submitted_at": submitted, "duration": ran})
                jobs.append((submitted, ask.id, msgspec.Raw(job)))
            if missing := len({id(asked) for asked in lives.values()}) - len(translated.asks):
                self.left_out[_NO_QUEUE] += missing
            if not ready:
                jobs.sort(key=itemgetter(0, 1))
                return [job for *_, job in jobs], queues, translated.budgets

    def _ready(self) -> list[list["_Ready"]]:
        """Those that ran; together what is translated together. What was there before under the same name
        gets a number."""
        taken: set[tuple[str, Key]] = set()
        groups: dict[Hashable, list[_Ready]] = {}
        for life in self._lives.handed_over():
            ran = life.ran
            if ran is None and life.began is not None:
                ran = ((life.ended or self._replay.now()) - life.began).total_seconds()
                self.left_out[_RAN_ON] += 1
            if ran is None or not life.asked:
                self.left_out[_NEVER_RAN] += 1
                continue
            number = 1
            while any((kind, _numbered(key, number)) in taken for kind, key in life.asked):
                number += 1
            taken.update((kind, _numbered(key, number)) for kind, key in life.asked)
            groups.setdefault(self._with(life), []).append(_Ready(life, number, ran))
        return list(groups.values())

    def _take(self, ready: "_Ready", taken: dict[str, dict[Key, Item]]) -> Iterator[str]:
        """Put what was asked for among ``taken``, and say by which names asks of it may be called."""
        for (kind, key), packed in ready.life.asked.items():
            item, named = _unpacked(packed), _numbered(key, ready.number)
            metadata = {**part(item, "metadata"), "name": named[1]}
            annotations = part(metadata, "annotations")
            if kind == "Pod" and ready.number > 1 and (group := annotations.get(POD_GROUP)):
                metadata["annotations"] = {**annotations, POD_GROUP: f"{group}.{ready.number}"}
            taken[kind][named] = {**item, "metadata": metadata}
            if kind == self._work[0] or "PodGroup" not in {of for of, _ in ready.life.asked}:
                yield id_of(named)
                yield id_of((named[0], f"pg-{named[1]}"))  # as KAI's pod grouper calls the group of a pod alone


class _Ready(NamedTuple):
    """A life that is a job, the number of its names, and how long it ran."""

    life: _Life
    number: int
    ran: float


def simulated(engine: EngineName, path: Path) -> tuple[dict[str, Any], Counter[str]]:
    """The body of a simulation of the recording ``path``, and how much work is no job of it, by why. Raises BadRequest,
    InvalidInput, OSError."""
    course = Recorded(engine)
    try:
        return course.simulation(ordered(lambda: lines(path))), course.left_out
    except LookupError as none:
        raise BadRequest(str(none.args[0])) from None


def _numbered(key: Key, number: int) -> Key:
    return key if number == 1 else (key[0], f"{key[1]}.{number}")


def _with_queues(configuration: Configuration, every: dict[str, Queue]) -> Configuration:
    """With the queues that were not there then, with nothing of their own: work is asked for before its queue is made,
    and may still run under other rules when the queue is gone."""
    names = {queue.name for queue in configuration.queues}
    others = [
        structs.replace(queue, quota=None, resource_groups=None) for name, queue in every.items() if name not in names
    ]
    return structs.replace(configuration, queues=[*configuration.queues, *others]) if others else configuration


_AMENDED = tuple(name for name in Queue.__struct_fields__ if name not in ("name", "created_at", "native"))


_NOTHING: dict[str, Any] = {"queues": {}}


def _amendment(was: Configuration, now: Configuration) -> dict[str, Any]:
    """Where only queues changed those, each whole: who tries other settings or quotas keeps them, but for the queues
    that an administrator changed then."""
    old, new = ({queue.name: queue for queue in configuration.queues} for configuration in (was, now))
    same = structs.replace(was, queues=[], native=None) == structs.replace(now, queues=[], native=None)
    fields: dict[str, dict[str, Any]] = {}
    for name, queue in new.items():
        before = old.get(name)
        changed = {
            field: getattr(queue, field) for field in _AMENDED if getattr(before, field, None) != getattr(queue, field)
        }
        if changed and (None in changed.values() or queue.created_at != getattr(before, "created_at", None)):
            same = False
        elif changed:
            fields[name] = changed
    return {"queues": fields} if same and old.keys() == new.keys() else {"configuration": now}


def _between(was: dict[str, Node], now: dict[str, Node]) -> NodeChanges:
    return NodeChanges(
        add=[node for name, node in now.items() if name not in was],
        change=[node for name, node in now.items() if name in was and was[name] != node],
        remove=[name for name in was if name not in now],
    )
