"""Quota arithmetic and the fair-sharing tournament against a slow second telling of Kueue's rules."""

import json
import random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.solver import solve
from app.solver.engines.kueue.fair_share import fair_order, share
from app.solver.engines.kueue.flavors import borrowing_level
from app.solver.engines.kueue.nomination import Assignment, Nomination
from app.solver.engines.kueue.overlay import Overlay, Preemptor
from app.solver.engines.kueue.state import CompiledState
from app.solver.model.base import scale_of
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Ask, Task
from tests.properties.kueue_reference import Head, Reference, configuration, grow, workloads
from tests.support.profiles import Met, examples
from tests.unit.solver.engines.kueue.cluster import configuration as kueue
from tests.unit.solver.engines.kueue.cluster import one

LAWS = examples(150, suppress_health_check=[HealthCheck.too_slow])
RESOURCES = ("cpu", "gpu")
SEEDS = st.integers(0, 2**32)


def compiled(tree: Reference, **more: Any) -> Overlay:
    """The engine's view of the tree and its usage."""
    body = {"configuration": configuration(tree, **more), "state": {"workloads": workloads(tree)}}
    request = msgspec.json.decode(json.dumps(body), type=DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    loaded = solve.load(solve.configure(request.configuration, None), request.state).compiled
    assert isinstance(loaded, CompiledState)
    return Overlay(loaded, 0)


def steps(amounts: dict[str, int], snapshot: Overlay) -> dict[int, int]:
    index = snapshot.usage.quotas.fr_index
    return {index["default", r]: n * scale_of(r) for r, n in amounts.items()}


@LAWS
@given(SEEDS)
def test_quota_is_what_the_definitions_say(met: Met, seed: int) -> None:
    rng = random.Random(seed)
    tree = grow(rng, RESOURCES)
    snapshot = compiled(tree)
    configured, usage = snapshot.state.configuration, snapshot.usage
    for name, node in met(tree.nodes.items()):
        at = configured.tree.index[name]
        for r in RESOURCES:
            fr, scale = usage.quotas.fr_index["default", r], scale_of(r)
            cell = usage.quotas.cells[at][fr]
            assert usage.quotas.subtree[cell] == tree.subtree(name, r) * scale
            assert usage.quotas.local[cell] == tree.local(name, r) * scale
            assert usage.quotas.potential_available(at, fr) == tree.potential(name, r) * scale
            assert usage.used[cell] == tree.usage(name, r) * scale
            assert usage.available_cell(cell) == tree.available(name, r) * scale
            assert usage.exceeds(at, [fr]) == (tree.usage(name, r) > tree.subtree(name, r))
            if not node.cohort:
                amount = rng.randint(0, 6)
                found = borrowing_level(configured, usage, at, fr, amount * scale)
                assert found == tree.level(name, r, amount)
        theirs, (weightless, exact) = share(configured, usage, at), tree.share(name)
        assert (theirs.weightless, theirs.value) == (weightless, float(exact))


@LAWS
@given(SEEDS)
def test_fit_by_level_is_what_the_definitions_say(met: Met, seed: int) -> None:
    rng = random.Random(seed)
    tree = grow(rng, RESOURCES)
    snapshot = compiled(tree)
    for name in met(name for name, node in tree.nodes.items() if not node.cohort):
        at = snapshot.state.configuration.tree.index[name]
        for _ in range(4):
            request = {r: rng.randint(1, 4) for r in RESOURCES if rng.random() < 0.8}
            path = snapshot.usage.quotas.tree.path(at)
            assert snapshot.usage.fits_by_level(path, steps(request, snapshot)) == tree.fits_by_level(name, request)


@LAWS
@given(SEEDS)
def test_usage_booked_and_taken_off_is_what_the_definitions_say(met: Met, seed: int) -> None:
    rng = random.Random(seed)
    tree = grow(rng, RESOURCES)
    snapshot = compiled(tree)
    names = [name for name, node in tree.nodes.items() if not node.cohort]
    for _ in range(8):
        name, r = rng.choice(names), rng.choice(RESOURCES)
        at, (fr,) = snapshot.state.configuration.tree.index[name], steps({r: 1}, snapshot)
        used = tree.nodes[name].used
        by = rng.randint(-used.get(r, 0), 4)
        used[r] = used.get(r, 0) + by
        change = snapshot.usage.add if by >= 0 else snapshot.usage.remove
        change(at, [(fr, abs(by) * scale_of(r))])
        for above in met(tree.path(name)):
            cell = snapshot.usage.quotas.cells[snapshot.state.configuration.tree.index[above]][fr]
            assert snapshot.usage.used[cell] == tree.usage(above, r) * scale_of(r)


@LAWS
@given(SEEDS)
def test_the_fair_order_is_a_tournament_after_every_head(seed: int) -> None:
    """Full ties are common here: two ages, two priorities. Each head is booked once it is drawn, or not."""
    rng = random.Random(seed)
    tree = grow(rng, RESOURCES)
    snapshot = compiled(tree, fair_sharing=True)
    queues = [name for name, node in tree.nodes.items() if not node.cohort]
    rng.shuffle(queues)
    heads: dict[str, Head] = {}
    nominations: list[Nomination] = []
    for place, name in enumerate(queues):
        request = {r: rng.randint(0, 2) for r in RESOURCES if rng.random() < 0.8}
        head = heads[name] = Head(name, request, rng.randint(0, 1), rng.randint(0, 1), place)
        nominations.append(_nomination(snapshot, head))
    for found in fair_order(snapshot, nominations):
        expected = tree.tournament("c0", heads)
        assert expected is not None
        assert found.ask.id == expected.queue
        del heads[expected.queue]
        if rng.random() < 0.7:
            snapshot.usage.add(found.preemptor.queue, found.preemptor.request)
            for r, n in expected.request.items():
                tree.nodes[expected.queue].used[r] = tree.nodes[expected.queue].used.get(r, 0) + n
    assert not heads


def _nomination(snapshot: Overlay, head: Head) -> Nomination:
    ask = Ask(id=head.queue, queue=head.queue, tasks=[Task(name="main")])
    usage = steps(head.request, snapshot)
    assignment = Assignment(counts=[1], usage=usage)
    queue = snapshot.state.configuration.tree.index[head.queue]
    preemptor = Preemptor(ask.id, queue, head.priority, head.age, assignment.request())
    return Nomination(
        ask, preemptor, preemptor, assignment, [], [], {}, False, elsewhere=lambda _: _nomination(snapshot, head)
    )


@LAWS
@given(SEEDS, st.booleans(), st.booleans())
def test_asking_for_nothing_of_a_resource_changes_nothing(seed: int, fair: bool, pinned: bool) -> None:
    """A request of 0 for a resource that the queue borrows already: neither outcome nor victims differ."""
    rng = random.Random(seed)
    tree = grow(rng, RESOURCES)
    name = rng.choice([name for name, node in tree.nodes.items() if not node.cohort])
    wanted, other = rng.sample(RESOURCES, 2)
    tree.nodes[name].used[other] = tree.nodes[name].nominal[other] + 1
    tree.nodes[name].nominal[wanted] += 2
    of = configuration(tree, fair_sharing=fair)
    for queue in of["queues"]:
        queue["kueue"]["preemption"] = {
            "within_cluster_queue": "LowerPriority", "reclaim_within_cohort": rng.choice(["LowerPriority", "Any"]),
            "borrow_within_cohort": {"policy": rng.choice(["Never", "LowerPriority"])},
        }  # fmt: skip
    running = workloads(tree)
    for work in running:
        work["priority"] = rng.randint(0, 2)
    task: dict[str, Any] = {"name": "main", "requests": {wanted: rng.randint(1, 4)}}
    ask = {"id": "x", "queue": name, "priority": 1, "tasks": [task]}
    without = one(of, running, ask)
    task["requests"][other] = 0
    if pinned:
        task["flavors"] = dict.fromkeys(RESOURCES, "default")
        without["outcome"] = without["outcome"].replace("infeasible", "wait")
    with_it = one(of, running, ask)
    assert with_it["outcome"] == without["outcome"]
    assert [(v["workload"], v["reason"]) for v in with_it["victims"]] == [
        (v["workload"], v["reason"]) for v in without["victims"]
    ]


@LAWS
@given(SEEDS)
def test_only_a_flavor_that_the_cohort_has_lets_an_ask_in(seed: int) -> None:
    """Queues list some of three flavors; the root owns plenty of some. An ask that names its flavors gets in with what
    the cohort lends, whether its queue lists them or not (Kueue: quota of a flavor that a queue doesn't list is what
    its cohort has), and never with one of which there is nothing."""
    rng = random.Random(seed)
    names = ("a", "b", "c")
    owned = {r: rng.sample(names, rng.randint(1, 3)) for r in RESOURCES}
    groups = [
        {"resources": [r], "flavors": [{"name": f, "quota": {r: {"guaranteed": 9}}} for f in owned[r]]}
        for r in RESOURCES
    ]
    listed = {r: rng.sample(names, rng.randint(1, 3)) for r in RESOURCES}
    mine = [
        {"resources": [r], "flavors": [{"name": f, "quota": {r: {"guaranteed": 0}}} for f in listed[r]]}
        for r in RESOURCES
    ]
    of = kueue(
        {"name": "root", "resource_groups": groups, "kueue": {"role": "cohort"}},
        {"name": "q", "parent": "root", "resource_groups": mine},
        flavors=[{"name": f} for f in names],
    )
    chosen = {r: rng.choice(names) for r in RESOURCES}
    task = {"name": "main", "requests": dict.fromkeys(RESOURCES, 1), "flavors": chosen}
    found = one(of, [], {"id": "x", "queue": "q", "tasks": [task]})
    lent = all(flavor in owned[r] for r, flavor in chosen.items())
    assert (found["outcome"] == "admit") == lent, found["outcome"]
