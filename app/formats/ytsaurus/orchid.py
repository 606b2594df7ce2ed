"""The scheduler's orchid, ``yt get //sys/scheduler/orchid/scheduler``: nodes, operations and pools as they are now;
and asks of operations before they start, by the specifications of ``start_op``.

Read are ``nodes``, ``operations`` with their running jobs, and one tree of ``pool_trees`` (older versions:
``scheduling_info_per_pool_tree``, with everything below ``fair_share_info``). The orchid is no stable interface: what
a version does not tell is a finding. It does not say what each job asks for; that is the operation's usage divided by
its jobs. Of the settings it tells those of the tree, and some of each pool's: the tree of Cypress beside it has all.

Source: ``TExecNode::BuildAttributes``, ``BuildFullOperationAttributes`` and ``DoBuildElementYson`` of the scheduler.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from msgspec.structs import replace

from app.base.documents import Path
from app.formats.manifests import System
from app.formats.pods import Steps, quantities, steps
from app.formats.reader import Findings, Imported, Reader, effect_of
from app.formats.work.read import Cluster, Planned, near
from app.formats.ytsaurus.configuration import (
    block_of,
    export,
    is_opaque,
    is_settings,
    is_tree,
    read_configuration,
    settings_of,
)
from app.formats.ytsaurus.documents import FIELDS
from app.solver.engines.ytsaurus import FACTS
from app.solver.model import ytsaurus
from app.solver.model.base import Quantity
from app.solver.model.configuration import UNWEIGHTED, Configuration, Queue, Quota, Settings
from app.solver.model.problems import pointer
from app.solver.model.state import Ask, Node, QueueState, State, Task, Workload

_TREES = ("pool_trees", "scheduling_info_per_pool_tree")
_ROOT = "<Root>"
_RESOURCES = ("user_slots", "cpu", "gpu", "memory", "network")
_RUNNING = ("running_jobs", "running_allocations")
_MEMORY_OF_USERS = {"user_memory": "memory"}
_STATES = {"non_starving": "non_starving", "starving": "starving", "aggressively_starving": "aggressively_starving"}
_NAMED = (*_TREES, "nodes", "operations", "pools", *_RUNNING)
_PARTS = (
    *_NAMED, "fair_share_info", "config", "resource_limits", "resource_usage", "resource_demand",
    "strong_guarantee_resources", "specified_resource_limits",
)  # fmt: skip
"""Mappings that are read, and those whose keys are names."""
_AGGRESSIVE = "effective_aggressive_starvation_enabled"
_OF_A_POOL = {
    "fair_share_starvation_tolerance": "fair_share_starvation_tolerance",
    "fair_share_starvation_timeout": "fair_share_starvation_timeout",
    "forbid_immediate_operations": "forbid_immediate_operations", _AGGRESSIVE: "enable_aggressive_starvation",
    "priority_strong_guarantee_adjustment_enabled": "enable_priority_strong_guarantee_adjustment",
    "priority_strong_guarantee_adjustment_donorship_enabled": "enable_priority_strong_guarantee_adjustment_donorship",
}  # fmt: skip
_OF_A_VOLUME = {
    "specified_resource_flow": "resource_flow",
    "specified_burst_guarantee_resources": "burst_guarantee_resources",
}
_OF_AN_OPERATION = (
    "is_gang", "fair_share_starvation_tolerance", "fair_share_starvation_timeout", "allocation_preemption_timeout",
    "allocation_graceful_preemption_timeout",
)  # fmt: skip
_NOTHING: tuple[Any, ...] = (None, False, {}, "")
_ORCHID = "//sys/scheduler/orchid/scheduler"
_MOST_JOBS = 100_000


@dataclass(frozen=True, slots=True)
class _Shares:
    """What the tree tells of an operation. ``options``: by their names in ``ytsaurus.Workload``."""

    pool: str | None
    options: dict[str, Any]
    usage: Steps
    demand: Steps
    weight: float | None
    starvation: Any


def is_orchid(document: Any) -> bool:
    """Whether this is a scheduler's orchid, not a pool tree."""
    return (
        isinstance(document, dict)
        and ("operations" in document or "nodes" in document)
        and any(key in document for key in (*_TREES, "nodes", "operations"))
        and sum(key in document for key in (*_TREES, "nodes", "operations")) > 1
    )


