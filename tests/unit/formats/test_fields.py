"""The table of native fields: it has every field that the systems' schemas have, the page shows it, and what it says
of a field is what becomes of it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.formats import import_configuration
from app.formats.manifests import systems
from app.formats.reader import Imported, effect_of
from openapi.refresh import MEANING, with_fields
from tests.support.native_fields import SCHEMAS, schema

Json = dict[str, Any]
FIELDS = {system.facts.name: system.fields for system in systems()}
ROOT = Path(__file__).resolve().parents[3]
EVERY = [(path.stem, *field) for path in sorted(SCHEMAS.iterdir()) for field in schema(path.stem)]
"""Kind and path of every field, as the systems publish them: Kueue's and KAI's CRDs and Kueue's Configuration, the
types that YuniKorn reads queues.yaml into and prints a state dump of; kube-scheduler's configuration and budgets."""


def test_no_field_of_a_schema_is_forgotten_and_no_other_is_in_the_table() -> None:
    assert [one for one in EVERY if effect_of(FIELDS[one[0]], *one[1:]) is None] == []
    paths = {(system, kind): [path for s, k, path in EVERY if (s, k) == (system, kind)] for system, kind, _ in EVERY}
    unknown = [
        (system, kind, path)
        for system, kinds in FIELDS.items()
        for kind, fields in kinds.items()
        for path in fields
        if not any(one == path or one.startswith((f"{path}.", f"{path}[]")) for one in paths[system, kind])
    ]
    assert unknown == []


def test_the_page_shows_the_table() -> None:
    shown = (ROOT / "docs" / "formats.md").read_text()
    assert with_fields(shown) == shown, "docs/formats.md has not what the tables of fields say: run `make openapi`"
    assert all(f"`{effect}`: {meaning}" in shown for effect, meaning in MEANING.items())


VALUES: Json = {
    "concurrentAdmissionPolicy": {"migration": {"mode": "x"}},
    "maximumExecutionTimeSeconds": 5,
    "preemptionGates": [{"name": "g"}],
    "deviceClassMappings": [{"name": "a"}],
    "waitForPodsReady": {"timeout": "5m"},
    "featureGates": {"A": True},
    "integrations": {"frameworks": ["a"]},
    "manageJobsWithoutQueueName": True,
    "managedJobsNamespaceSelector": {"matchLabels": {"a": "b"}},
    "multiKueue": {"gcInterval": "1m"},
    "objectRetentionPolicies": {"workloads": {}},
    "nodesortpolicy": {"type": "fair"},
    "usergroupresolver": {"type": "os"},
    "submitacl": "ann",
    "adminacl": "ann",
    "subGroups": [{"name": "a"}],
    "completions": 3,
    "parallelism": 3,
    "topologyConstraint": {"topology": "t"},
    "requiredTopologyLevel": "rack",
    "stalenessGracePeriod": "5m",
    "plugins": {"proportion": {"enabled": False}},
    "partitionLabelValue": "a",
    "placementStrategy": {"gpu": "spread"},
    "queueDepthPerAction": {"allocate": 3},
    "usageDBConfig": {"clientType": "prometheus"},
    "unhealthyNodes": [{"name": "n"}],
    "delayedTopologyRequest": "Pending",
    "percentageOfNodesToScore": 50,
    "extenders": [{"urlPrefix": "http://a"}],
    "podInitialBackoffSeconds": 2,
    "podMaxBackoffSeconds": 20,
    "delayCacheUntilActive": True,
    "multiPoint": {"disabled": [{"name": "PodTopologySpread"}]},
    "preFilter": {"disabled": [{"name": "NodePorts"}]},
    "filter": {"disabled": [{"name": "NodePorts"}]},
    "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
    "hardPodAffinityWeight": 5,
    "ignorePreferredTermsOfExistingPods": True,
    "addedAffinity": {"a": {}},
    "resources": [{"name": "cpu"}],
    "ignoredResources": ["a"],
    "ignoredResourceGroups": ["a"],
    "scoringStrategy": {"type": "MostAllocated"},
    "defaultConstraints": [{"maxSkew": 1}],
    "defaultingType": "List",
    "bindTimeoutSeconds": 5,
    "backoffDeadline": "2026-01-01T00:00:00Z",
    "shape": [{"score": 1}],
}
OF_KUBE_SCHEDULER: Json = {"plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}}  # fmt: skip
WAITS: Json = {
    "kind": "Pod",
    "apiVersion": "v1",
    "status": {"phase": "Pending"},
    "spec": {"schedulerName": "kai-scheduler"},
    "metadata": {"name": "p", "annotations": {"pod-group-name": "x"}, "labels": {"kai.scheduler/subgroup-name": "a"}},
}
POD_SET: Json = {"name": "main", "count": 1, "template": {"spec": {"containers": []}}}
BASE: dict[str, Json] = {
    "Workload": {
        "spec": {"podSets": [POD_SET]},
        "status": {
            "admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main"}]},
            "conditions": [{"type": "Admitted", "status": "True"}],
        },
    },
    "state-dump": {
        "queues": [{"queuename": "root", "children": [{"queuename": "root.a", "isLeaf": True}]}],
        "applications": [{"applicationID": "a", "queueName": "root.a", "requests": [{"allocationKey": "k"}]}],
    },
    "queues.yaml": {"partitions": [{"name": "default", "queues": [{"name": "a"}]}]},
    "PodGroup": {"spec": {"queue": "q", "subGroups": [{"name": "a"}]}},
    "KubeSchedulerConfiguration": {"profiles": [{}]},
}  # fmt: skip
HEADS = {
    "kueue": "kueue.x-k8s.io/v1beta2", "kai": "scheduling.run.ai/v2", "Configuration": "config.kueue.x-k8s.io/v1beta2",
    "PodGroup": "scheduling.run.ai/v2alpha2", "SchedulingShard": "kai.scheduler/v1",
    "KubeSchedulerConfiguration": "kubescheduler.config.k8s.io/v1", "PodDisruptionBudget": "policy/v1",
}  # fmt: skip
SAID = [
    (system, kind, path, effect)
    for system, kinds in FIELDS.items()
    for kind, fields in kinds.items()
    for path, effect in fields.items()
    if effect in ("warning", "error", "info") and system != "ytsaurus"  # test_native_fields_ytsaurus.py
]


