"""What Arbiter knows and does not decide is said with its reason, not as a field that nobody has heard of."""

import json
from typing import Any

import msgspec
import pytest

from app.formats import import_configuration
from app.formats.kai.configuration import FLAGS
from app.formats.kai.pods import with_gpu_memory
from app.formats.reader import Findings, Reader
from app.formats.work.read import resource_names
from app.solver.model.configuration import Configuration
from app.solver.model.state import Node

Json = dict[str, Any]
KUEUE, CONFIG = "kueue.x-k8s.io/v1beta2", "config.kueue.x-k8s.io/v1beta2"


def of(version: str, kind: str, spec: Json, **rest: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "ns"}, "spec": spec, **rest}


def odd(*keys: str) -> Json:
    return {key: {"some": "thing"} for key in keys}


SPEC_OF_A_POD: Json = odd("topologySpreadConstraints", "resourceClaims") | {
    "affinity": odd("podAffinity", "podAntiAffinity")
    | {"nodeAffinity": odd("preferredDuringSchedulingIgnoredDuringExecution")},
    "containers": [],
}
WORKLOAD: Json = {
    "queueName": "l", "maximumExecutionTimeSeconds": 5,
    "podSets": [{"name": "main", "topologyRequest": {"required": "rack"}, "template": {"spec": SPEC_OF_A_POD}}],
}  # fmt: skip
ADMISSION: Json = {
    "clusterQueue": "q",
    "podSetAssignments": [{"name": "main", "topologyAssignment": {"levels": ["a"]}}],
}
CASES: list[Any] = [
    ("kai", of("scheduling.run.ai/v2", "Queue", {"resources": {"cpu": {"lendingLimit": 3}}}),
     {"/spec/resources/cpu/lendingLimit": "warning"}),
    ("kai", {"actions": "reclaim", "queueDepthPerAction": {"reclaim": 1}, "usageDBConfig": {"a": 1}},
     {"/queueDepthPerAction": "warning", "/usageDBConfig": "warning"}),
    ("kai", of("scheduling.run.ai/v2alpha2", "PodGroup",
               {"queue": "q", "subGroups": [{"name": "a", "parent": "b"}]}
               | odd("topologyConstraint")),
     {"/spec/subGroups": "error", "/spec/topologyConstraint": "warning"}),
    ("yunikorn", {"partitions": [odd("nodesortpolicy", "statedumpfilepath", "usergroupresolver") | {"queues": [
        odd("adminacl", "submitacl") | {"name": "root"}]}]},
     {f"/partitions/0/{key}": severity for key, severity in (
         ("nodesortpolicy", "warning"), ("statedumpfilepath", "info"), ("usergroupresolver", "info"),
         ("queues/0/adminacl", "info"), ("queues/0/submitacl", "warning"))}),
    ("ytsaurus", {"nodes_filter": "a", "pools": {"p": {"fifo_sort_parameters": ["weight"]}}},
     {"/nodes_filter": "info", "/pools/p/fifo_sort_parameters": "warning"}),
    ("kueue", of(KUEUE, "ResourceFlavor", {"topologyName": "t"}), {"/spec/topologyName": "error"}),
    ("kueue", of(KUEUE, "ClusterQueue", {"admissionChecksStrategy": {"admissionChecks": [{"name": "c"}]}}),
     {"/spec/admissionChecksStrategy": "warning"}),
    ("kueue", {"apiVersion": CONFIG, "kind": "Configuration"} | odd(
        "waitForPodsReady", "featureGates", "integrations",
        "manageJobsWithoutQueueName", "managedJobsNamespaceSelector", "multiKueue", "objectRetentionPolicies",
        "queueVisibility"),
     dict.fromkeys(("/waitForPodsReady", "/featureGates"), "warning")
     | dict.fromkeys(("/integrations", "/manageJobsWithoutQueueName", "/managedJobsNamespaceSelector", "/multiKueue",
                      "/objectRetentionPolicies", "/queueVisibility"), "info")),
    ("kueue", of(KUEUE, "Workload", WORKLOAD, status={"admission": ADMISSION}),
     {"/spec/maximumExecutionTimeSeconds": "info", "/spec/podSets/0/topologyRequest": "error",
      "/status/admission/podSetAssignments/0/topologyAssignment": "info",
      "/spec/podSets/0/template/spec/topologySpreadConstraints": "warning",
      "/spec/podSets/0/template/spec/resourceClaims": "warning",
      "/spec/podSets/0/template/spec/affinity/podAffinity": "warning",
      "/spec/podSets/0/template/spec/affinity/podAntiAffinity": "warning"}),
]  # fmt: skip


