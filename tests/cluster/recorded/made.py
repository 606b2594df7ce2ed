"""What a recorded decision is in a cluster, and the objects that both systems read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from app.formats import export
from app.solver.model.configuration import Configuration, EngineName

Item = dict[str, Any]
SPACE = "default"
HOST = "kubernetes.io/hostname"


class Inexpressible(Exception):
    """No objects say what was recorded; the text says what of it."""


@dataclass(frozen=True)
class Recorded:
    """One preemption. ``ask``: for whom, as a translation calls it; ``at``: when; ``settings``: the engine's, which no
    object holds; ``objects``: all that there was; ``victims``: the pods that were evicted, each with what its Event
    says; ``others``: pods that run and were not, with what an Event about them would say."""

    engine: EngineName
    name: str
    ask: str
    at: str
    settings: dict[str, Any]
    objects: list[Item]
    victims: dict[str, Item]
    others: dict[str, Item]


def queues(request: Mapping[str, Any], engine: EngineName) -> list[Item]:
    """The documents of an export, of the queues alone. Raises Inexpressible."""
    configuration = {key: value for key, value in request["configuration"].items() if key != "settings"}
    made = export(msgspec.convert(configuration, Configuration), engine)
    if made.findings:
        raise Inexpressible(f"queues: {made.findings[0].detail}")
    return [one for one in yaml.safe_load_all(made.text) if one.get("kind") != "SchedulingShard"]


def node(of: Mapping[str, Any], capacity: Mapping[str, str]) -> Item:
    """A node that is ready. ``capacity``: in Kubernetes' names and amounts."""
    amounts = {"pods": "110", **capacity}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": of["name"], "labels": {HOST: of["name"]}},
        "spec": {"unschedulable": True} if of.get("schedulable") is False else {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def pod(
    name: str, scheduler: str, requests: Mapping[str, str], created: str, on: str | None = None, *,
    phase: str = "Running", ending: bool = False, priority: int = 0, **metadata: Any,
) -> Item:  # fmt: skip
    """A pod that waits, or is ``on`` a node. ``ending``: it is told to stop."""
    about: Item = {"name": name, "namespace": SPACE, "uid": f"uid-{name}", "creationTimestamp": created, **metadata}
    if ending:
        about |= {"deletionTimestamp": created, "deletionGracePeriodSeconds": 30}
    spec: Item = {
        "schedulerName": scheduler, "priority": priority, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "none", "resources": {"requests": dict(requests)}}],
    }  # fmt: skip
    if on is not None:
        spec["nodeName"] = on
    status = {"phase": phase if on else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec, "status": status}


def event(about: Item, reason: str, message: str, at: str) -> Item:
    """What a scheduler's recorder writes about an object."""
    name = about["metadata"]["name"]
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.evicted", "namespace": SPACE},
        "involvedObject": {"apiVersion": about["apiVersion"], "kind": about["kind"], "name": name, "namespace": SPACE},
        "type": "Normal", "reason": reason, "message": message, "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        "source": {"component": "scheduler"},
    }  # fmt: skip
