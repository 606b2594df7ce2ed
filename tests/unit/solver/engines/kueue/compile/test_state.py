"""Workloads as columns: what each uses, whatever the shape of its tasks."""

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from app.solver import solve
from app.solver.apply import Index
from app.solver.delta import apply_delta
from app.solver.engines.kueue import configuration as kueue_configuration
from app.solver.engines.kueue.amounts import Amounts, Shapes
from app.solver.engines.kueue.configuration import CompiledConfiguration, compile_configuration
from app.solver.engines.kueue.overlay import Usage
from app.solver.engines.kueue.state import CompiledState, compile_state, sums
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Delta, State, Workload
from tests.support.bounds import Bounded
from tests.unit.solver.engines.kueue.cluster import configuration, flavors, queue


def loaded(of: dict[str, Any], *workloads: dict[str, Any]) -> CompiledState:
    configured: CompiledConfiguration = compile_configuration(msgspec.convert(of, Configuration))
    return compile_state(configured, msgspec.convert({"workloads": list(workloads)}, State))


def usage(of: CompiledState, node: str) -> dict[str, int]:
    cells = of.quotas.cells[of.configuration.tree.index[node]]
    return {"/".join(of.quotas.frs[fr]): of.used[cell] for fr, cell in cells.items() if of.used[cell]}


def work(name: str, *tasks: dict[str, Any], queue_name: str = "q", **more: Any) -> dict[str, Any]:
    return {"id": name, "queue": queue_name, "tasks": [{"name": f"t{i}"} | t for i, t in enumerate(tasks)]} | more


def test_requests_are_per_unit_of_count_and_add_up_over_tasks() -> None:
    pins = {"cpu": "default"}
    of = loaded(
        configuration(queue("q", 99)),
        work(
            "a", {"count": 3, "requests": {"cpu": "500m"}, "flavors": pins}, {"requests": {"cpu": 1}, "flavors": pins}
        ),
        work("b", {"count": 2, "requests": {"cpu": "500m"}, "flavors": pins}),
    )
    assert usage(of, "q") == {"default/cpu": 1500 + 1000 + 1000}


def test_without_a_named_flavor_the_only_one_counts() -> None:
    single = loaded(configuration(queue("q", 9), queue("r", 9)), work("a", {"requests": {"cpu": 2, "disk": 5}}))
    assert usage(single, "q") == {"default/cpu": 2000}
    several = loaded(
        configuration(queue("q") | flavors(x=1, y=1), flavors=[{"name": "x"}, {"name": "y"}]),
        work("a", {"requests": {"cpu": 2}}),
    )
    assert usage(several, "q") == {}


def test_the_same_tasks_may_mean_something_else_in_another_queue() -> None:
    of = loaded(
        configuration(queue("q") | flavors(x=1), queue("r") | flavors(y=1), flavors=[{"name": "x"}, {"name": "y"}]),
        work("a", {"requests": {"cpu": 1}}), work("b", {"requests": {"cpu": 1}}, queue_name="r"),
    )  # fmt: skip
    assert (usage(of, "q"), usage(of, "r")) == ({"x/cpu": 1000}, {"y/cpu": 1000})


def test_pods_count_themselves_where_the_queue_has_quota_for_them() -> None:
    of = loaded(
        configuration(queue("q") | {"quota": {"pods": {"guaranteed": 9}, "cpu": {"guaranteed": 9}}}, queue("r", 9)),
        work("a", {"count": 4, "requests": {"cpu": 1}, "flavors": {"cpu": "default"}}),
        work("b", {"count": 4, "requests": {"cpu": 1}, "flavors": {"cpu": "default"}}, queue_name="r"),
    )
    assert usage(of, "q") == {"default/cpu": 4000, "default/pods": 4}
    assert usage(of, "r") == {"default/cpu": 4000}


def test_usage_of_what_has_no_quota_is_kept_all_the_way_up() -> None:
    of = loaded(
        configuration(queue("c"), queue("q", 1, "c"), flavors=[{"name": "rare"}]),
        work("a", {"requests": {"cpu": 2}, "flavors": {"cpu": "rare"}}),
    )
    assert (usage(of, "q"), usage(of, "c")) == ({"rare/cpu": 2000}, {"rare/cpu": 2000})


