"""Recorded decisions of Kueue as objects of a cluster: what was there, and then what Kueue does to the victims.

An API server gives every object a UID and a time of creation of its own, so that only decisions can be played that hang
on neither.
"""

import random
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from app.formats import export
from app.solver import solve
from app.solver.model.base import micros, parse_quantity
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.question import Question
from tests.cluster import kueue
from tests.vectors.compare import disagreements
from tests.vectors.files import HERE, read

Item = dict[str, Any]
_SHUFFLES = 6


@dataclass(frozen=True)
class Played:
    """One recorded decision with names of its own. ``objects``: all of them, what waits last."""

    ask: str
    objects: list[Item]
    victims: list[Item]
    others: list[Item]


def chosen(number: int, *, fair: bool) -> list[dict[str, Any]]:
    """The first so many recorded preemptions that can be played, with two victims or more where there are enough."""
    found: list[dict[str, Any]] = []
    for vector in read(HERE / "kueue" / "assign.jsonl.gz"):
        settings = vector["request"]["configuration"]["settings"]["kueue"]
        wanted = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"] if fair else None
        if settings.get("fair_sharing", False) != fair or settings.get("preemption_strategies") != wanted:
            continue
        decisions = vector.get("expect", {}).get("decisions", [])
        if len(decisions) == 1 and decisions[0].get("victims") and _is_free_of_identity(vector):
            found.append(vector)
        if len(found) == 4 * number:
            break
    return sorted(found, key=lambda one: -len(one["expect"]["decisions"][0]["victims"]))[:number]


def _is_free_of_identity(vector: dict[str, Any]) -> bool:
    """Whether it is decided alike whatever UIDs the objects have, all made at the same time."""
    vector = msgspec.json.decode(msgspec.json.encode(vector))
    request = vector["request"]
    made = [*request["state"]["workloads"], *request["asks"]]
    for seed in range(_SHUFFLES):
        names = random.Random(seed).sample(range(1000), len(made))
        for one, name in zip(made, names, strict=True):
            one["uid"], one["created_at"] = f"{name:03}", "2023-11-14T20:00:00Z"
        if disagreements(vector, _answer(request)):
            return False
    return True


def _answer(request: dict[str, Any]) -> Any:
    made = msgspec.convert(request, DecisionRequest)
    assert isinstance(made.configuration, Configuration)
    loaded = solve.load(solve.configure(made.configuration, made.engine), made.state)
    assert made.now is not None
    assert not isinstance(made.asks, str)
    question = Question(micros(made.now), made.asks, made.mode, made.options, made.explain)
    return msgspec.json.decode(msgspec.json.encode(solve.decide(loaded, question)))


def played(vector: dict[str, Any], prefix: str) -> Played:
    """The objects of a decision, every name behind ``prefix``."""
    request = msgspec.json.decode(msgspec.json.encode(vector["request"]))
    configuration = request["configuration"]
    for one in [*configuration["flavors"], *configuration["queues"]]:
        one["name"] = prefix + one["name"]
    for queue in configuration["queues"]:
        if "parent" in queue:
            queue["parent"] = prefix + queue["parent"]
        for group in queue.get("resource_groups", ()):
            for flavor in group["flavors"]:
                flavor["name"] = prefix + flavor["name"]
    text = export(msgspec.convert(configuration, Configuration), "kueue").text
    documents = [one for one in yaml.safe_load_all(text) if one["kind"] != "Configuration"]
    queues = [one["metadata"]["name"] for one in documents if one["kind"] == "ClusterQueue"]
    for one in documents:
        if one["kind"] == "ClusterQueue":
            one["spec"]["namespaceSelector"] = {}
    running = {one["id"]: _workload(one, prefix) for one in request["state"]["workloads"]}
    (ask,), (decision,) = request["asks"], vector["expect"]["decisions"]
    reasons = {one["workload"]: one["reason"] for one in decision["victims"]}
    # Kueue names them among those who make room, and does not evict them anew.
    evicted_before = {one["id"] for one in request["state"]["workloads"] if one.get("evicted")}
    return Played(
        ask=f"{kueue.SPACE}/{prefix}{ask['id']}",
        objects=[
            *documents, *(kueue.local_queue(name, name) for name in queues), *running.values(), _workload(ask, prefix),
        ],
        victims=[{**running[name], "reason": reason} for name, reason in reasons.items() if name not in evicted_before],
        others=[{**item, "reason": "InClusterQueue"} for name, item in running.items() if name not in reasons],
    )  # fmt: skip


def _workload(one: dict[str, Any], prefix: str) -> Item:
    made = kueue.workload(prefix + one["id"], prefix + one["queue"], 0, one.get("priority", 0))
    made["spec"]["podSets"] = [
        {
            "name": task["name"], "count": task.get("count", 1),
            "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": _texts(task["requests"])}}]}},
        }
        for task in one["tasks"]
    ]  # fmt: skip
    if "started_at" in one:
        made["status"] = kueue.admission(prefix + one["queue"], 0)
        made["status"]["admission"]["podSetAssignments"] = [
            {
                "name": task["name"], "count": task.get("count", 1),
                "flavors": {resource: prefix + flavor for resource, flavor in task["flavors"].items()},
                "resourceUsage": _texts(task["requests"], task.get("count", 1)),
            }
            for task in one["tasks"]
        ]  # fmt: skip
        made["status"]["conditions"][0]["lastTransitionTime"] = one["started_at"]
        if one.get("evicted"):
            made["status"]["conditions"].append(
                {"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout", "message": "", "lastTransitionTime":
                 kueue.START}
            )  # fmt: skip
    return made


def _texts(requests: dict[str, Any], count: int = 1) -> dict[str, str]:
    """As Kubernetes writes amounts, ``count`` times."""
    return {name: f"{parse_quantity(value, 1000) * count}m" for name, value in requests.items()}


def evicted(item: Item, by: str, at: str) -> Item:
    """What Kueue writes to the status of a Workload that it preempts for the one with the UID ``by``."""
    message = (
        f"Preempted to accommodate a workload (UID: {by}, JobUID: UNKNOWN) due to prioritization in the ClusterQueue; "
        "preemptor path: /a; preemptee path: /a"
    )
    kept = [one for one in item["status"]["conditions"] if one["type"] != "Evicted"]
    made = [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": at}
        for kind, reason in (("Evicted", "Preempted"), ("Preempted", item["reason"]))
    ]
    return {"status": {"conditions": [*kept, *made]}}
