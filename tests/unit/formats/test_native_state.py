"""What the systems print about themselves: YuniKorn's state dump, YSON, KAI's pods before they are grouped."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from app.base.documents import Unreadable
from app.cli import run
from app.formats import import_configuration
from app.solver import solve
from tests.support.native_state import ORCHID

MANIFESTS = Path(__file__).parents[2] / "manifests"
DUMP = MANIFESTS / "yunikorn-dump.json"
MEMORY = 8 << 30


def imported(document: Any, format: str) -> Any:  # noqa: A002
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return import_configuration(body, format)


def test_a_state_dump_from_a_bug_report_is_decided_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", str(DUMP)]) == 1
    assert capsys.readouterr().out.startswith("c-2: preempt on node-1, evicts 1\n")


def test_a_state_dump_is_configuration_and_state() -> None:
    found = imported(DUMP.read_bytes(), "yunikorn")
    assert [finding.rule for finding in found.findings] == ["assumed-policy"]
    queues = {queue.name: queue for queue in found.configuration.queues}
    assert list(queues) == ["root", "root.batch", "root.online"]
    assert found.taken is not None
    assert found.taken.isoformat() == "2026-03-02T09:30:00+00:00"
    assert queues["root"].quota is None
    quota = queues["root.batch"].quota["vcore"]
    assert (quota.guaranteed, quota.limit) == ("4000m", "12000m")
    assert queues["root.online"].yunikorn.properties == {"preemption.delay": "30s"}
    nightly, _ = found.state.workloads
    assert [task.name for task in nightly.tasks] == ["etl/exec-1", "etl/exec-2", "a-3"]
    assert nightly.tasks[0].requests == {"vcore": "4000m", "memory": MEMORY, "pods": 1}
    assert nightly.tasks[0].created_at.isoformat() == "2026-03-02T08:00:10+00:00"
    assert [ask.workload for ask in found.asks] == ["checkout"]
    assert {node.name: node.capacity["vcore"] for node in found.state.nodes} == {"node-1": "8000m", "node-2": "8000m"}


def test_the_single_answers_of_the_rest_interface_are_read_too() -> None:
    dump = json.loads(DUMP.read_bytes())
    tree = imported(dump["queues"][0], "yunikorn")
    whole = imported(DUMP.read_bytes(), "yunikorn")
    assert tree.configuration == whole.configuration
    nodes = imported(dump["nodes"][0]["nodesInfo"], "yunikorn")
    assert nodes.state.nodes == whole.state.nodes
    applications = imported(dump["applications"], "yunikorn")
    assert [workload.id for workload in applications.state.workloads] == ["nightly", "checkout"]
    assert "node 'node-1' is not in the source" in applications.findings[0].detail
    together = imported([dump["queues"][0], dump["applications"], dump["nodes"][0]["nodesInfo"]], "kubernetes")
    assert (together.configuration, together.asks) == (whole.configuration, whole.asks)
    assert replace(together.state, findings=[]) == replace(whole.state, findings=[])


CONFIG: dict[str, Any] = {
    "Partitions": [
        {
            "Name": "default",
            "Preemption": {"Enabled": None, "QuotaPreemptionEnabled": None},
            "NodeSortPolicy": {"Type": "", "ResourceWeights": None},
            "Queues": [
                {
                    "Name": "root", "Parent": True, "SubmitACL": "*", "Resources": {"Guaranteed": None, "Max": None},
                    "Queues": [
                        {
                            "Name": "Batch", "Resources": {"Guaranteed": {"vcore": "4"}, "Max": {"vcore": "12"}},
                            "Properties": {"application.sort.policy": "fifo"}, "MaxApplications": 9, "Queues": None,
                            "Limits": [{"Limit": "", "Users": ["*"], "MaxResources": {"vcore": "2"}}],
                        },
                        {
                            "Name": "online", "Resources": {"Guaranteed": {"vcore": "8000m"}},
                            "Properties": {"preemption.delay": "30s"},
                            "ChildTemplate": {"Properties": {"preemption.policy": "fence"}, "Resources": {}},
                        },
                    ],
                }
            ],
        }
    ],
    "Checksum": "A1B2",
    "Extra": {"log.level": "0"},
}  # fmt: skip


def test_the_configuration_inside_a_dump_is_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what the tree of queues does not tell: child templates, access, limits. A queue that only the tree has
    stays."""
    dump = json.loads(DUMP.read_bytes()) | {"config": CONFIG}
    dump["queues"][0]["children"].append({"queuename": "root.later", "isLeaf": True, "isManaged": False})
    found = imported(dump, "yunikorn")
    queues = {queue.name: queue for queue in found.configuration.queues}
    assert list(queues) == ["root", "root.batch", "root.online", "root.later"]
    quota = queues["root.batch"].quota["vcore"]
    assert (quota.guaranteed, quota.limit) == ("4", "12")
    assert queues["root.online"].yunikorn.child_template.properties == {"preemption.policy": "fence"}
    assert queues["root.later"].yunikorn.dynamic
    assert queues["root"].native.yunikorn == {"submitacl": "*"}
    assert queues["root.batch"].yunikorn.max_applications == 9
    assert [limit.users for limit in queues["root.batch"].yunikorn.limits] == [["*"]]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump))
    assert run(["decide", str(file)]) == 1
    assert capsys.readouterr().out.startswith("c-2: preempt on node-1, evicts 1\n")


