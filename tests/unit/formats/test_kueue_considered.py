"""What Kueue does not try although it waits, what it evicts although nobody asks, and as what it counts requests."""

import json
from datetime import datetime
from typing import Any

import pytest

from app.formats import export, import_configuration
from app.formats.reader import Imported
from app.solver import solve
from app.solver.model.base import micros
from app.solver.question import Question

Json = dict[str, Any]
API = "kueue.x-k8s.io/v1beta2"
NOON, ONE = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"
OPEN: Json = {"namespaceSelector": {}}


def made(kind: str, name: str, spec: Json, api: str = API, **more: Any) -> Json:
    metadata = {"name": name, **({"namespace": "ns"} if kind in ("LocalQueue", "Workload", "LimitRange") else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata | more.pop("metadata", {}), "spec": spec, **more}


def cluster_queue(name: str = "q", **spec: Any) -> Json:
    quotas = [{"name": "cpu", "nominalQuota": 10}, {"name": "memory", "nominalQuota": "10Gi"}]
    groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "f", "resources": quotas}]}]
    return made("ClusterQueue", name, {"resourceGroups": groups, **OPEN, **spec})


def local_queue(**spec: Any) -> Json:
    return made("LocalQueue", "lq", {"clusterQueue": "q", **spec})


FLAVOR = made("ResourceFlavor", "f", {})


def workload(name: str = "w", cpu: Any = 1, *, admitted: bool | None = None, **more: Any) -> Json:
    """``admitted``: None: it waits; False: it reserves quota and is not admitted yet."""
    pod = more.pop("pod", {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]})
    spec = {"queueName": "lq", "podSets": [{"name": "main", "count": 2, "template": {"spec": pod}}]}
    status: Json = more.pop("status", {})
    if admitted is not None:
        assigned = {"name": "main", "count": 2, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": 2 * cpu}}
        status = {"admission": {"clusterQueue": "q", "podSetAssignments": [assigned]}, **status}
        conditions = [condition("QuotaReserved"), condition("Admitted", admitted)]
        status["conditions"] = [*conditions, *status.get("conditions", [])]
    return made("Workload", name, spec | more.pop("spec", {}), status=status, **more)


def condition(kind: str, holds: bool = True, reason: str = "", message: str = "") -> Json:
    return {
        "type": kind, "status": str(holds), "reason": reason, "message": message, "lastTransitionTime": NOON,
    }  # fmt: skip


def read(*documents: Json) -> Imported:
    return import_configuration("\n---\n".join(map(json.dumps, documents)).encode(), "kueue")


def decided(*documents: Json, now: str = NOON) -> tuple[dict[str, tuple[str, str]], list[tuple[str, str]]]:
    """Outcome and first message of each ask, and what is evicted without an ask, of a cluster with one open queue."""
    found = read(FLAVOR, *documents)
    assert [one for one in found.findings if one.severity != "info"] == []
    loaded = solve.load(solve.configure(found.configuration), found.state)
    answer = solve.decide(loaded, Question(micros(datetime.fromisoformat(now)), found.asks, "cycle"))
    outcomes = {one.ask: (one.outcome, one.conditions[0].message) for one in answer.decisions}
    return outcomes, [(one.workload, one.reason) for one in answer.plan.evictions if one.for_ask is None]


@pytest.mark.parametrize("policy", ["None", "Hold", "HoldAndDrain"])
@pytest.mark.parametrize("which", ["ClusterQueue", "LocalQueue"])
def test_a_stopped_queue_admits_nothing_gives_reservations_up_and_drains(policy: str, which: str) -> None:
    stop = {"stopPolicy": policy}
    queues = (
        cluster_queue(**(stop if which == "ClusterQueue" else {})),
        local_queue(**(stop if which == "LocalQueue" else {})),
    )
    outcomes, evicted = decided(
        *queues, workload("runs", admitted=True), workload("reserves", admitted=False), workload("waits")
    )
    if policy == "None":
        assert {name: outcome for name, (outcome, _) in outcomes.items()} == {"ns/waits": "admit"}
        assert evicted == []
        return
    assert {name: outcome for name, (outcome, _) in outcomes.items()} == {"ns/reserves": "wait", "ns/waits": "wait"}
    assert all(message.startswith(which) and policy in message for _, message in outcomes.values())
    assert evicted == ([("ns/runs", f"{which}Stopped")] if policy == "HoldAndDrain" else [])


def test_a_stopped_queue_comes_out_as_it_went_in() -> None:
    text = json.dumps(cluster_queue(stopPolicy="Hold")).encode()
    found = import_configuration(text, "kueue").configuration
    assert found.queues[0].kueue is not None
    assert found.queues[0].kueue.stop_policy == "Hold"
    assert "stopPolicy: Hold" in export(found, "kueue").text


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"spec": {"active": False}}, "not active"),
        ({"metadata": {"annotations": {"kueue.x-k8s.io/admission-gated-by": "g"}}}, "gated by g"),
        ({"status": {"conditions": [condition("QuotaReserved", False, "OnHold")]}}, "on hold"),
        ({"status": {"conditions": [condition("WaitingForReplacementPods")]}}, "replacement pods"),
        ({"status": {"admissionChecks": [{"name": "budget", "state": "Rejected"}]}}, "checks failed: budget"),
        ({"status": {"admissionChecks": [{"name": "budget", "state": "Retry"}]}}, "checks failed: budget"),
        ({"status": {"conditions": [condition("Requeued", False, "Deactivated")]}}, "not queued again yet"),
        ({"status": {"requeueState": {"count": 1, "requeueAt": ONE}}}, "steps back until"),
    ],
)
def test_what_forbids_a_workload_is_why_it_waits(changes: Json, why: str) -> None:
    outcomes, _ = decided(cluster_queue(), local_queue(), workload(**changes))
    assert outcomes["ns/w"][0] == "wait"
    assert why in outcomes["ns/w"][1]
    assert decided(cluster_queue(), local_queue(), workload())[0]["ns/w"][0] == "admit"


