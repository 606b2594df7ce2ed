"""A cluster with racks, as its objects say it: what is read, and what of it is given back."""

from typing import Any

import pytest
import yaml

from app.formats import export_configuration
from app.formats.kueue.considered import request_of
from app.solver import solve
from app.solver.model.kueue import TopologyAssignment, TopologyDomain, TopologyRequest
from app.solver.model.state import Toleration
from app.solver.question import Question
from tests.support.kubernetes import read

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
OPEN: Json = {"namespaceSelector": {}}
RACK, HOST = "rack", "kubernetes.io/hostname"
ROOM = {"allocatable": {"cpu": 4, "pods": 9}}
POD = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}]}
CPU_ONLY = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]}
OLD = {"levels": [HOST], "domains": [{"values": ["n1"], "count": 1}, {"values": ["n2"], "count": 2}]}
NEW = {
    "levels": [HOST],
    "slices": [{
        "domainCount": 2, "podCounts": {"individual": [1, 2]},
        "valuesPerLevel": [{"individual": {"prefix": "n", "roots": ["1", "2"]}}],
    }],
}  # fmt: skip
LEVELS = {
    "levels": [RACK, HOST],
    "slices": [{
        "domainCount": 2, "podCounts": {"universal": 3},
        "valuesPerLevel": [{"universal": "r"}, {"individual": {"roots": ["1", "2"], "suffix": "x"}}],
    }],
}  # fmt: skip


def made(kind: str, name: str, spec: Json, version: str = KUEUE, **more: Any) -> Json:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, **more}


def cluster() -> list[Json]:
    cell = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": 9}]}
    return [
        made("Topology", "racks", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]}),
        made("ResourceFlavor", "f", {"topologyName": "racks", "tolerations": [{"key": "gpu", "operator": "Exists"}]}),
        made("ClusterQueue", "q", {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [cell]}]} | OPEN),
        made("LocalQueue", "local", {"clusterQueue": "q"}, metadata={"namespace": "team"}),
        made("Node", "n1", {}, "v1", metadata={"labels": {RACK: "r", HOST: "n1"}}, status=ROOM),
        made("Pod", "agent", POD | {"nodeName": "n1"}, "v1", metadata={"namespace": "x"}, status={"phase": "Running"}),
        made("Pod", "w-0", POD | {"nodeName": "n1"}, "v1", status={"phase": "Running"}, metadata={
            "namespace": "team", "annotations": {"kueue.x-k8s.io/podset-required-topology": RACK}}),
    ]  # fmt: skip


