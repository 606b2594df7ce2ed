"""Laws that hold for every cluster under kube-scheduler's rules."""

import json
from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.answering.comparison import compare
from app.answering.sources import nothing_stored
from app.answering.translation import translate as translated
from app.solver import solve
from app.solver.delta import apply_delta
from app.solver.engines.kube_scheduler.attempt import Chance, attempt_unseen
from app.solver.engines.kube_scheduler.importance import attempts_of
from app.solver.engines.kube_scheduler.world import World
from app.solver.model.base import to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Change
from app.solver.model.request import DecisionRequest, StateOrReference
from app.solver.model.state import Ask, Delta
from tests.support.kube_scheduler_clusters import NAMESPACES, Drawing
from tests.support.kube_scheduler_clusters import PRIORITIES as DRAWN
from tests.support.profiles import Met, examples
from tests.unit.solver.engines.kube_scheduler.asked import ask, decided, loaded_of, node, pod, protected, request, told

Json = dict[str, Any]
PRIORITIES = st.integers(0, 5)
CPUS = st.sampled_from([0.5, 1, 1.5, 2])
LABELS = st.sampled_from([{}, {"app": "web"}, {"app": "db"}])


@st.composite
def clusters(draw: st.DrawFn) -> Json:
    nodes = [node(f"n{i}", draw(st.sampled_from([2, 4, 8]))) for i in range(draw(st.integers(1, 4)))]
    running: list[Json] = []
    for i in range(draw(st.integers(0, 20))):
        made = pod(
            f"p{i}", f"n{draw(st.integers(0, len(nodes) - 1))}", draw(CPUS), draw(PRIORITIES), labels=draw(LABELS)
        )
        made["tasks"][0]["started_at"] = f"2026-01-01T0{draw(st.integers(0, 3))}:00:00Z"
        running.append(made)
    budgets = [
        {"name": f"b{i}", "queue": "default",
         "selector": {"match_labels": {"app": draw(st.sampled_from(["web", "db"]))}},
         "disruptions_allowed": draw(st.integers(0, 2))}
        for i in range(draw(st.integers(0, 2)))
    ]  # fmt: skip
    wanted = ask(cpu=draw(st.sampled_from([1, 2, 4, 9])), priority=draw(st.integers(0, 6)))
    return request(
        nodes, running, [wanted], disruption_budgets=budgets, explain=draw(st.sampled_from(["none", "full"]))
    )


@st.composite
def held_nodes(draw: st.DrawFn) -> Json:
    """One node full of pods that have less priority than who asks, and where a budget is, some that it protects."""
    sizes = draw(st.lists(st.sampled_from([0.5, 1, 2]), min_size=1, max_size=5))
    running = [pod(f"p{i}", "n0", cpu, draw(st.integers(0, 3)), labels=draw(LABELS)) for i, cpu in enumerate(sizes)]
    budgets = [
        {"name": f"b{i}", "queue": "default", "selector": {"match_labels": {"app": app}},
         "disruptions_allowed": draw(st.integers(0, 2))}
        for i, app in enumerate(draw(st.sampled_from([["web"], ["db"], ["web", "db"]])))
    ]  # fmt: skip
    wanted = ask(cpu=draw(st.sampled_from([cpu for cpu in (0.5, 1, 2, 4) if cpu <= sum(sizes)])), priority=4)
    return request([node("n0", sum(sizes))], running, [wanted], disruption_budgets=budgets)


def without(body: Json, names: list[str]) -> Json:
    left = [one for one in body["state"]["workloads"] if one["id"] not in names]
    return body | {"state": body["state"] | {"workloads": left}}


@given(clusters())
def test_victims_are_less_important_stand_on_the_node_and_make_room(body: Json) -> None:
    answer = decided(body)
    outcome, where, victims = told(answer)
    of = {one["id"]: one for one in body["state"]["workloads"]}
    for name in victims:
        assert of[name]["priority"] < body["asks"][0]["priority"]
        assert of[name]["tasks"][0]["node"] == where
    if outcome == "preempt":
        after = without(body, victims)
        hint = {**body["asks"][0], "nominated_node": where}
        assert told(decided({**after, "asks": [hint]})) == ("admit", where, [])


