"""What a translation takes from a cluster beside its work: YuniKorn's two ConfigMaps, LocalQueues, classes."""

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.answering.plan import plan
from app.answering.sources import nothing_stored
from app.following.grouped import merged, only, translate, without
from app.following.mirror import View
from app.formats import export
from app.formats.yunikorn.pods import DYNAMIC
from app.solver.model.problems import Finding
from tests.cluster import kueue, pods


def view(*objects: dict[str, Any]) -> View:
    items: dict[str, Any] = {kind: {} for kind in ("ConfigMap", "Pod", "Node", "PriorityClass")}
    for made in objects:
        metadata = made["metadata"]
        items.setdefault(made["kind"], {})[metadata.get("namespace", ""), metadata["name"]] = made
    return View(items, {}, None, None)


def queues(*objects: dict[str, Any]) -> set[str]:
    return {queue.name for queue in translate("yunikorn", view(*objects)).configuration.queues}


def config(name: str, space: str = "yunikorn", **queues: str) -> dict[str, Any]:
    made = pods.yunikorn_queues(1, name)
    made["metadata"]["namespace"] = space
    made["data"] = {
        f"{key}.yaml": f"partitions: [{{name: default, queues: [{{name: {of}}}]}}]" for key, of in queues.items()
    }
    return made


def test_the_second_config_map_of_yunikorn_replaces_keys_of_the_first() -> None:
    defaults, configs = config("yunikorn-defaults", queues="a"), config("yunikorn-configs", queues="b")
    for given, expected in (
        ((defaults, configs), "b"), ((configs, defaults), "b"), ((defaults,), "a"), ((configs,), "b"),
        ((defaults, config("yunikorn-configs", other="c")), "a"), ((config("other", queues="x"), configs), "b"),
    ):  # fmt: skip
        assert queues(*given) >= {f"root.{expected}"}, given
        assert not queues(*given) & {f"root.{name}" for name in "abx" if name != expected}
    assert queues(config("other", queues="x")) == queues() == set()
    broken = config("yunikorn-configs", queues="b")
    broken["data"]["queues.yaml"] = 5
    (finding, *_) = translate("yunikorn", view(defaults, broken)).findings
    assert finding.pointer.startswith("/ConfigMap/yunikorn/yunikorn-configs")
    broken = config("yunikorn-defaults", queues="b")
    broken["data"]["queues.yaml"] = 5
    (finding, *_) = translate("yunikorn", view(broken)).findings
    assert finding.pointer.startswith("/ConfigMap/yunikorn/yunikorn-defaults")


def test_queues_and_classes_are_known_by_name() -> None:
    wrong = kueue.local_queue("wrong", "q")
    wrong["spec"]["clusterQueue"] = 5
    empty = kueue.local_queue("empty", "q")
    del empty["spec"]
    own = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "own"}, "value": 3}
    both = {**own, "metadata": {"name": "both"}, "value": 4}
    bad = {**own, "metadata": {"name": "bad"}, "value": "5"}
    found = translate("kueue", view(
        kueue.cluster_queue("q", 1), kueue.local_queue("l", "q"), wrong, empty, own, both, bad,
        kueue.priority_class("high", 7), kueue.priority_class("both", 8),
    ))  # fmt: skip
    assert found.local_queues == {"default/l": "q"}
    assert found.priority_classes == {"own": 3, "both": 4}
    assert found.workload_priority_classes == {"high": 7, "both": 8}