def test_it_is_queued_again_at_its_time() -> None:
    again = workload(status={"requeueState": {"requeueAt": ONE}, "conditions": [condition("Requeued", False)]})
    assert decided(cluster_queue(), local_queue(), again, now=ONE)[0]["ns/w"][0] == "admit"


def test_what_is_not_active_any_more_holds_nothing() -> None:
    outcomes, evicted = decided(
        cluster_queue(), local_queue(), workload("gone", 5, admitted=True, spec={"active": False}), workload("w", 5)
    )
    assert (outcomes["ns/w"][0], evicted) == ("admit", [])


SELECTORS: list[tuple[Json | None, bool]] = [
    ({}, True), (None, False),
    ({"matchLabels": {"team": "a"}}, True), ({"matchLabels": {"team": "b"}}, False),
    ({"matchLabels": {"kubernetes.io/metadata.name": "ns"}}, True),
    ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, True),
    ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, False),
    ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
    ({"matchExpressions": [{"key": "other", "operator": "Exists"}]}, False),
]  # fmt: skip


@pytest.mark.parametrize(("selector", "matches"), SELECTORS)
def test_a_namespace_that_is_not_selected_waits(selector: Json | None, matches: bool) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"team": "a"}}}
    outcomes, _ = decided(cluster_queue(namespaceSelector=selector), local_queue(), space, workload())
    assert outcomes["ns/w"][0] == ("admit" if matches else "wait")
    assert matches or "namespaceSelector" in outcomes["ns/w"][1]


def test_labels_of_a_namespace_that_is_not_shown_are_taken_for_granted_and_said() -> None:
    queue = cluster_queue(namespaceSelector={"matchLabels": {"team": "b"}})
    found = read(queue, FLAVOR, local_queue(), workload("a"), workload("b"))
    assert [(one.rule, one.severity) for one in found.findings] == [("assumed-namespace", "warning")] * 2
    assert [ask.kueue for ask in found.asks] == [None, None]
    elsewhere = cluster_queue(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "other"}})
    assert decided(elsewhere, local_queue(), workload())[0]["ns/w"][0] == "wait", "its name is known"


def check(name: str, active: bool | None = None) -> Json:
    status = {} if active is None else {"conditions": [condition("Active", active)]}
    return made("AdmissionCheck", name, {"controllerName": "c"}, status=status)


CHECKED = {"admissionChecksStrategy": {"admissionChecks": [{"name": "budget", "onFlavors": ["f"]}]}}