def test_what_earlier_cycles_and_the_partition_decided_is_part_of_a_dump() -> None:
    dump = json.loads(DUMP.read_bytes())
    dump["partitions"][0]["preemptionEnabled"] = False
    checkout = dump["applications"][1] | {"user": "ann", "groups": ["dev"]}
    (request,) = checkout["requests"]
    checkout["requests"] = [
        request | {"triggeredPreemption": True, "allowPreemptionOther": False, "allowPreemptionSelf": False}
    ]
    waits = {"applicationID": "new", "queueName": "root.batch", "user": "bob", "requests": [
        request | {"allocationKey": "n-1", "placeholder": True}]}  # fmt: skip
    dump["applications"] = [dump["applications"][0], checkout, waits]
    node = dump["nodes"][0]["nodesInfo"][0]
    node |= {"reservations": ["checkout|c-2", "gone"], "attributes": {"zone": "a"}}
    found = imported(dump, "yunikorn")
    assert not found.configuration.settings.yunikorn.preemption
    first, second = found.asks
    assert (first.preemption_policy, first.preemptible, first.yunikorn.triggered_preemption) == ("Never", False, True)
    assert (second.yunikorn.application, second.yunikorn.user, second.tasks[0].placeholder) == ("new", "bob", True)
    owner = found.state.workloads[1].yunikorn
    assert (owner.user, owner.groups) == ("ann", ["dev"])
    assert [(held.node, held.ask.id) for held in found.state.reservations] == [(node["nodeID"], first.id)]
    assert found.state.nodes[0].labels == {"zone": "a"}
    assert "no-ask" in [finding.rule for finding in found.findings]


def test_what_is_wrong_in_a_dump_is_said() -> None:
    dump = json.loads(DUMP.read_bytes())
    dump["applications"][0]["allocations"][0]["resource"]["vcore"] = -1
    dump["applications"][0]["allocations"][0]["priority"] = "high"
    dump["nodes"][0]["partitionName"] = "[main]gpu"
    found = {(f.pointer, f.severity) for f in imported(dump, "yunikorn").findings}
    assert ("/applications/0/allocations/0/resource/vcore", "error") in found
    assert ("/applications/0/allocations/0/priority", "error") in found
    assert ("/nodes/0/partitionName", "warning") in found


