"""A State as KAI reads it, compiled against a configuration; with what decisions find out about it that no decision
changes, kept for the next one: sums over its pods, what follows from its nodes, victims in order.

What is kept is filled in as needed. Two threads may fill the same entry, with the same value.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, repeat
from operator import attrgetter

from app.solver.compiled import ROOTLESS, ResourceIndex, Tree
from app.solver.engines.kai.configuration import CompiledConfiguration
from app.solver.engines.kai.jobs import (
    BOUNDLESS,
    CPU,
    GONE,
    GPU,
    LEAST_GPU_MEMORY,
    MEMORY,
    NOWHERE,
    PENDING,
    QUEUE_RESOURCES,
    RELEASING,
    RUNNING,
    STUCK,
    Columns,
    Jobs,
    Portion,
    Readable,
    Row,
    Share,
    Vector,
    add_rows,
    add_workloads,
    are_twins,
    constraints,
    counted,
    input_problems,
    is_gpu,
    portion_of,
    row_of,
    task_key,
    widened,
    with_shares,
)
from app.solver.kubernetes import PODS, untolerated
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Ask, Node, State, Task, Workload
from app.solver.question import safe_point

Key = tuple[int, int, int, str, int]
"""Place of a job among jobs: priority (negated), rank by gang, creation, id, number."""


Kind = tuple[int, ...]
"""What tells nodes apart where a pod is placed: what is free and idle by resource, whether there are CPUs and GPUs at
all, and how large a GPU's memory is."""


_MOST_LIKES = 4096
"""So many ways of asking are told apart; then what is known of asks is forgotten."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the pods of a state come to. Lists by job, pod, or resource and node; shares by queue, branches included.

    ``active``: pods that run; ``used``: those being released too. ``columns``: what each pod takes from a node, shares
    of a GPU left out; ``idle`` and ``free`` likewise leave them out. ``homeless``: running pods without a node, as job
    and place in it.
    """

    active: list[int]
    used: list[int]
    columns: list[tuple[tuple[int, int], ...]]
    free: list[list[int]]
    idle: list[list[int]]
    allocated: list[Share]
    fixed: list[Share]
    homeless: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Layout:
    """What follows from the nodes of a state alone, whoever runs there. Lists by node.

    ``by_name``: nodes in order of name, ``place``: the place of each there; ``gpu_memory``: MiB of each of its GPUs,
    ``gpus``: how many it has; ``usable``: what all nodes that take pods offer, less what others hold there;
    ``largest``: by column the most that one has, whoever holds it; ``lacking``: what is not counted there, as there is
    none; ``only_asked``: beside CPU, memory and GPUs a pod is held to what it asks for alone; ``open``: whether a pod
    without any constraint may run there; ``allowed``: the same by constraint. ``pods``: the column that counts them.
    """

    by_name: list[int]
    place: list[int]
    everywhere: frozenset[int]
    gpu_memory: list[int]
    gpus: list[int]
    has_cpu: list[bool]
    has_gpu: list[bool]
    usable: Share
    largest: Vector
    lacking: list[frozenset[int]]
    only_asked: bool
    open: list[bool]
    allowed: dict[str, list[bool]]
    pods: int | None


class Victim:
    """A job, or what is left of one, that may be taken from.

    ``tasks``: its active pods, in the order in which they are taken. ``holds``: what those hold that run.
    ``others``: whether it has pods besides, which keep it in the order although nothing can be taken.
    """

    __slots__ = ("holds", "job", "key", "others", "tasks")

    def __init__(self, job: int, key: Key, tasks: list[int], holds: Share, *, others: bool) -> None:
        self.job = job
        self.key = key
        self.tasks = tasks
        self.holds = holds
        self.others = others


Pod = tuple[str, int, Vector, Portion | None, str, tuple[tuple[int, int], ...], Task]
"""A pod of an ask: its name, its state, what it asks for, in shares of GPUs too, its constraints, what it takes from a
node, shares left out, and the pod itself."""


@dataclass(slots=True)
class AskRead:
    """The pods of an ask as they go into the tables, and ``places``, theirs in task order. ``waits``: how many of them
    wait, and for how much together; ``like``: a number for what counts of it but priority and age, equal for asks that
    find the same room, None where its pods differ; ``one_by_one``: the same, however many, where each is placed by
    itself; ``row``: the ask as a job, where it is one. ``sound``: nothing is wrong."""

    ask: Ask
    pods: list[Pod]
    places: Sequence[int]
    waits: tuple[int, Share]
    like: int | None = None
    one_by_one: int | None = None
    row: Row | None = None
    sound: bool = False