def read(system: str, kind: str, path: str | None) -> Imported:
    document: Json = json.loads(json.dumps(BASE.get(kind, {})))
    values = VALUES | (OF_KUBE_SCHEDULER if system == "kube-scheduler" else {})
    if kind.endswith("Args"):
        arguments = {} if path is None else {path: values[path]}
        one: Json = {"name": kind.removesuffix("Args"), "args": arguments}
        kind, document, path = "KubeSchedulerConfiguration", {"profiles": [{"pluginConfig": [one]}]}, None
    if kind not in ("queues.yaml", "state-dump"):
        version = HEADS.get(kind) or HEADS[system]
        document |= {"kind": kind, "apiVersion": version, "metadata": {"name": "x"}}
    holder: Any = document
    names = [] if path is None else path.replace("[]", "").split(".")
    for name in names[:-1]:
        holder = holder.setdefault(name, {})
        holder = holder[0] if isinstance(holder, list) else holder
    if names:
        holder[names[-1]] = values[names[-1]]
    return import_configuration(json.dumps([document, WAITS] if kind == "PodGroup" else document).encode(), system)


@pytest.mark.parametrize(("system", "kind", "path", "effect"), SAID)
def test_what_the_table_says_is_said_a_finding_says(system: str, kind: str, path: str, effect: str) -> None:
    last = path.rpartition(".")[2]
    found = [one for one in read(system, kind, path).findings if f"/{last}" in one.pointer]
    assert {one.severity for one in found} == {effect}


@pytest.mark.parametrize(("system", "kind"), [(s, k) for s, kinds in FIELDS.items() for k in kinds if k in BASE])
def test_nothing_is_said_of_what_is_not_there(system: str, kind: str) -> None:
    said = [one.pointer for one in read(system, kind, None).findings]
    last = {path.rpartition(".")[2] for path, effect in FIELDS[system][kind].items() if effect == "warning"}
    assert [one for one in said if one.rpartition("/")[2] in last] == []


def test_what_is_decided_is_in_what_is_decided_on() -> None:
    """A configuration without what is only kept has every setting of a ClusterQueue."""
    spec = {
        "cohortName": "c", "queueingStrategy": "StrictFIFO", "stopPolicy": "Hold", "fairSharing": {"weight": "2"},
        "preemption": {"withinClusterQueue": "LowerPriority"}, "flavorFungibility": {"whenCanBorrow": "TryNextFlavor"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": []}]}],
    }  # fmt: skip

    def decided(of: Json) -> Any:
        document = {"kind": "ClusterQueue", "apiVersion": HEADS["kueue"], "metadata": {"name": "x"}, "spec": of}
        queue = import_configuration(json.dumps(document).encode(), "kueue").configuration.queues[0]
        return msgspec.structs.replace(queue, native=None)

    whole = decided(spec)
    same = [key for key in spec if decided({name: value for name, value in spec.items() if name != key}) == whole]
    assert same == []