@pytest.mark.parametrize(
    ("queue", "checks", "why"),
    [
        (CHECKED, [check("budget")], None),
        (CHECKED, [check("budget", True)], None),
        (CHECKED, [check("budget", False)], "inactive AdmissionCheck(s): budget"),
        (CHECKED, [check("other")], "missing AdmissionCheck(s): budget"),
        ({"admissionChecks": ["budget"]}, [check("other")], "missing AdmissionCheck(s): budget"),
    ],
)
def test_a_queue_is_as_active_as_its_checks(queue: Json, checks: list[Json], why: str | None) -> None:
    outcome, message = decided(cluster_queue(**queue), local_queue(), *checks, workload())[0]["ns/w"]
    assert outcome == ("wait" if why else "admit")
    assert why is None or why in message


def test_what_a_queue_says_of_itself_goes_before_what_the_source_shows() -> None:
    inactive = condition("Active", False, "FlavorNotFound", "references missing ResourceFlavor(s): g")
    queue = cluster_queue(**CHECKED) | {"status": {"conditions": [inactive]}}
    assert "missing ResourceFlavor(s): g" in decided(queue, local_queue(), workload())[0]["ns/w"][1]
    active = cluster_queue(**CHECKED) | {"status": {"conditions": [condition("Active")]}}
    assert decided(active, local_queue(), workload())[0]["ns/w"][0] == "admit"
    found = read(cluster_queue(**CHECKED), FLAVOR, local_queue(), workload())
    assert [(one.rule, one.severity) for one in found.findings] == [("not-decided", "warning")]


def configuration(**resources: Any) -> Json:
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "resources": resources}


GPU: Json = {"input": "nvidia.com/mig", "strategy": "Replace", "outputs": {"nvidia.com/gpu": "500m", "credits": "-1"}}


@pytest.mark.parametrize(
    ("resources", "requests", "counted"),
    [
        ({}, {"cpu": 1, "example.com/x": 1}, {"cpu": 1, "example.com/x": 1}),
        ({"excludeResourcePrefixes": ["example.com/"]}, {"cpu": 1, "example.com/x": 1}, {"cpu": 1}),
        ({"transformations": [GPU]}, {"nvidia.com/mig": 3}, {"nvidia.com/gpu": 2, "credits": 0}),
        ({"transformations": [GPU | {"strategy": "Retain"}]}, {"nvidia.com/mig": 2, "credits": 4},
         {"nvidia.com/mig": 2, "nvidia.com/gpu": 1, "credits": 4}),
        ({"transformations": [{"input": "cpu", "outputs": {"credits": "0.1"}, "multiplyBy": "hours"}]},
         {"cpu": "500m", "hours": 7}, {"cpu": "500m", "hours": 7, "credits": 1}),
        ({"transformations": [{"input": "cpu", "strategy": "Replace"}]}, {"cpu": 1, "memory": 5}, {"memory": 5}),
        ({"transformations": [{"input": a, "outputs": {"sum": 1}} for a in ("a", "b")]}, {"a": 1, "b": 2, "sum": 4},
         {"a": 1, "b": 2, "sum": 7}),
    ],
)  # fmt: skip
def test_requests_count_as_the_manager_says(resources: Json, requests: Json, counted: Json) -> None:
    pod = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    found = read(configuration(**resources), FLAVOR, cluster_queue(), local_queue(), workload(pod=pod))
    assert [one for one in found.findings if one.severity != "info"] == []
    assert found.asks[0].tasks[0].requests == counted
    again = import_configuration(export(found.configuration, "kueue").text.encode(), "kueue").configuration
    assert again == found.configuration


def test_undeclared_resources_are_ignored_where_the_manager_says_so() -> None:
    asks = workload(pod={"containers": [{"name": "c", "resources": {"requests": {"cpu": 1, "odd": 1}}}]})
    for strategy, outcome in (("BlockUndeclared", "infeasible"), ("IgnoreUndeclared", "admit")):
        manager = configuration(quotaCheckStrategy=strategy)
        assert decided(manager, cluster_queue(), local_queue(), asks)[0]["ns/w"][0] == outcome


def test_the_cluster_fills_pods_in_before_they_are_counted() -> None:
    limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": 3}, "default": {"memory": "1Gi"}}]}
    runtime = {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, "handler": "vm",
        "overhead": {"podFixed": {"cpu": "250m"}},
    }  # fmt: skip
    pod = {"runtimeClassName": "vm", "containers": [{"name": "c", "resources": {}}]}
    beside = (made("LimitRange", "l", limits, "v1"), runtime)
    found = read(FLAVOR, cluster_queue(), local_queue(), *beside, workload(pod=pod))
    assert found.asks[0].tasks[0].requests == {"cpu": "3250m", "memory": 1 << 30}
    assert [one for one in found.findings if one.severity != "info"] == []
    found = read(FLAVOR, cluster_queue(), local_queue(), workload(pod=pod))
    assert [(one.rule, one.severity) for one in found.findings] == [("unknown-name", "warning")]


