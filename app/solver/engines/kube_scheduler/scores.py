"""Which of the nodes that fit is best: kube-scheduler's scores at their default weights.

Least allocated and balanced allocation (1 each, cpu and memory), taints (3), required affinity of pods there to the one
that asks (2). What the wire can't say (preferred terms, images) scores alike everywhere.
"""

from collections.abc import Sequence

from app.solver import kubernetes
from app.solver.engines.kube_scheduler.filters import Site, World, column
from app.solver.engines.kube_scheduler.pods import Pod

_BEST = 100
_UNSET = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a pod counts as that asks for none, in steps: a tenth of a core, 200 MiB."""
_TAINTS, _AFFINITY = 3, 2


def best(world: World, pod: Pod, sites: Sequence[Site]) -> tuple[Site, list[Site]]:
    """The node that the origin takes of those that fit, and all of the best score. Equal scores are no chance: the
    origin makes a heap of the nodes as it found them, and takes its root."""
    if len(sites) == 1:
        return sites[0], [sites[0]]
    totals = totals_of(world, pod, sites)
    heap = list(range(len(sites)))
    size = len(heap)
    for start in range(size // 2 - 1, -1, -1):
        at = start
        while (child := 2 * at + 1) < size:
            if child + 1 < size and totals[heap[child + 1]] > totals[heap[child]]:
                child += 1
            if totals[heap[child]] <= totals[heap[at]]:
                break
            heap[at], heap[child] = heap[child], heap[at]
            at = child
    chosen = heap[0]
    return sites[chosen], [site for site, total in zip(sites, totals, strict=True) if total == totals[chosen]]


def totals_of(world: World, pod: Pod, sites: Sequence[Site]) -> list[int]:
    """By node: the weighted sum."""
    resources = column(world, _resources, pod)
    return [
        sum(parts)
        for parts in zip(
            [resources[site.machine.at] for site in sites],
            _taints(pod, sites),
            _affinity(world, pod, sites),
            strict=True,
        )
    ]


def _resources(pod: Pod, site: Site) -> int:
    return _least(pod, site) + _balanced(pod, site)


def _least(pod: Pod, site: Site) -> int:
    total = count = 0
    for resource, unset in _UNSET.items():
        capacity = site.machine.capacity.get(resource, 0)
        if capacity == 0:
            continue
        asked = pod.requests.get(resource, unset) + site.machine.others.get(resource, 0)
        asked += sum(other.requests.get(resource, unset) for other in site.pods)
        total += 0 if asked > capacity else (capacity - asked) * _BEST // capacity
        count += 1
    return total // count if count else 0


def _balanced(pod: Pod, site: Site) -> int:
    asked = [pod.requests.get(resource, 0) for resource in _UNSET]
    if not any(asked):
        return 0
    capacity = [site.machine.capacity.get(resource, 0) for resource in _UNSET]
    used = [site.used.get(resource, 0) for resource in _UNSET]
    after = _evenness([a + b for a, b in zip(used, asked, strict=True)], capacity)
    return _BEST // 2 + (_BEST // 2 + after - _evenness(used, capacity)) // 2


def _evenness(used: list[int], capacity: list[int]) -> int:
    parts = [min(1.0, a / b) for a, b in zip(used, capacity, strict=True) if b]
    spread = abs((parts[0] - parts[1]) / 2) if len(parts) == 2 else 0.0
    return int((1 - spread) * _BEST)


def _taints(pod: Pod, sites: Sequence[Site]) -> list[int]:
    if not any(site.machine.node.taints for site in sites):
        return [_TAINTS * _BEST] * len(sites)
    tolerations = [one for one in pod.task.tolerations or () if one.effect in (None, "PreferNoSchedule")]
    counts = [
        sum(
            taint.effect == "PreferNoSchedule" and not any(kubernetes.tolerates(one, taint) for one in tolerations)
            for taint in site.machine.node.taints
        )
        for site in sites
    ]
    most = max(counts)
    return [_TAINTS * (_BEST - (_BEST * count // most if most else 0)) for count in counts]


def _affinity(world: World, pod: Pod, sites: Sequence[Site]) -> list[int]:
    found: dict[tuple[str, str], int] = {}
    for site in world.sites:
        labels = site.machine.labels
        for other in site.pods:
            for term in other.affinity:
                if term.key in labels and term.matches(pod.namespace, pod.labels):
                    pair = (term.key, labels[term.key])
                    found[pair] = found.get(pair, 0) + 1
    if not found:
        return [0] * len(sites)
    counts = [sum(found.get(pair, 0) for pair in site.machine.labels.items()) for site in sites]
    least, most = min(counts), max(counts)
    return [_AFFINITY * int(_BEST * ((count - least) / (most - least))) if most > least else 0 for count in counts]
