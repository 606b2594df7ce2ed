"""A run through KAI comes to the same whether or not anybody hears of its rounds, although much is spared then."""

from bisect import insort
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.simulations.schemas import SimulationRequest
from app.solver.compiled import ROOTLESS
from app.solver.engines.kai import ahead, rounds
from app.solver.engines.kai.crowd import Turns
from app.solver.engines.kai.job_order import best_of
from app.solver.engines.kai.queue_order import Entry, Node, Position, QueueTree, Waiting
from app.solver.engines.kai.state import Key
from app.solver.model.state import Ask, Task
from tests.properties.runs import ASKED, told_after_asked
from tests.support.profiles import Met, examples
from tests.unit.simulations.running import (
    Told,
    as_asked,
    play,
    request_for,
    unheard,
    unseen,
    without_digests,
    without_hopeless,
)

Json = dict[str, Any]
NAMES = ("cpu", "gpu")


def _quota(random: Random) -> Json:
    cells: Json = {}
    for resource in NAMES:
        cell: Json = {"guaranteed": random.choice([0, 2, 4, 8]), "weight": random.choice([0, 1, 1, 3])}
        if random.random() < 0.2:
            cell["limit"] = cell["guaranteed"] + random.randint(1, 8)
        cells[resource] = cell
    return cells


def _queues(random: Random) -> list[Json]:
    """A root, and queues below it and below some of those."""
    queues: list[Json] = [{"name": "root", "quota": {name: {"guaranteed": 16} for name in NAMES}}]
    parents = {"a": "root", "b": "root", "c": "root", "d": random.choice(["root", "a"]), "e": random.choice("ab")}
    for name, parent in parents.items():
        runtimes = {"reclaim_min_runtime": "40s", "preempt_min_runtime": "15s"}
        kai = {field: length for field, length in runtimes.items() if random.random() < 0.2}
        queue: Json = {"name": name, "parent": parent, "priority": random.choice([0, 0, 1]), "kai": kai}
        queues.append(queue | {"quota": _quota(random)})
    return queues


def _job(random: Random, i: int, leaves: list[str], *, shares: bool, constraints: bool) -> Json:
    count = random.choice([1, 1, 1, 2, 3, 4])
    gpu = random.choice([0, 0.5, 0.3, 1, 2] if shares else [0, 1, 1, 2])
    task: Json = {"name": "t", "count": count, "requests": {"cpu": random.randint(0 if gpu else 1, 2), "gpu": gpu}}
    if constraints and random.random() < 0.4:
        task["node_selector"] = {"zone": random.choice("xy")}
    ask: Json = {
        "id": f"j{i}", "queue": random.choice(leaves), "priority": random.randint(0, 2),
        "preemptible": random.random() < 0.7, "tasks": [task],
    }  # fmt: skip
    if random.random() < 0.6:
        ask["min_available"] = random.choice([1, count])
    if random.random() < 0.2:
        ask["preemption_delay"] = random.choice(["3s", "30s"])
    job: Json = {"ask": ask, "submitted_at": random.randint(0, 60), "duration": random.randint(1, 90)}
    return job | ({"checkpoint": {"every": 10}} if random.random() < 0.5 else {})


def run_of(seed: int) -> SimulationRequest:
    """Jobs of all sizes in each other's way, under both releases and sets of rules."""
    random = Random(seed)
    queues = _queues(random)
    leaves = sorted({queue["name"] for queue in queues} - {queue.get("parent") for queue in queues})
    settings: Json = {
        "release": random.choice(["0.13", "0.17"]), "rules": random.choice(["shipped", "documented"]),
        "use_scheduling_signatures": random.random() < 0.5,
    }  # fmt: skip
    if random.random() < 0.3:
        settings["max_consolidation_preemptees"] = random.randint(0, 2)
    if random.random() < 0.2:
        settings["actions"] = ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
    shares, constraints = random.random() < 0.3, random.random() < 0.4
    nodes = [
        {"name": f"n{i}", "labels": {"zone": "xy"[i % 2]}, "capacity": {"cpu": 6, "gpu": random.choice([0, 2, 4, 4])}}
        for i in range(random.randint(2, 4))
    ]
    number = random.randint(6, 24)
    jobs = [_job(random, i, leaves, shares=shares, constraints=constraints) for i in range(number)]
    return request_for(
        {"engine": "kai", "queues": queues, "settings": {"kai": settings}}, jobs, state={"nodes": nodes},
        grace=random.choice([0, 1, 7]), round_every=random.choice([1, 3]), until=300,
    )  # fmt: skip