def test_a_pending_pod_of_a_dump_may_need_a_node_and_its_times_may_be_missing() -> None:
    dump = json.loads(DUMP.read_bytes())
    application = dump["applications"][1]
    (request,) = application["requests"]
    del request["requestTime"]
    application["requests"] = [
        request | {"allocationKey": "a", "requiredNodeId": "node-2", "priority": "-5"},
        request | {"allocationKey": "b", "requiredNodeId": "", "requestTime": -1, "preempted": True},
        request | {"allocationKey": "c", "pendingCount": 0},
        request | {"allocationKey": "d", "requestTime": 2**63, "originator": True, "priority": "5000000000"},
    ]
    dump["applications"][0] |= {"submissionTime": 0, "queueName": "Root.Batch"}
    dump["applications"].append({"applicationID": "lost", "requests": [request]})
    found = imported(dump, "yunikorn")
    assert [(ask.id, ask.required_node, ask.priority, ask.created_at, ask.originator) for ask in found.asks] == [
        ("a", "node-2", -5, None, False), ("b", None, 0, None, False), ("d", None, 0, None, True),
    ]  # fmt: skip
    nightly, checkout = found.state.workloads
    assert (nightly.queue, nightly.created_at) == ("root.batch", None)
    assert checkout.created_at.isoformat() == "2026-03-01T10:00:00+00:00"
    assert {(one.severity, one.pointer) for one in found.findings} == {
        ("error", "/applications/1/requests/3/priority"), ("error", "/applications/3"),
        ("warning", "/applications/1/requests/0"),
    }  # fmt: skip


YSON = b"""
<
    "config" = {"fair_share_starvation_timeout" = 30000; "fair_share_starvation_tolerance" = 0.8};
    "id" = "1-2-3-4";
> {
    "production" = <
        "strong_guarantee_resources" = {"cpu" = 12; "memory" = 68719476736};
        "weight" = 2.;
        "enable_aggressive_starvation" = %true;
    > {};
    "research" = {"nlp" = <"resource_limits" = {"cpu" = 8u}> {}};
}
"""


def test_yson_is_read_as_yt_get_prints_it() -> None:
    yson = pytest.importorskip("yt.yson", reason="the extra arbiter-preemption[yson] is not installed")
    found = imported(YSON, "ytsaurus")
    assert found.findings == []
    names = [(queue.name, queue.parent) for queue in found.configuration.queues]
    assert names == [("production", None), ("research", None), ("nlp", "research")]
    production, _, nlp = found.configuration.queues
    assert production.quota["cpu"].guaranteed == 12
    assert (production.weight, production.ytsaurus.enable_aggressive_starvation) == (2.0, True)
    assert nlp.quota["cpu"].limit == 8
    assert found.configuration.settings.ytsaurus.fair_share_starvation_timeout == 30
    binary = yson.dumps(yson.loads(YSON), yson_format="binary")
    assert imported(binary, "ytsaurus").configuration == found.configuration


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"{a=", "no YSON"),
        (b"<", "no YSON"),
        (b"{a=" * 100_000, "nested deeper than 200 levels"),
        (b"{a=[" + b"[" * 500, "nested deeper than 200 levels"),
        (b'{a="\xff"}', "a string is not UTF-8 at its byte 0"),
        (b"{\x01\x02a=" * 5000, "no YSON"),
    ],
)
def test_hostile_yson_is_refused(body: bytes, detail: str) -> None:
    pytest.importorskip("yt.yson", reason="the extra arbiter-preemption[yson] is not installed")
    with pytest.raises(Unreadable, match=detail):
        imported(body, "ytsaurus")


def kai(*pods: dict[str, Any], gpu_memory: str = "40960") -> Any:
    queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "lab"}, "spec": {}}
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.memory": gpu_memory}},
        "status": {"allocatable": {"nvidia.com/gpu": 4}},
    }  # fmt: skip
    return imported({"apiVersion": "v1", "kind": "List", "items": [queue, node, *pods]}, "kai")