@dataclass(slots=True)
class Resident:
    """``alike``: see there. ``asks``: those last decided, by identity; ``likes``: what they are alike in; ``in_line``:
    by identity in the order in which they waited, as a first guess; ``divided``: shares of queues by resource and by
    what they ask for. By job of the state: its pods in order, and the job as a victim before anything happened to
    it."""

    baseline: Baseline | None = None
    layout: Layout | None = None
    asks: dict[int, "AskRead"] = field(default_factory=dict)
    likes: dict[Hashable, Hashable] = field(default_factory=dict)
    divided: dict[Hashable, tuple[list[float], list[float]]] = field(default_factory=dict)
    in_line: list[int] = field(default_factory=list)
    alike: dict[Kind, list[int]] | None = None
    order: dict[int, list[int]] = field(default_factory=dict)
    victims: dict[int, Victim] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompiledState:
    """``capacity[n]`` is what KAI may use of node n: capacity less what others occupy, below 0 where these hold more
    than there is; BOUNDLESS pods where others count pods and n does not. ``workloads``: as the state has them; jobs go
    by their ids instead, so that no place in a document, which deltas move, breaks a tie that KAI leaves to a map.
    ``named_by_nodes``: how many resources there would be without the requests of workloads. ``usage``: what queues have
    used over time of (cpu, memory, gpu), by index, as parts of the cluster; None: nobody anything."""

    configuration: CompiledConfiguration
    resources: ResourceIndex
    nodes: list[Node]
    node_name: list[str]
    node_index: dict[str, int]
    capacity: list[Vector]
    jobs: Jobs
    workloads: list[Workload]
    named_by_nodes: int
    usage: tuple[tuple[float, ...], ...] | None = None
    resident: Resident = field(default_factory=Resident)


def compile_state(configuration: CompiledConfiguration, state: State) -> CompiledState:
    """Raises KeyError, QuantityError or InvalidInput; what is wrong with the document itself the caller diagnoses."""
    resources = ResourceIndex(QUEUE_RESOURCES)
    for node in state.nodes:
        for name in node.capacity:
            if not is_gpu(name):
                resources.add(name)
    named_by_nodes, pods = len(resources), resources.index.get(PODS)
    node_index = {node.name: n for n, node in enumerate(state.nodes)}
    columns = Columns(resources, rules := configuration.policy.release)
    jobs = Jobs()
    add_workloads(jobs, sorted(state.workloads, key=attrgetter("id")), configuration.tree.index, node_index, columns,
                  rules, [gpu_memory(node) for node in state.nodes])  # fmt: skip
    capacity: list[Vector] = []
    for node in state.nodes:
        safe_point()
        others = node.occupied if pods is not None else {r: a for r, a in node.occupied.items() if r != PODS}
        have, taken = columns(node.capacity), columns(others)
        left = (a - b if a or not b or not rules.leaves_out_absent else 0 for a, b in zip(have, taken, strict=False))
        capacity.append(tuple(left))
        if pods is not None and PODS not in node.capacity:
            capacity[-1] = (*capacity[-1][:pods], BOUNDLESS, *capacity[-1][pods + 1 :])
    if problems := list(input_problems(state)):
        raise InvalidInput(problems)
    width = len(resources)
    return CompiledState(
        configuration=configuration, resources=resources, nodes=state.nodes,
        node_name=[node.name for node in state.nodes], node_index=node_index,
        capacity=[widened(v, width) for v in capacity], jobs=jobs,
        workloads=state.workloads, named_by_nodes=named_by_nodes, usage=usage_over_time(configuration, state),
    )  # fmt: skip


def usage_over_time(configuration: CompiledConfiguration, state: State) -> tuple[tuple[float, ...], ...] | None:
    """``CompiledState.usage``."""
    used = {name: of.kai.usage for name, of in state.queues.items() if of.kai is not None and of.kai.usage}
    if not used:
        return None
    every = (used.get(name, {}) for name in configuration.tree.names)
    return tuple((of.get("cpu", 0.0), of.get("memory", 0.0), of.get("gpu", 0.0)) for of in every)


