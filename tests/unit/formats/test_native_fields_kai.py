"""Each field of KAI Scheduler's objects that decisions depend on, with another value: the import is another, or says
why not."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.formats import export, import_configuration
from app.solver import solve
from app.solver.model import kai
from app.solver.model.base import micros
from tests.support.left_out import imported, said
from tests.support.native_fields import fields, unused

Json = dict[str, Any]
AMOUNTS: Json = {name: {"quota": 3, "limit": 5, "overQuotaWeight": 1} for name in ("cpu", "memory", "gpu")}
SOURCE: list[Json] = [
    {
        "apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "default"},
        "spec": {"minRuntime": {"preemptMinRuntime": "5m", "reclaimMinRuntime": "5m"}},
    },
    {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"},
        "spec": {"parentQueue": "top", "priority": 100, "resources": AMOUNTS},
    },
    {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "top"},
        "spec": {"resources": AMOUNTS},
    },
    {
        "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "n"},
        "spec": {"queue": "team", "minMember": 1, "priorityClassName": "train", "preemptibility": "preemptible",
                 "subGroups": [{"name": "a"}, {"name": "b", "parent": "a"}]},
    },
    {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "annotations": {"pod-group-name": "g"},
                     "labels": {"kai.scheduler/subgroup-name": "b"}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
    },
    {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "r", "namespace": "n", "annotations": {"pod-group-name": "g"},
                     "labels": {"kai.scheduler/subgroup-name": "b"}},
        "spec": {"schedulerName": "kai-scheduler", "nodeName": "x", "containers": []}, "status": {"phase": "Running"},
    },
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "status": {"capacity": {"cpu": "4"}}},
]  # fmt: skip
SHARED: list[Json] = [
    *SOURCE[:4],
    {**SOURCE[5], "metadata": {**SOURCE[5]["metadata"], "annotations": {"pod-group-name": "g", "gpu-fraction": "0.5"}}},
    SOURCE[6],
]
"""With a pod that runs on a share of a GPU."""
OTHER: Json = {
    "metadata.annotations.gpu-fraction": "0.25", "metadata.annotations.gpu-memory": "400",
    "metadata.annotations.gpu-fraction-num-devices": "2", "metadata.labels.runai-gpu-group": "g1",
    "metadata.deletionTimestamp": "2026-01-01T00:00:00Z",
    "spec.parentQueue": "", "spec.kValue": 2.5, "spec.priority": 200, "spec.preemptMinRuntime": "7m",
    "spec.reclaimMinRuntime": "7m",
    "spec.queue": "top", "spec.minMember": 2, "spec.priorityClassName": "inference",
    "spec.preemptibility": "non-preemptible", "spec.minSubGroup": 1, "spec.preemptionDelay": "5m",
    "spec.stalenessGracePeriod": "5m",
    "spec.subGroups[].name": "c", "spec.subGroups[].parent": "b", "spec.subGroups[].minMember": 3,
    "spec.subGroups[].minSubGroup": 1, "spec.actions": {"reclaim": {"enabled": False}},
    "spec.args": {"use-scheduling-signatures": "false"}, "spec.minRuntime.preemptMinRuntime": "7m",
    "spec.minRuntime.reclaimMinRuntime": "7m", "spec.partitionLabelValue": "pool",
    **{f"spec.resources.{name}.{of}": 4 for name in AMOUNTS for of in AMOUNTS[name]},
}  # fmt: skip


@pytest.mark.parametrize(("kind", "path"), fields("kai"))
def test_another_value_is_another_decision_or_a_finding(kind: str, path: str) -> None:
    source = SOURCE if kind != "Pod" else SHARED
    if path == "metadata.annotations.gpu-memory":  # a share goes before it
        source = json.loads(json.dumps(source).replace("gpu-fraction", "gpu-memory").replace('"0.5"', '"500"'))
    assert unused("kai", source, kind, path, OTHER[path]) is None


@pytest.mark.parametrize(
    ("group", "phase", "severity"),
    [({}, "Pending", "error"), ({}, "Running", "warning"), ({"name": "b"}, "Pending", "error")],
)
def test_a_topology_that_would_place_what_waits_is_an_error(group: Json, phase: str, severity: str) -> None:
    """What runs is where it is: its constraint may only keep consolidation from moving it."""
    constraint = {"topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}}
    spec: Json = {"queue": "team", "minMember": 1, **({"subGroups": [group | constraint]} if group else constraint)}
    pod: Json = {**SOURCE[4], "status": {"phase": phase}}
    node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "status": {"capacity": {"cpu": "4"}}}
    if phase == "Running":
        pod = {**pod, "spec": {**pod["spec"], "nodeName": "x"}}
    found = imported("kai", *SOURCE[:3], {**SOURCE[3], "spec": spec}, pod, node)
    told = [severity for severity, _, pointer, _ in said(found) if "/topologyConstraint" in pointer]
    assert told == [severity]


@pytest.mark.parametrize("label", [None, "a", "ghost"])
def test_pods_of_no_part_are_an_error_and_the_gang_counts_as_a_whole(label: str | None) -> None:
    metadata = {**SOURCE[4]["metadata"], "labels": {} if label is None else {"kai.scheduler/subgroup-name": label}}
    found = imported("kai", *SOURCE[:4], {**SOURCE[4], "metadata": metadata})
    assert [(severity, pointer) for severity, _, pointer, _ in said(found) if severity == "error"] == [
        ("error", "/3/spec/subGroups")
    ]
    assert found.asks[0].sub_groups is None


@pytest.mark.parametrize(
    ("spec", "decided"),
    [({}, 1), ({"kValue": 2}, 2), ({"plugins": {"proportion": {"arguments": {"kValue": "0.5"}}}}, 0.5),
     ({"kValue": 2, "plugins": {"proportion": {"arguments": {"kValue": "0.5"}}}}, 2)],
)  # fmt: skip
def test_the_factor_of_use_over_time_is_read_written_and_kept(spec: Json, decided: float) -> None:
    found = imported("kai", {**SOURCE[0], "spec": spec}, *SOURCE[1:3]).configuration
    assert found.settings.kai is not None
    assert found.settings.kai.k_value == decided
    written = export(found, "kai").text
    assert import_configuration(written.encode(), "kai").configuration == found
    assert ("kValue: '0.5'" in written) == ("plugins" in spec)


def test_how_long_the_released_scheduler_searches_is_read_and_written() -> None:
    budgets = {
        "maxActionSearchDuration": {"default": "5m", "reclaim": "3s"}, "maxJobSearchDuration": "500ms",
        "maxGeneratorSearchDuration": {"NodeLocalGreedy": "75ms"},
    }  # fmt: skip
    source = imported("kai", {**SOURCE[0], "spec": {"scenarioSearchBudgets": budgets}}, *SOURCE[1:3])
    settings = source.configuration.settings.kai
    assert settings is not None
    assert settings.search_budgets == kai.SearchBudgets(
        max_action_search_duration={"default": "5m", "reclaim": "3s"}, max_job_search_duration="500ms",
        max_generator_search_duration={"NodeLocalGreedy": "75ms"},
    )  # fmt: skip
    written = export(source.configuration, "kai").text
    assert import_configuration(written.encode(), "kai").configuration == source.configuration
    wrong = imported("kai", {**SOURCE[0], "spec": {"scenarioSearchBudgets": {"maxActionSearchDuration": {"x": "1s"}}}})
    assert ("error", "/spec/scenarioSearchBudgets") in [(severity, place) for severity, _, place, _ in said(wrong)]


STALE: Json = {"kai.scheduler/stale-podgroup-timestamp": "2026-11-26T09:00:00Z"}


def stale(spec: Json, annotations: Json, shard: Json, *others: Json) -> Any:
    """A gang of two of which one pod runs, decided a minute and a half after it lost the other."""
    group: Json = {**SOURCE[3], "spec": {"queue": "team", "minMember": 2, **spec}}
    group["metadata"] = {**group["metadata"], "annotations": annotations}
    pods: list[Json] = [{**one, "metadata": {**one["metadata"], "labels": {}}} for one in (SOURCE[5], *others)]
    found = imported("kai", {**SOURCE[0], "spec": shard}, *SOURCE[1:3], group, *pods, SOURCE[6])
    now = datetime(2026, 11, 26, 9, 1, 30, tzinfo=UTC)
    loaded = solve.load(solve.configure(found.configuration), found.state)
    return solve.decide(loaded, solve.Question(micros(now), found.asks, "cycle", solve.NO_OPTIONS))


@pytest.mark.parametrize(
    ("spec", "annotations", "shard", "evicted"),
    [
        ({}, STALE, {}, ["r"]),
        ({}, {}, {}, []),  # since now
        ({"minMember": 1}, STALE, {}, []),
        ({"stalenessGracePeriod": "2m"}, STALE, {}, []),
        ({"stalenessGracePeriod": "-1s"}, STALE, {}, []),
        ({"stalenessGracePeriod": "1s"}, STALE, {"args": {"default-staleness-grace-period": "2m"}}, ["r"]),
        ({}, STALE, {"args": {"default-staleness-grace-period": "2m"}}, []),
        ({}, STALE, {"actions": {"stalegangeviction": {"enabled": False}}}, []),
    ],
)
def test_a_gang_that_has_run_with_too_few_pods_goes(spec: Json, annotations: Json, shard: Json, evicted: Any) -> None:
    assert [one.task for one in stale(spec, annotations, shard).plan.evictions] == evicted


@pytest.mark.parametrize(("phase", "evicted"), [("Succeeded", 0), ("Failed", 1)])
def test_a_gang_of_which_a_pod_has_ended_well_is_about_to_end(phase: str, evicted: int) -> None:
    ended = {**SOURCE[5], "metadata": {**SOURCE[5]["metadata"], "name": "e"}, "status": {"phase": phase}}
    assert len(stale({}, STALE, {}, ended).plan.evictions) == evicted


def test_who_was_evicted_waits_before_it_makes_others_go_again() -> None:
    at = "2026-11-26T09:00:00Z"
    annotations = {"kai.scheduler/last-eviction-timestamp": at, "kai.scheduler/last-start-timestamp": ""}
    group = {**SOURCE[3], "metadata": {**SOURCE[3]["metadata"], "annotations": annotations}}
    found = imported("kai", *SOURCE[1:3], group, *SOURCE[4:])
    evicted = [one.last_evicted_at for one in (*found.asks, *found.state.workloads)]
    assert evicted == [datetime(2026, 11, 26, 9, tzinfo=UTC)] * 2
    assert found.state.workloads[0].started_at is None


def test_what_the_pod_grouper_would_write_of_a_pod_is_read() -> None:
    delays = {"kai.scheduler/preemption-delay": "5m", "kai.scheduler/staleness-grace-period": "3m"}
    metadata = {"name": "p", "labels": {"kai.scheduler/queue": "team"}, "annotations": delays}
    found = imported("kai", *SOURCE[1:3], {**SOURCE[5], "metadata": metadata}, SOURCE[6])
    (workload,) = found.state.workloads
    assert (workload.preemption_delay, workload.staleness_grace_period) == ("5m", "3m")


@pytest.mark.parametrize(
    ("tag", "note", "release", "known"),
    [
        ("v0.13.2", None, "0.13", True), ("v0.17.0", None, "0.17", True), ("0.16.1-fips", None, "0.13", False),
        ("v0.18.0", None, "0.17", False), ("v0.9", None, "0.13", False), ("latest", None, "0.17", True),
        (None, None, "0.17", True), ("v0.13.2", "0.17", "0.17", True),
    ],
)  # fmt: skip
def test_the_release_is_the_one_that_the_operator_installs(
    tag: str | None, note: str | None, release: str, known: bool
) -> None:
    image = {} if tag is None else {"tag": tag}
    config: Json = {
        "apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"},
        "spec": {"scheduler": {"service": {"image": image}}},
    }  # fmt: skip
    shard = json.loads(json.dumps(SOURCE[0]))
    if note is not None:
        shard["metadata"]["annotations"] = {"arbiter/release": note}
    source = imported("kai", shard, config, *SOURCE[1:3])
    settings = source.configuration.settings.kai
    assert settings is not None
    assert settings.release == release
    said_so = [finding.detail for finding in source.findings if "are not known here" in finding.detail]
    assert len(said_so) == (not known)


def installed(image: str, name: str = "kai-scheduler-default") -> Json:
    """A Deployment in the namespace of KAI."""
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "kai-scheduler"},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}},
    }  # fmt: skip


def defined(*fields: str) -> Json:
    """The definition of PodGroups, which have these fields."""
    schema: Json = {"properties": {"spec": {"properties": {field: {} for field in fields}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "podgroups.scheduling.run.ai"},
        "spec": {"versions": [{"name": "v2alpha2", "schema": {"openAPIV3Schema": schema}}]},
    }  # fmt: skip


def configured(tag: str) -> Json:
    """The operator's Config."""
    spec = {"scheduler": {"service": {"image": {"tag": tag}}}}
    return {"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"}, "spec": spec}