def test_usage_with_quota_and_without_beside_one_another() -> None:
    of = loaded(
        configuration(queue("co", 1), queue("q", 9, "co"), flavors=[{"name": "b"}]),
        work("a", {"requests": {"cpu": 1}, "flavors": {"cpu": "default"}}),
        work("c", {"requests": {"cpu": 2}, "flavors": {"cpu": "b"}}),
    )
    assert usage(of, "q") == {"default/cpu": 1000, "b/cpu": 2000}
    assert usage(of, "co") == {"default/cpu": 1000, "b/cpu": 2000}


def test_sums_past_64_bits_stay_exact() -> None:
    huge = {"count": 2**31, "requests": {"memory": 2**53}, "flavors": {"memory": "default"}}
    of = loaded(configuration(queue("q") | {"quota": {"memory": {"guaranteed": 1}}}), work("a", huge), work("b", huge))
    assert usage(of, "q") == {"default/memory": 2 * 2**31 * 2**53}


def test_tasks_in_another_order_are_the_same_shape() -> None:
    """What a workload uses is told by flavor-resource in ascending order, so that equal use is recognised."""
    pins = {"cpu": "default", "gpu": "default"}
    both = {"name": "q", "quota": {"cpu": {"guaranteed": 9}, "gpu": {"guaranteed": 9}}}
    cpu, gpu = ({"requests": {r: 1}, "flavors": {r: pins[r]}} for r in pins)
    of = loaded(configuration(both), work("a", cpu, gpu), work("b", gpu, cpu), work("c", gpu))
    assert of.shape.tolist() == [0, 0, 1]
    assert of.amounts(1) == tuple(sorted(of.amounts(1)))


def test_the_lowest_priority_within_reach() -> None:
    of = loaded(configuration(queue("q", 9), queue("r", 9)), work("a", priority=4), work("b", priority=-2))
    index = of.configuration.tree.index
    assert of.lowest_priority([index["q"]]) == -2
    assert of.lowest_priority([index["r"]]) is None
    assert of.lowest_priority([index["q"], index["r"]]) == -2


def test_workloads_by_queue_keep_their_order() -> None:
    of = loaded(
        configuration(queue("q", 9), queue("r", 9)),
        work("a"), work("b", queue_name="r"), work("c"), work("d", queue_name="r"),
    )  # fmt: skip
    assert [of.by_queue(of.configuration.tree.index[n]).tolist() for n in "qr"] == [[0, 2], [1, 3]]


def test_tasks_stand_on_nodes_that_a_delta_brought_and_on_no_other() -> None:
    configured = solve.configure(msgspec.convert(configuration(queue("q", 9)), Configuration))
    state = msgspec.convert({"nodes": [{"name": "n1", "capacity": {}}]}, State)
    kept = solve.load(configured, state)
    brought = {"nodes": {"add": [{"name": "n2", "capacity": {}}], "remove": ["n1"]}}
    for node, fine in (("n2", True), ("n1", False)):
        placed = {"add": [work("a", {"requests": {"cpu": 2}, "node": node})]}
        delta = msgspec.convert({"generation": 1, "workloads": placed} | brought, Delta)
        after, index, changes = apply_delta(state, Index(state), delta)
        if fine:
            assert usage(solve.update(kept, after, index, changes, generation=2).compiled, "q") == {"default/cpu": 2000}
            continue
        with pytest.raises(InvalidInput) as refused:
            solve.update(kept, after, index, changes, generation=2)
        assert [p.pointer for p in refused.value.problems] == ["/state/workloads/0/tasks/0/node"]


@pytest.mark.parametrize(
    ("broken", "where"),
    [
        ({"queue": "nowhere"}, "queue"),
        ({"tasks": [{"name": "t", "node": "nowhere"}]}, "tasks/0/node"),
        ({"tasks": [{"name": "t"}, {"name": "t"}]}, "tasks/1/name"),
    ],
)
def test_it_stumbles_over_what_nobody_looked_at_before(broken: dict[str, Any], where: str) -> None:
    configured = solve.configure(msgspec.convert(configuration(queue("q", 9)), Configuration))
    state = msgspec.convert({"workloads": [work("fine", {}), work("broken", {}) | broken]}, State)
    with pytest.raises(InvalidInput) as refused:
        solve.load(configured, state)
    assert [p.pointer for p in refused.value.problems] == [f"/state/workloads/1/{where}"]


