"""Laws 2, 4 and 5 where victim and ask share queues, on trees small enough to add up by hand."""

import pytest

from app.solver.engines.yunikorn.guarantees import levels
from tests.support.yunikorn_world import Json, World, app, ask, node, queue, task


def tenant(p: Json | None, a: Json | None, b: Json | None, *tasks: Json) -> World:
    """Tenant p with teams a, which wants, and b, which runs ``tasks``; a stranger q runs nothing. The node is full."""
    return World(
        queues=[
            queue("root"), queue("root.p", p), queue("root.p.a", a), queue("root.p.b", b), queue("root.q"),
        ],
        nodes=[node("n1", {"vcore": sum(t["requests"].get("vcore", 0) for t in tasks), "memory": 20})],
        workloads=[app("a", "root.p.a"), app("b", "root.p.b", *tasks), app("q", "root.q")],
    )  # fmt: skip


def vcores(*sizes: int, **more: int) -> list[Json]:
    """Tasks t0, t1, ... of these sizes, the newest first."""
    return [task(f"t{i}", "n1", {"vcore": size, **more}, 100 + i) for i, size in enumerate(sizes)]


def evicted(of: World, requests: Json, queue_name: str = "root.p.a") -> list[str]:
    """Who goes for an ask of a."""
    decision = of.one(ask("want", queue_name, requests, workload=queue_name.rpartition(".")[2]))
    return [victim["task"] for victim in decision["victims"]]


def test_inside_a_tenant_that_just_uses_its_guarantee() -> None:
    of = tenant({"vcore": 4}, {"vcore": 2}, {"vcore": 2}, *vcores(2, 2))
    assert evicted(of, {"vcore": 2}) == ["t0"]
    _, history = of.settle([ask("want", "root.p.a", {"vcore": 2}, workload="a")], rounds=5)
    assert history == [[("b", "t0")], [], []]


@pytest.mark.parametrize(
    ("guaranteed", "goes"), [(4, []), (3, ["t0"]), (2, ["t0"])], ids=["exactly used", "one below", "two below"]
)
def test_the_fork_is_judged_with_the_ask_placed(guaranteed: int, goes: list[str]) -> None:
    """p uses 4; without the victim's 2 and with the ask's 1 it uses 3."""
    of = tenant({"vcore": guaranteed}, {"vcore": 2}, None, *vcores(2, 2))
    assert evicted(of, {"vcore": 1}) == goes


def test_a_fork_under_its_guarantee_may_not_end_below_what_it_used() -> None:
    of = tenant({"vcore": 9}, {"vcore": 2}, None, *vcores(2, 2))
    assert evicted(of, {"vcore": 1}) == []
    assert evicted(of, {"vcore": 2}) == ["t0"]
    of = tenant({"vcore": 9}, {"vcore": 2}, None, *vcores(2, 1))
    assert evicted(of, {"vcore": 1}) == ["t1"]


def test_the_fork_is_judged_in_what_the_ask_does_not_bring_too() -> None:
    of = tenant({"vcore": 4, "memory": 6}, {"vcore": 2}, None, *vcores(2, 2, memory=3))
    assert evicted(of, {"vcore": 2}) == []
    assert evicted(of, {"vcore": 2, "memory": 3}) == ["t0"]
    of.queues[1] = queue("root.p", {"vcore": 4, "memory": 3})
    assert evicted(of, {"vcore": 2}) == ["t0"]


def test_every_shared_queue_is_judged_not_the_fork_alone() -> None:
    queues = [
        queue("root"), queue("root.o", {"vcore": 4}), queue("root.o.p"), queue("root.o.p.a", {"vcore": 2}),
        queue("root.o.p.b"),
    ]  # fmt: skip
    of = World(
        queues=queues, nodes=[node("n1", {"vcore": 4})],
        workloads=[app("a", "root.o.p.a"), app("b", "root.o.p.b", *vcores(2, 2))],
    )  # fmt: skip
    assert evicted(of, {"vcore": 1}, "root.o.p.a") == []
    queues[1] = queue("root.o", {"vcore": 3})
    assert evicted(of, {"vcore": 1}, "root.o.p.a") == ["t0"]


def test_below_the_fork_the_ask_brings_nothing() -> None:
    of = tenant({"vcore": 4}, {"vcore": 2}, {"vcore": 3}, *vcores(2, 2))
    assert evicted(of, {"vcore": 2}) == []