@given(seed=st.integers(0, 2**32))
@examples(60)
def test_a_round_that_nobody_hears_of_comes_to_the_same(met: Met, seed: int) -> None:
    run = without_hopeless(run_of(seed))
    heard = as_asked(run)
    assert _told(unheard(run)) == _told(heard)
    met(event for event in heard.events if event.kind == "evicted")


def _roomy(seed: int) -> SimulationRequest:
    """Jobs that come one after another, mostly, and find room, mostly: whole GPUs and shares of one, gangs that come
    together or grow, constraints, nodes of many kinds of which some come and go, and work that runs from the start."""
    random = Random(seed)
    shares, nodes = random.random() < 0.7, [_node(random, i) for i in range(random.randint(2, 7))]
    root = {"name": "root", "quota": {name: {"guaranteed": 60} for name in NAMES}}
    leaves = [{"name": name, "parent": "root", "quota": _quota(random)} for name in "ab"]
    jobs, now = list[Json](), 0
    for i in range(random.randint(6, 26)):
        now += random.choice([0, 3, 3, 8, 20])
        jobs.append(_small(random, f"j{i}", shares=shares) | {"submitted_at": now, "duration": random.randint(1, 60)})
    running, remaining = list[Json](), dict[str, Any]()
    for i in range(random.choice([0, 0, 3])):
        ask = _small(random, f"r{i}", shares=shares)["ask"]
        (task,) = ask["tasks"]
        on = {"node": random.choice(nodes)["name"]}
        groups: Json = {"gpu_group": random.choice("gh")} if 0 < task["requests"].get("gpu", 0) < 1 else {}
        runs = {"name": "t", "requests": task["requests"], "state": random.choice(["running"] * 9 + ["releasing"])}
        own = {"id": ask["id"], "queue": ask["queue"], "preemptible": ask["preemptible"], "priority": 0}
        running.append(own | {"tasks": [runs | on | groups]})
        remaining[ask["id"]] = random.randint(1, 50)
    changes: list[Json] = []
    if random.random() < 0.3:
        changes = [{"at": 20, "nodes": {"add": [_node(random, 9)]}}, {"at": 40, "nodes": {"remove": ["n0"]}}]
    actions: Json = {"actions": ["reclaim", "allocate"]} if random.random() < 0.1 else {}
    settings = {"release": random.choice(["0.13", "0.17"]), "rules": random.choice(["shipped", "documented"])} | actions
    return request_for(
        {"engine": "kai", "queues": [root, *leaves], "settings": {"kai": settings}}, jobs, changes,
        state={"nodes": nodes, "workloads": running}, remaining=remaining, grace=random.choice([0, 2]),
        round_every=random.choice([1, 3]), until=400,
    )  # fmt: skip


def _node(random: Random, i: int) -> Json:
    capacity = {"cpu": random.choice([0, 4, 8, 16]), "memory": f"{random.choice([4, 8])}Gi"}
    capacity |= {"gpu": random.choice([0, 1, 2, 8])} if random.random() < 0.8 else {}
    capacity |= {"pods": 3} if random.random() < 0.1 else {}
    node: Json = {"name": f"n{i}", "labels": {"zone": "xy"[i % 2]}, "capacity": capacity}
    node |= {"gpu_memory": random.choice([1000, 16384, 40_000])} if random.random() < 0.5 else {}
    return node | ({"schedulable": False} if random.random() < 0.1 else {})


def _small(random: Random, name: str, *, shares: bool) -> Json:
    count = random.choice([1, 1, 1, 2, 3])
    requests: Json = {"cpu": f"{random.choice([0, 250, 500, 1000])}m", "memory": f"{random.choice([1, 300])}Mi"}
    gpu = random.choice([0, 0, 0.25, 0.5, 0.3, 1] if shares else [0, 0, 1, 2])
    requests |= {"gpu": gpu} if gpu else {}
    task: Json = {"name": "t", "count": count, "requests": requests}
    task |= {"node_selector": {"zone": "x"}} if random.random() < 0.1 else {}
    task |= {"gpu_devices": 2} if 0 < gpu < 1 and random.random() < 0.05 else {}
    ask: Json = {"id": name, "queue": random.choice("ab"), "preemptible": random.random() < 0.5, "tasks": [task]}
    ask |= {"min_available": random.choice([1, count])} if random.random() < 0.5 else {}
    return {"ask": ask}


