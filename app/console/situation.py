"""What a decision found and changes: what became of each candidate, and queues and nodes before it and after.

Before and after are plain addition of what the request and the answer say. Amounts are integers in steps of the
resource (thousandths for cpu and its like, whole units for all else), so that sums are exact; ``units`` turns them
back. Nothing here decides anything: engines may count elsewhere what they count.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app.console.api import Json
from app.solver.engine import facts_of
from app.solver.engines import FIRST
from app.solver.kubernetes import PODS
from app.solver.model import base
from app.solver.model.configuration import DEFAULT_FLAVOR
from app.solver.model.state import OVER

PAGE = 200
"""Rows of a table on one page."""


class Word(NamedTuple):
    """How a verdict is called and marked; the mark is a shape, so that nothing depends on its colour."""

    title: str
    mark: str
    says: str


VERDICTS: dict[str, Word] = {
    "victim": Word("Stops", "■", "the answer evicts it"),
    "moved": Word("Moves", "▶", "evicted, and placed again elsewhere"),
    "put-back": Word("Spared", "↩", "was taken in the search, and given back: the ask fits with it"),
    "not-needed": Word("Not needed", "○", "could have gone; the search ended without it"),
    "protected": Word("Protected", "▲", "a rule forbids it"),
    "out-of-reach": Word("Out of reach", "·", "was never looked at for this ask"),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The sentences of an engine's rules, by id."""

    by_id: dict[str, Json]

    def sentence(self, rule: str) -> str:
        """What the rule says; its id where the catalogue has none."""
        return str(self.by_id.get(rule, {}).get("sentence", rule))

    def source(self, rule: str) -> str:
        """Where the real system says so."""
        return str(self.by_id.get(rule, {}).get("source", ""))


