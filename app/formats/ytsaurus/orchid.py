"""The scheduler's orchid, ``yt get //sys/scheduler/orchid/scheduler``: nodes, operations and pools as they are now.

Read are ``nodes``, ``operations`` with their running jobs, and one tree of ``pool_trees`` (older versions:
``scheduling_info_per_pool_tree``, with everything below ``fair_share_info``). The orchid is no stable interface: what
a version does not tell is a finding. It does not say what each job asks for; that is the operation's usage divided by
its jobs.
"""

from dataclasses import dataclass
from typing import Any

from app.formats.documents.imported import Imported
from app.formats.documents.reader import Findings, Reader
from app.formats.documents.source import Path
from app.formats.kubernetes.amounts import Steps, quantities, steps
from app.solver.model import ytsaurus
from app.solver.model.configuration import UNWEIGHTED, Configuration, Queue, Quota
from app.solver.model.state import Ask, Node, State, Task, Workload

_TREES = ("pool_trees", "scheduling_info_per_pool_tree")
_ROOT = "<Root>"
_RESOURCES = ("user_slots", "cpu", "gpu", "memory", "network")
_RUNNING = ("running_jobs", "running_allocations")
_STATES = {"non_starving": "non_starving", "starving": "starving", "aggressively_starving": "aggressively_starving"}
_MOST_JOBS = 100_000


@dataclass(frozen=True, slots=True)
class _Shares:
    """What the tree tells of an operation."""

    pool: str | None
    usage: Steps
    demand: Steps
    weight: float | None
    starvation: Any


def is_orchid(document: Any) -> bool:
    """Whether this is a scheduler's orchid, not a pool tree."""
    return (
        isinstance(document, dict) and "operations" in document and any(key in document for key in (*_TREES, "nodes"))
    )


def read_orchid(at: Path, document: Any, findings: Findings) -> Imported:
    """Configuration, state and asks of one pool tree: the default one, else that with the most operations."""
    root = Reader(document, at, findings)
    trees = next((root.child(key) for key in _TREES if key in root), Reader(None, at, findings))
    chosen = _tree_of(root, trees)
    for name in trees.value:
        if name != chosen:
            trees.warn(name, f"pool tree {name!r} is a cluster of its own: left out")
    tree = _info(trees.child(chosen))
    queues = _pools(tree.child("pools"))
    nodes = root.child("nodes")
    told = tree.child("operations")
    running: list[Workload] = []
    asks: list[Ask] = []
    operations = root.child("operations")
    for name in operations.value:
        _operation(name, operations.child(name), _shares(told.child(name)), set(nodes.value), running, asks)
    state = State(nodes=[_node(name, nodes.child(name)) for name in nodes.value], workloads=running)
    return Imported(Configuration(engine="ytsaurus", queues=queues), state, asks, findings.all())


def _tree_of(root: Reader, trees: Reader) -> str:
    """The default tree, else the one with the most operations."""
    default = root.text("default_pool_tree") or root.text("default_fair_share_tree")
    if default in trees.value:
        return default or ""
    sizes = {name: len(_info(trees.child(name)).child("operations").value) for name in sorted(trees.value)}
    return max(sizes, key=sizes.__getitem__, default="")


def _info(tree: Reader) -> Reader:
    return tree.child("fair_share_info") if "fair_share_info" in tree else tree


def _amounts(reader: Reader, key: str) -> Steps:
    """Resources; memory that users can have is memory."""
    inner = reader.child(key)
    value = dict(inner.value)
    if "user_memory" in value:
        value["memory"] = value.pop("user_memory")
    kept = {name: amount for name, amount in value.items() if name in _RESOURCES and amount}
    return steps(Reader({key: kept}, reader.at, reader.findings), key)