def gpu_memory(node: Node) -> int:
    """MiB of each GPU of a node, cut to whole hundreds."""
    memory = node.gpu_memory or 0
    return max(LEAST_GPU_MEMORY, memory - memory % LEAST_GPU_MEMORY)


def with_asks(state: CompiledState, asks: Sequence[Ask]) -> tuple[Jobs, ResourceIndex]:
    """The jobs of a state and of the asks, in that order; an ask of a workload adds its pending tasks to that job.

    Requests of unknown resources widen the columns, so vectors are padded to the width of the returned index.
    """
    jobs = state.jobs.copy()
    resources = ResourceIndex(state.resources.names)
    rules, queues, resident = state.configuration.policy.release, state.configuration.tree.index, state.resident
    columns = Columns(resources, rules)
    if len(resident.likes) > _MOST_LIKES:
        resident.asks, resident.likes = {}, {}
    known, likes = resident.asks, resident.likes
    reads = [known.get(id(ask)) or _read(ask, columns, likes) for ask in asks]
    tasks, running, first = jobs.tasks, len(jobs.tasks), len(jobs.task_name)
    counts = [len(read.pods) for read in reads]
    starts = accumulate(counts, initial=first)
    pods = [
        [start] if count == 1 else list(range(start, start + count))
        for start, count in zip(starts, counts, strict=False)
    ]
    jobs.of_ask, own = _jobs_of(asks, jobs.by_id, running)
    for a in own:
        if reads[a].row is None:
            reads[a].row = row_of(asks[a], queues[asks[a].queue], rules)
    add_rows(jobs, [reads[a].row or () for a in own])
    tasks += [pods[a] for a in own]
    jobs.ask += own
    places = [
        of if len(of) == 1 else [of[place] for place in read.places] for of, read in zip(pods, reads, strict=True)
    ]
    jobs.in_order = dict(enumerate([places[a] for a in own], running))
    jobs.asked = jobs.in_order.copy()
    jobs.like = {j: like for j, a in enumerate(own, running) if (like := reads[a].like) is not None}
    if len(own) < len(asks):
        for a in sorted(set(range(len(asks))).difference(own)):
            j, read = jobs.of_ask[a], reads[a]
            like = read.like if j >= running else read.one_by_one if _alone(jobs, j, read.ask, queues) else None
            jobs.grow(a, pods[a], places[a], like)
    jobs.task_job += chain.from_iterable(map(repeat, jobs.of_ask, counts))
    jobs.task_node += [NOWHERE] * (len(jobs.task_job) - first)
    jobs.waiting = [(j, *read.waits) for j, read in zip(jobs.of_ask, reads, strict=True)]
    if done := [pod for read in reads for pod in read.pods]:
        names, states, requests, portions, limits, takes, wires = zip(*done, strict=True)
        jobs.task_name += names
        jobs.task_state += states
        jobs.task_request += requests
        jobs.task_portion += portions
        jobs.ask_constraints += limits
        jobs.ask_columns += takes
        jobs.task_wire += wires
    width = len(resources)
    if width == len(state.resources):
        state.resident.asks = {id(read.ask): read for read in reads}
    if width > len(QUEUE_RESOURCES):
        jobs.task_request = [v if len(v) == width else widened(v, width) for v in jobs.task_request]
    return jobs, resources


def _jobs_of(asks: Sequence[Ask], by_id: dict[str, int], running: int) -> tuple[list[int], list[int]]:
    """The job of each ask, and the asks that are jobs of their own, which come into ``by_id``."""
    of_ask, own = list[int](), list[int]()
    if all(ask.workload is None for ask in asks):
        of_ask, own = list(range(running, running + len(asks))), list(range(len(asks)))
        by_id |= {ask.id: j for ask, j in zip(asks, of_ask, strict=True) if ask.id not in by_id}
        return of_ask, own
    for a, ask in enumerate(asks):
        j = by_id.get(ask.workload) if ask.workload is not None else None
        if j is None:
            j = running + len(own)
            own.append(a)
            by_id.setdefault(ask.id, j)
        of_ask.append(j)
    return of_ask, own


