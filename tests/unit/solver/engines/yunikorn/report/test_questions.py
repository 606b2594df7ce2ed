"""Shares, preemptibility and explanations."""

from typing import Any

import pytest

from app.solver.model.problems import InvalidInput
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task

TWO = {"vcore": 2}


def world(**more: Any) -> World:
    return World(
        queues=[
            queue("root"), queue("root.p", {"vcore": (5, 8)}), queue("root.p.test"), queue("root.prod", {"vcore": 4}),
        ],
        nodes=[node("n1", {"vcore": 9, "memory": 4})],
        workloads=[
            app("prod", "root.prod"),
            app(
                "test", "root.p.test", task("a", "n1", TWO, 10), task("b", "n1", TWO, 20, originator=True),
                task("c", "n1", TWO, 30, preemptible=False), task("d", "n1", TWO, 40, state="preempted"),
            ),
        ], **more,
    )  # fmt: skip


def wanting(requests: Json, **more: Any) -> Json:
    return ask("want", "root.prod", requests, workload="prod", **more)


def test_shares() -> None:
    found = world().shares(wanting(TWO))
    assert found["queues"]["root.p.test"] == {
        "fair_share": {"vcore": 5}, "guaranteed": {}, "limit": {"vcore": 8, "memory": 4}, "usage": {"vcore": 8},
        "preempting": {"vcore": 2}, "remaining": {"vcore": -1}, "preemptable": {"vcore": 1}, "pending": {},
        "share": 6 / 5,
    }  # fmt: skip
    assert found["queues"]["root.prod"]["remaining"] == {"vcore": 4}
    assert found["queues"]["root"]["pending"] == {"vcore": 2}
    assert found["workloads"]["test"] == {"queue": "root.p.test", "usage": {"vcore": 8}}


def test_of_guarantees_on_the_way_up_the_smallest_is_inherited() -> None:
    """In every resource by itself; what a queue names itself is its own. The largest part that is used tells."""
    of = World(
        queues=[
            queue("root"), queue("root.o", {"vcore": 6, "memory": 10}), queue("root.o.p", {"vcore": 8, "memory": 4}),
            queue("root.o.p.q", {"disk": 5, "gpu": 0}),
        ],
        nodes=[node("n1", {"vcore": 9, "memory": 20, "disk": 9})],
        workloads=[app("w", "root.o.p.q", task("t", "n1", {"vcore": 3, "memory": 3, "disk": 1}))],
    )  # fmt: skip
    found = of.shares()["queues"]
    assert found["root.o.p.q"]["fair_share"] == {"vcore": 6, "memory": 4, "disk": 5, "gpu": 0}
    assert found["root.o.p.q"]["remaining"] == {"vcore": 3, "memory": 1, "disk": 4, "gpu": 0}
    assert found["root.o.p.q"]["share"] == 3 / 4
    assert (found["root.o.p"]["fair_share"], found["root.o.p"]["share"]) == ({"vcore": 8, "memory": 4}, 3 / 4)
    assert (found["root.o"]["fair_share"], found["root.o"]["share"]) == ({"vcore": 6, "memory": 10}, 3 / 6)
    assert "share" not in found["root"], "it has no guarantee"


def test_pending_asks_may_each_name_what_no_other_does() -> None:
    asks = [wanting({"disk": 1}), ask("more", "root.prod", {"gpu": "500m", "disk": 2})]
    assert world().shares(*asks)["queues"]["root.prod"]["pending"] == {"disk": 3, "gpu": 0.5}


def states(of: Json) -> dict[str, tuple[str, str]]:
    return {name: (one["preemptibility"], one["reason"]) for name, one in of["workloads"]["test"]["tasks"].items()}


