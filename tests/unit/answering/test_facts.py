"""What the log is given of an answer, and where comparisons put problems and see differences: whole, by hand."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.answering import answers
from app.answering.answers import Stopwatch, facts_of, stats_of
from app.answering.comparison import VariantAnswer, compare, differences_of, too_many
from app.answering.plan import plan
from app.answering.sources import nothing_stored
from app.solver.model.decision import Answer
from app.solver.model.problems import InvalidInput
from app.solver.model.request import Variant
from app.solver.model.state import Ask
from tests.support.instead import Clock

Json = dict[str, Any]
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def eviction(workload: str, for_ask: str | None, reason: str = "reclaim", task: str | None = None) -> Json:
    return {"workload": workload, "queue": f"of-{workload}", "reason": reason, "for_ask": for_ask, "task": task}


def victim(workload: str, task: str | None = None) -> Json:
    return {
        "workload": workload, "task": task, "queue": "q", "reason": "r", "message": "m", "conditions": [], "freed": {}
    }  # fmt: skip


def decision(ask: str, outcome: str, *victims: Json, node: str | None = None, reason: str | None = None) -> Json:
    condition = {
        "type": "t", "status": "True", "reason": reason, "message": "", "last_transition_time": "2026-01-01T00:00:00Z"
    }  # fmt: skip
    conditions = [condition] if reason else []
    return {"ask": ask, "outcome": outcome, "node": node, "victims": list(victims), "conditions": conditions}


def answered(decisions: list[Json], evictions: list[Json], **more: Any) -> Answer:
    body = {
        "engine": "kai", "configuration": {"digest": "c"}, "state": {"digest": "s", "snapshot": "kept"},
        "decisions": decisions, "plan": {"evictions": evictions, "placements": []}, **more,
    }  # fmt: skip
    return msgspec.convert(body, Answer)


def test_everything_that_the_log_keeps_of_an_answer() -> None:
    """Who is evicted twice is named once; a workload that makes way for itself, and one that goes for nobody, is no
    pair."""
    asks = msgspec.convert(
        [
            {"id": "a", "queue": "q1", "workload": "w", "tasks": []},
            {"id": "b", "queue": "q2", "tasks": []},
            {"id": "c", "queue": "q1", "tasks": []},
        ],
        list[Ask],
    )
    refusal = {"workload": "safe", "rule": "r", "detail": "d"}
    verdicts = [{"node": n, "allowed": False, "refusals": [refusal, refusal | {"task": "t"}]} for n in ("n0", "n1")]
    made = answered(
        [decision("a", "preempt", reason="First"), decision("b", "admit"), decision("c", "wait", reason="Other")],
        [
            eviction("x", "a"), eviction("x", "a", "second", "t"), eviction("w", "a"),
            eviction("y", None, "overcommit"), eviction("x", "b", task="u"),
        ],
        proposals=verdicts,
    )  # fmt: skip
    assert msgspec.to_builtins(facts_of(made, 17, asks, b"[]")) == {
        "now": 17, "engine": "kai", "configuration": {"digest": "c"}, "state_digest": "s",
        "asks": ["a", "b", "c"], "outcomes": ["preempt", "admit", "wait"], "reasons": ["First", "", "Other"],
        "evicted": ["x", "w", "y"], "victims": {"reclaim": 3, "second": 1, "overcommit": 1},
        "queues": ["q1", "q2", "of-x", "of-w", "of-y"], "workloads": ["w", "b", "c"], "snapshot": "kept",
        "spared": ["safe"], "evictions": [("w", "x"), ("b", "x")],
        "stops": [
            ("q1", "of-x", "reclaim", 1), ("q1", "of-x", "second", 1), ("q1", "of-w", "reclaim", 1),
            ("", "of-y", "overcommit", 1), ("q2", "of-x", "reclaim", 1),
        ],
        "pending": "W10=", "pods": [], "effect": "", "release": None,
    }  # fmt: skip
    alone = facts_of(answered([], []), 17, [])
    assert (alone.spared, alone.evictions, alone.queues, alone.pending) == ([], [], [], b"")


def test_a_stage_that_runs_twice_adds_up(clock: Clock) -> None:
    clock.drives(answers)
    clock.shows([1.0, 3.0, 10.0, 10.5, 20.0, 24.0])
    watch = Stopwatch()
    for name in ("decode", "solve", "decode"):
        with watch.stage(name):
            pass
    assert watch.seconds == {"decode": 6.0, "solve": 0.5}
    assert stats_of({"decode": 0.0012345, "solve": 2.0}) == {"decode_ms": 1.234, "solve_ms": 2000.0}


def variant(name: str, *decisions: Json, evictions: list[Json] | None = None) -> VariantAnswer:
    return VariantAnswer(name=name, answer=answered(list(decisions), evictions or []))


def differences(*variants: VariantAnswer) -> list[Any]:
    return [(one.ask, one.field, one.values) for one in differences_of(list(variants))]


def test_where_variants_part() -> None:
    """The order of victims is none of it; evictions are those that no ask's victims have."""
    x, y, t = victim("x"), victim("y"), victim("w", "t")
    one = variant("one", decision("a", "preempt", x, y, node="n0"), decision("b", "wait"))
    same = variant("same", decision("a", "preempt", y, x, node="n0"), decision("b", "wait"))
    assert differences(one, same) == []
    assert differences(one) == []
    other = variant("other", decision("a", "preempt", x, t, node="n1"), decision("b", "wait"))
    assert differences(one, other) == [
        ("a", "node", {"one": "n0", "other": "n1"}), ("a", "victims", {"one": ["x", "y"], "other": ["x", "w/t"]}),
    ]  # fmt: skip
    waits = variant("waits", decision("a", "wait"), decision("b", "wait"), evictions=[eviction("z", None, task="t")])
    refused = VariantAnswer(name="refused")
    assert differences(refused, waits, one) == [
        ("a", "outcome", {"refused": "refused", "waits": "wait", "one": "preempt"}),
        ("a", "node", {"waits": None, "one": "n0"}), ("a", "victims", {"waits": [], "one": ["x", "y"]}),
        ("b", "outcome", {"refused": "refused", "waits": "wait", "one": "wait"}),
        (None, "evictions", {"waits": ["z/t"], "one": []}),
    ]  # fmt: skip
    known = variant("known", decision("a", "preempt", x), evictions=[eviction("x", "a")])
    assert differences(known, variant("again", decision("a", "preempt", x))) == []