@pytest.mark.parametrize("most", [1, 2**20, 2**45, 2**55, 2**62, 2**80])
def test_sums_are_the_same_however_many_there_are(most: int) -> None:
    """By columns as one by one: where doubles are exact, where 64 bits are enough, and beyond."""
    rng = random.Random(most)
    for workloads in (0, 1, 64, 65, 300):
        frs = rng.randint(1, 4)
        used = [sorted(rng.sample(range(frs), rng.randint(0, frs))) for _ in range(5)]
        shapes: list[Amounts] = [
            tuple((fr, rng.choice([0, 1, rng.randint(0, most)])) for fr in of) for of in used
        ]  # fmt: skip
        queue, shape = ([rng.randint(0, 4) for _ in range(workloads)] for _ in range(2))
        expected: dict[tuple[int, int], int] = {}
        for node, of in zip(queue, shape, strict=True):
            for fr, amount in shapes[of]:
                expected[node, fr] = expected.get((node, fr), 0) + amount
        assert sums(np.array(queue, dtype=np.int64), np.array(shape, dtype=np.int64), shapes, frs) == expected


def test_sums_of_nothing() -> None:
    queue = np.zeros(70, dtype=np.int64)
    assert sums(queue, queue, [()], 1) == {}


@pytest.mark.parametrize(
    ("task", "used"),
    [
        ({"requests": {"cpu": 1}}, {"only/cpu": 3000, "only/pods": 3}),
        ({"requests": {"cpu": 1}, "count": 0}, {}),
        ({"requests": {"cpu": 1}, "flavors": {"cpu": "other"}}, {"other/cpu": 3000, "only/pods": 3}),
        ({"requests": {"cpu": 1}, "flavors": {"pods": "other"}}, {"only/cpu": 3000, "other/pods": 3}),
        ({"flavors": {"cpu": "other"}}, {"only/pods": 3}),
        ({"requests": {"pods": 7}}, {"only/pods": 21}),
        ({"flavors": {"pods": "other"}}, {"other/pods": 3}),
        ({"requests": {"memory": 5, "disk": 9}}, {"only/pods": 3}),
        ({"requests": {"memory": 5}, "flavors": {"memory": "x"}}, {"x/memory": 15, "only/pods": 3}),
        ({"requests": {"cpu": 2}, "flavors": {"cpu": "x", "pods": "y"}}, {"x/cpu": 6000, "y/pods": 3}),
        ({"flavors": {"cpu": "x", "pods": "y"}}, {"y/pods": 3}),
    ],
)
def test_what_a_task_of_three_takes(task: dict[str, Any], used: dict[str, int]) -> None:
    """q has cpu and pods of one flavor, and memory of two, so that a task must say which it takes."""
    task = {"count": 3} | task
    quota = {"cpu": {}, "pods": {}}
    groups = [
        {"resources": ["cpu", "pods"], "flavors": [{"name": "only", "quota": quota}]},
        {"resources": ["memory"], "flavors": [{"name": name, "quota": {"memory": {}}} for name in "xy"]},
    ]
    of = configuration(
        {"name": "q", "resource_groups": groups}, flavors=[{"name": n} for n in ("only", "other", "x", "y")]
    )
    for others in range(2):
        assert usage(loaded(of, work("a", task), *[work("b")] * others), "q") == used


def test_every_task_counts_whether_or_not_the_one_before_names_its_flavors() -> None:
    named, bare = {"requests": {"cpu": 1}, "flavors": {"cpu": "default"}}, {"requests": {"cpu": 2}}
    for tasks in ([named, bare, named], [bare, named, bare], [bare, bare]):
        of = loaded(configuration(queue("q", 9)), work("a", *tasks))
        assert usage(of, "q") == {"default/cpu": sum(1000 * task["requests"]["cpu"] for task in tasks)}


def test_two_next_versions_of_one_state_know_nothing_of_one_another() -> None:
    """Each brings shapes that the other has not, in another order."""
    configured = solve.configure(msgspec.convert(configuration(queue("q", 9)), Configuration))
    state = msgspec.convert({"workloads": [work(f"w{i}", {"requests": {"cpu": 1}}) for i in range(20)]}, State)
    kept = solve.load(configured, state)
    pins = {"cpu": "default"}
    shapes = [{"requests": {"cpu": 2}}, {"requests": {"cpu": 3}, "flavors": pins}, {"requests": {"cpu": 4}, "count": 2}]
    for order in (shapes, shapes[::-1], shapes[1:] + shapes[:1]):
        added = [work(f"n{i}", of) for i, of in enumerate(order)] + [work("known", {"requests": {"cpu": 1}})]
        delta = msgspec.convert({"generation": 1, "workloads": {"add": added}}, Delta)
        after, index, changes = apply_delta(state, Index(state), delta)
        found = solve.update(kept, after, index, changes, generation=2).compiled
        steps = [1000 * of["requests"]["cpu"] * of.get("count", 1) for of in order]
        assert [found.amounts(20 + i) for i in range(3)] == [((0, amount),) for amount in steps]
        assert usage(found, "q") == {"default/cpu": 21_000 + sum(steps)}