def test_what_protects_a_task_by_itself() -> None:
    of = world()
    of.queues[1] = queue("root.p", {"vcore": 4})
    found = of.preemptibility()
    assert states(found) == {
        "a": ("preemptible", "may-be-preempted"), "b": ("aggressively_preemptible", "originator"),
        "c": ("aggressively_preemptible", "opted-out"), "d": ("non_preemptible", "already-leaving"),
    }  # fmt: skip
    assert found["workloads"]["test"]["preemptible"]
    assert not found["workloads"]["prod"]["preemptible"]


def test_what_protects_it_from_an_ask() -> None:
    of = world()
    assert states(of.preemptibility(wanting(TWO)))["a"] == ("non_preemptible", "law-2")
    of.rules = "shipped"
    assert states(of.preemptibility(wanting(TWO)))["a"] == ("preemptible", "may-be-preempted")
    assert states(of.preemptibility(wanting(TWO, priority=-1)))["a"] == ("non_preemptible", "higher-priority")
    of.queues[3] = queue("root.prod", {"vcore": 4}, preemption_policy="fence")
    assert states(of.preemptibility(wanting(TWO)))["a"] == ("non_preemptible", "outside-the-fence")
    assert states(of.preemptibility(wanting(TWO, required_node="n1")))["a"][0] == "preemptible"


@pytest.mark.parametrize(
    ("guaranteed", "evict", "allowed"),
    [(4, ["a"], True), (4, ["a", "b"], False), (2, ["a", "b"], True), (2, ["a", "d"], False), (0, [None], False)],
)
def test_whether_all_of_them_may_go(guaranteed: int, evict: list[str | None], allowed: bool) -> None:
    of = world()
    of.queues[1] = queue("root.p", {"vcore": guaranteed})
    named = [{"workload": "test"} | ({"task": name} if name else {}) for name in evict]
    assert of.preemptibility(wanting(TWO), named)["evict_allowed"] is allowed


def test_evicting_what_does_not_run() -> None:
    with pytest.raises(InvalidInput) as refused:
        world().preemptibility(None, [{"workload": "test", "task": "x"}, {"workload": "prod"}, {"workload": "no"}])
    assert [p.pointer for p in refused.value.problems] == ["/evict/0", "/evict/1", "/evict/2"]


def test_an_explanation_says_what_became_of_everybody() -> None:
    of = world()
    of.queues[1] = queue("root.p", {"vcore": 4})
    decision = of.one(wanting({"vcore": 3}), explain="full")
    explanation = decision["explanation"]
    fates = {one["task"]: (one["verdict"], one["rule"]) for one in explanation["candidates"]}
    assert fates == {
        "a": ("victim", "makes-room"), "b": ("not-needed", "not-reached"), "c": ("not-needed", "not-reached"),
        "d": ("protected", "already-leaving"),
    }  # fmt: skip
    assert explanation["headline"] == "1 task of root.p.test must go; n1 is reserved for want"
    assert [step["rule"] for step in explanation["steps"]][:3] == ["fence", "guarantee-left", "node"]
    assert explanation["steps"][1]["numbers"] == {"left": {"vcore": 4}}


def test_a_wait_names_the_smallest_change_that_helps() -> None:
    of = world()
    of.queues[1] = queue("root.p", {"vcore": 4})
    of.queues[3] = queue("root.prod")
    explanation = of.one(wanting({"vcore": 3}), explain="summary")["explanation"]
    assert explanation["blocker"].startswith("preemption is for queues below their guarantee")
    assert "queue-guarantees" in {step["rule"] for step in explanation["steps"]}
    assert [(c["queue"], c["field"], c["needed"]) for c in explanation["smallest_change"]] == [
        ("root.prod", "guaranteed", 0.001)
    ]
    of.rules = "shipped"
    explanation = of.one(wanting(TWO), explain="summary")["explanation"]
    assert [c["needed"] for c in explanation["smallest_change"]] == [2]


def test_explaining_changes_nothing() -> None:
    of = world()
    of.queues[1] = queue("root.p", {"vcore": 4})
    plain, told = of.decide(wanting(TWO)), of.decide(wanting(TWO), explain="full")
    told["decisions"][0].pop("explanation")
    assert [plain["decisions"], plain["plan"], plain["notes"]] == [told["decisions"], told["plan"], told["notes"]]
    assert "explanation" not in plain["decisions"][0]


