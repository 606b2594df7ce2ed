"""Streams of an API server beside Kueue, as a test writes them: each change of an object as a line of a recording."""

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.cluster import kueue

Json = dict[str, Any]
_BEGIN = datetime(2026, 11, 22, 9, tzinfo=UTC)


class Stream:
    """``lines``: what a recording of it has. Time passes where a test says so; every write has a version of its own."""

    def __init__(self) -> None:
        self.lines: list[Json] = []
        self._there: dict[tuple[str, str, str], Json] = {}
        self._version = 100
        self.now = _BEGIN

    def wait(self, seconds: float) -> None:
        """Nothing happens for that long."""
        self.now += timedelta(seconds=seconds)

    def put(self, made: Json) -> Json:
        """An object is written."""
        made = copy.deepcopy(made)
        metadata = made["metadata"]
        key = made["kind"], metadata.get("namespace", ""), metadata["name"]
        known = self._there.get(key)
        self._version += 1
        metadata.setdefault(
            "creationTimestamp", self.stamp() if known is None else known["metadata"]["creationTimestamp"]
        )
        metadata.setdefault("uid", f"u-{metadata['name']}")
        metadata["resourceVersion"] = str(self._version)
        self._there[key] = made
        self._say("ADDED" if known is None else "MODIFIED", made)
        return made

    def remove(self, made: Json) -> None:
        """An object is gone."""
        metadata = made["metadata"]
        last = self._there.pop((made["kind"], metadata.get("namespace", ""), metadata["name"]))
        self._version += 1
        last = copy.deepcopy(last)
        last["metadata"]["resourceVersion"] = str(self._version)
        self._say("DELETED", last)

    def workload(self, name: str) -> Json:
        """As it is now."""
        return copy.deepcopy(self._there["Workload", kueue.SPACE, name])

    def stamp(self) -> str:
        """The time as objects say it: whole seconds."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def condition(self, name: str, kind: str, status: str, reason: str, message: str = "") -> None:
        """Kueue writes a condition of a Workload."""
        self.put(self._with_condition(self.workload(name), kind, status, reason, message))

    def admit_alone(self, name: str, queue: str, usage: Json, flavor: str = "default", count: int = 1) -> None:
        """Kueue gives its one pod set quota."""
        flavors = dict.fromkeys(usage, flavor)
        self.admit(name, queue, [{"name": "main", "count": count, "flavors": flavors, "resourceUsage": usage}])

    def admit(self, name: str, queue: str, assigned: list[Json], decided: datetime | None = None) -> None:
        """Kueue gives it quota; it was ``decided`` then, which is what it writes; None: now."""
        written, self.now = self.now, decided or self.now
        made = self.workload(name)
        made.setdefault("status", {})["admission"] = {"clusterQueue": queue, "podSetAssignments": assigned}
        for kind in ("Evicted", "Preempted"):
            if any(one["type"] == kind for one in made["status"].get("conditions", [])):
                made = self._with_condition(made, kind, "False", "QuotaReserved", "")
        made = self._with_condition(made, "QuotaReserved", "True", "QuotaReserved", "")
        made = self._with_condition(made, "Admitted", "True", "Admitted", "")
        self.now = written
        self.put(made)

    def evict(self, name: str, by: str, reason: str = "InClusterQueue") -> None:
        """Kueue preempts it for the workload ``by``."""
        uid = self.workload(by)["metadata"]["uid"]
        message = f"Preempted to accommodate a workload (UID: {uid}, JobUID: UNKNOWN) due to {reason}"
        made = self._with_condition(self.workload(name), "Evicted", "True", "Preempted", message)
        self.put(self._with_condition(made, "Preempted", "True", reason, message))

    def release(self, name: str) -> None:
        """What was evicted has stopped, and waits again."""
        made = self.workload(name)
        made["status"].pop("admission", None)
        self.put(self._with_condition(made, "QuotaReserved", "False", "Pending", "Preempted"))

    def waits(self, name: str, message: str) -> None:
        """Kueue says why it is not admitted; it writes nothing where it has said so before."""
        listed = self.workload(name).get("status", {}).get("conditions", [])
        if not any(one["type"] == "QuotaReserved" and one["message"] == message for one in listed):
            self.condition(name, "QuotaReserved", "False", "Pending", message)

    def finish(self, name: str) -> None:
        """It has ended."""
        self.condition(name, "Finished", "True", "Succeeded")

    def bookmark(self, kind: str = "Workload") -> None:
        """Nothing has changed up to now."""
        self._version += 1
        self._say("BOOKMARK", {"kind": kind, "metadata": {"resourceVersion": str(self._version)}})

    def relist(self, kind: str = "Workload") -> None:
        """The history is gone, and everything is listed."""
        self._version += 1
        at, items = self.now.isoformat(), [one for (of, *_), one in self._there.items() if of == kind]
        self.lines += [{"at": at, "kind": kind, "type": "ITEM", "object": copy.deepcopy(one)} for one in items]
        self.lines.append(
            {"at": at, "kind": kind, "type": "LISTED", "count": len(items), "resource_version": str(self._version),
             "api_version": kueue.GROUP, "reason": "gone"}
        )  # fmt: skip

    def _with_condition(self, made: Json, kind: str, status: str, reason: str, message: str) -> Json:
        listed = [one for one in made.setdefault("status", {}).get("conditions", []) if one["type"] != kind]
        listed.append(
            {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": self.stamp()}
        )
        made["status"]["conditions"] = listed
        return made

    def _say(self, kind: str, made: Json) -> None:
        self.lines.append(
            {"at": self.now.isoformat(), "kind": made["kind"], "type": kind, "object": copy.deepcopy(made)}
        )


def queue(name: str, cpu: int, cohort: str | None = None, **preemption: str) -> Json:
    """A ClusterQueue that admits from all namespaces."""
    made = kueue.cluster_queue(name, cpu, cohort, **preemption)
    made["spec"]["namespaceSelector"] = {}
    return made


def crowded() -> Stream:
    """A queue of 4 CPUs with two workloads of 2 in it, and one that waits and may preempt them."""
    made = Stream()
    for one in (kueue.flavor(), queue("q", 4, withinClusterQueue="LowerPriority"), kueue.local_queue("l", "q")):
        made.put(one)
    for name, priority in (("a", 1), ("b", 2)):
        made.put(kueue.workload(name, "l", 2, priority))
        made.admit_alone(name, "q", {"cpu": "2"})
        made.wait(1)
    made.put(kueue.workload("p", "l", 2, 9))
    made.wait(1)
    return made
