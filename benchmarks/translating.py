"""``python -m benchmarks.translating [ENGINE]``: what a follower does for each batch of changes, without a cluster and
without a service: 5,000 nodes and 50,000 pods in 500 groups, or 50,000 Workloads in 500 ClusterQueues, of which some
start or end between batches.
"""

import argparse
import gc
import random
import resource
import time
from typing import Any

import msgspec

from app.following.mirror import Mirror
from app.following.objects import FOLLOWED, Event, Listed, trimmed
from app.following.translator import Translator, delta
from tests.cluster import kueue, pods

NODES, PODS, GROUPS = 5_000, 50_000, 500
_BATCHES = 15
Item = dict[str, Any]


def main() -> None:
    """Print what it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", nargs="?", choices=["kueue", "kai", "yunikorn"], default="yunikorn")
    parser.add_argument("--changes", type=int, default=200, help="between two batches: at 1,000 a second, in 0.2 s")
    options = parser.parse_args()
    kinds = {kind.name: kind for kind in FOLLOWED[options.engine]}
    mirror, translator = Mirror(FOLLOWED[options.engine]), Translator(options.engine)
    for name, items in _begin(options.engine).items():
        read = [trimmed(name, msgspec.json.decode(msgspec.json.encode(item))) for item in items]
        mirror.listed(kinds[name], "v1", Listed(read, "1"), "start")
    begun = time.perf_counter()
    last = translator.translate(_view(mirror))
    gc.freeze()  # as a follower does
    print(f"everything: {time.perf_counter() - begun:.2f} s, {_memory():.0f} MB")
    choose, spent, heard, sent = random.Random(1), list[float](), list[float](), list[int]()
    for _ in range(_BATCHES):
        events = [_event(options.engine, choose) for _ in range(options.changes)]
        begun = time.perf_counter()
        for event in events:
            mirror.apply(kinds["Workload" if options.engine == "kueue" else "Pod"], event)
        heard.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        found = translator.translate(_view(mirror))
        body = msgspec.json.encode(delta(last, found, 1, {}))
        spent.append(time.perf_counter() - begun)
        sent.append(len(body))
        last = found
    middle = sorted(spent)[_BATCHES // 2]
    print(
        f"{options.changes} changes: heard in {1000 * min(heard):.0f} ms, translated and compared in "
        f"{1000 * middle:.0f} ms (at most {1000 * max(spent):.0f}), "
        f"{sum(sent) / _BATCHES / 1e3:.0f} KB to send, {_memory():.0f} MB"
    )


def _view(mirror: Mirror) -> Any:
    view = mirror.view()
    assert view is not None
    return view


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _event(engine: str, choose: random.Random) -> Event:
    """A pod begins to run on some node, or it is done; a Workload is admitted, or waits again."""
    number = choose.randrange(PODS)
    if engine == "kueue":
        return Event(False, trimmed("Workload", _workload(number, choose.random() < 0.5)), "2")
    made = _pod(engine, number, choose.randrange(NODES))
    made["status"]["phase"] = choose.choice(["Running", "Succeeded"])
    return Event(False, trimmed("Pod", msgspec.json.decode(msgspec.json.encode(made))), "2")


def _workload(number: int, running: bool) -> Item:
    queue = f"queue-{number % GROUPS}"
    return kueue.workload(f"pod-{number}", queue, 1, admitted=queue if running else None)


def _pod(engine: str, number: int, node: int) -> Item:
    group, on = number % GROUPS, f"node-{node}"
    if engine == "kai":
        return pods.kai_pod(f"pod-{number}", f"group-{group}", 1, on)
    return pods.yunikorn_pod(f"pod-{number}", f"group-{group}", "root.prod", 1, on)


def _begin(engine: str) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {kind.name: [] for kind in FOLLOWED[engine]}  # pyright: ignore[reportArgumentType]
    if engine == "kueue":
        found["ResourceFlavor"] = [kueue.flavor()]
        found["ClusterQueue"] = [kueue.cluster_queue(f"queue-{i}", 1000, f"pool-{i % 50}") for i in range(GROUPS)]
        found["LocalQueue"] = [kueue.local_queue(f"queue-{i}", f"queue-{i}") for i in range(GROUPS)]
        found["Workload"] = [_workload(i, True) for i in range(PODS)]
        return found
    found["Node"] = [pods.node(f"node-{i}", 64) for i in range(NODES)]
    found["Pod"] = [_pod(engine, i, i % NODES) for i in range(PODS)]
    if engine == "kai":
        found["Queue"] = [pods.kai_queue("parent", 4000), pods.kai_queue("leaf", 2000, "parent")]
        found["PodGroup"] = [pods.pod_group(f"group-{i}", "leaf") for i in range(GROUPS)]
    else:
        found["ConfigMap"] = [pods.yunikorn_queues(8)]
    return found


if __name__ == "__main__":
    main()
