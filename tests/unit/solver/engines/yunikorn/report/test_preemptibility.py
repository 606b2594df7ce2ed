"""What protects tasks, by themselves and from an ask, and whether several may go together."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

ONE, TWO = {"vcore": 1}, {"vcore": 2}
FREE = ("preemptible", "may-be-preempted")


def kept(rule: str) -> tuple[str, str]:
    return "non_preemptible", rule


def states(found: Json) -> dict[str, tuple[str, str]]:
    """By task, of all applications."""
    return {
        name: (one["preemptibility"], one["reason"])
        for workload in found["workloads"].values()
        for name, one in workload["tasks"].items()
    }


def world(*tasks: Json, guaranteed: dict[str, Any] | None = None, **more: Any) -> World:
    """Teams a (which asks) and b below p, and a stranger q; b runs ``tasks``."""
    quotas = {"root": None, "root.p": None, "root.p.a": {"vcore": 9}, "root.p.b": None, "root.q": None}
    return World(
        queues=[queue(name, quota) for name, quota in (quotas | (guaranteed or {})).items()],
        nodes=[node("n1", {"vcore": 9}), node("n2", {"vcore": 9})],
        workloads=[app("a", "root.p.a"), app("b", "root.p.b", *tasks), app("q", "root.q")],
        **more,
    )


def wanting(requests: Json = TWO, **more: Any) -> Json:
    return ask("want", "root.p.a", requests, workload="a", **more)


def test_by_itself_everybody_has_one_reason() -> None:
    of = world(
        task("plain", "n1", ONE), task("out", "n1", ONE, preemptible=False), task("driver", "n1", ONE, originator=True),
        task("both", "n1", ONE, originator=True, preemptible=False), task("bound", "n1", ONE, required_node="n1"),
        task("leaving", "n1", ONE, state="preempted"), task("nowhere", None, ONE),
    )  # fmt: skip
    of.workloads.append(app("off", "root.off", task("kept", "n1", ONE)))
    of.queues.append(queue("root.off", preemption_policy="disabled"))
    last = "aggressively_preemptible"
    for rules in ("documented", "shipped"):
        of.rules = rules
        assert states(of.preemptibility()) == {
            "plain": FREE, "out": (last, "opted-out"), "driver": (last, "originator"), "both": (last, "opted-out"),
            "bound": kept("bound-to-its-node"), "leaving": kept("already-leaving"), "nowhere": kept("on-no-node"),
            "kept": kept("preemption-disabled"),
        }  # fmt: skip


def test_an_application_is_preemptible_when_a_task_is() -> None:
    of = world(task("a1", "n1", ONE, state="preempted"), task("a2", "n1", ONE), task("a3", None, ONE))
    found = of.preemptibility()["workloads"]
    assert (found["b"]["preemptible"], found["b"]["reason"]) == (True, "may-be-preempted")
    assert found["a"] == {"preemptible": False, "reason": "nothing-runs", "tasks": {}}
    of.workloads[1]["tasks"] = of.workloads[1]["tasks"][::2]
    found = of.preemptibility()["workloads"]
    assert (found["b"]["preemptible"], found["b"]["reason"]) == (False, "on-no-node")
    of.workloads[1]["tasks"] = [task("a0", "n1", ONE, originator=True), task("a1", "n1", ONE)]
    assert of.preemptibility()["workloads"]["b"]["reason"] == "originator"


def test_by_itself_only_a_guarantee_that_no_ask_can_make_up_for_protects() -> None:
    """Whoever asks in a brings as much to p as it takes; nobody else asks in b."""
    assert states(world(task("t", "n1", TWO), guaranteed={"root.p": {"vcore": 2}}).preemptibility())["t"] == FREE
    below = world(task("t", "n1", TWO), guaranteed={"root.p.b": {"vcore": 2}})
    assert states(below.preemptibility())["t"] == kept("law-2")
    below.rules = "shipped"
    assert states(below.preemptibility())["t"] == FREE
    alone = world(task("t", "n1", TWO), guaranteed={"root.p": {"vcore": 2}})
    del alone.queues[2], alone.workloads[0]
    assert states(alone.preemptibility())["t"] == kept("law-2")
    alone.queues[1] = queue("root.p", ONE)
    assert states(alone.preemptibility())["t"] == kept("law-2")
    alone.queues[1] = queue("root.p", {"vcore": 0, "memory": 1})
    assert states(alone.preemptibility())["t"] == FREE
    alone.workloads[0]["tasks"].append(task("more", "n1", TWO))
    alone.queues[1] = queue("root.p", TWO)
    assert states(alone.preemptibility()) == {"t": FREE, "more": FREE}


def test_the_only_leaf_of_a_tree_is_below_no_fork() -> None:
    of = World(
        queues=[queue("root"), queue("root.b", TWO)], nodes=[node("n1", {"vcore": 9})],
        workloads=[app("b", "root.b", task("t", "n1", TWO))],
    )  # fmt: skip
    assert states(of.preemptibility())["t"] == kept("law-2")


def test_from_an_ask_law_2_counts_what_it_brings() -> None:
    of = world(task("t", "n1", TWO), guaranteed={"root.p": {"vcore": 2}})
    assert states(of.preemptibility(wanting(TWO)))["t"] == FREE
    assert states(of.preemptibility(wanting(ONE)))["t"] == kept("law-2")
    of.rules = "shipped"
    assert states(of.preemptibility(wanting(ONE)))["t"] == FREE


def test_from_an_ask_without_a_claim_everybody_is_kept() -> None:
    of = world(task("t", "n1", TWO), guaranteed={"root.p.a": None})
    assert states(of.preemptibility(wanting()))["t"] == kept("no-claim")
    of.rules = "shipped"
    assert states(of.preemptibility(wanting()))["t"] == FREE


def test_from_an_ask_that_requires_a_node() -> None:
    of = world(
        task("here", "n1", TWO), task("there", "n2", TWO), task("high", "n1", ONE, priority=3),
        guaranteed={"root.p.b": {"vcore": 99}},
    )  # fmt: skip
    expected = {"here": FREE, "there": kept("on-another-node"), "high": kept("higher-priority")}
    assert states(of.preemptibility(wanting(required_node="n1"))) == expected
    bound = wanting()
    bound["tasks"][0]["required_node"] = "n1"
    assert states(of.preemptibility(bound)) == expected
    assert of.preemptibility(bound, [{"workload": "b", "task": "here"}])["evict_allowed"]
    assert not of.preemptibility(bound, [{"workload": "b"}])["evict_allowed"]


def allowed(of: World, wanted: Json | None, *names: str) -> bool:
    return of.preemptibility(wanted, [{"workload": "b", "task": name} for name in names])["evict_allowed"]


def test_whether_several_may_go_together() -> None:
    of = world(*(task(f"t{i}", "n1", TWO) for i in range(3)), guaranteed={"root.p.b": {"vcore": 2}})
    assert allowed(of, wanting(), "t0", "t2")
    assert not allowed(of, wanting(), "t0", "t1", "t2")
    assert allowed(of, None, "t0", "t1")
    assert not allowed(of, None, "t0", "t1", "t2")
    assert allowed(of, wanting(), "t0", "t0")
    of.rules = "shipped"
    assert allowed(of, None, "t0", "t1", "t2")
    assert not allowed(of, wanting(), "t0", "t1", "t2")
    of.queues[3] = queue("root.p.b", ONE)
    assert allowed(of, wanting(), "t0", "t1", "t2")


def test_shared_guarantees_are_judged_together_with_the_ask_once() -> None:
    of = world(*(task(f"t{i}", "n1", ONE) for i in range(4)), guaranteed={"root.p": {"vcore": 4}})
    assert allowed(of, wanting(TWO), "t0", "t1")
    assert not allowed(of, wanting(TWO), "t0", "t1", "t2")
    assert allowed(of, None, "t0", "t1", "t2")


def test_an_answer_without_evictions_says_nothing_of_them() -> None:
    assert "evict_allowed" not in world().preemptibility(wanting())


def test_an_ask_that_yunikorn_cannot_take() -> None:
    with pytest.raises(InvalidInput) as refused:
        world().preemptibility(ask("x", "root.p", ONE))
    assert [p.pointer for p in refused.value.problems] == ["/ask/queue"]
