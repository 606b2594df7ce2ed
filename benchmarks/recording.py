"""``python -m benchmarks.recording [ENGINE] [--workloads 100000]``: a week of a cluster through the recorder: how large
the file is, how long writing it takes, and what making a simulation of it takes.

Workloads of Jobs of one to eight pods, each with all that an API server says of it until it is gone, with statuses of
queues that controllers write meanwhile and reports of nodes. Names, UIDs, images, commands and times are drawn.
"""

import argparse
import heapq
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from app.following.objects import WITNESSES, followed
from app.following.replaying import Recorder, lines
from app.following.simulating import Recorded
from app.formats.objects import Kind
from app.solver.model.configuration import EngineName
from tests.cluster import kueue
from tests.cluster.recorded.made import node

Item = dict[str, Any]
BEGIN, WEEK = datetime(2026, 11, 16, tzinfo=UTC), 7 * 86_400.0
QUEUES, NODES = 50, 200
_SCHEDULERS = {"kai": "kai-scheduler", "yunikorn": "yunikorn"}
_WORDS = ("train", "eval", "sweep", "etl", "index", "render", "tune", "serve", "batch", "score")


class Week:
    """``now``: seconds since it began."""

    def __init__(self, engine: EngineName, workloads: int, path: Path) -> None:
        self.engine: EngineName = engine
        self.now = 0.0
        self.changes = 0
        self._workloads = workloads
        self._draw = random.Random(1)
        self._kinds: dict[str, Kind] = {kind.name: kind for kind in (*followed(engine), *WITNESSES[engine])}
        self._recorder = Recorder(path, engine, "week", clock=lambda: BEGIN + timedelta(seconds=self.now))

    def run(self) -> None:
        """Write all of it."""
        for name, kind in self._kinds.items():
            items = [item for item in self._begin() if item["kind"] == name]
            for item in items:
                self._recorder.item(kind, item)
            self._recorder.listed(kind, kind.api_version(kind.versions[0]), len(items), "1", "start")
        arrivals = sorted(self._draw.uniform(0, WEEK) for _ in range(self._workloads))
        waiting: list[tuple[float, int, Iterator[tuple[float, list[tuple[str, Item]]]]]] = []
        reports = 0.0

        for number, at in enumerate(arrivals):
            heapq.heappush(waiting, (at, number, self._life(number)))
        while waiting:
            at, number, life = heapq.heappop(waiting)
            while reports < at:  # every node says every five minutes that it is there
                reports += 300.0
                self.now = reports
                for item in islice(self._begin(), NODES):
                    self._say("MODIFIED", item)
            self.now = at
            step = next(life, None)
            if step is not None:
                seconds, said = step
                for word, item in said:
                    self._say(word, item)
                heapq.heappush(waiting, (at + seconds, number, life))
        self._recorder.close()

    def _say(self, word: str, item: Item) -> None:
        self.changes += 1
        item["metadata"]["resourceVersion"] = str(1000 + self.changes)
        self._recorder.event(self._kinds[item["kind"]], {"type": word, "object": item})

    def _begin(self) -> Iterator[Item]:
        """Nodes first."""
        for i in range(NODES):
            made = node({"name": f"node-{i}"}, {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8"})
            made["status"]["conditions"][0]["lastHeartbeatTime"] = self._stamp()
            made["status"]["images"] = [{"names": [f"registry/image:{n}"], "sizeBytes": n} for n in range(10)]
            yield made
        for i in range(QUEUES):
            yield from self._queue(i)

    def _queue(self, i: int) -> Iterator[Item]:
        counted = {"pendingWorkloads": self._draw.randrange(100), "admittedWorkloads": self._draw.randrange(100)}
        match self.engine:
            case "kueue":
                yield {**kueue.cluster_queue(f"cq-{i}", 64, "all"), "status": counted}
                yield {**kueue.local_queue(f"lq-{i}", f"cq-{i}"), "status": counted}
            case "kai":
                quota = {"quota": 64_000, "limit": -1, "overQuotaWeight": 1}
                resources = {"cpu": quota, "memory": quota, "gpu": {**quota, "quota": 8}}
                yield {
                    "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": f"cq-{i}"},
                    "spec": {"resources": resources}, "status": {"allocated": {"cpu": str(self._draw.randrange(64))}},
                }  # fmt: skip
            case _:
                pass

    def _life(self, number: int) -> Iterator[tuple[float, list[tuple[str, Item]]]]:
        """What is said of a workload, and the seconds until more is."""
        draw = self._draw
        name, queue = f"{draw.choice(_WORDS)}-{draw.getrandbits(40):010x}", draw.randrange(QUEUES)
        pods, wait, runs = draw.randint(1, 8), draw.expovariate(1 / 300), draw.expovariate(1 / 3600)
        spec = self._pod_spec()
        if self.engine == "kueue":
            yield from self._workload(name, queue, pods, spec, wait, runs)
        else:
            yield from self._of_pods(name, queue, pods, spec, wait, runs)

    def _workload(
        self, name: str, queue: int, pods: int, spec: Item, wait: float, runs: float
    ) -> Iterator[tuple[float, list[tuple[str, Item]]]]:
        template = {"name": "main", "count": pods, "template": {"metadata": {"labels": {"job": name}}, "spec": spec}}
        metadata = {**self._metadata(f"job-{name}"), "finalizers": ["kueue.x-k8s.io/resource-in-use"]}
        made: Item = {
            "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": metadata,
            "spec": {"queueName": f"lq-{queue}", "priority": 0, "active": True, "podSets": [template]}, "status": {},
        }  # fmt: skip

        def told(kind: str, status: str = "True") -> list[tuple[str, Item]]:
            conditions = [one for one in made["status"].get("conditions", []) if one["type"] != kind]
            conditions.append(
                {"type": kind, "status": status, "reason": kind, "lastTransitionTime": self._stamp(),
                 "observedGeneration": 1, "message": f"{kind} in ClusterQueue cq-{queue}"}
            )  # fmt: skip
            made["status"]["conditions"] = conditions
            return [("MODIFIED", made), *(("MODIFIED", item) for item in self._queue(queue))]

        yield 1.0, [("ADDED", made)]
        yield wait, told("QuotaReserved", "False")
        usage = {"cpu": str(pods), "memory": f"{pods}Gi"}
        assigned = {"name": "main", "count": pods, "flavors": dict.fromkeys(usage, "default"), "resourceUsage": usage}
        made["status"]["admission"] = {"clusterQueue": f"cq-{queue}", "podSetAssignments": [assigned]}
        yield 0.2, told("QuotaReserved")
        yield 5.0, told("Admitted")
        yield runs, told("PodsReady")
        yield 3600.0, told("Finished")
        yield 0.0, [("DELETED", made)]

    def _of_pods(
        self, name: str, queue: int, pods: int, spec: Item, wait: float, runs: float
    ) -> Iterator[tuple[float, list[tuple[str, Item]]]]:
        named = [f"{name}-{i}-{self._draw.getrandbits(24):06x}" for i in range(pods)]
        about: Item = {"labels": {"applicationId": name, "queue": f"root.cq-{queue}", "job-name": name}}
        begin: list[tuple[str, Item]] = []
        if self.engine == "kai":
            about = {"annotations": {"pod-group-name": name}, "labels": {"job-name": name}}
            group = {"queue": f"cq-{queue}", "minMember": pods, "priorityClassName": "train"}
            begin.append(("ADDED", {
                "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": self._metadata(name),
                "spec": group, "status": {},
            }))  # fmt: skip
        made: list[Item] = [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {**self._metadata(pod), **about}, "spec": {**spec},
             "status": {"phase": "Pending"}}
            for pod in named
        ]  # fmt: skip

        def told(phase: str, *conditions: str) -> list[tuple[str, Item]]:
            for pod in made:
                listed = [{"type": one, "status": "True", "lastTransitionTime": self._stamp()} for one in conditions]
                pod["status"] = {**pod["status"], "phase": phase, "conditions": listed}
            return [("MODIFIED", pod) for pod in made]

        yield wait, [*begin, *(("ADDED", pod) for pod in made)]
        for pod in made:
            pod["spec"] = {**pod["spec"], "nodeName": f"node-{self._draw.randrange(NODES)}"}
        yield 0.5, told("Pending", "PodScheduled")
        for pod in made:
            pod["status"] = {
                **pod["status"],
                "startTime": self._stamp(),
                "podIP": f"10.0.{self._draw.randrange(250)}.7",
            }
        yield 5.0, told("Pending", "PodScheduled", "Initialized")
        yield runs, told("Running", "PodScheduled", "Initialized", "Ready")
        yield 3600.0, told("Succeeded", "PodScheduled", "Initialized")
        yield 0.0, [("DELETED", item) for _, item in (*begin, *(("", pod) for pod in made))]

    def _metadata(self, name: str) -> Item:
        draw = self._draw
        managed: list[Item] = [
            {"manager": who, "operation": "Update", "fieldsV1": {f"f:{n}": {} for n in range(40)}} for who in ("a", "b")
        ]
        return {
            "name": name, "namespace": kueue.SPACE, "uid": _uid(draw),
            "creationTimestamp": self._stamp(), "generation": 1, "managedFields": managed,
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": _uid(draw)}],
        }  # fmt: skip

    def _pod_spec(self) -> Item:
        draw = self._draw
        env = [{"name": f"VARIABLE_{i}", "value": f"{draw.getrandbits(48):x}"} for i in range(draw.randint(2, 12))]
        container = {
            "name": "main", "image": f"registry.example.com/team/{draw.choice(_WORDS)}:{draw.getrandbits(28):07x}",
            "command": ["python", "-m", draw.choice(_WORDS), "--seed", str(draw.getrandbits(20))], "env": env,
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }  # fmt: skip
        return {
            "containers": [container], "restartPolicy": "Never", "dnsPolicy": "ClusterFirst", "securityContext": {},
            "schedulerName": _SCHEDULERS.get(self.engine, "default-scheduler"), "priority": 0,
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{draw.getrandbits(16)}"}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        }  # fmt: skip

    def _stamp(self) -> str:
        return (BEGIN + timedelta(seconds=self.now)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _uid(draw: random.Random) -> str:
    text = f"{draw.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def main() -> None:
    """Print what it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", nargs="?", choices=["kueue", "kai", "yunikorn"], default="kueue")
    parser.add_argument("--workloads", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "week.jsonl.zst"
        begun = time.perf_counter()
        week = Week(options.engine, options.workloads, path)
        week.run()
        wrote = time.perf_counter() - begun
        print(
            f"{options.engine}, {options.workloads} workloads, {week.changes} changes: "
            f"{path.stat().st_size / 1e6:.0f} MB, written in {wrote:.0f} s ({1e6 * wrote / week.changes:.0f} us each)"
        )
        begun = time.perf_counter()
        course = Recorded(options.engine)
        made = course.simulation(lines(path))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"as a simulation: {len(made['trace']['jobs'])} jobs in {time.perf_counter() - begun:.0f} s, "
            f"{memory:.0f} MB; left out: {dict(course.left_out)}"
        )


if __name__ == "__main__":
    main()