def of_one(requests: Json, limits: Json, **more: Any) -> Json:
    return {"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}], **more}


_FIRST = "spec.podSets[0].template.spec"
_STARTS = {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": 4}}}]}


@pytest.mark.parametrize(
    ("pod", "limits", "why"),
    [
        (of_one({"cpu": 2}, {"cpu": 1}), [], f"{_FIRST}.containers[0]: cpu: requests must not exceed its limits"),
        (of_one({"cpu": 2}, {"cpu": 2}), [], None),
        (of_one({}, {}, resources={"requests": {"cpu": 2}, "limits": {"cpu": 1}}), [], f"{_FIRST}.resources: cpu"),
        (of_one({"cpu": 2}, {}), [{"type": "Container", "default": {"cpu": 1}}], "must not exceed its limits"),
        (of_one({"cpu": 2}, {}), [{"type": "Container", "max": {"cpu": 3}}, {"type": "Container", "max": {"cpu": 1}}],
         "requests must not be above the limitRange max"),
        (of_one({"cpu": 2}, {"cpu": 3}), [{"type": "Container", "max": {"cpu": 2}}],
         f"{_FIRST}.containers[0]: cpu: requests must not be above the limitRange max"),
        (of_one({"cpu": 2}, {"cpu": 3}), [{"type": "Container", "max": {"cpu": 3}}], None),
        (of_one({"cpu": 2}, {"cpu": 3}), [{"type": "Container", "min": {"cpu": 3}}],
         f"{_FIRST}.containers[0]: cpu: requests must not be below the limitRange min"),
        (of_one({"cpu": 2}, {"cpu": 9}), [{"type": "Container", "maxLimitRequestRatio": {"cpu": 2}}], None),
        (of_one({"cpu": 2}, {}), [{"type": "Pod", "max": {"cpu": 1, "memory": 1}}],
         f"{_FIRST}: cpu: requests must not be above the limitRange max"),
        (of_one({"cpu": 2}, {}, **_STARTS), [{"type": "Pod", "max": {"cpu": 3}}], f"{_FIRST}: cpu"),
        (of_one({"cpu": 2}, {}, **_STARTS), [{"type": "Container", "max": {"cpu": 3}, "default": {"cpu": 8}}],
         f"{_FIRST}.initContainers[0]: cpu: requests must not be above"),
        (of_one({"cpu": 2}, {}, overhead={"cpu": 2}), [{"type": "Pod", "max": {"cpu": 3}}], f"{_FIRST}: cpu"),
        (of_one({"cpu": 2}, {}), [{"type": "Pod", "min": {"cpu": 3}}], "must not be below the limitRange min"),
        (of_one({"cpu": 2}, {}), [{"type": "Pod", "min": {"cpu": 2}, "max": {"cpu": 2}}], None),
    ],
)  # fmt: skip
def test_kueue_does_not_try_what_is_past_its_own_limit_or_a_limit_range(
    pod: Json, limits: list[Json], why: str | None
) -> None:
    ranges = [made("LimitRange", f"l{i}", {"limits": [one]}, "v1") for i, one in enumerate(limits)]
    documents = (cluster_queue(), local_queue(), *ranges, workload(pod=pod), workload("r", admitted=True, pod=pod))
    outcome, message = decided(*documents)[0]["ns/w"]
    assert outcome == ("admit" if why is None else "wait")
    assert (why or "") in message
    elsewhere = [one | {"metadata": one["metadata"] | {"namespace": "other"}} for one in ranges]
    within = why is None or bool(limits)
    outcome, _ = decided(cluster_queue(), local_queue(), *elsewhere, workload(pod=pod))[0]["ns/w"]
    assert outcome == ("admit" if within else "wait"), "a LimitRange of another namespace is nothing to it"


def test_what_a_whole_pod_asks_for_goes_before_what_its_containers_do() -> None:
    pod = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": 1, "memory": 5}}}], "overhead": {"cpu": 1},
        "resources": {"requests": {"cpu": 4}, "limits": {"cpu": 6, "memory": 9, "hugepages-2Mi": 2}},
    }  # fmt: skip
    found = read(FLAVOR, cluster_queue(), local_queue(), workload(pod=pod))
    assert found.asks[0].tasks[0].requests == {"cpu": 5, "memory": 5, "hugepages-2Mi": 2}


def test_a_workload_without_pod_sets_is_an_error_and_left_out() -> None:
    """The API server takes none."""
    for empty in ({"podSets": []}, {"podSets": None}):
        found = read(FLAVOR, cluster_queue(), local_queue(), workload(spec=empty), workload("w2"))
        assert [ask.id for ask in found.asks] == ["ns/w2"]
        told = [(f.severity, f.pointer) for f in found.findings if f.severity != "info"]
        assert told == [("error", "/3/spec/podSets")]


def test_pods_that_are_done_are_not_asked_for_again() -> None:
    done = workload(status={"reclaimablePods": [{"name": "main", "count": 1}]})
    assert read(FLAVOR, cluster_queue(), local_queue(), done).asks[0].tasks[0].count == 1


def manager(**sharing: Any) -> Json:
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "admissionFairSharing": sharing}