def read_trees(documents: list[tuple[Path, Any]], findings: Findings, known: Configuration | None = None) -> Imported:
    """Pool trees are the configuration; of an orchid what runs and waits, and where there is no tree beside it the
    configuration too. ``known`` takes the place of either."""
    orchids = [(path, document) for path, document in documents if is_orchid(document)]
    trees = [(path, document) for path, document in documents if not is_orchid(document)]
    own = read_configuration(trees, findings) if trees or not orchids else None
    if known is not None and own is not None and own.queues:
        detail = f"{len(own.queues)} pools of the source: the configuration that is given takes their place"
        findings.add("replaced", "info", (), detail)
    if not orchids:
        return Imported(known or own or Configuration(engine="ytsaurus"), State(), [], findings.all())
    for path, _ in orchids[1:]:
        findings.add("not-carried", "warning", path, "a second orchid is another cluster's: import it by itself")
    return _read_orchid(*orchids[0], findings, known or own)


def _read_orchid(path: Path, document: Any, findings: Findings, known: Configuration | None) -> Imported:
    """Configuration, state and asks of one pool tree: the default one, else that with the most operations."""
    root = Reader(document, path, findings)
    _report_opaque(document, path, findings)
    trees = next((root.child(key) for key in _TREES if key in root), Reader(None, path, findings))
    chosen = _tree_of(root, trees)
    for name in trees.value:
        if name != chosen:
            trees.warn(name, f"pool tree {name!r} is a cluster of its own: left out")
    tree = trees.child(chosen)
    info = _info(tree)
    pools = info.child("pools")
    nodes = _nodes(root.child("nodes"), tree)
    shares = info.child("operations")
    running: list[Workload] = []
    asks: list[Ask] = []
    operations = root.child("operations")
    for name in operations.value:
        _operation(
            name, operations.child(name), _shares(shares.child(name)), {node.name for node in nodes}, running, asks
        )
    state = State(nodes=nodes, workloads=running, queues=_carried(pools))
    if running or asks:
        detail = "what each job asks for is not told: an operation's usage by its jobs, else its demand by its slots"
        findings.add("assumed-size", "warning", operations.path, detail)
    parts = ((*path, "nodes"), operations.path, shares.path)
    of_state = frozenset(pointer(*part) for part in parts)
    return Imported(_configuration(pools, tree, known), state, asks, findings.all(), of_state=of_state)


def _report_opaque(document: Any, place: Path, findings: Findings) -> None:
    """``yt get`` prints ``#`` for a part that it does not descend into: that is not nothing. Every such part that would
    be read is an error with the command that shows it."""
    pending: list[tuple[Any, Path, bool]] = [(document, (), False)]
    while pending:
        value, path, named = pending.pop()
        if is_opaque(value) and path:
            detail = f"opaque (#): `yt get {_ORCHID}/{'/'.join(map(str, path))}` shows it"
            findings.add("opaque", "error", (*place, *path), detail)
        if not isinstance(value, dict):
            continue
        for key, inner in cast(dict[str, Any], value).items():
            if named or key in _PARTS:
                pending.append((inner, (*path, key), key in _NAMED and not named))


def _configuration(pools: Reader, tree: Reader, known: Configuration | None) -> Configuration:
    """``known`` with the pools that only the orchid has; without it what the orchid tells: settings of the tree, pools
    with guarantees, limits, weights and modes."""
    queues = _pools(pools)
    if known is None:
        settings = Settings(ytsaurus=settings_of(tree.child("config")))
        return Configuration(engine="ytsaurus", settings=settings, queues=queues)
    names = {queue.name for queue in known.queues}
    more = [queue for queue in queues if queue.name not in names]
    for queue in more:
        detail = f"pool {queue.name!r} is not configured: added as it is in the orchid"
        pools.findings.add("dynamic-queue", "info", (*pools.path, queue.name), detail)
    return replace(known, engine="ytsaurus", queues=[*known.queues, *more])