def pod(name: str, owner: tuple[str, str] | None = None, node: str | None = "n1", **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {"kai.scheduler/queue": "lab", **more.get("labels", {})}}
    metadata["annotations"] = more.get("annotations", {})
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1]}]
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c"}], **({"nodeName": node} if node else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_pods_without_a_group_are_grouped_by_owner_as_kai_would() -> None:
    template = {"pod-template-hash": "abc"}
    found = kai(
        pod("bare"),
        pod("job-1", ("Job", "job")), pod("job-2", ("Job", "job")),
        pod("web-1", ("ReplicaSet", "web-abc"), labels=template),
        pod("db-0", ("StatefulSet", "db")), pod("db-1", ("StatefulSet", "db")),
        pod("ddp-0", ("PyTorchJob", "ddp"), node=None), pod("ddp-1", ("PyTorchJob", "ddp"), node=None),
    )  # fmt: skip
    groups = {w.id: (len(w.tasks), w.min_available, w.priority) for w in found.state.workloads}
    assert groups == {
        "pg-bare": (1, 1, 50), "pg-job-1": (1, 1, 50), "pg-job-2": (1, 1, 50), "pg-web-1": (1, 1, 125),
        "pg-db": (2, 1, 50),
    }  # fmt: skip
    assert [(a.id, len(a.tasks), a.min_available) for a in found.asks] == [("pg-ddp", 2, 2)]


def gpus_of(task: Any) -> tuple[Any, ...]:
    return task.requests.get("nvidia.com/gpu"), task.gpu_memory, task.gpu_devices, task.gpu_group


@pytest.mark.parametrize(
    ("annotations", "labels", "wanted"),
    [
        ({"gpu-memory": "20480"}, {}, (None, 20480, None, None)),
        ({"gpu-memory": "50000"}, {}, (None, 50000, None, None)),  # on no GPU of this node: the engine says so
        ({"gpu-memory": "400", "gpu-fraction-num-devices": "4"}, {}, (None, 400, 4, None)),
        ({"gpu-fraction": "0.25"}, {}, ("250m", None, None, None)),
        ({"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}, {}, ("250m", None, 2, None)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "1"}, {}, ("500m", None, None, None)),
        ({"gpu-fraction": "0.5", "gpu-memory": "400"}, {}, ("500m", None, None, None)),
        ({"gpu-fraction": "1.0", "gpu-fraction-num-devices": "3"}, {}, (3, None, None, None)),
        ({"gpu-fraction": "0.5"}, {"runai-gpu-group": "g1"}, ("500m", None, None, "g1")),
        ({"gpu-memory": "400", "gpu-fraction-num-devices": "2"},
         {"runai-gpu-group/g2": "g2", "runai-gpu-group/g1": "g1"}, (None, 400, 2, "g1,g2")),
        ({}, {"runai-gpu-group": "g1"}, (None, None, None, None)),
    ],
)  # fmt: skip
def test_shares_of_gpus_are_those_of_the_annotations(annotations: Any, labels: Any, wanted: Any) -> None:
    found = kai(pod("p", annotations=annotations, labels=labels), pod("w", None, None, annotations=annotations))
    assert [f for f in found.findings if f.severity in ("error", "warning") and "/annotations/" in f.pointer] == []
    assert gpus_of(found.state.workloads[0].tasks[0]) == wanted
    assert gpus_of(found.asks[0].tasks[0]) == (*wanted[:3], None), "it is nowhere yet"
    assert found.state.nodes[0].gpu_memory == 40960


@pytest.mark.parametrize(
    ("annotations", "detail"),
    [
        ({"gpu-memory": "4Gi"}, "a whole number of MiB is expected"),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "1025"}, "a whole number of GPUs is expected"),
        ({"gpu-fraction": "0.1234"}, "a share of one GPU in thousandths is expected"),
    ],
)
def test_a_share_that_can_not_be_read_is_an_error(annotations: dict[str, str], detail: str) -> None:
    found = kai(pod("p", annotations=annotations))
    assert [f.detail for f in found.findings if f.severity == "error"] == [detail]