def test_all_victims_are_judged_together() -> None:
    """p has one memory above its guarantee, so one task of 1 may go, and not two: the one that is big enough."""
    of = tenant({"memory": 2}, {"vcore": 2}, None, *vcores(1, 1, 2, memory=1))
    assert evicted(of, {"vcore": 2}) == ["t2"]
    of.queues[1] = queue("root.p", {"memory": 1})
    assert evicted(of, {"vcore": 2}) == ["t0", "t1"]


def test_two_teams_without_guarantees_have_no_claim_against_one_another() -> None:
    of = tenant({"vcore": 9}, None, None, *vcores(2, 2))
    assert evicted(of, {"vcore": 2}) == []
    decision = of.one(ask("want", "root.p.a", {"vcore": 2}, workload="a"), explain="full")
    assert {c["rule"] for c in decision["explanation"]["candidates"]} == {"no-claim"}
    of.workloads[2]["tasks"] = [task("foreign", "n1", {"vcore": 2}, 500)]
    of.nodes = [node("n1", {"vcore": 6})]
    assert evicted(of, {"vcore": 2}) == ["foreign"]


def test_a_queue_above_the_asking_one_may_have_the_claim() -> None:
    """The team has its guarantee, its tenant has not: others outside the tenant may go, nobody inside."""
    of = tenant({"vcore": 9}, {"vcore": 2}, None, *vcores(2, 2))
    of.workloads[0]["tasks"] = [task("own", "n1", {"vcore": 2}, 900)]
    of.workloads[2]["tasks"] = [task("foreign", "n1", {"vcore": 2}, 500)]
    of.nodes = [node("n1", {"vcore": 8})]
    assert evicted(of, {"vcore": 2}) == ["foreign"]


def test_a_claim_is_in_a_resource_that_the_ask_needs() -> None:
    of = tenant(None, {"memory": 5, "vcore": 0}, None, *vcores(2, 2))
    assert evicted(of, {"vcore": 2}) == []
    assert evicted(of, {"vcore": 2, "memory": 0}) == []
    assert evicted(of, {"vcore": 2, "memory": 1}) == ["t0"]


def test_the_nearest_guarantee_below_the_fork_says_whether_the_victims_side_is_over() -> None:
    of = tenant({"vcore": 4}, {"vcore": 2}, {"memory": 1}, *vcores(2, 2, memory=0))
    assert evicted(of, {"vcore": 2}) == ["t0"]  # b has no guarantee of vcore, p is the fork
    assert evicted(of, {"vcore": 2}, "root.q") == []
    of.queues[4] = queue("root.q", {"vcore": 2})
    assert evicted(of, {"vcore": 2}, "root.q") == []  # p, below the fork now, uses just its guarantee
    of.queues[1] = queue("root.p", {"vcore": 2})
    assert evicted(of, {"vcore": 2}, "root.q") == ["t0"]
    of.queues[3] = queue("root.p.b", {"vcore": 2})
    of.workloads[0]["tasks"] = [task("own", "n1", {"vcore": 2}, 50)]
    of.nodes = [node("n1", {"vcore": 6})]
    of.queues[2] = queue("root.p.a")
    assert evicted(of, {"vcore": 2}, "root.q") == ["own"]


def test_a_queue_under_its_guarantee_gives_nobody_although_a_queue_above_is_over() -> None:
    of = tenant({"vcore": 2}, None, {"vcore": 9}, *vcores(2, 2))
    of.queues[4] = queue("root.q", {"vcore": 2})
    assert evicted(of, {"vcore": 2}, "root.q") == []
    decision = of.one(ask("want", "root.q", {"vcore": 2}, workload="q"), explain="full")
    assert {c["rule"] for c in decision["explanation"]["candidates"]} == {"within-guarantee"}


def test_what_is_known_of_levels_is_kept_for_so_many_asking_queues() -> None:
    """And is the same whether it was kept or not."""
    names = [f"root.q{i}" for i in range(70)]
    of = World([queue("root"), *(queue(name, {"vcore": 1}) for name in names)], [], [])
    queues = of.configured().compiled
    asking = [queues.tree.index[name] for name in names]
    first = [levels(queues, q) for q in asking[:64]]
    assert len(queues.levels) == 64
    assert all(levels(queues, q) is known for q, known in zip(asking, first, strict=False))
    for q in asking[64:]:
        levels(queues, q)
    assert len(queues.levels) == 6
    assert levels(queues, asking[0]) == first[0]