def _pools(pools: Reader) -> list[Queue]:
    """Parents are named; a guarantee or limit of nothing is none."""
    found: list[Queue] = []
    for name in pools.value:
        pool = pools.child(name)
        if name == _ROOT:
            continue
        parent = pool.text("parent")
        guaranteed = _amounts(pool, "strong_guarantee_resources")
        limit = _amounts(pool, "specified_resource_limits")
        shown_guaranteed, shown_limit = quantities(guaranteed), quantities(limit)
        quota = {
            r: Quota(guaranteed=shown_guaranteed.get(r), limit=shown_limit.get(r)) for r in {**guaranteed, **limit}
        }
        weight = pool.number("weight")
        mode = pool.choice("mode", {"fair_share": "fair_share", "fifo": "fifo"})
        found.append(
            Queue(
                name=name, parent=None if parent in (None, _ROOT) else parent, quota=quota or None,
                weight=weight or UNWEIGHTED, ytsaurus=ytsaurus.Queue(mode="fifo") if mode == "fifo"
                else None,
            )
        )  # fmt: skip
    return found


def _node(name: str, node: Reader) -> Node:
    tags = node.strings("tags") if "tags" in node else []
    return Node(
        name=name, capacity=quantities(_amounts(node, "resource_limits")),
        labels=dict.fromkeys(tags, ""),
        schedulable=node.text("state") in (None, "online"),
    )  # fmt: skip


def _shares(told: Reader) -> _Shares:
    return _Shares(
        pool=told.text("pool"), usage=_amounts(told, "resource_usage"), demand=_amounts(told, "resource_demand"),
        weight=told.number("weight"), starvation=told.choice("starvation_status", _STATES),
    )  # fmt: skip


def _operation(
    name: str, operation: Reader, shares: _Shares, nodes: set[str], running: list[Workload], asks: list[Ask]
) -> None:
    pool = shares.pool or operation.text("pool")
    if not pool:
        operation.findings.add(
            "no-queue", "warning", operation.at, f"operation {name!r} is in no pool of the tree: left out"
        )
        return
    jobs = next((operation.child(key) for key in _RUNNING if key in operation), None)
    names = [] if jobs is None else sorted(jobs.value)[:_MOST_JOBS]
    each = _each(shares.usage, len(names)) if names else {}
    if jobs is None and any(shares.usage.values()):
        detail = f"operation {name!r} runs jobs that the source does not list: they hold nothing here"
        operation.findings.add("not-carried", "warning", operation.at, detail)
    tasks = [_job(job, jobs.child(job), each, nodes) for job in names] if jobs is not None else []
    carried = None if shares.starvation is None else ytsaurus.Workload(starvation=shares.starvation)
    if tasks:
        running.append(
            Workload(
                id=name, queue=pool, created_at=operation.time("start_time"), weight=shares.weight or None,
                ytsaurus=carried, tasks=tasks,
            )
        )  # fmt: skip
    more = {r: amount - shares.usage.get(r, 0) for r, amount in shares.demand.items()}
    count, wanted = _wanted(more, each)
    if count:
        asks.append(
            Ask(
                id=name, queue=pool, workload=name if tasks else None, created_at=operation.time("start_time"),
                weight=None if tasks else shares.weight or None, ytsaurus=None if tasks else carried,
                tasks=[Task(name="job", count=count, requests=quantities(wanted))],
            )
        )  # fmt: skip


def _each(usage: Steps, jobs: int) -> Steps:
    """Rounded up."""
    return {name: -(-amount // jobs) for name, amount in usage.items()}


def _wanted(more: Steps, each: Steps) -> tuple[int, Steps]:
    """How many jobs more, and what each asks for: like those that run, else one slot each, else all of it at once."""
    left = {name: amount for name, amount in more.items() if amount > 0}
    if not left:
        return 0, {}
    if each:
        counts = [left[name] // amount for name, amount in each.items() if amount and name in left]
        return min(counts, default=0), each
    count = max(1, left.get("user_slots", 1))
    return count, _each(left, count)


def _job(name: str, job: Reader, each: Steps, nodes: set[str]) -> Task:
    node = job.text("address") or job.text("node_address")
    if node is not None and node not in nodes:
        job.warn("address", f"node {node!r} is not in the source: the job is on no node", rule="no-node")
        node = None
    return Task(name=name, requests=quantities(each), node=node, started_at=job.time("start_time"))