@pytest.mark.parametrize(("groups", "moved"), [(("a", "a"), 0), (("a", "b"), 1)])
def test_which_gpu_pods_are_on_decides_where_another_has_room(groups: tuple[str, str], moved: int) -> None:
    """Two GPUs of which one is free, or of which each has a little, until a pod is moved to the other."""
    half = {"gpu-fraction": "0.5"}
    there = [pod(f"p{i}", labels={"runai-gpu-group": name}, annotations=half) for i, name in enumerate(groups)]
    wanted = pod("w", None, None, annotations={"gpu-memory": "30000"})
    found = kai(*there, wanted)
    nodes = [structs.replace(node, capacity={**node.capacity, "nvidia.com/gpu": 2}) for node in found.state.nodes]
    queues = [structs.replace(queue, quota={}) for queue in found.configuration.queues]
    loaded = solve.load(
        solve.configure(structs.replace(found.configuration, queues=queues)), structs.replace(found.state, nodes=nodes)
    )
    answer = solve.decide(loaded, solve.Question(0, found.asks, "cycle", solve.NO_OPTIONS))
    assert [one.outcome for one in answer.decisions] == ["preempt" if moved else "admit"]
    assert len(answer.plan.evictions) == moved


@pytest.mark.parametrize(
    ("minutes", "phase", "state"),
    [(1, "Running", "releasing"), (3, "Running", "stuck_in_releasing"), (3, "Pending", "releasing")],
)
def test_a_pod_that_should_be_gone_for_two_minutes_is_stuck(minutes: int, phase: str, state: str) -> None:
    leaving = pod("p")
    end = datetime.now(UTC) - timedelta(minutes=minutes)
    leaving["metadata"]["deletionTimestamp"] = end.isoformat()
    leaving["status"] = {"phase": phase}
    assert kai(leaving).state.workloads[0].tasks[0].state == state


def test_a_source_of_another_day_tells_itself_who_was_stuck_then() -> None:
    leaving = pod("p")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-01T09:00:00Z"
    leaving["status"] = {"phase": "Running"}
    for minute, state in (("01", "releasing"), ("03", "stuck_in_releasing")):
        node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m"}}
        heard = f"2026-11-01T09:{minute}:00Z"
        node["status"] = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": heard}]}
        assert kai(leaving, node).state.workloads[0].tasks[0].state == state


def test_topology_that_is_not_decided_is_said() -> None:
    required = {"kai.scheduler/topology": "t", "kai.scheduler/topology-required-placement": "rack"}
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g"},
        "spec": {"queue": "lab", "minMember": 2,
                 "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}},
    }  # fmt: skip
    found = {f.pointer: f.severity for f in kai(pod("p", annotations=required), group).findings}
    on_pod = "/items/2/metadata/annotations/kai.scheduler~1topology-required-placement"
    assert found.items() >= {
        (on_pod, "warning"), ("/items/3/spec/topologyConstraint", "warning"),
    }  # fmt: skip


