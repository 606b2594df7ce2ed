"""What applications, users and groups may have: YuniKorn's limits, which let work wait and preempt for nobody.

Source: ``pkg/scheduler/ugm`` (manager.go: Headroom, CanRunApp, ensureGroupInternal; queue_tracker.go: headroom,
canRunApp) and ``pkg/scheduler/objects/queue.go`` (TryAllocate, canRunApp).

With how many names of resources a state may have, which is Arbiter's own limit.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from app.solver.model import yunikorn as wire
from app.solver.model.base import QuantityError, parse_quantity, scale_of
from app.solver.model.configuration import Queue
from app.solver.model.problems import Problem, pointer
from app.solver.model.state import OVER, Ask, State, Workload

MOST_RESOURCES = 128
"""Names: amounts are columns of a table of them."""
TOO_MANY = f"more than {MOST_RESOURCES} resource names"
ALL = "*"
Kind = Literal["user", "group"]
Steps = Mapping[str, int]
_NOBODY = wire.Application()
_GONE = OVER - {"released"}
"""A placeholder that is released counts until it has left, as it does in its queue and on its node."""


class Most(NamedTuple):
    """``resources``: steps by name, empty where there is no limit; ``applications``: 0 where there is none."""

    resources: Steps
    applications: int


@dataclass(frozen=True, slots=True)
class Limits:
    """By queue index. ``groups`` keeps the order of the document, which decides whose limit a user comes under."""

    applications: list[int]
    users: list[dict[str, Most]]
    groups: list[dict[str, Most]]
    some: bool

    def group_of(self, groups: Sequence[str], path: Sequence[int]) -> str | None:
        """The group whose limits hold for a user of ``groups``: the first that a queue names, from the leaf up."""
        if not groups:
            return None
        for queue in path:
            named = next((name for name in self.groups[queue] if name != ALL and name in groups), None)
            if named is not None or ALL in self.groups[queue]:
                return named or ALL
        return None

    def of(self, kind: Kind, name: str, queue: int) -> Most | None:
        """What holds for one user or group in a queue."""
        table = self.groups[queue] if kind == "group" else self.users[queue]
        return table.get(name) or (table.get(ALL) if kind == "user" else None)


def compile_limits(queues: Sequence[Queue], problems: list[Problem]) -> Limits:
    """Compile; what is wrong is added to ``problems``."""
    blocks = [queue.yunikorn for queue in queues if queue.yunikorn is not None]
    compiled = Limits([], [], [], some=any(block.max_applications or block.limits for block in blocks))
    for i, queue in enumerate(queues):
        block = queue.yunikorn or wire.Queue()
        users: dict[str, Most] = {}
        groups: dict[str, Most] = {}
        for j, limit in enumerate(block.limits):
            most = _most(limit, ("configuration", "queues", i, "yunikorn", "limits", j), problems)
            users |= dict.fromkeys(limit.users, most)
            groups |= dict.fromkeys(limit.groups, most)
        compiled.applications.append(block.max_applications)
        compiled.users.append(users)
        compiled.groups.append(groups)
    return compiled


def _most(limit: wire.Limit, place: tuple[str | int, ...], problems: list[Problem]) -> Most:
    amounts: dict[str, int] = {}
    for name, given in limit.max_resources.items():
        try:
            amounts[name] = parse_quantity(given, scale_of(name))
        except QuantityError as error:
            problems.append(Problem(pointer=pointer(*place, "max_resources", name), detail=str(error)))
    return Most(amounts if any(amounts.values()) else {}, limit.max_applications)


class Whose(NamedTuple):
    """An application, its user, and the groups of the user."""

    application: str
    user: str
    groups: Sequence[str]

    def trackers(self, limits: Limits, path: Sequence[int]) -> list[tuple[Kind, str]]:
        """Under which names it is counted."""
        group = limits.group_of(self.groups, path)
        holders: list[tuple[Kind, str]] = [("user", self.user)]
        return holders if group is None else [*holders, ("group", group)]


_Key = tuple[Kind, str, int]


@dataclass(slots=True)
class Tracked:
    """What runs: by user or group and queue, what it uses and its applications; by queue, the applications."""

    used: dict[_Key, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    running: dict[_Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    applications: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def copy(self) -> "Tracked":
        """One that changes by itself."""
        twin = Tracked()
        for key, of in self.used.items():
            twin.used[key].update(of)
        for key, names in self.running.items():
            twin.running[key] = set(names)
        for queue, names in self.applications.items():
            twin.applications[queue] = set(names)
        return twin

    def add(self, limits: Limits, whose: Whose, path: Sequence[int], amounts: Steps) -> None:
        """``amounts`` more run in every queue of ``path``, leaf first."""
        for queue in path:
            self.applications[queue].add(whose.application)
            for kind, name in whose.trackers(limits, path):
                self.running[kind, name, queue].add(whose.application)
                used = self.used[kind, name, queue]
                for resource, amount in amounts.items():
                    used[resource] += amount


def whose(ask: Ask, running: Workload | None) -> Whose:
    """Whose an ask is. ``running``: what runs of its application."""
    carried = ask.yunikorn or wire.Ask()
    owner = carried if running is None else running.yunikorn or _NOBODY
    return Whose(ask.workload or carried.application or ask.id, owner.user, owner.groups)


def tracked(
    limits: Limits, paths: Sequence[Sequence[int]], of_queue: Mapping[str, int], running: Sequence[Workload]
) -> Tracked:
    """Of what runs. Raises QuantityError."""
    holdings = Tracked()
    for workload in running:
        tasks = [task for task in workload.tasks if task.state not in _GONE]
        if not tasks:
            continue
        amounts: dict[str, int] = defaultdict(int)
        for task in tasks:
            for resource, given in task.requests.items():
                amounts[resource] += parse_quantity(given, scale_of(resource)) * task.count
        owner = workload.yunikorn or _NOBODY
        holdings.add(limits, Whose(workload.id, owner.user, owner.groups), paths[of_queue[workload.queue]], amounts)
    return holdings


def naming_too_much(known: Iterable[str], state: State) -> Iterator[Problem]:
    """Who brings more names of resources than there may be, beside those of the configuration: nodes go before
    workloads, and who brings fewest before who brings many. So one who names hundreds is in nobody else's way."""
    names = set(known)
    if len(names) > MOST_RESOURCES:
        yield Problem(pointer="/state", detail=TOO_MANY)
        return
    nodes = [("nodes", i, {*node.capacity, *node.occupied}) for i, node in enumerate(state.nodes)]
    workloads = [
        ("workloads", i, set[str]().union(*(task.requests for task in workload.tasks)))
        for i, workload in enumerate(state.workloads)
    ]
    for of in (nodes, workloads):
        for kind, i, brought in sorted(of, key=lambda bringing: len(bringing[2] - names)):
            if len(names | brought) > MOST_RESOURCES:
                yield Problem(pointer=pointer("state", kind, i), detail=TOO_MANY)
            else:
                names |= brought