def _read(ask: Ask, columns: Columns, likes: dict[Hashable, Hashable]) -> AskRead:
    tasks, pods = ask.tasks, list[Pod]()
    for task, before in zip(tasks, (None, *tasks), strict=False):
        if before is None or not are_twins(task, before):
            request = columns(task.requests, pod=True)
            portion = portion_of(task, request[GPU])
            status = GONE if task.state == "gated" else PENDING
            request = with_shares(request, portion, None)
            (takes,) = columns_of([request], [portion], {})
            pods.append((task.name, status, request, portion, constraints(task, ask), takes, task))
        else:
            pods.append((task.name, *pods[-1][1:-1], task))
    waits = [request for _, status, request, *_ in pods if status == PENDING]
    places = range(len(tasks)) if len(tasks) < 2 else sorted(range(len(tasks)), key=lambda i: task_key(tasks[i]))
    read = AskRead(ask, pods, places, (len(waits), summed(waits)))
    if ask.sub_groups is None and pods and len({pod[1:-1] for pod in pods}) == 1:
        each = ask.queue, ask.preemptible is not False, None, pods[0][1:-1]
        as_a_job = (*each[:2], (max(1, ask.min_available or 1), len(tasks)), pods[0][1:-1])
        read.one_by_one = id(likes.setdefault(each, each))
        read.like = id(likes.setdefault(as_a_job, as_a_job))
    return read


def _alone(jobs: Jobs, j: int, ask: Ask, queues: dict[str, int]) -> bool:
    """Whether the ask grows a job as if it were one of its own, of which each pod is placed by itself."""
    mine = queues.get(ask.queue), ask.preemptible is not False
    return jobs.gang[j] is None and jobs.min_available[j] <= 1 and mine == (jobs.queue[j], jobs.preemptible[j])


def is_plain(ask: Ask, readable: Readable) -> bool:
    """Whether there is so little to an ask that nothing can be wrong with it but its requests, which are not."""
    return (
        ask.sub_groups is None
        and ask.preemption_delay is None
        and all(
            task.count == 1 and not (task.gpu_memory or task.tolerations or task.node_affinity)
            and readable(task.requests) for task in ask.tasks
        )
    )  # fmt: skip


_HOLDING = (RUNNING, RELEASING, STUCK)


def baseline(state: CompiledState) -> Baseline:
    """Worked out once per state."""
    known = state.resident.baseline
    if known is None:
        known = state.resident.baseline = _baseline(state)
    return known


def layout(state: CompiledState) -> Layout:
    """Worked out once for all versions of a state between which no node changes."""
    known = state.resident.layout
    if known is None:
        known = state.resident.layout = _layout(state)
    return known


