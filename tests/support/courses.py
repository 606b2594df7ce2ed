"""Recorded courses of Kueue as the streams that its API server would have sent: what each cycle did, written down as
Kueue writes it, a little late where it writes beside the next cycle."""

import copy
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import yaml

from app.formats import export_configuration
from app.solver.model.configuration import Configuration
from tests.cluster import kueue
from tests.support.streams import Stream

Json = dict[str, Any]
_LATE = 0.4
_WAITS = "couldn't assign flavors to pod set main: insufficient unused quota"


class Course:
    """``stream`` of a recorded course; ``evicted``: how many evictions are in it. ``seed``: of how late admissions are
    written down; None: none is late. ``late``, ``apart``: seconds at most until then, and between evictions of a cycle,
    which are written in any order then, with what is late between them."""

    def __init__(self, vector: Json, seed: int | None = None, *, late: float = _LATE, apart: float = 0.0) -> None:
        self._request, self._expect = vector["request"], vector["expect"]
        self._random = None if seed is None else random.Random(seed)
        self._longest, self._apart = late, apart
        running = self._request["state"]["workloads"]
        self._jobs = {one["id"]: one for one in [*running, *(job["ask"] for job in self._request["trace"]["jobs"])]}
        self._changes = {
            (c["at"], name): c["queues"] for c in self._request["trace"].get("changes", ()) for name in c["queues"]
        }
        self._document: Json = copy.deepcopy(self._request["configuration"])
        self._late: list[tuple[float, str, Json, datetime]] = []
        self._start = datetime.fromisoformat(self._request["start"])
        self._at = 0.0
        self.stream = Stream()
        self.evicted = 0
        self._stopping: dict[str, bool] = {}
        self.stream.now = self._start
        self._configure()
        for one in running:
            self._start_as(one)
        self._play()

    def _configure(self, only: str | None = None) -> None:
        """The objects of the configuration, or of one of its queues."""
        document = msgspec.convert(self._document, Configuration)
        for made in yaml.safe_load_all(export_configuration(document, "kueue")):
            name = made["metadata"]["name"] if made["kind"] != "Configuration" else None
            if name is None or only not in (None, name):
                continue
            if made["kind"] == "ClusterQueue":
                made["spec"]["namespaceSelector"] = {}
                self.stream.put(kueue.local_queue(name, name))
            self.stream.put(made)

    def _start_as(self, one: Json) -> None:
        """It runs since before the course."""
        began = datetime.fromisoformat(one["started_at"]) if "started_at" in one else self._start
        self.stream.put(self._workload({"created_at": self._request["start"], **one}))
        tasks = {task["name"]: (None, task["flavors"]) for task in one["tasks"]}
        now, self.stream.now = self.stream.now, began
        self._write(None, one["id"], {"queue": one["queue"], "tasks": self._admission(one["id"], tasks)})
        self.stream.now = now
        self.stream.lines[-1]["at"] = now.isoformat()  # it is heard now

    def _play(self) -> None:
        """Events and cycles of one second in the order in which the origin had them: what happened goes before."""
        steps = [(event["at"], 0, event) for event in self._expect["events"]]
        steps += [(cycle["at"], 1, cycle) for cycle in self._expect["cycles"]]
        for at, kind, step in sorted(steps, key=lambda of: of[:2]):
            self._until(at if at > int(self._at) else self._at + 0.01)
            if kind == 0 and step["kind"] == "released" and step["job"] not in self._stopping:
                self._stopping[step["job"]] = True  # it stops in the second in which it is evicted
            elif kind == 0:
                self._happens(step)
            else:
                self._cycle(step)
        self._until(self._at + 60)
        self.stream.bookmark()

    def _until(self, at: float) -> None:
        """Time passes, and what is late is written when its time has come."""
        for due, name, status, decided in sorted(self._late, key=lambda of: of[0]):
            if due <= at:
                self._write(due, name, status, decided)
        self._late = [one for one in self._late if one[0] > at]
        self._at = max(self._at, at)
        self.stream.now = self._start + timedelta(seconds=at)

    def _write(self, at: float | None, name: str, status: Json, decided: datetime | None = None) -> None:
        if at is not None:
            self.stream.now = self._start + timedelta(seconds=at)
        self.stream.admit(name, status["queue"], status["tasks"], decided)

    def _happens(self, event: Json) -> None:
        name = event["job"]
        self._late = [one for one in self._late if one[1] != name or self._write(self._at, name, *one[2:])]
        match event["kind"]:
            case "submitted":
                self.stream.put(self._workload(self._jobs[name]))
            case "finished":
                self.stream.finish(name)
            case "released":
                del self._stopping[name]
                self.stream.release(name)
            case "configuration":
                changed = self._changes[event["at"], name][name]
                for queue in self._document["queues"]:
                    if queue["name"] == name:
                        queue.update(changed)
                self._configure(name)
            case other:
                raise AssertionError(other)

    def _cycle(self, cycle: Json) -> None:
        stopped: list[str] = []
        for eviction in self._in_any_order(cycle["evicted"]):
            self.evicted += 1
            self._late = [one for one in self._late if one[1] != eviction["job"] or self._write(self._at, *one[1:])]
            self.stream.evict(eviction["job"], eviction["by"], eviction["rule"])
            if self._stopping.setdefault(eviction["job"], False):
                stopped.append(eviction["job"])
        for head in cycle["heads"]:
            if head["job"] in cycle["admitted"]:
                tasks = {
                    task: (head.get("counts", {}).get(task), flavors) for task, flavors in head["assignment"].items()
                }
                status = {"queue": head["queue"], "tasks": self._admission(head["job"], tasks)}
                late = (
                    0.0 if self._random is None else self._random.choice((0.0, self._random.random() * self._longest))
                )
                if late:
                    self._late.append((self._at + late, head["job"], status, self.stream.now))
                else:
                    self._write(self._at, head["job"], status)
            elif head.get("message"):
                self.stream.waits(head["job"], head["message"])
        for name in stopped:
            del self._stopping[name]
            self.stream.release(name)

    def _in_any_order(self, evicted: list[Json]) -> Iterator[Json]:
        """Time passes between them where they are written apart."""
        if self._random is None or not self._apart:
            yield from evicted
            return
        for eviction in self._random.sample(evicted, len(evicted)):
            self._until(self._at + self._random.random() * self._apart)
            yield eviction

    def _workload(self, ask: Json) -> Json:
        made = kueue.workload(ask["id"], ask["queue"], 1, ask.get("priority", 0))
        made["metadata"] |= {"uid": ask["uid"], "creationTimestamp": ask["created_at"]}
        made["spec"]["podSets"] = [self._pod_set(task) for task in ask["tasks"]]
        return made

    def _pod_set(self, task: Json) -> Json:
        spec: Json = {"containers": [{"name": "c", "resources": {"requests": copy.deepcopy(task["requests"])}}]}
        for field, name in (("node_selector", "nodeSelector"), ("tolerations", "tolerations")):
            if task.get(field):
                spec[name] = task[field]
        made: Json = {"name": task["name"], "count": task.get("count", 1), "template": {"spec": spec}}
        return made | ({"minCount": task["min_count"]} if "min_count" in task else {})

    def _admission(self, job: str, tasks: dict[str, tuple[int | None, Json]]) -> list[Json]:
        found: list[Json] = []
        for task in self._jobs[job]["tasks"]:
            count, flavors = tasks[task["name"]]
            count = task.get("count", 1) if count is None else count
            usage = {r: _times(amount, count) for r, amount in task["requests"].items()}
            if "pods" in flavors:
                usage["pods"] = str(count)
            found.append({"name": task["name"], "count": count, "flavors": flavors, "resourceUsage": usage})
        return found


def _times(amount: Any, count: int) -> str:
    text = str(amount)
    return f"{int(text[:-1]) * count}m" if text.endswith("m") else str(int(text) * count)