@given(st.one_of(held_nodes(), clusters()))
def test_nobody_goes_who_could_stay(met: Met, body: Json) -> None:
    """Each victim alone, put back, would leave too little room: all others stay gone."""
    outcome, where, victims = told(decided(body))
    for name in met(victims if outcome == "preempt" else ()):
        others = without(body, [one for one in victims if one != name])
        hint = {**body["asks"][0], "nominated_node": where, "preemption_policy": "Never"}
        again = told(decided({**others, "asks": [hint]}))
        assert again[:2] != ("admit", where)


@given(clusters())
def test_explaining_changes_nothing(body: Json) -> None:
    bare, full = (decided({**body, "explain": level}) for level in ("none", "full"))
    assert told(bare) == told(full)
    assert bare.decisions[0].violations == full.decisions[0].violations
    found = full.decisions[0].explanation
    assert found is not None
    assert (found.candidates or []) == [] or {c.verdict for c in found.candidates or []} <= {
        "victim", "put-back", "protected", "out-of-reach",
    }  # fmt: skip


@given(clusters())
def test_every_node_looked_at_is_never_worse(body: Json) -> None:
    """Where all nodes are candidates anyway, the starting point changes no more than a tie."""
    first = decided(body).decisions[0]
    every = decided({**body, "options": {"kube_scheduler": {"offset": "all"}}}).decisions[0]
    assert (first.outcome, first.violations, len(first.victims)) == (
        every.outcome,
        every.violations,
        len(every.victims),
    )


@given(clusters(), st.integers(0, 6))
def test_a_higher_priority_never_waits_where_a_lower_one_runs(body: Json, more: int) -> None:
    low = decided(body).decisions[0].outcome
    raised = {**body["asks"][0], "priority": body["asks"][0]["priority"] + more}
    high = decided({**body, "asks": [raised]}).decisions[0].outcome
    assert high != "wait" or low == "wait"


@given(clusters())
def test_what_would_let_it_in_does_and_a_step_less_does_not(body: Json) -> None:
    explained = decided({**body, "explain": "summary"}).decisions[0].explanation
    assert explained is not None
    for change in explained.smallest_change or ():
        assert _helps(body, change, 0), change
        assert not _helps(body, change, 1), change


def _helps(body: Json, change: Change, steps: int) -> bool:
    """Whether a change does what is said of it; ``steps``: by so much less than it is."""
    (asked,) = body["asks"]
    (task,) = asked["tasks"]
    if change.field == "disruptions_allowed":
        return _kept(body, change, int(change.needed) - steps)
    if change.field == "priority":
        asked = {**asked, "priority": change.needed - steps}
    else:
        assert change.field == "requests"
        amount = change.needed + (steps / 1000 if change.resource == "cpu" else steps)
        asked = {**asked, "tasks": [{**task, "requests": {**task["requests"], change.resource: amount}}]}
    return decided({**body, "asks": [asked]}).decisions[0].outcome != "wait"


def _kept(body: Json, change: Change, allowed: int) -> bool:
    budgets: list[Json] = body["state"]["disruption_budgets"]
    (name,) = [one["name"] for one in budgets if f" {one['name']} " in change.detail]
    if allowed == change.current:
        return False
    changed = [{**one, "disruptions_allowed": allowed} if one["name"] == name else one for one in budgets]
    answer = decided({**body, "state": {**body["state"], "disruption_budgets": changed}, "explain": "summary"})
    explained = answer.decisions[0].explanation
    assert explained is not None
    return not any(one.rule == "budgets-not-binding" and name in one.detail.split() for one in explained.steps)