def _layout(state: CompiledState) -> Layout:
    names = state.node_name
    by_name = sorted(range(len(names)), key=names.__getitem__)
    place = [0] * len(names)
    for i, n in enumerate(by_name):
        place[n] = i
    columns_of = Columns(ResourceIndex(state.resources.names), rules := state.configuration.policy.release)
    whole = [columns_of(node.capacity) for node in state.nodes]
    usable = [
        [a - b for a, b in zip(have[: GPU + 1], columns_of(node.occupied), strict=False)]
        for have, node in zip(whole, state.nodes, strict=True) if node.schedulable
    ]  # fmt: skip
    return Layout(
        by_name=by_name, place=place, everywhere=frozenset(range(len(names))),
        gpu_memory=[gpu_memory(node) for node in state.nodes], gpus=[max(0, v[GPU]) // 1000 for v in state.capacity],
        has_cpu=[bool(v[CPU]) for v in whole], has_gpu=[bool(v[GPU]) for v in whole],
        usable=(sum(v[CPU] for v in usable), sum(v[MEMORY] for v in usable), sum(v[GPU] for v in usable)),
        largest=tuple(map(max, zip(*whole, strict=True))),
        lacking=[
            frozenset(r for r, a in enumerate(left) if a <= 0 and not any(have[r : r + 1]) and rules.leaves_out_absent)
            for have, left in zip(whole, state.capacity, strict=True)
        ],
        only_asked=not rules.overfull_for_all,
        open=[node.schedulable and untolerated(node.taints, ()) is None for node in state.nodes], allowed={},
        pods=state.resources.index.get(PODS),
    )  # fmt: skip


def summed(requests: Sequence[Vector]) -> Share:
    """Their sum, queue resources only."""
    return sum(v[CPU] for v in requests), sum(v[MEMORY] for v in requests), sum(v[GPU] for v in requests)


def columns_of(
    requests: Sequence[Vector], portions: Sequence[Portion | None],
    seen: dict[tuple[Vector, bool], tuple[tuple[int, int], ...]],
) -> Iterable[tuple[tuple[int, int], ...]]:  # fmt: skip
    """The columns that each request takes from a node, shares of GPUs left out; ``seen`` keeps those worked out."""
    for request, portion in zip(requests, portions, strict=True):
        key = request, portion is not None
        known = seen.get(key)
        if known is None:
            known = seen[key] = tuple(
                (r, amount) for r, amount in enumerate(request) if amount > 0 and not (r == GPU and key[1])
            )
        yield known


def _baseline(state: CompiledState) -> Baseline:
    jobs, tree = state.jobs, state.configuration.tree
    taken = list(columns_of(jobs.task_request, jobs.task_portion, {}))
    free = [[v[r] for v in state.capacity] for r in range(len(state.resources))]
    sums = sums_over(tree, layout(state).lacking, free, free)
    counted = [sums.count(jobs, j, taken, 1) for j in range(len(jobs.id))]
    return Baseline(
        active=[active for active, _ in counted], used=[used for _, used in counted], columns=taken,
        free=sums.free, idle=sums.idle, allocated=upwards(tree, sums.allocated), fixed=upwards(tree, sums.fixed),
        homeless=homeless(jobs),
    )  # fmt: skip


def sums_over(
    tree: Tree, lacking: Sequence[frozenset[int]], free: Sequence[list[int]], idle: Sequence[list[int]]
) -> "Sums":  # fmt: skip
    """Sums that begin with these amounts of nodes, which stay as they are, and with nothing held by queues."""
    allocated, fixed = ([[0, 0, 0] for _ in tree.names] for _ in range(2))
    return Sums(lacking, [column.copy() for column in free], [column.copy() for column in idle], allocated, fixed)


def homeless(jobs: Jobs) -> list[tuple[int, int]]:
    """Pods that hold a place nobody names, as job and place in it."""
    if NOWHERE not in jobs.task_node:
        return []
    return [
        (j, jobs.tasks[j].index(t))
        for t, (j, s, n) in enumerate(zip(jobs.task_job, jobs.task_state, jobs.task_node, strict=True))
        if n == NOWHERE and s in _HOLDING
    ]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over pods, to add to and take from: ``free`` and ``idle`` by resource and node, ``allocated`` and ``fixed``
    by queue, each queue's own pods only. ``lacking``: see ``Layout``."""

    lacking: Sequence[frozenset[int]]
    free: list[list[int]]
    idle: list[list[int]]
    allocated: list[list[int]]
    fixed: list[list[int]]

    def count(self, jobs: Jobs, j: int, taken: list[tuple[tuple[int, int], ...]], sign: int) -> tuple[int, int]:
        """Add the pods of job j (``sign`` 1) or take them out (-1). ``taken``: what each takes from its node. How many
        of them run, and how many hold a place."""
        active = used = cpu = memory = gpu = 0
        for t in jobs.tasks[j]:
            status, n = jobs.task_state[t], jobs.task_node[t]
            if status not in _HOLDING:
                continue
            used += 1
            if status == RUNNING:
                active += 1
                request = jobs.task_request[t]
                cpu, memory, gpu = cpu + request[0], memory + request[1], gpu + request[2]
            if n == NOWHERE:
                continue
            for r, amount in counted(taken[t], self.lacking[n]):
                self.idle[r][n] -= sign * amount
                if status != RELEASING:
                    self.free[r][n] -= sign * amount
        held = sign * cpu, sign * memory, sign * gpu
        _add(self.allocated[jobs.queue[j]], held)
        if not jobs.preemptible[j]:
            _add(self.fixed[jobs.queue[j]], held)
        return active, used


def upwards(tree: Tree, own: list[list[int]]) -> list[Share]:
    """Sums by queue, those of every queue below included. Changes ``own``."""
    for queue in reversed(tree.top_down):
        if tree.parent[queue] != ROOTLESS:
            _add(own[tree.parent[queue]], own[queue])
    return [(v[0], v[1], v[2]) for v in own]


def _add(to: list[int], amounts: Sequence[int]) -> None:
    to[0] += amounts[0]
    to[1] += amounts[1]
    to[2] += amounts[2]
