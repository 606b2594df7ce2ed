"""Each field of YuniKorn's queues.yaml and state dump that decisions depend on, with another value: the import is
another, or says why not."""

from typing import Any

import pytest

from tests.support.native_fields import ABSENT, fields, unused

Json = dict[str, Any]


def source() -> list[Json]:
    """A partition in which every field counts, and a pod that its rules place."""
    limit = {"limit": "x", "users": ["ann"], "groups": ["dev"], "maxapplications": 2, "maxresources": {"vcore": 2}}
    template = {"maxapplications": 3, "properties": {"priority.offset": "1"}, "resources": {"max": {"vcore": 5}}}
    leaf = {"name": "leaf", "maxapplications": 4, "limits": [limit], "properties": {"priority.offset": "2"},
            "resources": {"guaranteed": {"vcore": 1}, "max": {"vcore": 9}}}  # fmt: skip
    rule = {"name": "tag", "value": "namespace", "create": True, "parent": {"name": "fixed", "value": "top"},
            "filter": {"type": "allow", "users": ["ann"]}}  # fmt: skip
    partition = {
        "name": "default", "limits": [limit], "placementrules": [rule, {"name": "provided", "create": True}],
        "preemption": {"enabled": True}, "queues": [{
            "name": "root",
            "queues": [{"name": "top", "parent": True, "childtemplate": template, "queues": [leaf]}],
        }],
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "labels": {"applicationId": "a", "queue": "root.top.leaf"},
                     "annotations": {"yunikorn.apache.org/user.info": '{"user": "ann", "groups": ["dev"]}'}},
        "spec": {"schedulerName": "yunikorn", "containers": [{"resources": {"requests": {"cpu": 1}}}]},
        "status": {"phase": "Pending"},
    }  # fmt: skip
    return [{"partitions": [partition]}, pod]


_QUEUE, _RULE, _LIMIT = "partitions[].queues[]", "partitions[].placementrules[]", "partitions[].limits[]"
BELOW = "queues[].queues[].queues[]"
OTHER: Json = {
    "partitions[].name": "gpu", "partitions[].limits": ABSENT, f"{_LIMIT}.groups": ["ops"],
    f"{_LIMIT}.users": ["bob"], f"{_LIMIT}.maxapplications": 5, f"{_LIMIT}.maxresources": {"vcore": 3},
    "partitions[].placementrules": [{"name": "fixed", "value": "root.top.leaf"}], f"{_RULE}.create": False,
    f"{_RULE}.filter": {"type": "deny", "users": ["ann"]}, f"{_RULE}.name": "user", f"{_RULE}.parent": ABSENT,
    f"{_RULE}.value": "other", "partitions[].preemption.enabled": False, "partitions[].queues": [{"name": "b"}],
    f"{_QUEUE}.childtemplate.maxapplications": 9, f"{_QUEUE}.childtemplate.properties": {"priority.offset": "7"},
    f"{_QUEUE}.childtemplate.resources": {"max": {"vcore": 7}}, f"{_QUEUE}.limits": ABSENT,
    f"{_QUEUE}.maxapplications": 9, f"{_QUEUE}.name": "b", f"{_QUEUE}.parent": True,
    f"{_QUEUE}.properties": {"preemption.policy": "fence"}, f"{_QUEUE}.queues": [{"name": "c"}],
    f"{_QUEUE}.resources.guaranteed": {"vcore": 2}, f"{_QUEUE}.resources.max": {"vcore": 8},
}  # fmt: skip


TAGS = {"kubernetes.io/meta/namespace": "ns", "kubernetes.io/meta/podName": "p"}