def _nodes(nodes: Reader, tree: Reader) -> list[Node]:
    """The nodes that the tree lists; all, where it lists none."""
    listed = set(tree.strings("node_addresses")) if "node_addresses" in tree else None
    names = [name for name in nodes.value if listed is None or name in listed]
    return [_node(name, nodes.child(name)) for name in names]


def _carried(pools: Reader) -> dict[str, QueueState]:
    """What pools carry over from update to update, of those that starve or have saved a volume."""
    carried: dict[str, QueueState] = {}
    for name in pools.value:
        pool = pools.child(name)
        status: Any = pool.choice("starvation_status", _STATES)
        volume = _volume(pool.child("accumulated_resource_volume"))
        state = ytsaurus.PoolState(
            starvation=None if status == "non_starving" else status, accumulated_volume=volume or None
        )
        if name != _ROOT and state != ytsaurus.PoolState():
            carried[name] = QueueState(ytsaurus=state)
    return carried


def _volume(reader: Reader) -> dict[str, float]:
    """Resource-seconds by resource."""
    renamed = {_MEMORY_OF_USERS.get(name, name): name for name in reader.value}
    amounts = {name: reader.number(renamed[name]) for name in _RESOURCES if name in renamed}
    return {name: float(volume) for name, volume in amounts.items() if volume}


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
    for old, name in _MEMORY_OF_USERS.items():
        if old in value:
            value[name] = value.pop(old)
    known = {name: amount for name, amount in value.items() if name in _RESOURCES and amount}
    return steps(Reader({key: known}, reader.path, reader.findings), key)


def _pools(pools: Reader) -> list[Queue]:
    """Parents are named; a guarantee or limit of nothing is none."""
    queues: list[Queue] = []
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
        if pool.value.get("fifo_sort_parameters") not in (None, ["weight", "start_time"]):
            pool.not_carried("fifo_sort_parameters", "a fifo pool sorts by weight and start time")
        queues.append(
            Queue(
                name=name, parent=None if parent in (None, _ROOT) else parent, quota=quota or None,
                weight=weight or UNWEIGHTED, ytsaurus=_block(pool, pools.child(parent or "")),
            )
        )  # fmt: skip
    return queues


def _block(pool: Reader, above: Reader) -> ytsaurus.Queue | None:
    """What the pool is and overrides; None where that is nothing. ``above``: its parent."""
    mode = pool.choice("mode", {"fair_share": "fair_share", "fifo": "fifo"})
    said = {ours: pool.value[name] for name, ours in _OF_A_POOL.items() if pool.value.get(name) not in _NOTHING}
    if pool.value.get(_AGGRESSIVE) is not True and above.value.get(_AGGRESSIVE) is True:
        said["enable_aggressive_starvation"] = False
    if tolerance := quantities(_amounts(pool, "specified_resource_limits_overcommit_tolerance")):
        said["resource_limits_overcommit_tolerance"] = tolerance
    kind = pool.choice("integral_guarantee_type", {"none": "none", "burst": "burst", "relaxed": "relaxed"})
    if kind not in (None, "none"):
        of = {ours: quantities(_amounts(pool, name)) for name, ours in _OF_A_VOLUME.items()}
        said["integral_guarantees"] = {"guarantee_type": kind, **{name: value for name, value in of.items() if value}}
    if mode == "fifo":
        said["mode"] = mode
    block = block_of(Reader(said, pool.path, pool.findings), ytsaurus.Queue, tuple(said))
    return None if block in (None, ytsaurus.Queue()) else block


def _node(name: str, node: Reader) -> Node:
    tags = node.strings("tags") if "tags" in node else []
    return Node(
        name=name, capacity=quantities(_amounts(node, "resource_limits")),
        labels=dict.fromkeys(tags, ""),
        schedulable=node.text("state") in (None, "online"),
    )  # fmt: skip