def test_the_schedulers_orchid_needs_no_state_written_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = imported(ORCHID, "ytsaurus")
    assert [(queue.name, queue.parent, queue.weight) for queue in found.configuration.queues] == [
        ("prod", None, 2.0), ("lab", None, 1.0), ("nlp", "lab", 1.0),
    ]  # fmt: skip
    assert list(found.configuration.queues[0].quota) == ["cpu"]
    assert [(node.name, node.schedulable) for node in found.state.nodes] == [
        ("exec-1:9012", True), ("exec-2:9012", True), ("exec-3:9012", False),
    ]  # fmt: skip
    (running,) = found.state.workloads
    assert [(task.name, task.node, task.requests) for task in running.tasks] == [
        ("j-1", "exec-1:9012", {"user_slots": 1, "cpu": 6, "memory": 10 << 30}),
        ("j-2", "exec-2:9012", {"user_slots": 1, "cpu": 6, "memory": 10 << 30}),
    ]
    assert [(ask.id, ask.workload, ask.tasks[0].count, ask.tasks[0].requests["cpu"]) for ask in found.asks] == [
        ("aa-1", "aa-1", 1, 6), ("bb-2", None, 3, 4),
    ]  # fmt: skip
    assert {f.detail for f in found.findings} == {
        "pool tree 'cloud' is a cluster of its own: left out",
        "operation 'cc-3' is in no pool of the tree: left out",
        "what each job asks for is not told: an operation's usage by its jobs, else its demand by its slots",
    }
    file = tmp_path / "orchid.json"
    file.write_text(json.dumps(ORCHID))
    assert run(["decide", str(file)]) == 1
    said = capsys.readouterr()
    assert "bb-2: preempt on exec-2:9012" in said.out
    assert "pool tree 'cloud' is a cluster of its own" in said.err


def test_an_orchid_in_yson_with_the_tree_of_cypress_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `yt get` prints both: the tree has the settings of pools, the orchid what runs; an ephemeral pool is only
    there."""
    yson = pytest.importorskip("yt.yson", reason="the extra arbiter-preemption[yson] is not installed")
    orchid, tree = tmp_path / "orchid.yson", tmp_path / "tree.yson"
    orchid.write_bytes(yson.dumps(ORCHID, yson_format="pretty"))
    assert run(["decide", str(orchid)]) == 1
    assert "bb-2: preempt on exec-2:9012" in capsys.readouterr().out
    guarantee = b"strong_guarantee_resources={cpu=12}"
    tree.write_bytes(b'<id="1-2">{prod=<' + guarantee + b";enable_aggressive_starvation=%true>{};lab=<mode=fifo>{}}")
    for command in (
        ["decide", str(orchid), "--configuration", str(tree)],
        ["decide", "-f", str(orchid), "-f", str(tree)],
    ):
        assert run(command) == 1
        said = capsys.readouterr()
        assert "bb-2: preempt on exec-2:9012" in said.out
        assert "pool 'nlp' is not configured: added as it is in the orchid" in said.err
    assert run(["import", str(orchid), "-f", str(tree), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    pools = {queue["name"]: queue.get("ytsaurus") for queue in found["configuration"]["queues"]}
    assert pools == {"prod": {"enable_aggressive_starvation": True}, "lab": {"mode": "fifo"}, "nlp": None}
    assert [workload["id"] for workload in found["state"]["workloads"]] == ["aa-1"]


def test_an_orchid_tells_the_settings_the_nodes_and_the_starvation_of_its_tree() -> None:
    """``scheduling_info_per_pool_tree`` of the present release."""
    physical = ORCHID["pool_trees"]["physical"]
    config = {"fair_share_starvation_timeout": 45000, "preemption_satisfaction_threshold": 0.9, "never_heard_of": 1}
    pools = physical["pools"] | {"prod": physical["pools"]["prod"] | {"starvation_status": "starving"}}
    info = {"fair_share_info": physical | {"pools": pools}}
    tree = {"config": config, "node_addresses": ["exec-1:9012"], **info}
    document = {key: value for key, value in ORCHID.items() if key != "pool_trees"}
    found = imported(document | {"scheduling_info_per_pool_tree": {"physical": tree}}, "kubernetes")
    settings = found.configuration.settings.ytsaurus
    assert (settings.fair_share_starvation_timeout, settings.preemption_satisfaction_threshold) == (45, 0.9)
    assert [node.name for node in found.state.nodes] == ["exec-1:9012"]
    assert {name: queue.ytsaurus.starvation for name, queue in found.state.queues.items()} == {"prod": "starving"}