def dump() -> list[Json]:
    """A cluster as YuniKorn says it at a moment, in which every field counts."""
    own = {"requestTime": 10**18, "resource": {"vcore": 1000}, "priority": "1"}
    application = {
        "applicationID": "a", "partition": "default", "queueName": "root.leaf", "applicationState": "Running",
        "submissionTime": 10**18, "user": "ann", "groups": ["dev"],
        "allocations": [{"allocationKey": "k1", "nodeId": "n", **own}],
        "requests": [{"allocationKey": "k2", **own}],
    }  # fmt: skip
    template = {"maxApplications": 3, "maxResource": {"vcore": 3000}, "guaranteedResource": {"vcore": 1000},
                "properties": {"priority.offset": "1"}}  # fmt: skip
    leaf = {"queuename": "root.leaf", "partition": "default", "isLeaf": True, "isManaged": True}
    tree = {"queuename": "root", "partition": "default", "isManaged": True, "children": [leaf], "template": template}
    node = {"nodeID": "n", "attributes": {"a": "b"}, "capacity": {"vcore": 8000}, "occupied": {"vcore": 1000},
            "schedulable": True, "reservations": ["a|k2"]}  # fmt: skip
    return [{
        "timestamp": 10**18, "partitions": [{"name": "default", "preemptionEnabled": True}], "queues": [tree],
        "applications": [application], "nodes": [{"partitionName": "default", "nodesInfo": [node]}],
    }]  # fmt: skip


OF_THE_ROOT = ("queues[].partition", "queues[].children")
_APPLICATION, _NODE = "applications[]", "nodes[].nodesInfo[]"
OF_A_DUMP: Json = {
    "timestamp": 2 * 10**18, "config": {"Partitions": [{"Name": "default", "Queues": [{"Name": "b"}]}]},
    "partitions[].name": "gpu", "partitions[].preemptionEnabled": False, f"{_APPLICATION}.applicationID": "b",
    f"{_APPLICATION}.applicationState": "Completed", f"{_APPLICATION}.partition": "gpu",
    f"{_APPLICATION}.queueName": "root.other", f"{_APPLICATION}.submissionTime": 2 * 10**18,
    f"{_APPLICATION}.user": "bob", f"{_APPLICATION}.groups": ["ops"], "nodes[].partitionName": "gpu",
    f"{_APPLICATION}.allocations[].nodeId": "m", f"{_APPLICATION}.allocations[].preempted": True,
    f"{_APPLICATION}.requests[].requiredNodeId": "n", f"{_APPLICATION}.requests[].triggeredPreemption": True,
    f"{_NODE}.nodeID": "m", f"{_NODE}.attributes": {"a": "c"}, f"{_NODE}.capacity": {"vcore": 9000},
    f"{_NODE}.occupied": {"vcore": 0}, f"{_NODE}.schedulable": False, f"{_NODE}.reservations": ABSENT,
    "queues[].queuename": "root.b", "queues[].partition": "gpu", "queues[].children": ABSENT,
    "queues[].guaranteedResource": {"vcore": 5}, "queues[].maxResource": {"vcore": 5}, "queues[].maxRunningApps": 7,
    "queues[].isLeaf": False, "queues[].isManaged": False, "queues[].properties": {"preemption.policy": "fence"},
    "queues[].template.guaranteedResource": ABSENT, "queues[].template.maxApplications": 4,
    "queues[].template.maxResource": ABSENT, "queues[].template.properties": ABSENT,
    **{
        f"{_APPLICATION}.{of}[].{field}": value
        for of in ("allocations", "requests")
        for field, value in (
            ("allocationKey", "other"), ("allocationTags", TAGS), ("requestTime", 2 * 10**18),
            ("resource", {"vcore": 2000}), ("priority", "2"), ("originator", True), ("placeholder", True),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), fields("yunikorn"))
def test_another_value_is_another_decision_or_a_finding(kind: str, path: str) -> None:
    if kind == "state-dump":
        leaf = path.startswith("queues[].") and path not in OF_THE_ROOT and ".template." not in path
        below = "queues[].children[]" if leaf else ""
        documents, value = dump(), OF_A_DUMP[path]
        path = path.removeprefix("queues[].") if leaf else path
    else:
        deep = "queues[].queues[]" if path.startswith(f"{_QUEUE}.childtemplate") else BELOW
        documents, value, below = source(), OTHER[path], ""
        path = f"partitions[].{deep}.{path.removeprefix(f'{_QUEUE}.')}" if path.startswith(f"{_QUEUE}.") else path
    assert unused("yunikorn", documents, kind, path, value, below=below) is None