def _shares(status: Reader) -> _Shares:
    said = {name: status.value[name] for name in _OF_AN_OPERATION if status.value.get(name) not in _NOTHING}
    options = block_of(Reader(said, status.path, status.findings), ytsaurus.Workload, tuple(said))
    return _Shares(
        options={} if options is None else {name: getattr(options, name) for name in said},
        pool=status.text("pool"), usage=_amounts(status, "resource_usage"), demand=_amounts(status, "resource_demand"),
        weight=status.number("weight"), starvation=status.choice("starvation_status", _STATES),
    )  # fmt: skip


def _operation(
    name: str, operation: Reader, shares: _Shares, nodes: set[str], running: list[Workload], asks: list[Ask]
) -> None:
    pool = shares.pool or operation.text("pool")
    if not pool:
        operation.findings.add(
            "no-queue", "warning", operation.path, f"operation {name!r} is in no pool of the tree: left out"
        )
        return
    jobs = next((operation.child(key) for key in _RUNNING if key in operation), None)
    names = [] if jobs is None else sorted(jobs.value)[:_MOST_JOBS]
    each = _each(shares.usage, len(names)) if names else {}
    if jobs is None and any(shares.usage.values()):
        detail = f"operation {name!r} runs jobs that the source does not list: they hold nothing here"
        operation.findings.add("not-carried", "warning", operation.path, detail)
    tasks = [_job(job, jobs.child(job), each, nodes) for job in names] if jobs is not None else []
    options = _options(operation) | shares.options
    if shares.starvation is not None:
        options["starvation"] = shares.starvation
    carried = ytsaurus.Workload(**options) if options else None
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


def _options(operation: Reader) -> dict[str, Any]:
    """What its specification and its state say, by names of ``ytsaurus.Workload``."""
    spec = operation.child("spec")
    _warn(spec)
    block = block_of(spec, ytsaurus.Workload, _OPTIONS)
    options: dict[str, Any] = {} if block is None else {name: getattr(block, name) for name in _OPTIONS if name in spec}
    if operation.boolean("suspended"):
        options["suspended"] = True
    if operation.text("state") == "pending":
        operation.warn("state", "it waits until fewer operations run in its pool: decided as if it ran")
    return options


def _each(usage: Steps, jobs: int) -> Steps:
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


_SECTIONS = ("mapper", "reducer", "reduce_combiner", "joiner")
_MEMORY = 512 << 20
_SLOTS = "user_slots"
_PER_TREE = "scheduling_options_per_pool_tree"
_CARRIED = ("starvation", "status", "below_fair_share_since")
_OPTIONS = tuple(name for name in ytsaurus.Workload.__struct_fields__ if name not in _CARRIED)
"""What the scheduler reads of an operation, under its own names."""


def plan_operations(documents: list[tuple[Path, Any]], cluster: Cluster) -> list[Planned]:
    """The asks of YTsaurus' operations before they start, one for each specification. What can't be planned is a
    finding and left out.

    The specification is that of ``start_op``, by itself or as ``spec`` beside ``operation_type``. A user job has one
    slot and the limits of its section: ``tasks`` of a vanilla operation, ``mapper``, ``reducer`` and others elsewhere.
    What a limit leaves out has YTsaurus' default: one cpu, 512 MiB, no GPU.
    """
    planned: list[Planned] = []
    for path, document in documents:
        root = Reader(document, path, cluster.findings)
        spec = root.child("spec") if "spec" in root else root
        title = spec.text("alias") or spec.text("title") or root.text("id") or "operation"
        ask = _ask(spec, title, cluster)
        if ask is not None:
            planned.append(Planned(f"operation {title}", [ask]))
    return planned


def _ask(said: Reader, title: str, cluster: Cluster) -> Ask | None:
    spec = _in_one_tree(said, cluster)
    pool = _pool(spec, cluster)
    tasks = list(_tasks(spec, cluster))
    if pool is None:
        return None
    if not any(task.count for task in tasks):
        detail = f"operation {title!r} starts no user jobs: {near(('tasks', *_SECTIONS))} are looked for"
        cluster.findings.add("no-pods", "error", spec.path, detail)
        return None
    options = block_of(spec, ytsaurus.Workload, _OPTIONS)
    limits = spec.quantities("resource_limits")
    return Ask(
        id=cluster.free(title), queue=pool, created_at=cluster.created_at, tasks=tasks, weight=spec.number("weight"),
        limit=limits or None, ytsaurus=options,
    )  # fmt: skip