NEW_FIELDS = ("minSubGroup", "preemptionDelay", "stalenessGracePeriod")
OLD, NEW, UNNAMED = (
    "r.example:5000/kai/scheduler:v0.13.4",
    "r/kai/scheduler:v0.17.1@sha256:0a",
    "r/kai/scheduler@sha256:0a",
)


@pytest.mark.parametrize(
    ("told", "release"),
    [
        ([installed(OLD)], "0.13"), ([installed(NEW)], "0.17"), ([installed("r/kai/binder:v0.13.4", "binder")], None),
        ([installed(UNNAMED)], None), ([installed("r/kai/scheduler:0.0.0-5d4c7a1")], None),
        ([installed(OLD), configured("v0.17.1")], "0.13"), ([installed(UNNAMED), configured("v0.13.4")], "0.13"),
        ([installed(NEW), installed(OLD, "kai-scheduler-other")], "0.13"), ([defined("minMember")], "0.13"),
        ([defined("minMember", *NEW_FIELDS)], "0.17"), ([defined("minMember"), configured("v0.17.0")], "0.17"),
        ([], None),
    ],
)  # fmt: skip
def test_what_is_installed_tells_the_release(told: list[Json], release: str | None) -> None:
    source = imported("kai", *told, *SOURCE[1:])
    settings = source.configuration.settings.kai
    assert settings is not None
    assert (source.release, settings.release) == (release, release or "0.17")
    (said,) = (finding for finding in source.findings if finding.rule == "release")
    assert said.detail.startswith(f"{release} decides: " if release else "nothing here says which release")
    kinds = [one["kind"] for one in (source.configuration.native.objects if source.configuration.native else [])]
    assert not {"Deployment", "CustomResourceDefinition"}.intersection(kinds)


@pytest.mark.parametrize(("nanoseconds", "seconds"), [(None, 0), (90 * 10**9, 90), (1500 * 10**6, 1.5), ("60s", "60s")])
def test_the_grace_of_a_snapshot_is_in_nanoseconds(nanoseconds: Any, seconds: Any) -> None:
    told = {} if nanoseconds is None else {"globalDefaultStalenessGracePeriod": nanoseconds}
    snapshot = {"config": {"actions": "allocate"}, "schedulerParams": told, "rawObjects": {"queues": SOURCE[1:3]}}
    settings = import_configuration(json.dumps(snapshot).encode(), "kai").configuration.settings.kai
    assert settings is not None
    assert settings.staleness_grace_period == seconds
    assert settings.actions == ["allocate"]