@given(clusters(), st.data())
def test_who_may_be_preempted_is_evicted_where_nothing_else_helps(body: Json, data: st.DataObject) -> None:
    """Alone on its node, with an ask that wants all of it: whoever is preemptible goes, and nobody else."""
    running = body["state"]["workloads"]
    if not running:
        return
    one = data.draw(st.sampled_from(running))
    (task,) = one["tasks"]
    (home,) = [of for of in body["state"]["nodes"] if of["name"] == task["node"]]
    alone = {**body["state"], "nodes": [home], "workloads": [one]}
    asked = ask(cpu=home["capacity"]["cpu"], priority=body["asks"][0]["priority"])
    told_of = protected({**body, "state": alone}, asked)[one["id"]]
    outcome, _, victims = told(decided({**body, "state": alone, "asks": [asked]}))
    assert told_of["preemptible"] == (outcome == "preempt") == (victims == [one["id"]])
    assert told_of["tasks"] == {task["name"]: "preemptible" if victims else "non_preemptible"}


@given(st.one_of(held_nodes(), clusters()))
def test_the_budgets_named_are_those_that_an_eviction_charges(met: Met, body: Json) -> None:
    """One of them that allows nothing is violated by the eviction of its pod; those not named are not."""
    outcome, _, victims = told(decided(body))
    goes_alone = outcome == "preempt" and len(victims) == 1
    if not met(body["state"]["disruption_budgets"] if goes_alone else ()):
        return
    named = protected(body, body["asks"][0])[victims[0]]["budgets"].get(victims[0], [])
    alone = without(body, [one["id"] for one in body["state"]["workloads"] if one["id"] not in victims])
    (task,) = alone["state"]["workloads"][0]["tasks"]
    (home,) = [of for of in body["state"]["nodes"] if of["name"] == task["node"]]
    for budget in body["state"]["disruption_budgets"]:
        state = {**alone["state"], "nodes": [home], "disruption_budgets": [{**budget, "disruptions_allowed": 0}]}
        asked = ask(cpu=home["capacity"]["cpu"], priority=body["asks"][0]["priority"])
        found = decided({**body, "state": state, "asks": [asked]}).decisions[0]
        assert found.violations == (budget["name"] in named)


@examples(100)  # the first of them loads both engines
@given(clusters(), st.booleans())
def test_on_one_node_kueue_lets_in_whom_kube_scheduler_does(body: Json, there_and_back: bool) -> None:
    """In one request, both ways: who has less priority goes where the room is short, whoever runs in whose queue."""
    (home, *_) = body["state"]["nodes"]
    moved = [
        {**one, "queue": ("default", "other")[i % 2], "tasks": [{**one["tasks"][0], "node": home["name"]}]}
        for i, one in enumerate(body["state"]["workloads"])
    ]
    state = {"nodes": [home], "workloads": moved}
    body = {**body, "state": state}
    if there_and_back:
        wanted = msgspec.convert(body, DecisionRequest)
        assert isinstance(wanted.configuration, Configuration)
        given_state = msgspec.convert(state, StateOrReference)
        assert wanted.asks != "pending"
        kueue = translated(wanted.configuration, given_state, list(wanted.asks), "kube-scheduler", "kueue")
        body = body | msgspec.to_builtins(
            {"configuration": kueue.configuration, "state": kueue.state, "asks": kueue.asks}
        )
    variants = [{"name": "kueue", "engine": "kueue"}, {"name": "kube-scheduler", "engine": "kube-scheduler"}]
    found = json.loads(compare(json.dumps({**body, "variants": variants}).encode(), to_datetime(0), nothing_stored()))
    one, other = (of["answer"]["decisions"][0] for of in found["variants"])
    outcome = {"infeasible": "wait"}.get(one["outcome"], one["outcome"])
    assert outcome == other["outcome"]
    assert [of["name"] for of in found["variants"] if of.get("findings")] == [
        "kube-scheduler" if there_and_back else "kueue"
    ]


