"""What objects say of preemptions, and what a cluster was before them."""

from typing import Any

import pytest

from app.following.objects import ends, evidence
from app.formats.objects import Evidence
from app.solver.model.configuration import EngineName

AT = "2026-11-22T09:00:00Z"


def workload(*conditions: tuple[str, str, str, str], at: str = AT) -> dict[str, Any]:
    listed = [
        {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}
        for kind, status, reason, message in conditions
    ]
    return {"metadata": {"namespace": "ml", "name": "train"}, "status": {"conditions": listed}}


FOR = "Preempted to accommodate a workload (UID: 40399c9c, JobUID: UNKNOWN) due to reclamation within the cohort"
EVICTED = workload(("Evicted", "True", "Preempted", FOR), ("Preempted", "True", "InCohortReclamation", FOR))


def test_kueue_says_it_in_conditions_once() -> None:
    found = evidence("kueue", "Workload", workload(), EVICTED)
    assert found is not None
    assert (found.victim, found.by, found.reason) == (("ml", "train"), "40399c9c", "InCohortReclamation")
    assert found.at is not None
    assert found.at.isoformat() == "2026-11-22T09:00:00+00:00"
    assert (
        evidence("kueue", "Workload", EVICTED, {**EVICTED, "metadata": {**EVICTED["metadata"], "labels": {}}}) is None
    )
    again = workload(("Evicted", "True", "Preempted", FOR), at="2026-11-22T10:00:00Z")
    assert evidence("kueue", "Workload", EVICTED, again) is not None
    assert evidence("kueue", "Workload", None, EVICTED) is None, "it was evicted before it was seen"
    unknown = workload(("Evicted", "True", "Preempted", FOR.replace("40399c9c", "UNKNOWN")))
    assert (evidence("kueue", "Workload", workload(), unknown) or found).by == ""


@pytest.mark.parametrize(
    "other",
    [
        workload(("Evicted", "False", "Preempted", FOR)),
        {"metadata": {}, "status": {"conditions": "nonsense"}},
        {"status": {"conditions": [None, {"type": "Evicted", "status": "True", "reason": ["Preempted"]}]}},
    ],
)
def test_other_workloads_say_nothing(other: dict[str, Any]) -> None:
    assert evidence("kueue", "Workload", workload(), other) is None


def test_evictions_that_let_nobody_in_are_told_with_their_reason() -> None:
    said = evidence("kueue", "Workload", workload(), workload(("Evicted", "True", "PodsReadyTimeout", "too slow")))
    assert said is not None
    assert (said.by, said.reason, said.message, said.preempted) == ("", "PodsReadyTimeout", "too slow", False)
    event = {"reason": "Evict", "message": "no gang", "involvedObject": {"kind": "Pod", "namespace": "a", "name": "v"}}
    told = [evidence("kai", "Event", None, event), evidence("kai", "Event", None, {**event, "involvedObject": {}})]
    assert [one and (one.victim, one.preempted) for one in told] == [(("a", "v"), False), None]


@pytest.mark.parametrize(
    ("engine", "reason", "message", "found"),
    [
        (
            "kai",
            "Evict",
            "Pod a/p-0 was preempted by higher priority workload b/pg-1",
            (("a", "p-0"), "b/pg-1", "preempt"),
        ),
        (
            "kai",
            "Evict",
            "Pod a/p-0 was preempted by workload b/pg.1. b uses <1>.",
            (("a", "p-0"), "b/pg.1", "reclaim"),
        ),
        ("kai", "Evict", "Pod a/p-0 was preempted and rescheduled due to bin packing", (("a", "p-0"), "", None)),
        (
            "kai",
            "Evict",
            "Workload doesn't meet the minimum required number of pods (2)",
            (("a", "v"), "", None),
        ),
        ("kai", "Bound", "Pod a/p-0 was preempted by workload b/pg-1.", None),
        (
            "kube-scheduler",
            "Preempted",
            "Preempted by pod 77-aa on node n-1",
            (("a", "v"), "77-aa", "PreemptionByScheduler"),
        ),
        (
            "kube-scheduler",
            "Preempted",
            "Preempted by a pod 77-aa on node n-1",
            (("a", "v"), "77-aa", "PreemptionByScheduler"),
        ),
        ("kube-scheduler", "Scheduled", "Preempted by pod 77-aa on node n-1", None),
        ("kube-scheduler", "Preempted", "Preempted by somebody", None),
        ("yunikorn", "Informational", "Preempted by 77-aa from application app in root.x", (("a", "v"), "77-aa", None)),
        (
            "yunikorn",
            "Informational",
            "Preempted by Quota change enforcement process in root.x",
            (("a", "v"), "", None),
        ),
        ("yunikorn", "Informational", "Request '1' has become schedulable in queue 'root.x'", None),
    ],
)
def test_schedulers_of_pods_say_it_in_events(engine: EngineName, reason: str, message: str, found: Any) -> None:
    event: dict[str, Any] = {
        "reason": reason, "message": message, "involvedObject": {"kind": "Pod", "namespace": "a", "name": "v"},
    }  # fmt: skip
    said = evidence(engine, "Event", None, event)
    assert (None if said is None else (said.victim, said.by, said.reason)) == found
    assert evidence(engine, "Event", event, {**event, "count": 2}) is None


