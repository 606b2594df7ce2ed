"""The seven laws of YuniKorn's preemption design, checked on an answer from the request alone.

Nothing here is shared with the engine: usage is summed from the state, ways to make room are tried out subset by
subset. Requests have whole numbers, one task an ask, no priority offsets; they are small.
"""

from collections.abc import Iterator
from itertools import combinations

from tests.support.yunikorn_world import Json


class Laws:
    """What one request allows."""

    def __init__(self, body: Json, wanted: Json) -> None:
        self.queues = {q["name"]: q for q in body["configuration"]["queues"]}
        self.ask = wanted
        self.needs = {r: n for r, n in wanted["tasks"][0]["requests"].items() if n > 0}
        self.nodes = {n["name"]: n for n in body["state"]["nodes"]}
        self.tasks = {
            (w["id"], t["name"]): t | {"queue": w["queue"], "app": w["id"]}
            for w in body["state"]["workloads"]
            for t in w["tasks"]
        }
        held = [r for r in body["state"]["reservations"] if r["ask"]["id"] != wanted["id"]]
        self.closed = {r["node"] for r in held} | {n for n, of in self.nodes.items() if not of.get("schedulable", True)}

    def path(self, queue: str) -> list[str]:
        """From the queue to the root."""
        out = [queue]
        while (above := self.queues[out[-1]].get("parent")) is not None:
            out.append(above)
        return out

    def quota(self, queue: str, field: str) -> dict[str, int]:
        """Guaranteed or limit; one that is 0 everywhere is none. The root's limit is the sum of the nodes."""
        if queue == "root" and field == "limit":
            names = {r for n in self.nodes.values() for r in n["capacity"]}
            return {r: sum(n["capacity"].get(r, 0) for n in self.nodes.values()) for r in names}
        found = {r: q[field] for r, q in self.queues[queue].get("quota", {}).items() if field in q}
        return found if any(found.values()) else {}

    def used(self, queue: str, resource: str, gone: frozenset[tuple[str, str]] = frozenset()) -> int:
        """Usage of a subtree without ``gone``."""
        return sum(
            t["requests"].get(resource, 0)
            for key, t in self.tasks.items()
            if key not in gone and queue in self.path(t["queue"])
        )

    def guaranteed(self, queue: str, resource: str) -> int | None:
        """The queue's own guarantee, None where it has none in ``resource``."""
        return self.quota(queue, "guaranteed").get(resource)

    def below_fork(self, queue: str, other: str) -> list[str]:
        """From ``queue`` up to the lowest queue that is also above ``other``, that one left out."""
        shared = self.path(other)
        return [q for q in self.path(queue) if q not in shared]

    def over(self, queue: str) -> bool:
        """Law 5 for a victim in ``queue``."""
        for r in self.needs:
            nearest = [q for q in self.below_fork(queue, self.ask["queue"]) if self.guaranteed(q, r) is not None]
            if not nearest or self.used(nearest[0], r) > (self.guaranteed(nearest[0], r) or 0):
                return True
        return False

    def claims(self, queue: str) -> bool:
        """Law 4 against a victim in ``queue``."""
        return any(
            (most := self.guaranteed(q, r)) is not None and self.used(q, r) < most
            for q in self.below_fork(self.ask["queue"], queue)
            for r in self.needs
        )

    def fence(self) -> str:
        """Law 7: the lowest fence above the asking queue, or a queue that can't take the ask, or the root."""
        for queue in self.path(self.ask["queue"]):
            fenced = self.queues[queue].get("yunikorn", {}).get("properties", {}).get("preemption.policy") == "fence"
            limits = [(q, self.quota(q, "limit")) for q in self.path(queue)]
            names = {r for _, of in limits for r in of}
            full = any(
                self.used(queue, r) + self.needs.get(r, 0) > min(of[r] for _, of in limits if r in of) for r in names
            )
            if fenced or full:
                return queue
        return "root"

    def candidate(self, key: tuple[str, str]) -> str | None:
        """Laws 3 to 7 for one task: which forbids it, None when none does."""
        task, asking = self.tasks[key], self.ask["queue"]
        if task["app"] == self.ask.get("workload", self.ask["id"]) or task["queue"] == asking:
            return "law 3"
        if task.get("priority", 0) > self.ask.get("priority", 0):
            return "law 6"
        if self.fence() not in self.path(task["queue"]):
            return "law 7"
        if not self.claims(task["queue"]):
            return "law 4"
        if not self.over(task["queue"]):
            return "law 5"
        return None

    def lawful(self, keys: tuple[tuple[str, str], ...]) -> bool:
        """Law 2 for all of them together: below the fork nobody ends below its guarantee in what the victims use; on
        the ask's path nobody ends, with the ask, below the lesser of its guarantee and what it used before."""
        gone = frozenset(keys)
        asking = self.path(self.ask["queue"])
        for queue in self.queues:
            inside = [self.tasks[key] for key in keys if queue in self.path(self.tasks[key]["queue"])]
            for r, guaranteed in self.quota(queue, "guaranteed").items():
                if not any(victim["requests"].get(r, 0) > 0 for victim in inside):
                    continue
                after, least = self.used(queue, r, gone), guaranteed
                if queue in asking:
                    after, least = after + self.needs.get(r, 0), min(least, self.used(queue, r))
                if after < least:
                    return False
        return True

    def fits(self, node: str, keys: tuple[tuple[str, str], ...]) -> bool:
        """Whether the ask then fits the node and every limit on its path."""
        gone = frozenset(keys)
        for r, need in self.needs.items():
            taken = sum(t["requests"].get(r, 0) for k, t in self.tasks.items() if k not in gone and t["node"] == node)
            if self.nodes[node]["capacity"].get(r, 0) - taken < need:
                return False
            for queue in self.path(self.ask["queue"]):
                if (most := self.quota(queue, "limit").get(r)) is not None and self.used(queue, r, gone) + need > most:
                    return False
        return True

    def ways(self, *, opted_out: bool) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
        """Every lawful way to make room on one node."""
        for name in sorted(self.nodes.keys() - self.closed):
            here = [
                key
                for key, t in self.tasks.items()
                if t["node"] == name and (opted_out or t.get("preemptible", True)) and self.candidate(key) is None
            ]
            for size in range(1, len(here) + 1):
                for keys in combinations(here, size):
                    if self.lawful(keys) and self.fits(name, keys):
                        yield name, keys

    def broken(self, decision: Json) -> list[str]:
        """Every law that the decision breaks."""
        keys = tuple((v["workload"], v["task"]) for v in decision["victims"])
        found: list[str] = []
        if not keys:
            if decision["outcome"] == "wait" and any(True for _ in self.ways(opted_out=True)):
                found.append("missed: there is a lawful way to make room")
            return found
        opted_out = [k for k in keys if not self.tasks[k].get("preemptible", True)]
        if opted_out and any(True for _ in self.ways(opted_out=False)):
            found.append(f"law 1: {opted_out} although others make room")
        if not self.lawful(keys):
            found.append("law 2: a queue ends below its guarantee")
        found += [f"{law}: {key}" for key in keys if (law := self.candidate(key)) is not None]
        if {self.tasks[key]["node"] for key in keys} != {decision["node"]}:
            found.append("victims are not on the node")
        if not self.fits(decision["node"], keys):
            found.append("in vain: the ask does not fit afterwards")
        found += [
            f"superfluous: {key}"
            for key in keys
            if self.fits(decision["node"], tuple(other for other in keys if other != key))
        ]
        return found