@pytest.mark.parametrize(("system", "document", "known"), CASES, ids=[f"{c[0]}{next(iter(c[2]))}" for c in CASES])
def test_what_is_known_is_said_with_its_reason(system: str, document: Json, known: dict[str, str]) -> None:
    found = import_configuration(json.dumps(document).encode(), system).findings
    said = {one.pointer: one for one in found}
    assert {at: said[at].severity for at in known} == known
    assert [at for at in known if "has no counterpart" in said[at].detail] == []
    assert all(said[at].rule in ("not-decided", "not-carried") for at in known)


def test_what_nobody_has_heard_of_is_said_in_every_object() -> None:
    """At the end of each, one sentence for all."""
    for system, document, at in (
        ("kueue", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 1,
                   "huh": 1}, "/1/huh"),
        ("kueue", of(KUEUE, "Cohort", {"huh": 1}), "/1/spec/huh"),
        ("kueue", of(KUEUE, "ResourceFlavor", {"huh": 1}), "/1/spec/huh"),
        ("kueue", of(KUEUE, "Workload", {"podSets": [{"huh": 1}]}), "/1/spec/podSets/0/huh"),
        ("kai", of("scheduling.run.ai/v2", "Queue", {"huh": 1}), "/1/spec/huh"),
    ):  # fmt: skip
        queue = of(KUEUE, "ClusterQueue", {}) if system == "kueue" else of("scheduling.run.ai/v2", "Queue", {})
        queue["metadata"] = {"name": "other"}
        text = f"{json.dumps(queue)}\n---\n{json.dumps(document)}"
        said = {one.pointer: one.detail for one in import_configuration(text.encode(), system).findings}
        assert said[at].startswith("'huh' has no counterpart in Arbiter"), (system, at)


@pytest.mark.parametrize(("value", "cap"), [(None, 16), ("0", 0), (0, 0), ("-1", -1), (-7, -1), ("7", 7), ("x", 16)])
def test_the_cap_of_consolidation(value: Any, cap: int) -> None:
    flags = Reader({"max-consolidation-preemptees": value}, (), Findings())
    assert FLAGS.read(flags).max_consolidation_preemptees == cap


def test_memory_of_gpus_is_what_the_label_of_the_node_says_in_mib_or_in_bytes() -> None:
    given = {"40960": 40960, "99": 99, "1048575": 1048575, "42949672960": 40960, "0": None, "": None, "1x": None,
             "٣": None}  # fmt: skip
    nodes = [Node(name=text or "none", capacity={}, labels={"nvidia.com/gpu.memory": text}) for text in given]
    assert [node.gpu_memory for node in with_gpu_memory(nodes)] == list(given.values())
    assert with_gpu_memory([Node(name="a", capacity={})])[0].gpu_memory is None


def test_resources_are_those_of_any_quota_or_group() -> None:
    groups: list[Json] = [
        {"resources": ["a"], "flavors": []},
        {"resources": [], "flavors": [{"name": "f", "quota": {"b": {}}}]},
    ]
    queues: list[Json] = [{"name": "q", "resource_groups": groups}, {"name": "r", "quota": {"c": {}}}, {"name": "s"}]
    assert resource_names(msgspec.convert({"queues": queues}, Configuration)) == {"a", "b", "c"}