@given(seed=st.integers(0, 2**32))
@examples(80)
def test_a_round_that_is_plain_before_it_is_asked_comes_to_what_its_answer_says(met: Met, seed: int) -> None:
    run, plain = without_hopeless(_roomy(seed)), list[bool]()
    with pytest.MonkeyPatch.context() as patch:
        starts = ahead.Sums.starts

        def noted(sums: ahead.Sums, ask: Ask) -> list[tuple[Task, int]] | None:
            places = starts(sums, ask)
            plain.append(places is not None)
            return places

        patch.setattr(ahead.Sums, "starts", noted)
        foreseen = _told(unheard(run))
    assert foreseen == _told(play(run))
    met(told for told in plain if told)


def _crowded(seed: int, *, flat: bool = False) -> SimulationRequest:
    """Jobs whose pods are alike and each placed by itself, more of them than there is room for: few sizes, priorities,
    bursts of one queue into the room of others, and now and then one that is no such job, a bound or a minimum
    runtime. ``flat``: all queues are siblings, and tell apart little."""
    random = Random(seed)
    queues = _queues(random)
    for queue in queues:
        if random.random() < 0.9:
            queue.pop("kai", None)
    if flat:
        few = Random(f"{seed} flat")
        alike = _quota(few)
        for queue in queues[1:]:
            quota = few.choice([alike, alike, _quota(few)])
            queue.update({"parent": "root", "priority": few.choice([0, 0, 0, 1]), "quota": quota})
            if few.random() < 0.5:
                queue["created_at"] = f"2026-01-0{few.randint(1, 2)}T00:00:00Z"
        del queues[few.randint(4, 6) :]
    leaves = sorted({queue["name"] for queue in queues} - {queue.get("parent") for queue in queues})
    sizes = random.choice([[(1, 1)], [(1, 0)], [(1, 1), (1, 0)], [(1, 1), (2, 2)], [(1, 0), (2, 0), (1, 2)]])
    odd, fixed = random.choice([0, 0, 0.05]), random.choice([0, 0, 0.2])
    jobs, now = list[Json](), 0
    for i in range(random.randint(8, 40)):
        now += random.choice([0, 0, 1, 5, 20])
        (cpu, gpu), count = random.choice(sizes), random.choice([1, 1, 2, 5])
        task: Json = {"name": "t", "count": count, "requests": {"cpu": cpu, "gpu": gpu}}
        ask: Json = {"id": f"j{i}", "queue": random.choice(leaves), "priority": random.randint(0, 3), "tasks": [task]}
        ask |= {"preemptible": random.random() >= fixed}
        ask |= {"min_available": count} if random.random() < odd else {}
        job: Json = {"ask": ask, "submitted_at": now, "duration": random.choice([3, 10, 40, 100])}
        jobs.append(job | ({"checkpoint": {"every": 10}} if random.random() < 0.5 else {}))
    settings: Json = {
        "release": random.choice(["0.13", "0.17"]), "rules": random.choice(["shipped", "documented"]),
        "use_scheduling_signatures": random.random() < 0.8,
        "allow_consolidating_reclaim": random.random() < 0.8,
    }  # fmt: skip
    if random.random() < 0.3:
        settings["max_consolidation_preemptees"] = random.choice([0, 1])
    if random.random() < 0.3:
        actions = ["consolidation", "reclaim", "preempt"]
        random.shuffle(actions)
        settings["actions"] = ["allocate", *actions[: random.randint(0, 3)], *random.choice([[], ["allocate"]])]
    nodes = [
        {"name": f"n{i}", "capacity": {"cpu": random.choice([3, 4, 6]), "gpu": random.choice([0, 2, 4, 4])}}
        | ({"schedulable": False} if random.random() < 0.05 else {})
        for i in range(random.randint(1, 4))
    ]
    changes: list[Json] = []
    if random.random() < 0.2:
        changes = [{"at": 20, "nodes": {"add": [{"name": "n9", "capacity": {"cpu": 4, "gpu": 4}}]}}]
        changes += [{"at": 60, "nodes": {"remove": ["n0"]}}]
    return request_for(
        {"engine": "kai", "queues": queues, "settings": {"kai": settings}}, jobs, changes, state={"nodes": nodes},
        grace=random.choice([0, 0, 0, 2]), round_every=random.choice([1, 3]), until=300,
        requeue=random.choice(["created", "evicted"]),
    )  # fmt: skip


