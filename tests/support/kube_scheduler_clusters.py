"""Clusters drawn at random for kube-scheduler: everything that its wire form can say, in small and often equal numbers.

Few names, priorities, start times and sizes, so that ties, taken ports, full budgets and skews are common.
"""

from random import Random
from typing import Any

Json = dict[str, Any]
NAMESPACES = ("default", "team-a", "prod")
APPS, TIERS = ("web", "db", "ml"), ("front", "back")
KEYS = ("zone", "rack", "kubernetes.io/hostname")
PRIORITIES = (-10, 0, 0, 0, 5, 5, 100, 1000)
STARTS = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-02T00:00:00.5Z", None)
TAINTS = (
    {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}, {"key": "old", "effect": "PreferNoSchedule"},
    {"key": "broken", "effect": "NoExecute"},
)  # fmt: skip
TOLERATIONS = (
    {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}, {"operator": "Exists"},
    {"key": "broken", "operator": "Exists"}, {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"key": "old", "operator": "Exists", "effect": "PreferNoSchedule"},
)  # fmt: skip


class Drawing:
    """One cluster. ``wild``: how likely each of the rarer fields is; 0 leaves resources and priorities. ``full``: nodes
    are small and whoever asks is important, so that most asks preempt."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.wild = random.choice((0.0, 0.1, 0.3))
        self.topics = {topic for topic in _TOPICS if random.random() < 0.5}
        self.aware = random.random() < 0.25
        self.full = random.random() < 0.5

    def has(self, topic: str, chance: float | None = None) -> bool:
        """Whether to say something of ``topic``, where this cluster is about it."""
        return topic in self.topics and self.random.random() < (self.wild if chance is None else chance)

    def request(self) -> Json:
        """The body of a decision."""
        random = self.random
        count = random.choice((1, 2, 3, 4, 6, 8, 12, 30)) if random.random() < 0.95 else random.randint(90, 300)
        nodes = [self.node(i) for i in range(count)]
        workloads = self.workloads(count, random.choice((1, 3, 6, 15)))
        asks = [self.ask(i, count) for i in range(random.choice((1, 1, 2, 4)))]
        settings: Json = {"workload_aware": True} if self.aware else {}
        if random.random() < 0.3:
            settings |= {"min_candidate_nodes_percentage": random.choice((0, 1, 10, 50, 100))}
            settings |= {"min_candidate_nodes_absolute": random.choice((1, 2, 5, 100))}
        state: Json = {"nodes": nodes, "workloads": workloads}
        if "budgets" in self.topics:
            state["disruption_budgets"] = [self.budget(i, workloads) for i in range(random.randint(1, 4))]
        if "nominated" in self.topics:
            held = [self.ask(i, count, name="held") for i in range(random.randint(1, 3))]
            state["reservations"] = [{"node": f"n{random.randrange(count)}", "ask": one} for one in held]
        return {
            "now": "2026-06-01T00:00:00Z",
            "mode": "independent",
            "configuration": {
                "engine": "kube-scheduler", "queues": [{"name": name} for name in NAMESPACES],
                "settings": {"kube_scheduler": settings},
            },
            "options": {"kube_scheduler": {"offset": random.randrange(8)}},
            "state": state,
            "asks": asks,
        }  # fmt: skip

    def node(self, at: int) -> Json:
        random = self.random
        made: Json = {"name": f"n{at}", "capacity": {
            "cpu": random.choice((1, 2, 3, 4) if self.full else (2, 4, 4, 8)),
            "memory": "3Gi" if self.full and random.random() < 0.3 else "8Gi",
        }}  # fmt: skip
        made["labels"] = {"kubernetes.io/hostname": f"n{at}"}
        if random.random() < 0.9:
            made["labels"]["zone"] = random.choice("abc")
        if random.random() < 0.6:
            made["labels"]["rack"] = random.choice(("r1", "r2"))
        if self.has("resources", 0.5):
            made["capacity"] |= {"gpu": random.choice((0, 1, 2))}
        if self.has("resources", 0.2):
            made["capacity"] |= {"example.com/disk": random.choice((1, 3))}
        if self.has("pods", 0.5):
            made["capacity"] |= {"pods": random.choice((0, 1, 2, 4, 8))}
        if self.has("taints"):
            made["taints"] = [random.choice(TAINTS)]
        if self.has("taints", 0.1):
            made["schedulable"] = False
        return made

    def workloads(self, nodes: int, each: int) -> list[Json]:
        random = self.random
        made: list[Json] = []
        left, name = random.randint(0, nodes * each), 0
        while left > 0:
            size = min(left, random.choice((1, 1, 2, 5)))
            left -= size
            one: Json = {
                "id": f"w{len(made)}",
                "queue": random.choice(NAMESPACES),
                "priority": random.choice(PRIORITIES),
            }
            if random.random() < 0.2 and (start := random.choice(STARTS)) is not None:
                one["started_at"] = start
            if self.aware and random.random() < 0.5:
                one["disruption_mode"] = random.choice(("pod", "all"))
            if self.aware and random.random() < 0.2:
                one["min_available"] = random.randint(1, size)
            # Pods of one victim come in the order of a map there: of different priorities, the first would be chance.
            own = one.get("disruption_mode") != "all"
            one["tasks"] = [self.running(name + i, nodes, own=own) for i in range(size)]
            name += size
            made.append(one)
        return made

    def running(self, at: int, nodes: int, *, own: bool) -> Json:
        random = self.random
        made = self.pod(f"p{at}")
        made["node"] = f"n{random.randrange(nodes)}"
        if (start := random.choice(STARTS)) is not None:
            made["started_at"] = start
        if own and random.random() < 0.2:
            made["priority"] = random.choice(PRIORITIES)
        if self.has("terminating"):
            made["state"] = random.choice(("preempted", "releasing"))
        return made

    def ask(self, at: int, nodes: int, name: str = "ask") -> Json:
        random = self.random
        gang = self.aware and random.random() < 0.4
        several = not self.aware and random.random() < 0.3
        made: Json = {
            "id": f"{name}{at}", "queue": random.choice(NAMESPACES),
            "priority": random.choice((6, 101, 2000, 2000) if self.full else (0, 5, 50, 1000, 2000)),
            "tasks": [self.pod(f"{name}{at}-{i}", 2) for i in range(random.randint(1, 4) if gang or several else 1)],
        }  # fmt: skip
        for task in made["tasks"]:
            if random.random() < (0.05 if gang else 0.3):
                task["priority"] = random.choice((6, 101, 2000) if self.full else (0, 50, 2000))
        if random.random() < 0.5:
            made["created_at"] = f"2026-05-01T00:00:0{random.randrange(3)}Z"
        if gang and random.random() < 0.5:
            made["min_available"] = random.randint(1, len(made["tasks"]))
        if random.random() < 0.05:
            made["preemption_policy"] = "Never"
        if self.has("nominated", 0.3):
            made["nominated_node"] = f"n{random.randrange(nodes)}"
        if self.has("placement", 0.1):
            made["required_node"] = f"n{random.randrange(nodes)}"
        if self.has("placement", 0.05):
            made["tasks"][0]["scheduling_gates"] = ["example.com/wait"]
        return made

    def pod(self, name: str, size: int = 1) -> Json:
        random = self.random
        requests: Json = {"cpu": random.choice((0.1, 0.5, 1, 1, 2)) * size} if random.random() < 0.9 else {}
        if random.random() < 0.5:
            requests["memory"] = random.choice(("512Mi", "1Gi", "2Gi", 0))
        if self.has("resources", 0.3):
            requests["gpu"] = random.choice((0, 1, 1, 2))
        if self.has("resources", 0.1):
            requests["example.com/disk"] = 1
        made: Json = {"name": name, "requests": requests}
        labels = {"app": random.choice(APPS)} if random.random() < 0.8 else {}
        if random.random() < 0.3:
            labels["tier"] = random.choice(TIERS)
        if labels:
            made["labels"] = labels
        if self.has("ports"):
            made["host_ports"] = [self.port() for _ in range(random.randint(1, 2))]
        if self.has("placement"):
            made["node_selector"] = {"zone": random.choice("ab")}
        if self.has("placement"):
            made["node_affinity"] = [[self.node_expression() for _ in range(random.randint(1, 2))]
                                     for _ in range(random.randint(1, 2))]  # fmt: skip
        if self.has("taints", 0.5):
            made["tolerations"] = random.sample(TOLERATIONS, random.randint(1, 2))
        if self.has("affinity"):
            made["pod_affinity"] = [self.term() for _ in range(random.randint(1, 2))]
        if self.has("affinity", 0.15):
            made["pod_anti_affinity"] = [self.term() for _ in range(random.randint(1, 2))]
        if self.has("spread", 0.4):
            made["topology_spread"] = [self.spread() for _ in range(random.randint(1, 2))]
        return made

    def port(self) -> Json:
        random = self.random
        made: Json = {"port": random.choice((80, 80, 443, 0))}
        if random.random() < 0.3:
            made["protocol"] = random.choice(("TCP", "UDP"))
        if random.random() < 0.4:
            made["ip"] = random.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0", ""))
        return made

    def node_expression(self) -> Json:
        random = self.random
        operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = random.sample(("a", "b", "r1"), random.randint(1, 2)) if operator in ("In", "NotIn") else []
        return {"key": random.choice(("zone", "rack")), "operator": operator, "values": values}

    def selector(self) -> Json | None:
        random = self.random
        if random.random() < 0.1:
            return random.choice((None, {}))
        if random.random() < 0.7:
            return {"match_labels": {"app": random.choice(APPS)}}
        operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = random.sample(APPS, random.randint(1, 2)) if operator in ("In", "NotIn") else []
        made: Json = {"match_expressions": [{"key": "app", "operator": operator, "values": values}]}
        if random.random() < 0.3:
            made["match_labels"] = {"tier": random.choice(TIERS)}
        return made

    def term(self) -> Json:
        random = self.random
        made: Json = {"topology_key": random.choice(KEYS)}
        if (selector := self.selector()) is not None:
            made["label_selector"] = selector
        if random.random() < 0.2:
            made["namespaces"] = random.sample(NAMESPACES, random.randint(1, 2))
        if random.random() < 0.15:
            named = {"match_labels": {"kubernetes.io/metadata.name": random.choice(NAMESPACES)}}
            made["namespace_selector"] = random.choice(({}, named))
        return made

    def spread(self) -> Json:
        random = self.random
        made: Json = {"max_skew": random.choice((1, 1, 2)), "topology_key": random.choice(KEYS)}
        if (selector := self.selector()) is not None:
            made["label_selector"] = selector
        if random.random() < 0.3:
            made["min_domains"] = random.choice((1, 2, 3, 4))
        if random.random() < 0.3:
            made["node_affinity_policy"] = random.choice(("Honor", "Ignore"))
        if random.random() < 0.3:
            made["node_taints_policy"] = random.choice(("Honor", "Ignore"))
        if random.random() < 0.2:
            made["match_label_keys"] = [random.choice(("tier", "app"))]
            keys = set((selector or {}).get("match_labels", {}))
            made["match_label_keys"] = [
                key for key in made["match_label_keys"] if key not in keys and selector is not None
            ]
        return made

    def budget(self, at: int, workloads: list[Json]) -> Json:
        random = self.random
        made: Json = {
            "name": f"b{at}",
            "queue": random.choice(NAMESPACES),
            "disruptions_allowed": random.choice((-1, 0, 0, 1, 2, 5)),
        }  # fmt: skip
        if (selector := self.selector()) is not None:
            made["selector"] = selector
        if workloads and random.random() < 0.3:
            made["disrupted"] = [random.choice(random.choice(workloads)["tasks"])["name"]]
        return made


_TOPICS = (
    "resources",
    "pods",
    "taints",
    "terminating",
    "nominated",
    "placement",
    "ports",
    "affinity",
    "spread",
    "budgets",
)


def drawn(seed: int) -> Json:
    """The cluster of this number: always the same."""
    return Drawing(Random(seed)).request()
