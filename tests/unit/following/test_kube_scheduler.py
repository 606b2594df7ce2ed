"""What kube-scheduler did, beside Arbiter's answer: recordings of pods, nominations and Preempted events."""

import copy
from itertools import pairwise
from typing import Any

import pytest

from app.following.grouped import Translated, translate
from app.following.judging import Judgement
from app.following.mirror import View
from app.following.replaying import Replay
from app.following.translator import delta
from app.solver.apply import Index
from app.solver.delta import apply_delta
from app.solver.model.state import State
from tests.cluster import pods
from tests.support.streams import Stream

Json = dict[str, Any]
SPACE = pods.SPACE


def pod(name: str, priority: int, cpu: int = 2, on: str | None = None, **status: Any) -> Json:
    made = pods.pod(name, "default-scheduler", cpu, on, labels={"app": name})
    made["spec"]["priority"] = priority
    made["status"] |= status
    return made


def preempt(stream: Stream, victim: Json, by: Json) -> None:
    """As kube-scheduler writes it: the condition, the end, the event; then the nomination."""
    node = victim["spec"]["nodeName"]
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    marked = copy.deepcopy(victim)
    marked["status"]["conditions"] = [condition]
    stream.put(marked)
    going = copy.deepcopy(marked)
    going["metadata"]["deletionTimestamp"] = stream.stamp()
    stream.put(going)
    name = victim["metadata"]["name"]
    stream.put({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}.1", "namespace": SPACE},
        "reason": "Preempted", "message": f"Preempted by pod u-{by['metadata']['name']} on node {node}",
        "involvedObject": {"kind": "Pod", "namespace": SPACE, "name": name},
        "eventTime": stream.stamp(),
    })  # fmt: skip
    nominated = copy.deepcopy(by)
    nominated["status"]["nominatedNodeName"] = node
    stream.put(nominated)


def judged(stream: Stream) -> list[Judgement]:
    return list(Replay("kube-scheduler").judge(lambda: iter(copy.deepcopy(stream.lines)), None))


def told(found: list[Judgement]) -> list[tuple[str, str, list[str]]]:
    return [(one.report.ask, one.outcome, [v.workload for v in one.report.victims]) for one in found]


@pytest.fixture
def stream() -> Stream:
    """Two nodes of 4 CPUs, on each two pods of 2; and one that waits, more important than all."""
    made = Stream()
    for name in ("n1", "n2"):
        made.put(pods.node(name, 4))
    for name, priority, node in (("a", 1, "n1"), ("b", 2, "n1"), ("c", 1, "n2"), ("d", 2, "n2")):
        made.put(pod(name, priority, on=node, startTime="2026-11-22T08:00:00Z"))
    made.wait(1)
    made.put(pod("p", 9))
    made.wait(1)
    return made


@pytest.mark.parametrize(("victim", "node"), [("a", "n1"), ("c", "n2")])
def test_of_nodes_that_tie_either_may_be_drawn(stream: Stream, victim: str, node: str) -> None:
    preempt(stream, pod(victim, 1, on=node, startTime="2026-11-22T08:00:00Z"), pod("p", 9))
    (one,) = judged(stream)
    assert told([one]) == [(f"{SPACE}/p", "agreed", [f"{SPACE}/{victim}"])]
    (request,) = one.report.requests
    assert request.mode == "independent"


def test_a_more_important_victim_than_need_be_differs(stream: Stream) -> None:
    preempt(stream, pod("b", 2, on="n1", startTime="2026-11-22T08:00:00Z"), pod("p", 9))
    (one,) = judged(stream)
    assert one.outcome == "differs"
    assert "not evicted, though Arbiter would" in one.detail


def test_a_budget_that_just_changed_and_a_nomination_count_as_they_were(stream: Stream) -> None:
    """A nomination that was written before the victim was told to end is undone for the question."""
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": SPACE},
        "spec": {"selector": {"matchLabels": {"app": "a"}}}, "status": {"disruptionsAllowed": 0},
    }  # fmt: skip
    stream.put(budget)
    stream.wait(1)
    nominated = pod("p", 9, nominatedNodeName="n2")
    stream.put(nominated)
    preempt(stream, pod("c", 1, on="n2", startTime="2026-11-22T08:00:00Z"), nominated)
    (one,) = judged(stream)
    assert told([one])[0][1:] == ("agreed", [f"{SPACE}/c"])
    assert [of.name for of in one.report.requests[0].state.disruption_budgets] == ["b"]
    other = Stream()
    other.lines = [line for line in stream.lines if line["kind"] != "Event"]
    assert judged(other) == [], "nobody says for whom"


def view(*items: Json) -> Translated:
    listed: dict[str, dict[tuple[str, str], Json]] = {
        kind: {} for kind in ("Pod", "Node", "PriorityClass", "PodDisruptionBudget", "Namespace")
    }
    for item in items:
        key = item["metadata"].get("namespace", ""), item["metadata"]["name"]
        listed[item["kind"]][key] = item
    return translate("kube-scheduler", View(listed, {}, None, None))


def test_a_delta_brings_nominations_and_budgets_up_to_date() -> None:
    budget: Json = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": SPACE},
        "spec": {"selector": {"matchLabels": {"app": "a"}}}, "status": {"disruptionsAllowed": 0},
    }  # fmt: skip
    nodes = pods.node("n1"), pods.node("n2")
    steps = [
        view(*nodes, pod("p", 9), budget),
        view(*nodes, pod("p", 9, nominatedNodeName="n1"), pod("q", 9, nominatedNodeName="n1"), budget),
        view(*nodes, pod("p", 8, nominatedNodeName="n1"), pod("q", 9, nominatedNodeName="n2")),
        view(*nodes, pod("p", 9)),
    ]
    state: State = steps[0].state()
    for generation, (old, new) in enumerate(pairwise(steps)):
        state, _, _ = apply_delta(state, Index(state), delta(old, new, generation, {}))
        held = {(one.node, one.ask.id, one.ask.priority) for one in state.reservations}
        assert held == {(one.node, one.ask.id, one.ask.priority) for one in new.reservations.values()}
        assert state.disruption_budgets == new.budgets