@given(seed=st.integers(0, 2**32), flat=st.booleans())
@example(seed=5535, flat=False)  # an action that ended early left constraints of later victims unasked
@example(seed=11662, flat=False)
@examples(120)
def test_a_round_of_a_crowd_comes_to_what_its_answer_says(met: Met, seed: int, *, flat: bool) -> None:
    run, gone = without_hopeless(_crowded(seed, flat=flat)), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        play_cycle = rounds.PlainCycle.play

        def noted(cycle: rounds.PlainCycle) -> bool:
            plain = play_cycle(cycle)
            gone.extend(victim.name for victim, *_ in cycle.evictions if plain)
            return plain

        patch.setattr(rounds.PlainCycle, "play", noted)
        foreseen, shown = _told(unheard(run)), unseen(run)
    asked = play(run)
    assert foreseen == _told(asked)
    assert without_digests(shown) == without_digests(asked)
    met(gone)


def _told(told: Told) -> bytes:
    return msgspec.json.encode([told.events, told.jobs, told.summary])


@given(st.integers(0, 2**32), st.booleans(), ASKED)
@examples(60)
def test_a_round_that_is_asked_in_between_changes_nothing(met: Met, seed: int, flat: bool, part: float) -> None:
    met(told_after_asked(_crowded(seed, flat=flat), seed, part))


@given(seed=st.integers(0, 2**32))
@examples(300)
def test_siblings_have_their_turns_as_the_tree_has_them(seed: int) -> None:
    """Whatever is placed between two turns, comes again, and goes once a turn is over."""
    random, number = Random(seed), 0
    queues = range(random.randint(1, 5))
    keys, levels, wants = dict[int, Key](), [random.randint(0, 2) for _ in queues], dict[int, int]()
    lines = dict[int, list[Entry]]()
    for queue in queues:
        for _ in range(random.choice([0, 1, 1, 2, 4])):
            keys[number] = -random.randint(0, 2), random.randint(0, 2), 0, "", number
            wants[number] = random.choice([0, 0, 0, 1])
            insort(lines.setdefault(queue, []), (keys[number], number))
            number += 1
    before = {(a, b): random.random() < 0.3 for a in queues for b in queues if a < b}
    moved, settled = list[tuple[ahead.Job, int, int]](), list[int]()

    def position(queue: int, job: int) -> Position:
        return False, False, levels[queue] + wants[job], False, 0.0, 0.0

    def goes_before(a: int, b: int) -> bool:
        return before.get((a, b), (b, a) in before and not before[b, a] and (a + b) % 2 == 0)

    def less(a: Node[Waiting], b: Node[Waiting]) -> bool:
        of_a, of_b = (position(of.queue, best_of(of).first()) for of in (a, b))
        return of_a < of_b if of_a != of_b else goes_before(a.queue, b.queue)

    tree = QueueTree[Waiting]([ROOTLESS] * len(queues), less)
    for queue in sorted(lines, key=lambda queue: lines[queue][0]):
        tree.add(queue, Waiting(settled, keys.__getitem__, lines[queue]))
    turns = Turns(lines, moved, settled, keys.__getitem__, position, goes_before, None)

    def move(queue: int) -> None:
        levels[queue] += random.choice([-1, 1, 1])
        moved.append((cast(ahead.Job, SimpleNamespace(queue=queue)), 0, 1))

    def rank(job: int) -> None:
        keys[job] = keys[job][0], random.randint(0, 2), 0, "", job
        settled.append(job)

    for _ in range(3 * number):
        due = tree.next()
        expected = None if due is None else (due[0], due[1].pop())
        assert turns.next() == expected
        if expected is None:
            return
        queue, job = expected
        if again := random.random() < 0.4:
            move(queue)
            rank(job)
        tree.took(queue)
        turns.took(queue)
        if again:
            leaf = tree.leaf(queue)
            if leaf is None:
                tree.add(queue, Waiting(settled, keys.__getitem__, [(keys[job], job)]))
            else:
                leaf.push(job)
            turns.push(queue, job)
        elif random.random() < 0.4:
            for other in random.sample([queue, random.choice(queues)], 2):
                move(other)
            rank(random.randrange(number))
        for other in queues:
            leaf = tree.leaf(other)
            assert turns.best(other) == (keys[leaf.first()][0] if leaf else None)