def rules_of(catalogue: Json) -> Rules:
    """From the answer of ``GET /v1/rules``."""
    return Rules({rule["rule"]: rule for rule in catalogue["rules"]})


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates that met the same fate by the same rule."""

    verdict: str
    rule: str
    count: int
    examples: list[str]


def groups(explanation: Json) -> list[Group]:
    """Most telling verdicts first, large groups before small ones."""
    if (given := explanation.get("groups")) is not None:
        gathered = [Group(group["verdict"], group["rule"], group["count"], group["examples"]) for group in given]
    else:
        gathered = list(_collapsed(explanation.get("candidates") or ()))
    order = list(VERDICTS)
    return sorted(gathered, key=lambda group: (order.index(group.verdict), -group.count, group.rule))


def _collapsed(candidates: Iterable[Json]) -> Iterable[Group]:
    counted = Counter[tuple[str, str]]()
    examples: dict[tuple[str, str], list[str]] = {}
    for candidate in candidates:
        key = (candidate["verdict"], candidate["rule"])
        counted[key] += 1
        if counted[key] <= 3:
            examples.setdefault(key, []).append(named(candidate))
    return (Group(verdict, rule, count, examples[verdict, rule]) for (verdict, rule), count in counted.items())


def named(work: Json) -> str:
    """A workload, or one of its tasks."""
    return f"{work['workload']}/{work['task']}" if work.get("task") else str(work["workload"])


class Page(NamedTuple):
    """Some rows of many. ``first``: the number of the first one, from 1; ``number`` and ``last`` count pages from 1."""

    rows: list[Any]
    first: int
    total: int
    number: int
    last: int


def paged(rows: list[Any], number: int, size: int = PAGE) -> Page:
    """Page ``number`` of ``rows``, the nearest there is."""
    last = max(1, -(-len(rows) // size))
    number = min(max(1, number), last)
    start = (number - 1) * size
    return Page(rows[start : start + size], start + 1, len(rows), number, last)


def ordered(rows: list[Any], sort: str, keys: Mapping[str, Callable[[Any], Any]]) -> list[Any]:
    """``rows`` by one of ``keys``, with ``-`` before it the other way round; what has none goes last. As they are where
    there is no such key."""
    key = keys.get(sort.removeprefix("-"))
    if key is None:
        return rows
    known = [(value, i) for i, row in enumerate(rows) if (value := key(row)) is not None]
    known.sort(key=lambda pair: pair[0], reverse=sort.startswith("-"))
    has = {i for _, i in known}
    return [rows[i] for _, i in known] + [row for i, row in enumerate(rows) if i not in has]


def chosen(explanation: Json, verdict: str | None, rule: str | None, words: str | None) -> list[tuple[int, Json]]:
    """Candidates with their place in the order in which they were looked at, from 1."""
    fitting = list[tuple[int, Json]]()
    for place, candidate in enumerate(explanation.get("candidates") or (), 1):
        fits = verdict in (None, candidate["verdict"]) and rule in (None, candidate["rule"])
        if fits and (
            not words or words.lower() in f"{named(candidate)} {candidate.get('queue')} {candidate.get('node')}".lower()
        ):
            fitting.append((place, candidate))
    return fitting


def sentence(decision: Json) -> str:
    """The answer in one sentence."""
    ask, victims = decision["ask"], decision["victims"]
    explanation: Json = decision.get("explanation") or {}
    headline = str(explanation.get("headline") or "")
    says = headline and headline != f"{ask}: {decision['outcome']}"
    if says and decision["outcome"] != "preempt":  # who stops is named below, where they are few
        return headline
    place = f" on {decision['node']}" if decision.get("node") else ""
    if decision["outcome"] == "admit":
        return f"{ask} can start now{place}; nothing has to stop."
    if decision["outcome"] == "preempt":
        return f"{ask} can start{place} once {_stopping(victims)}."
    why = next((c["message"] for c in decision["conditions"] if c.get("message")), "")
    what = "can never start under this configuration" if decision["outcome"] == "infeasible" else "has to wait"
    return f"{ask} {what}{f': {why}' if why else '.'}"


def _stopping(victims: list[Json]) -> str:
    """Who stops, by name where they are few."""
    tasks = sum(1 for victim in victims if victim.get("task"))
    workloads = list(dict.fromkeys(str(victim["workload"]) for victim in victims))
    many = f"{len(workloads)} workloads"
    if tasks:
        whose = workloads[0] if len(workloads) == 1 else many
        return f"1 task of {whose} has stopped" if tasks == 1 else f"{tasks} tasks of {whose} have stopped"
    if len(workloads) <= 3:
        return f"{' and '.join(workloads)} {'has' if len(workloads) == 1 else 'have'} stopped"
    return f"{many} have stopped"


class Cell(NamedTuple):
    """What amounts of a queue are counted by: a resource, of a flavor where the engine has those, which are never added
    up."""

    resource: str
    flavor: str = ""

    def __str__(self) -> str:
        """As people read it."""
        return f"{self.resource} in {self.flavor}" if self.flavor else self.resource


Amounts = dict[str, int]
Quotas = dict[Cell, int | None]
Use = defaultdict[Cell, int]


@dataclass(slots=True)
class Queue:
    """One queue of a tree. ``guaranteed``, ``limit``, ``borrowing`` and ``lending``: None for unlimited; absent: not
    stated.

    ``before`` and ``after`` hold what it and everything below it use.
    """

    name: str
    parent: str | None
    depth: int = 0
    children: list[str] = field(default_factory=list[str])
    guaranteed: Quotas = field(default_factory=Quotas)
    limit: Quotas = field(default_factory=Quotas)
    borrowing: Quotas = field(default_factory=Quotas)
    lending: Quotas = field(default_factory=Quotas)
    before: Use = field(default_factory=lambda: defaultdict(int))
    after: Use = field(default_factory=lambda: defaultdict(int))
    running: int = 0
    stopped: int = 0
    waiting: int = 0

    @property
    def changed(self) -> bool:
        """Whether the decision changes what it uses."""
        return any(self.after[cell] != self.before[cell] for cell in {*self.before, *self.after})

    def stated(self) -> list[Cell]:
        """What its quotas are of, in the document's order."""
        return list(dict.fromkeys((*self.guaranteed, *self.limit, *self.borrowing, *self.lending)))

    def lines(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those of ``cells`` that it states or uses; the first where it does neither."""
        known = {*self.stated(), *self.before, *self.after}
        every = list(cells)
        return [cell for cell in every if cell in known] or every[:1]


class Tree(dict[str, Queue]):
    """Queues by name, parents before children, siblings in the document's order. ``flavored``: whether their amounts
    are counted by flavor."""

    flavored: bool = False


@dataclass(slots=True)
class Node:
    """One node. Amounts in steps, by resource; ``pods``: how many of each workload's task, where it takes no more than
    so many."""

    name: str
    capacity: Amounts
    before: defaultdict[str, int]
    after: defaultdict[str, int]
    pods: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    @property
    def changed(self) -> bool:
        """Whether the decision changes what runs on it."""
        return dict(self.before) != dict(self.after)


def steps(value: Any, resource: str) -> int:
    """A quantity in steps; what can't be read counts as nothing, the API has refused it where it matters."""
    try:
        return base.parse_quantity(value, base.scale_of(resource))
    except (base.QuantityError, TypeError):
        return 0


def units(amount: int | None, resource: str) -> int | float | None:
    """``amount`` steps in whole units."""
    if amount is None:
        return None
    scale = base.scale_of(resource)
    return amount // scale if amount % scale == 0 else amount / scale


def queues_of(configuration: Json, engine: str | None = None) -> Tree:
    """The queues of a configuration as ``engine`` reads them, else the one that it names: by flavor where that has
    flavors and quotas name some; else those of a resource add up."""
    by_name: dict[str, Queue] = {}
    documents: list[Json] = configuration.get("queues", [])
    names = {
        f.get("name")
        for document in documents
        for g in document.get("resource_groups", ())
        for f in g.get("flavors", ())
    }
    tree = Tree()
    borrows = facts_of(engine or configuration.get("engine") or FIRST).borrows
    tree.flavored = borrows and bool(names - {DEFAULT_FLAVOR, None})
    for said in documents:
        queue = Queue(said["name"], said.get("parent"))
        for cell, quota in _quotas(said, flavored=tree.flavored):
            _add_quota(queue.guaranteed, cell, quota.get("guaranteed"))
            _add_quota(queue.limit, cell, quota.get("limit"))
            _add_quota(queue.borrowing, cell, quota.get("borrowing_limit"))
            _add_quota(queue.lending, cell, quota.get("lending_limit"))
        by_name[queue.name] = queue
    roots = [queue for queue in by_name.values() if queue.parent not in by_name]
    for queue in by_name.values():
        if (parent := by_name.get(queue.parent or "")) is not None:
            parent.children.append(queue.name)
    waiting = [(queue, 0) for queue in reversed(roots)]
    while waiting:
        queue, depth = waiting.pop()
        if queue.name in tree:
            continue
        queue.depth = depth
        tree[queue.name] = queue
        waiting += [(by_name[name], depth + 1) for name in reversed(queue.children)]
    return tree


def _quotas(queue: Json, *, flavored: bool) -> Iterable[tuple[Cell, Json]]:
    for resource, quota in queue.get("quota", {}).items():
        yield Cell(resource, DEFAULT_FLAVOR if flavored else ""), quota
    for group in queue.get("resource_groups", ()):
        for flavor in group.get("flavors", ()):
            for resource, quota in flavor.get("quota", {}).items():
                yield Cell(resource, flavor.get("name", "") if flavored else ""), quota


def _add_quota(into: Quotas, cell: Cell, value: Any) -> None:
    """Several of one cell add up; one that is unlimited makes the sum so."""
    if value is None:
        return
    known = into.get(cell, 0)
    into[cell] = None if known is None or value == base.UNLIMITED else known + steps(value, cell.resource)


def asks_of(request: Json) -> list[Json]:
    """The asks that a request writes out; none where it names those that wait beside a snapshot."""
    asks: Any = request.get("asks", [])
    return [] if isinstance(asks, str) else asks


def requested(tasks: Iterable[Json]) -> Amounts:
    """What tasks ask for together, by resource: so it is on nodes, which have no flavors. One that is being stopped
    holds it until it is gone."""
    total: defaultdict[str, int] = defaultdict(int)
    for task in tasks:
        if task.get("state") not in OVER:
            for resource, value in task.get("requests", {}).items():
                total[resource] += steps(value, resource) * int(task.get("count", 1))
    return dict(total)


def held(tasks: Iterable[Json], *, flavored: bool) -> dict[Cell, int]:
    """The same as a queue counts it. What has no flavor yet stands by its resource alone."""
    total: Use = defaultdict(int)
    _hold(total, tasks, flavored=flavored)
    return dict(total)


def _hold(total: Use, tasks: Iterable[Json], *, flavored: bool) -> None:
    for task in tasks:
        if task.get("state") in OVER:
            continue
        flavors: Json = (task.get("flavors") or {}) if flavored else {}
        count = int(task.get("count", 1))
        for resource, value in task.get("requests", {}).items():
            total[Cell(resource, flavors.get(resource, ""))] += steps(value, resource) * count


def freed(victim: Json, running: Mapping[str, Json], *, flavored: bool) -> dict[Cell, int]:
    """What a victim gives back; of which flavors, by what it holds in ``running``, the workloads by id."""
    tasks = running.get(victim["workload"], {}).get("tasks", ()) if flavored else ()
    holds = held((t for t in tasks if victim.get("task") in (None, t["name"])), flavored=True)
    cells: Use = defaultdict(int)
    for resource, value in victim.get("freed", {}).items():
        left = steps(value, resource)
        for cell, amount in holds.items():
            if cell.resource == resource and left:
                cells[cell] += min(left, amount)
                left -= min(left, amount)
        if left:
            cells[Cell(resource)] += left
    return dict(cells)


def charge(
    queues: Mapping[str, Queue], name: str | None, amounts: Mapping[Cell, int], *, after: bool, before: bool = False
) -> None:
    """Add ``amounts`` to a queue and everything above it."""
    seen: set[str] = set()
    while name is not None and name in queues and name not in seen:
        seen.add(name)
        for cell, amount in amounts.items():
            if before:
                queues[name].before[cell] += amount
            if after:
                queues[name].after[cell] += amount
        name = queues[name].parent


def above(queues: Mapping[str, Queue], name: str | None) -> list[Queue]:
    """The way from a queue up to the root."""
    way: list[Queue] = []
    while name is not None and name in queues and queues[name] not in way:
        way.append(queues[name])
        name = queues[name].parent
    return way


def load(queues: Tree, state: Json) -> None:
    """Charge what runs, before the decision and after it alike; count it where it runs."""
    direct: dict[str, Use] = {}
    for workload in state.get("workloads", ()):
        name = workload.get("queue")
        if name in queues and not workload.get("evicted"):
            queues[name].running += 1
            _hold(direct.setdefault(name, defaultdict(int)), workload.get("tasks", ()), flavored=queues.flavored)
    for name, amounts in direct.items():
        charge(queues, name, amounts, before=True, after=True)


def decide(queues: Tree, decision: Json, ask: Json | None, running: Mapping[str, Json]) -> None:
    """Charge what stops for an ask, and the ask itself where it starts. ``running``: workloads by id."""
    for victim in decision.get("victims", ()):
        given = {cell: -amount for cell, amount in freed(victim, running, flavored=queues.flavored).items()}
        charge(queues, victim.get("queue"), given, after=True)
        if victim.get("queue") in queues:
            queues[victim["queue"]].stopped += 1
    if ask is None or ask.get("queue") not in queues:
        return
    if decision.get("outcome") in ("admit", "preempt"):
        charge(queues, ask["queue"], held(admitted(ask, decision), flavored=queues.flavored), after=True)
    else:
        queues[ask["queue"]].waiting += 1


def admitted(ask: Json, decision: Json) -> list[Json]:
    """The tasks of an ask that start, as many of each as do, with the flavors that they get."""
    counts: dict[str, int] = decision.get("counts") or {}
    starts: list[str] | None = decision.get("starts")
    flavors: dict[str, Json] = decision.get("assignment") or {}
    return [
        {**task, "count": counts.get(task["name"], task.get("count", 1)),
         "flavors": flavors.get(task["name"]) or task.get("flavors")}
        for task in ask.get("tasks", ())
        if starts is None or task["name"] in starts
    ]  # fmt: skip


def nodes_of(state: Json) -> dict[str, Node]:
    """The nodes of a state with what runs on each."""
    nodes: dict[str, Node] = {}
    for said in state.get("nodes", ()):
        capacity = {r: steps(v, r) for r, v in said.get("capacity", {}).items()}
        taken = {r: steps(v, r) for r, v in said.get("occupied", {}).items()}
        nodes[said["name"]] = Node(said["name"], capacity, defaultdict(int, taken), defaultdict(int, taken))
    for workload in state.get("workloads", ()) if nodes else ():
        for task in workload.get("tasks", ()):
            if (node := nodes.get(task.get("node", ""))) is not None:
                amounts = _with_pods(node, task)
                node.pods[workload.get("id", ""), task.get("name", "")] += amounts.get(PODS, 0)
                for resource, amount in amounts.items():
                    node.before[resource] += amount
                    node.after[resource] += amount
    return nodes


def _with_pods(node: Node, task: Json) -> Amounts:
    """What it asks for, and how many pods it is where a node takes no more than so many."""
    pods = {PODS: int(task.get("count", 1))} if PODS in node.capacity and task.get("state") not in OVER else {}
    return pods | requested([task])


def carry_out(nodes: dict[str, Node], plan: Json, decisions: list[Json], asks: dict[str, Json]) -> None:
    """Take evicted work off its nodes and put what is placed on them."""
    for decision in decisions:
        for victim in decision.get("victims", ()):
            if (node := nodes.get(victim.get("node") or "")) is not None:
                gone = {resource: steps(value, resource) for resource, value in victim.get("freed", {}).items()}
                workload, task = victim.get("workload"), victim.get("task")
                if PODS in node.capacity:
                    pods = (count for of, count in node.pods.items() if of[0] == workload and task in (None, of[1]))
                    gone.setdefault(PODS, sum(pods))
                for resource, amount in gone.items():
                    node.after[resource] -= amount
    for placed in plan.get("placements", ()):
        node, ask = nodes.get(placed["node"]), asks.get(placed.get("ask") or "")
        if node is not None and ask is not None:
            task = next((t for t in ask.get("tasks", ()) if t["name"] == placed["task"]), None)
            for resource, amount in _with_pods(node, task).items() if task is not None else ():
                node.after[resource] += amount