@examples(10)  # each decides twenty times twice, on up to a thousand pods
@given(st.integers(0, 2**31))
def test_a_kept_state_answers_as_one_that_is_made_anew(seed: int) -> None:
    """However many pods of whatever size were asked for before, and whatever changed between them."""
    random = Random(seed)
    drawing = Drawing(random)
    drawing.full = True
    drawing.topics -= {"affinity", "spread", "ports", "nominated"}
    count = random.randint(64, 90)
    nodes = [drawing.node(i) for i in range(count)]
    workloads = drawing.workloads(count, random.choice((6, 12)))
    for task in (task for one in workloads for task in one["tasks"] if random.random() < 0.95):
        task["started_at"] = f"2026-01-01T00:{random.randrange(60):02d}:{random.randrange(60):02d}Z"
    if random.random() < 0.5:  # nodes that lose equally much, but for when pods started
        nodes = [{**one, "capacity": {"cpu": 4, "memory": "8Gi", "pods": random.choice((2, 4, 9))}} for one in nodes]
        for one in workloads:
            one |= {"priority": 0, "tasks": [{**task, "requests": {"cpu": 1}, "priority": 0} for task in one["tasks"]]}
    settings = {"workload_aware": drawing.aware, "min_candidate_nodes_absolute": random.choice((1, 20, 100))}
    body = request(nodes, workloads, [], settings=settings, mode=random.choice(("independent", "cycle")))
    body["configuration"]["queues"] = [{"name": name} for name in NAMESPACES]
    body["state"]["disruption_budgets"] = [drawing.budget(i, workloads) for i in range(random.randint(0, 2))]
    kept = loaded_of(body)
    for i in range(20):
        if workloads and random.random() < 0.3:
            at = random.randrange(len(workloads))
            workloads[at] = {**workloads[at], "priority": random.choice(DRAWN)}
            delta = msgspec.convert({"generation": 1, "workloads": {"change": [workloads[at]]}}, Delta)
            kept = solve.update(kept, *apply_delta(kept.state, kept.index, delta), generation=None)
        offset = random.choice((0, 7, "all"))
        asked = {**body, "asks": [drawing.ask(i, count)], "options": {"kube_scheduler": {"offset": offset}}}
        asked["explain"] = random.choice(("none", "summary", "full"))
        assert decided(asked, kept).decisions == decided(asked).decisions


@given(clusters(), st.booleans(), st.lists(st.tuples(CPUS, PRIORITIES), min_size=2, max_size=8))
@examples(60)
def test_what_nodes_offer_is_what_an_attempt_would_find(
    body: Json, even: bool, wanted: list[tuple[float, int]]
) -> None:
    """Pod after pod, each with what those before it took; of pods that request the same and of others."""
    for of in body["state"]["nodes"] if even else ():  # full of pods that request the same
        here = [task for one in body["state"]["workloads"] for task in one["tasks"] if task["node"] == of["name"]]
        of["capacity"] = {"cpu": len(here), "pods": 100}
        for task in here:
            task["requests"] = {"cpu": 1}
    worlds = [World(loaded_of(body).compiled) for _ in range(2)]
    worlds[1].offers = {}
    for i, (cpu, priority) in enumerate(wanted):
        asked = msgspec.convert(ask(cpu=cpu, priority=priority) | {"id": f"a{i}"}, Ask)
        came: list[Any] = []
        for world in worlds:
            (of,) = attempts_of(world.state, asked, i)
            outcome = attempt_unseen(world, of, Chance(0))
            if outcome is None:
                came.append(None)
                continue
            ((placed, where),) = outcome.placed
            came.append((outcome.kind, where, [victim.workload for victim in outcome.victims]))
            if outcome.kind == "admit":
                world.add(placed, where)
            else:
                world.nominate(where, [*world.nominated.get(where, ()), (asked.id, placed)])
                world.leave(outcome.victims)
        assert came[0] == came[1]