SCOPE = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}


@pytest.mark.parametrize(("done", "count", "whole"), [(0, 4, None), (2, 2, 4), (3, 1, 4), (4, 0, 4)])
def test_smaller_sizes_are_counted_down_from_the_spec(done: int, count: int, whole: int | None) -> None:
    waiting = workload()
    (pods,) = waiting["spec"]["podSets"]
    pods |= {"count": 4, "minCount": 2}
    waiting["status"] = {"reclaimablePods": [{"name": pods["name"], "count": done}]}
    ((task,),) = (ask.tasks for ask in read(cluster_queue(), FLAVOR, local_queue(), waiting).asks)
    assert (task.count, task.min_count, task.full_count) == (count, 2, whole)
    assert decided(cluster_queue(), local_queue(), waiting)[0]["ns/w"][0] == "admit"


def test_admission_fair_sharing_is_read_and_written_again() -> None:
    sharing = {"usageHalfLifeTime": "168h", "usageSamplingInterval": "5m", "resourceWeights": {"memory": 0}}
    status = {"fairSharing": {"admissionFairSharingStatus": {
        "consumedResources": {"cpu": "855525217n", "memory": "1500m"}, "lastUpdate": NOON,
    }}}  # fmt: skip
    local = local_queue(fairSharing={"weight": "0.5"}) | {"status": status}
    found = read(manager(**sharing), FLAVOR, cluster_queue(**SCOPE), local, workload("r", admitted=True), workload())
    own = found.state.queues["ns/lq"].kueue
    assert own is not None
    assert (own.consumed, own.weight) == ({"cpu": "855525217n", "memory": "1500m"}, 0.5)
    assert own.updated_at == datetime.fromisoformat(NOON)
    blocks = [found.state.workloads[0].kueue, found.asks[0].kueue]
    assert [block.local_queue for block in blocks if block is not None] == ["ns/lq", "ns/lq"]
    assert not [one for one in found.findings if one.severity != "info"]
    again = import_configuration(export(found.configuration, "kueue").text.encode(), "kueue").configuration
    assert again.settings == found.configuration.settings
    assert [queue.kueue for queue in again.queues] == [queue.kueue for queue in found.configuration.queues]


def test_what_local_queues_consumed_is_left_where_nobody_goes_by_it() -> None:
    found = read(FLAVOR, cluster_queue(**SCOPE), local_queue(), workload())
    assert not found.state.queues
    assert found.asks[0].kueue is None


@pytest.mark.parametrize("amount", ["much", None, {}, [1], True], ids=str)
def test_amounts_that_are_none_are_told(amount: Any) -> None:
    status = {"fairSharing": {"admissionFairSharingStatus": {"consumedResources": {"cpu": amount}}}}
    found = read(manager(usageHalfLifeTime="1h"), FLAVOR, cluster_queue(**SCOPE), local_queue() | {"status": status})
    assert [one.rule for one in found.findings if one.severity == "error"] == ["bad-value"]


def test_nodes_that_failed_under_admitted_work_are_read() -> None:
    status = {"unhealthyNodes": [{"name": "n1"}, {"name": "n2"}]}
    found = read(FLAVOR, cluster_queue(), local_queue(), workload("w", admitted=True, status=status))
    block = found.state.workloads[0].kueue
    assert block is not None
    assert block.unhealthy_nodes == ["n1", "n2"]