def test_what_waits_in_a_followed_cluster_and_what_would_are_held_for_the_same_reasons() -> None:
    """Its namespaces, LimitRanges and RuntimeClasses are part of the configuration that is kept, and a check of which
    there is none in all of the cluster is missing."""
    queue = kueue.cluster_queue("q", 9)
    queue["spec"]["namespaceSelector"] = {"matchLabels": {"team": "a"}}
    checked = kueue.cluster_queue("checked", 9)
    checked["spec"]["admissionChecks"] = ["gone"]
    core, container = {"apiVersion": "v1"}, {"type": "Container", "max": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
    spaces = [
        core | {"kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}, "annotations": {"a": "b"}}}
        for name, team in (("default", "a"), ("other", "b"), ("nobody", "c"))
    ]
    elsewhere = kueue.local_queue("l", "q")
    elsewhere["metadata"]["namespace"] = "other"
    limits = core | {
        "kind": "LimitRange",
        "metadata": {"name": "of", "namespace": "default"},
        "spec": {"limits": [container]},
    }
    overhead = {"podFixed": {"cpu": "500m"}}
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, "overhead": overhead}
    seen = view(
        kueue.flavor(), queue, checked, kueue.local_queue("l", "q"), kueue.local_queue("c", "checked"), elsewhere,
        *spaces, limits, runtime,
    )  # fmt: skip
    whole = dataclasses.replace(seen, versions=dict.fromkeys((*seen.items, "AdmissionCheck"), "1"))
    configuration = translate("kueue", whole).configuration
    assert configuration.native is not None
    kept = {(one["kind"], one["metadata"]["name"]): one["metadata"] for one in configuration.native.objects}
    assert kept["Namespace", "default"] == {"name": "default", "labels": {"team": "a"}}
    assert ("Namespace", "nobody") not in kept
    assert {found.rule for found in export(configuration, "kueue").findings} == {"status"}

    def planned(space: str, local: str, cpu: str | None) -> tuple[str, str, Any]:
        asked = {} if cpu is None else {"resources": {"requests": {"cpu": cpu}}}
        spec = {"containers": [{"name": "c", **asked}], "runtimeClassName": "vm"}
        labels = {"kueue.x-k8s.io/queue-name": local}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": space, "labels": labels}}
        body = {"configuration": configuration, "state": {}, "manifest": job | {"spec": {"template": {"spec": spec}}}}
        made = json.loads(plan(msgspec.json.encode(body), datetime.now(UTC), nothing_stored()))
        return made["work"][0]["outcome"], made["decisions"][0]["conditions"][0]["message"], made["work"][0]["requests"]

    outcome, _, requests = planned("default", "l", None)
    assert (outcome, requests) == ("admit", {"cpu": 1.5})
    assert "must not exceed its limits" in planned("default", "l", "3")[1], "the most is a limit where none is given"
    assert "namespaceSelector" in planned("other", "l", "1")[1]
    assert "references missing AdmissionCheck(s): gone" in planned("default", "c", "1")[1]
    assert "checked" not in {
        of.name for of in translate("kueue", seen).configuration.queues if of.kueue and of.kueue.inactive
    }


def finding(pointer: str, rule: str = "r", detail: str = "") -> Finding:
    return Finding(rule=rule, severity="warning", pointer=pointer, detail=detail)


def test_findings_about_what_was_read_again_are_those_of_the_last_time() -> None:
    old = [
        finding("/Pod/s/a/spec/x"), finding("/Pod/s/ab/spec"), finding("/Pod/s/a"), finding("/Node//n/status"),
        finding("/Pod/s/a/spec/queue", DYNAMIC, "root.x"),
    ]  # fmt: skip
    new = [
        finding("/Pod/s/a/metadata"), finding("/Queue//q/spec"), finding("/Pod/s/b/spec/queue", DYNAMIC, "root.x"),
        finding("/Pod/s/b/spec/queue", DYNAMIC, "root.y"), finding("/Pods/s/a"),
    ]  # fmt: skip
    about = [("Pod", ("s", "a"))]
    assert merged(old, new, about) == [old[1], old[3], old[4], new[0], new[3]]
    assert merged(old, [], about) == [old[1], old[3], old[4]]
    assert merged([], new, about) == [new[0], new[2], new[3]]
    assert merged(old, new, []) == old
    assert merged([], [], about) == []


def test_a_part_of_a_view_has_what_is_named_and_all_of_other_kinds() -> None:
    whole = view(pods.node("n"), pods.node("m"), pods.pod("a", "x"), pods.pod("b", "x"))
    part = only(whole, {"Pod": [("default", "b"), ("default", "gone")], "Node": (), "Queue": [("", "q")]})
    assert {kind: list(of) for kind, of in part.items.items()} == {
        "ConfigMap": [], "Pod": [("default", "b")], "Node": [], "PriorityClass": [],
    }  # fmt: skip
    assert len(whole.items["Pod"]) == 2
    old = {"a": 1, "b": 2}
    assert (without(old, ["a", "c"]), old) == ({"b": 2}, {"a": 1, "b": 2})
    assert msgspec.to_builtins(part.versions) == {}


def test_every_finding_of_a_kind_is_listed_up_to_a_few_hundred() -> None:
    items = {("default", f"w{i}"): kueue.workload(f"w{i}", "nowhere", 1) for i in range(30)}
    kinds = ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "ConfigMap")
    found = translate("kueue", View({**{kind: {} for kind in kinds}, "Workload": items}, {}, None, None))
    assert sum(one.rule == "no-queue" for one in found.findings) == 30