def workload(request: Json | None, assignment: Json | None = None) -> Json:
    pod_set: Json = {"name": "main", "count": 3, "template": {"spec": POD}}
    if request is not None:
        pod_set["topologyRequest"] = request
    status: Json = {}
    if assignment is not None:
        given = {"name": "main", "count": 3, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": 3}}
        status = {"admission": {"clusterQueue": "q", "podSetAssignments": [given | {"topologyAssignment": assignment}]}}
    return made(
        "Workload", "w", {"queueName": "local", "podSets": [pod_set]}, metadata={"namespace": "team"}, status=status
    )


def test_a_topology_its_flavor_and_its_nodes_are_read() -> None:
    found = read(*cluster())
    assert [(t.name, t.levels) for t in found.configuration.topologies] == [("racks", [RACK, HOST])]
    (flavor,) = found.configuration.flavors
    assert (flavor.topology, flavor.tolerations) == ("racks", [Toleration(key="gpu", operator="Exists")])
    (node,) = found.state.nodes
    assert node.occupied == {"cpu": 1, "pods": 1}, "pods that Kueue placed are in their Workloads"
    assert [f.rule for f in found.findings if f.severity != "info"] == []
    assert [f.detail for f in found.findings if f.pointer.endswith("tolerations")] == [], "nodes may have the taint"


@pytest.mark.parametrize(
    ("given", "carried"),
    [
        ({"podIndexLabel": "batch.kubernetes.io/job-completion-index"}, None),
        ({"required": RACK, "podIndexLabel": "i"}, TopologyRequest(required=RACK)),
        ({"unconstrained": True, "podSetGroupName": "g"}, TopologyRequest(unconstrained=True, pod_set_group="g")),
        (
            {"preferred": RACK, "podSetSliceRequiredTopology": HOST, "podSetSliceSize": 2},
            TopologyRequest(preferred=RACK, slice_required=HOST, slice_size=2),
        ),
    ],
)
def test_what_a_pod_set_asks(given: Json, carried: TopologyRequest | None) -> None:
    found = read(*cluster(), workload(given))
    assert [task.topology_request for ask in found.asks for task in ask.tasks] == [carried]
    assert not [f for f in found.findings if "opology" in f.pointer]


@pytest.mark.parametrize(("given", "levels", "domains"), [
    (OLD, [HOST], [(["n1"], 1), (["n2"], 2)]),
    (NEW, [HOST], [(["n1"], 1), (["n2"], 2)]),
    (LEVELS, [RACK, HOST], [(["r", "1x"], 3), (["r", "2x"], 3)]),
])  # fmt: skip
def test_where_pods_are_in_both_encodings(given: Json, levels: list[str], domains: list[tuple[list[str], int]]) -> None:
    (running,) = read(*cluster(), workload({"required": RACK}, given)).state.workloads
    (task,) = running.tasks
    expected = [TopologyDomain(values=values, count=count) for values, count in domains]
    assert task.topology_assignment == TopologyAssignment(levels=levels, domains=expected)
    assert set(task.requests) == {"cpu", "memory"}, "of nodes they use also what there is no quota for"


def test_a_slice_that_does_not_add_up_is_named() -> None:
    broken = {**NEW, "slices": [NEW["slices"][0] | {"domainCount": 3}]}
    found = read(*cluster(), workload({"required": RACK}, broken))
    assert [f.rule for f in found.findings if f.severity == "error"] == ["bad-value"]


@pytest.mark.parametrize(
    "counts", [["x", 2], {"a": 1, "b": 2}, [-1, 2], [1.5, 2], [True, 2], [2**40, 2], None, [[1], 2], "12"]
)
def test_counts_of_a_slice_that_are_none_are_named(counts: Any) -> None:
    broken = {**NEW, "slices": [NEW["slices"][0] | {"podCounts": {"individual": counts}}]}
    found = read(*cluster(), workload({"required": RACK}, broken))
    (task,) = found.state.workloads[0].tasks
    assert task.topology_assignment is not None
    assert task.topology_assignment.domains == []
    assert "error" in [one.severity for one in found.findings]


def test_a_slice_of_too_many_domains_is_refused_at_once() -> None:
    slices = [{"domainCount": 2**31, "podCounts": {"universal": 1}, "valuesPerLevel": [{"universal": "n"}]}]
    found = read(*cluster(), workload({"required": RACK}, {**NEW, "slices": slices}))
    assert "more than 100000 domains in one slice" in [one.detail for one in found.findings]


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ('[{"topology": "rack", "size": 4}, {"topology": "host", "size": "2"}]', [("rack", 4), ("host", 2)]),
        ("[]", None), ("no json", None), ('[{"topology": "rack"}]', None), ('[{"topology": "rack", "size": 0}]', None),
        ('[{"topology": "rack", "size": "x"}]', None), ("[" * 100_000, None), ('{"a": 1}', None),
        (f'[{",".join(4 * ["{}"])}]'.format(*4 * ['{"topology": "r", "size": 1}']), None),
    ],
)  # fmt: skip
def test_slices_in_layers_are_read_from_an_annotation(text: str, layers: list[tuple[str, int]] | None) -> None:
    found = request_of({"kueue.x-k8s.io/podset-slice-required-topology-constraints": text})
    given = None if found is None else found.slice_layers
    assert (None if given is None else [(of.level, of.size) for of in given]) == layers


def test_a_topology_without_nodes_admits_nothing_and_says_so() -> None:
    """The configuration is decided on with the nodes of another source."""
    objects = [one for one in cluster() if one["kind"] not in ("Node", "Pod")]
    assert read(*objects).configuration == read(*cluster()).configuration
    assert [f for f in read(*objects).findings if f.severity != "info"] == []
    for request in ({"required": RACK}, None):
        waits = workload(request)
        waits["spec"]["podSets"][0]["template"] = {"spec": CPU_ONLY}
        found = read(*objects, waits)
        assert [(f.rule, f.severity) for f in found.findings if f.severity != "info"] == [("no-nodes", "error")]
        loaded = solve.load(solve.configure(found.configuration), found.state)
        (decision,) = solve.decide(loaded, Question(0, found.asks, "cycle")).decisions
        assert decision.outcome == "wait"
        assert "there are no nodes in the state" in decision.conditions[0].message


def test_a_flavor_whose_topology_is_not_in_the_source_is_an_error_and_so_is_what_asks_for_it() -> None:
    objects = [one for one in cluster() if one["kind"] != "Topology"]
    found = read(*objects, workload({"required": RACK}))
    assert found.configuration.flavors[0].topology is None
    said = {(f.severity, f.pointer.rpartition("/")[2]) for f in found.findings if f.severity != "info"}
    assert said == {("error", "topologyName"), ("error", "topologyRequest")}


def test_annotations_of_a_pod_template_ask_for_the_same() -> None:
    prefix = "kueue.x-k8s.io/podset-"
    given = {"slice-required-topology": HOST, "slice-size": "2", "preferred-topology": RACK, "group-name": "g"}
    expected = TopologyRequest(preferred=RACK, slice_required=HOST, slice_size=2, pod_set_group="g")
    assert request_of({prefix + name: value for name, value in given.items()}) == expected
    assert request_of({f"{prefix}unconstrained-topology": "true"}) == TopologyRequest(unconstrained=True)
    assert request_of({f"{prefix}slice-size": "many", "other": "x"}) is None


def test_a_topology_is_given_back() -> None:
    text = export_configuration(read(*cluster()).configuration, "kueue")
    of = {(one["kind"], one["metadata"]["name"]): one["spec"] for one in yaml.safe_load_all(text)}
    assert of["Topology", "racks"] == {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]}
    assert of["ResourceFlavor", "f"]["topologyName"] == "racks"
    assert of["ResourceFlavor", "f"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