def _in_one_tree(spec: Reader, cluster: Cluster) -> Reader:
    """What holds for the operation in the pool tree that has its pool, else in the first; what is said of a tree goes
    before the rest. What decisions would depend on and don't is a finding."""
    _warn(spec)
    trees = spec.child(_PER_TREE)
    every = [trees.child(name) for name in trees.value]
    if not every:
        return spec
    own = spec.value.get("pool")
    chosen = next((tree for tree in every if tree.value.get("pool", own) in cluster.queues), every[0])
    if len(every) > 1:
        spec.warn(_PER_TREE, f"planned in one pool tree, {chosen.path[-1]!r}, of {len(every)}")
    _warn(chosen, f"{_PER_TREE}.{chosen.path[-1]}.")
    return Reader({**spec.value, **chosen.value}, spec.path, spec.findings)


def _warn(reader: Reader, below: str = "") -> None:
    for key, value in reader.value.items():
        effect = effect_of(FIELDS, "Operation", key)
        alone = key == "pool_trees" and isinstance(value, list) and len(cast(list[Any], value)) < 2
        if effect in ("error", "warning") and value not in (None, False, [], {}, "") and not alone:
            reader.warn(key, f"{below}{key} is not decided here", effect)


def _pool(spec: Reader, cluster: Cluster) -> str | None:
    """The pool of the request, or of the operation."""
    pool = cluster.queue or spec.text("pool")
    if pool in cluster.queues:
        return pool
    why = "no pool is named" if pool is None else f"there is no pool {pool!r}"
    cluster.findings.add("no-queue", "error", (*spec.path, "pool"), f"{why}; there are {near(cluster.queues)}")
    return None


def _tasks(spec: Reader, cluster: Cluster) -> Iterator[Task]:
    tasks = spec.child("tasks")
    for name in sorted(tasks.value):
        task = tasks.child(name)
        yield _job_task(name, task, task.count("job_count"), cluster)
    for name in _SECTIONS:
        if name in spec:
            yield _job_task(name, spec.child(name), spec.count("job_count"), cluster)


def _job_task(name: str, job: Reader, count: int | None, cluster: Cluster) -> Task:
    if count is None:
        detail = "how many jobs there are depends on the input: say job_count; planned with one"
        job.findings.add("assumed-count", "warning", job.path, detail)
        count = 1
    amounts: dict[str, Quantity | None] = {
        _SLOTS: 1,
        "cpu": job.quantity("cpu_limit", "cpu") if "cpu_limit" in job else 1,
        "memory": job.quantity("memory_limit", "memory") if "memory_limit" in job else _MEMORY,
        "gpu": job.quantity("gpu_limit", "gpu"),
    }
    requests = {r: value for r, value in amounts.items() if value and (r != _SLOTS or r in cluster.counted)}
    return Task(name=name, count=count, requests=requests)


def _owns(documents: list[tuple[Path, Any]]) -> bool:
    """Whether these are orchids and pool trees as YTsaurus prints them, or writes them without attributes."""
    return bool(documents) and all(is_orchid(document) or is_tree(document) for _, document in documents)


def _read_own(documents: list[tuple[Path, Any]], findings: Findings, known: Configuration | None) -> Imported:
    for path, document in documents:
        if not isinstance(document, dict):
            findings.add("wrong-type", "error", path, "a mapping is expected: a pool tree")
    return read_trees([(path, document) for path, document in documents if isinstance(document, dict)], findings, known)


SYSTEM: Final = System(
    facts=FACTS, fields=FIELDS, export=export, yson=True, owns=_owns,
    is_own=lambda document: is_orchid(document) or is_settings(document),
    read_own=_read_own, plan=lambda documents, cluster, _: plan_operations(documents, cluster),
    keys=("pools", "config", "nodes_filter", "$attributes", "$value", "operations", "pool_trees",
          "scheduling_info_per_pool_tree", "template_pool_tree_config_map"),
)  # fmt: skip