def test_what_a_later_version_learns_no_earlier_one_has() -> None:
    """Shapes, flavor-resources, nodes, and what depends on the queue; and the other way round."""
    of = configuration(queue("q", 9), queue("r", **flavors(spot=9)))
    first = loaded(of)
    pins = {"cpu": "default"}

    def column(shapes: Shapes, cpu: int, pins: dict[str, str] | None, *queues: str, **more: Any) -> list[Amounts]:
        task = {"requests": {"cpu": cpu}} | ({"flavors": pins} if pins else {}) | more
        made = [msgspec.convert(work("x", task), Workload) for _ in queues or "q"]
        indices = [first.configuration.tree.index[name] for name in queues or "q"]
        found = shapes.column(made, np.array(indices), range(len(made)))
        return [shapes.amounts[at] for at in found.tolist()]

    def known(shapes: Shapes) -> tuple[int, int]:
        return len(shapes.amounts), len(shapes.frs)

    old = Shapes(first.configuration, frozenset({None}))
    assert column(old, 1, None, "q", "r") == [((0, 1000),), ((1, 1000),)]
    new = old.copy(frozenset({None, "n"}))
    assert known(old) == known(new) == (2, 2)
    assert column(new, 2, pins | {"gpu": "default"}) == [((0, 2000), (2, 0))], "it names gpu, and uses none"
    assert (known(old), known(new)) == ((2, 2), (3, 3))
    assert column(new, 3, None, "q", "r") == [((0, 3000),), ((1, 3000),)]
    assert column(old, 4, pins) == [((0, 4000),)]
    assert column(old, 3, None, "q", "r") == [((0, 3000),), ((1, 3000),)]
    assert column(new, 3, None, "q", "r") == [((0, 3000),), ((1, 3000),)]
    assert (known(old), known(new)) == ((5, 2), (5, 3))
    assert column(new, 5, pins, node="n") == [((0, 5000),)]
    with pytest.raises(ValueError, match="'x'"):
        column(old, 5, pins, node="n")


def test_cells_that_come_later_hold_nothing() -> None:
    """Of a flavor-resource that nobody has a quota for; where the queue's own parent borrows already."""
    of = loaded(
        configuration(queue("root", 4), queue("q", 2, "root"), queue("r", 2, "root")),
        work("a", {"requests": {"cpu": 3}, "flavors": {"cpu": "default"}}),
    )
    usage = Usage(of.quotas, list(of.used))
    before = list(usage.used)
    leaf = of.configuration.tree.index["q"]
    known = [*of.quotas.frs, ("default", "gpu")]
    usage.grow(of.quotas.extended(known, [(leaf, len(known) - 1)]))
    assert usage.used == [*before, 0, 0]
    assert usage.available(leaf, len(known) - 1) == 0
    usage.add(leaf, [(len(known) - 1, 5)])
    assert usage.used == [*before, 5, 5], "without a quota all of it is borrowed"


def test_a_cell_without_a_quota_has_what_its_cohort_may_give_it() -> None:
    of = loaded(configuration(queue("root", 4), queue("q", parent="root"), queue("r", 2, "root")))
    (cpu,) = (at for at, fr in enumerate(of.quotas.frs) if fr == ("default", "cpu"))
    leaf = of.configuration.tree.index["q"]
    assert cpu not in of.quotas.cells[leaf]
    more = of.quotas.extended(of.quotas.frs, [(leaf, cpu)])
    cell = more.cells[leaf][cpu]
    assert (more.nominal[cell], more.potential[cell]) == (0, 6000)
    assert Usage(more, [*of.used, 0]).available(leaf, cpu) == 6000


def test_a_tree_with_too_many_pairs_of_queue_and_flavor_is_refused(bounded: Bounded) -> None:
    """Two queues and their cohort have a cell each."""
    tree = configuration(queue("root"), queue("q", 1, "root"), queue("r", 2, "root"))
    for most, refused in ((3, False), (2, True)):
        bounded(kueue_configuration, MAX_CELLS=most)
        if not refused:
            assert loaded(tree)
            continue
        with pytest.raises(InvalidInput) as found:
            loaded(tree)
        assert [(p.pointer, p.detail) for p in found.value.problems] == [
            ("/configuration/queues", "more than 2 pairs of queue and flavor-resource")
        ]