def test_the_message_of_either_condition_names_for_whom() -> None:
    def said(preempted: Any, evicted: Any) -> Evidence | None:
        made = workload(("Evicted", "True", "Preempted", evicted), ("Preempted", "True", "InClusterQueue", preempted))
        made["status"]["conditions"].insert(0, "nonsense")
        return evidence("kueue", "Workload", workload(), made)

    other = FOR.replace("40399c9c", "other")
    assert [found and found.by for found in (said(FOR, other), said("", other), said(5, other), said(5, None))] == [
        "40399c9c", "other", "other", "",
    ]  # fmt: skip
    alone = evidence("kueue", "Workload", workload(), workload(("Evicted", "True", "Preempted", FOR)))
    assert alone is not None
    assert (alone.by, alone.reason) == ("40399c9c", None)


def test_an_eviction_is_told_again_only_where_its_time_is_another() -> None:
    reworded = workload(("Evicted", "True", "Preempted", FOR + "."))
    assert evidence("kueue", "Workload", EVICTED, reworded) is None
    over = workload(("Evicted", "False", "Preempted", FOR))
    assert evidence("kueue", "Workload", over, EVICTED) is not None


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ({"eventTime": AT, "lastTimestamp": "2026-11-22T10:00:00Z"}, "2026-11-22T09:00:00+00:00"),
        ({"lastTimestamp": AT, "firstTimestamp": "2026-11-22T08:00:00Z"}, "2026-11-22T09:00:00+00:00"),
        ({"eventTime": "soon", "firstTimestamp": "2026-11-22T09:00:00"}, "2026-11-22T09:00:00+00:00"),
        ({"eventTime": 5}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_an_event_has_the_first_time_that_is_one(times: dict[str, Any], found: str | None) -> None:
    event: dict[str, Any] = {"reason": "Evict", "message": "Pod a/p was preempted and rescheduled", **times}
    said = evidence("kai", "Event", None, event)
    assert said is not None
    assert (said.at and said.at.isoformat()) == found
    pod = {"involvedObject": {"kind": "Pod", "namespace": "a", "name": "v"}}
    for message in ("Preempted by Quota change", "Preempted by x from application y in z"):
        said = evidence("yunikorn", "Event", None, {**pod, "message": message, **times})
        assert said is not None
        assert (said.at and said.at.isoformat()) == found
    said = evidence("kai", "Event", None, {**event, "message": "Pod a/p was preempted by workload b/x."})
    assert said is not None
    assert (said.at and said.at.isoformat()) == found


def test_an_event_that_is_no_text_or_of_no_pod_says_nothing() -> None:
    event: dict[str, Any] = {
        "reason": "Evict", "message": "Preempted by x from application y in z",
        "involvedObject": {"kind": "Node", "namespace": 5, "name": None},
    }  # fmt: skip
    assert evidence("yunikorn", "Event", None, event) is None
    event["involvedObject"]["kind"] = "Pod"
    said = evidence("yunikorn", "Event", None, event)
    assert said is not None
    assert said.victim == ("", "")
    assert evidence("kai", "Event", None, {"reason": "Evict", "message": 5}) is None
    assert evidence("kai", "Pod", None, {"reason": "Evict", "message": "Pod a/p was preempted and rescheduled"}) is None
    nameless = workload(("Evicted", "True", "Preempted", FOR))
    del nameless["metadata"]
    said = evidence("kueue", "Workload", workload(), nameless)
    assert said is not None
    assert said.victim == ("", "")


def test_a_pod_ends_when_it_is_told_to_or_is_gone_and_once() -> None:
    runs: dict[str, Any] = {"metadata": {"name": "p"}}
    told: dict[str, Any] = {"metadata": {"name": "p", "deletionTimestamp": AT}}
    assert ends("Pod", runs, told)
    assert ends("Pod", runs, None)
    assert not ends("Pod", runs, runs)
    assert not ends("Pod", told, None)
    assert not ends("Pod", told, told)
    assert not ends("Pod", None, told)
    assert not ends("Workload", runs, None)