def test_asks_that_yunikorn_cannot_take() -> None:
    of = world()
    with pytest.raises(InvalidInput) as refused:
        of.decide(
            ask("parent", "root.p", TWO), ask("many", "root.prod", TWO) | {"tasks": [{"name": "t", "count": 300}]},
            ask("none", "root.prod", TWO) | {"tasks": []},
        )  # fmt: skip
    assert [p.pointer for p in refused.value.problems] == ["/asks/0/queue", "/asks/1/tasks", "/asks/2/tasks"]


def test_what_a_queue_uses_adds_up_to_the_root() -> None:
    queues = [queue("root"), queue("root.p"), queue("root.p.a"), queue("root.p.b"), queue("root.c")]
    sizes = {"root.p.a": 1, "root.p.b": 2, "root.c": 4}
    work = [app(name, name, task(name, "n", {"vcore": size})) for name, size in sizes.items()]
    work[0]["tasks"][0]["state"] = "preempted"
    found = World(queues, [node("n", {"vcore": 9})], work).shares()["queues"]
    assert {name: of["usage"].get("vcore") for name, of in found.items()} == sizes | {"root.p": 3, "root": 7}
    assert {name: of["preempting"].get("vcore") for name, of in found.items()} == dict.fromkeys(found) | {
        "root.p.a": 1, "root.p": 1, "root": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("guaranteed", "leaving", "preemptable", "remaining"),
    [(9, 0, 0, 4), (5, 0, 0, 0), (4, 0, 1, -1), (0, 0, 5, None), (3, 1, 1, -1), (3, 3, 0, 1), (1, 2, 2, -2)],
)
def test_what_is_above_every_guarantee_may_go(
    guaranteed: int, leaving: int, preemptable: int, remaining: int | None
) -> None:
    """Memory, in whole units: five used, of which some are being preempted."""
    tasks = [task(f"t{i}", "n1", {"memory": 1}, state="preempted" if i < leaving else "running") for i in range(5)]
    of = World(
        queues=[queue("root"), queue("root.p", {"memory": guaranteed} if guaranteed else None), queue("root.p.a")],
        nodes=[node("n1", {"memory": 9})], workloads=[app("a", "root.p.a", *tasks)],
    )  # fmt: skip
    for name in ("root.p", "root.p.a"):
        found = of.shares()["queues"][name]
        assert found["usage"] == {"memory": 5}
        assert found["preempting"] == ({"memory": leaving} if leaving else {})
        assert found["preemptable"] == {"memory": preemptable}
        assert found["remaining"] == ({} if remaining is None else {"memory": remaining})
        assert found.get("share") == ((5 - leaving) / guaranteed if guaranteed else None)


def test_shares_of_asks_that_yunikorn_cannot_take() -> None:
    with pytest.raises(InvalidInput) as refused:
        world().shares(wanting(TWO), ask("x", "root.p", TWO))
    assert [p.pointer for p in refused.value.problems] == ["/asks/1/queue"]


@pytest.mark.parametrize(("counts", "refused"), [((256,), False), ((257,), True), ((255, 1), False), ((255, 2), True)])
def test_an_ask_stands_for_so_many_pods_at_most(counts: tuple[int, ...], refused: bool) -> None:
    tasks = [{"name": f"x{i}", "count": count, "requests": {"vcore": 99}} for i, count in enumerate(counts)]
    many = wanting({}) | {"tasks": tasks}
    if not refused:
        assert world().one(many)["outcome"] == "wait"
        return
    with pytest.raises(InvalidInput) as found:
        world().one(many)
    assert [(p.pointer, p.detail) for p in found.value.problems] == [
        ("/asks/0/tasks", "more than 256 allocation asks in one ask")
    ]