def test_how_many_variants_are_too_many() -> None:
    three = [Variant(name=name) for name in "abc"]
    assert too_many(three, 3) == []
    assert [(p.pointer, p.detail) for p in too_many(three, 2)] == [
        ("/variants", "3 variants; at most 2 are allowed")
    ]  # fmt: skip


QUOTA = {"cpu": {"guaranteed": 4}}


QUEUE = {"name": "q", "quota": QUOTA}
NEGATIVE = {"kai": {"rules": "documented", "default_reclaim_min_runtime": "-1s"}}


def compared(configuration: Json, *variants: Json, **more: Any) -> Any:
    body = {"configuration": configuration, "state": {}, "asks": [], "variants": list(variants), **more}
    return json.loads(compare(json.dumps(body).encode(), NOON, nothing_stored()))["variants"]


@pytest.mark.parametrize(
    ("variant", "places"),
    [
        ({"settings": NEGATIVE}, ["/variants/1/settings/kai/default_reclaim_min_runtime"]),
        ({"configuration": {"engine": "kai", "queues": [QUEUE, QUEUE | {"name": "p", "parent": "p"}]}},
         ["/variants/1/configuration/queues/1/parent"]),
        ({"configuration": {"engine": "kai", "settings": NEGATIVE, "queues": []}},
         ["/variants/1/configuration/settings/kai/default_reclaim_min_runtime"]),
        ({"set": {"queues.nobody.weight": 2}}, ["/variants/1/set/queues.nobody.weight"]),
        ({"set": {"queues.q.parent": "q"}}, ["/configuration/queues/0/parent"]),
        ({"configuration": {"queues": [QUEUE]}}, ["/engine"]),
    ],
    ids=["settings", "configuration", "its-settings", "set", "what-set-made", "no-engine"],
)  # fmt: skip
def test_problems_point_to_what_the_variant_brought(variant: Json, places: list[str]) -> None:
    _, broken = compared({"engine": "kai", "queues": [QUEUE]}, {"name": "a"}, {"name": "b", **variant})
    assert [problem["pointer"] for problem in broken["problems"]] == places
    ours = places[0].startswith("/variants")
    assert all(problem["detail"].startswith("variant 'b': ") != ours for problem in broken["problems"])


def test_problems_that_all_variants_have_are_those_of_the_request() -> None:
    bad = {"engine": "kai", "settings": NEGATIVE, "queues": [QUEUE]}
    lost = {"workloads": [{"id": "w", "queue": "nowhere", "tasks": []}]}
    for configuration, state, place in (
        (bad, {}, "/configuration/settings/kai/default_reclaim_min_runtime"),
        ({"engine": "kai", "queues": [QUEUE]}, lost, "/state/workloads/0/queue"),
    ):
        fine = {"kai": {}} if state else {"kueue": {}}
        with pytest.raises(InvalidInput) as refused:
            compared(configuration, {"name": "a"}, {"name": "b", "settings": fine, "engine": "kai"}, state=state)
        where = [(problem.pointer, problem.detail.split(":")[0]) for problem in refused.value.problems]
        ours = place if state else place.replace("/configuration", "/variants/1")
        assert where[0] == (place, "variant 'a'")
        assert where[1][0] == ours


def waiting(waited: float | str, **more: Any) -> Any:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]}
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    body: Json = {
        "configuration": {"engine": "kueue", "queues": [{"name": "q", "quota": QUOTA}]}, "waited": waited,
        "manifest": {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": labels},
                     "spec": {"template": {"spec": spec}}},
        "now": "2026-03-02T12:00:00Z", **more,
    }  # fmt: skip
    return json.loads(plan(json.dumps(body).encode(), NOON, nothing_stored()))


def test_how_long_work_may_have_waited() -> None:
    assert waiting(0)["asks"][0]["created_at"] == "2026-03-02T12:00:00Z"
    assert waiting("90s")["asks"][0]["created_at"] == "2026-03-02T11:58:30Z"
    assert waiting(10**9)["asks"][0]["created_at"] == "1994-06-24T10:13:20Z"
    for wrong in (10**9 + 1, -1, "soon"):
        with pytest.raises(InvalidInput) as refused:
            waiting(wrong)
        assert [problem.pointer for problem in refused.value.problems] == ["/waited"]


def test_work_can_not_have_waited_since_before_the_calendar() -> None:
    with pytest.raises(InvalidInput) as refused:
        waiting(10, now="0001-01-01T00:00:05Z")
    assert [problem.pointer for problem in refused.value.problems] == ["/waited"]
