"""Laws of flavor assignment, the cycle and the deferred knobs on random clusters."""

import json
import random
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.kueue_cycle import FLAVORS, NEUTRAL, Cluster, clusters
from tests.support.profiles import Met, examples
from tests.unit.solver.engines.kueue.cluster import at, configuration, decide
from tests.unit.solver.engines.kueue.rounds import cycles

LAWS = examples(60, suppress_health_check=[HealthCheck.too_slow])


def run(of: Cluster, mode: str = "cycle") -> dict[str, Any]:
    return decide(*of, mode=mode)


def usage(of: Cluster, answer: dict[str, Any]) -> dict[str, float]:
    """By flavor, once all victims are gone and every head that goes on has what it was given."""
    _, running, pending = of
    gone = {v["workload"] for d in answer["decisions"].values() for v in d["victims"]}
    used = dict.fromkeys(FLAVORS, 0.0)
    for w in running:
        if w["id"] not in gone:
            used[w["tasks"][0]["flavors"]["cpu"]] += w["tasks"][0]["requests"]["cpu"]
    for ask in pending:
        decision = answer["decisions"][ask["id"]]
        if decision["outcome"] in ("admit", "preempt"):
            count = decision.get("counts", {}).get("main", ask["tasks"][0]["count"])
            used[decision["assignment"]["main"]["cpu"]] += count * ask["tasks"][0]["requests"]["cpu"]
    return used


@LAWS
@given(clusters())
def test_what_a_cycle_hands_out_is_there(of: Cluster) -> None:
    answer = run(of)
    quota = {
        f: sum(q["resource_groups"][0]["flavors"][i]["quota"]["cpu"]["guaranteed"] for q in of[0]["queues"][3:])
        for i, f in enumerate(FLAVORS)
    }
    used = usage(of, answer)
    assert all(used[f] <= quota[f] for f in FLAVORS)


@LAWS
@given(clusters())
def test_one_head_a_queue_and_each_victim_once(of: Cluster) -> None:
    answer = run(of)
    queues = {ask["id"]: ask["queue"] for ask in of[2]}
    assert sorted(queues[name] for name in answer["order"]) == sorted(set(queues.values()))
    stopped = [v["workload"] for d in answer["decisions"].values() for v in d["victims"]]
    assert len(stopped) == len(set(stopped))
    for name, decision in answer["decisions"].items():
        if name not in answer["order"]:
            assert (decision["outcome"], decision["victims"]) == ("wait", [])


@LAWS
@given(clusters())
def test_a_partial_size_is_between_minimum_and_count(met: Met, of: Cluster) -> None:
    tasks = {ask["id"]: ask["tasks"][0] for ask in of[2]}
    decisions = run(of, "independent")["decisions"].items()
    for name, count in met((name, of["counts"]["main"]) for name, of in decisions if "counts" in of):
        assert tasks[name]["min_count"] <= count < tasks[name]["count"]


def _unplanned(decision: dict[str, Any]) -> dict[str, Any]:
    """Only a decision on its own has a plan of its own, which names the ask again."""
    return {name: value for name, value in decision.items() if name != "plan"}


@LAWS
@given(clusters())
def test_alone_in_a_cycle_is_as_alone(met: Met, of: Cluster) -> None:
    """A head that nobody goes before is decided as if asked independently. The one exception is a flavor that counts as
    fitting and is then found not to: only with a preference, which these clusters have none of."""
    cluster, running, pending = of
    for ask in met(pending):
        together, alone = (decide(cluster, running, [ask], mode=mode) for mode in ("cycle", "independent"))
        for one in together["decisions"].values():
            one.pop("kueue", None)  # what is carried to the next cycle
        assert together["decisions"] == {name: _unplanned(one) for name, one in alone["decisions"].items()}


@LAWS
@given(clusters(), st.randoms(use_true_random=False))
def test_order_of_keys_and_workloads_never_matters(of: Cluster, chance: random.Random) -> None:
    cluster, running, pending = json.loads(json.dumps(of))
    again: Cluster = (
        _shuffled(cluster, chance),
        [_shuffled(w, chance) for w in running],
        [_shuffled(a, chance) for a in pending],
    )
    chance.shuffle(again[1])
    one, other = run(of), run(again)
    assert json.dumps(one["decisions"]) == json.dumps(other["decisions"])
    assert one["order"] == other["order"]


def _shuffled(document: Any, chance: random.Random) -> Any:
    """The same document with the keys of every object in another order; lists stay."""
    if isinstance(document, list):
        return [_shuffled(item, chance) for item in document]
    if not isinstance(document, dict):
        return document
    keys = list(document)
    chance.shuffle(keys)
    return {key: _shuffled(document[key], chance) for key in keys}


@LAWS
@given(clusters())
def test_feeding_cycles_back_ends(of: Cluster) -> None:
    """Victims leave, admitted heads run, the others ask again: in the end nobody stops and nobody starts."""
    cluster, running, pending = of
    for _ in range(4 * (len(running) + len(pending)) + 4):
        answer = decide(cluster, running, pending, mode="cycle") if pending else {"decisions": {}}
        gone = {v["workload"] for d in answer["decisions"].values() for v in d["victims"]}
        started = [ask for ask in pending if answer["decisions"][ask["id"]]["outcome"] == "admit"]
        if not gone and not started:
            return
        names = {ask["id"] for ask in started}
        running = [w for w in running if w["id"] not in gone] + [
            _run(ask, answer["decisions"][ask["id"]]) for ask in started
        ]
        pending = [ask for ask in pending if ask["id"] not in names]
    raise AssertionError("still changing")


def _run(ask: dict[str, Any], decision: dict[str, Any]) -> dict[str, Any]:
    task = {k: v for k, v in ask["tasks"][0].items() if k != "min_count"}
    task |= {"count": decision.get("counts", {}).get("main", task["count"]), "flavors": decision["assignment"]["main"]}
    return ask | {"started_at": at("12:00"), "tasks": [task]}


@LAWS
@given(clusters())
def test_knobs_that_say_nothing_change_nothing(of: Cluster) -> None:
    """Sorting by the default, no waiting, rates of 0, one cost for all: decisions as without, none beyond Kueue."""
    cluster, running, pending = of
    queues = json.loads(json.dumps(cluster["queues"]))
    for queue in queues[3:]:
        queue["kueue"]["preemption"] |= NEUTRAL
    for mode in ("cycle", "independent"):
        assert run((cluster | {"queues": queues}, running, pending), mode)["decisions"] == run(of, mode)["decisions"]


@LAWS
@given(clusters())
def test_many_asks_at_once_are_decided_as_each_alone(met: Met, of: Cluster) -> None:
    """From some number of asks on all workloads are sorted once; that changes no decision."""
    cluster, running, pending = of
    many = [ask | {"id": f"{ask['id']}-{i}"} for ask in pending for i in range(16)]
    together = decide(cluster, running, many)["decisions"]
    for ask in met(pending):
        (alone,) = decide(cluster, running, [ask])["decisions"].values()
        for i in range(16):
            assert _unplanned(together[f"{ask['id']}-{i}"]) | {"ask": ask["id"]} == _unplanned(alone)


@LAWS
@given(st.integers(0, 2**32), st.booleans())
def test_cycles_fed_back_end_below_one_cohort_and_for_one_resource(seed: int, fair: bool) -> None:
    """Asks arrive one after the other and go through cycles until nothing moves. What happens with two resources, or
    with a cohort below another, is in test_rounds.py."""
    rng = random.Random(seed)
    queues: list[dict[str, Any]] = [{"name": "co", "quota": {"cpu": {"guaranteed": rng.randint(0, 2)}}}]
    for i in range(rng.randint(2, 4)):
        reclaim = rng.choice(["Never", "LowerPriority", "Any"])
        preemption: dict[str, Any] = {
            "within_cluster_queue": rng.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaim_within_cohort": reclaim,
        }
        if reclaim != "Never" and rng.random() < 0.5:
            preemption["borrow_within_cohort"] = {"policy": "LowerPriority"}
        quota = {"guaranteed": rng.randint(0, 2)}
        quota |= {limit: rng.randint(0, 2) for limit in ("borrowing_limit",) if rng.random() < 0.2}
        block = {"preemption": preemption}
        queues.append(
            {"name": f"q{i}", "parent": "co", "weight": rng.choice([1, 2]), "quota": {"cpu": quota}} | {"kueue": block}
        )
    of = configuration(*queues, fair=fair)
    of["settings"]["kueue"]["preemption_strategies"] = ["LessThanOrEqualToFinalShare"]
    running: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for i in range(rng.randint(2, 5)):
        task = {"name": "main", "requests": {"cpu": rng.randint(1, 3)}}
        queue = rng.choice(queues[1:])["name"]
        waiting.append({
            "id": f"w{i}", "uid": f"w{i}", "queue": queue, "priority": rng.randint(0, 2),
            "created_at": at(f"09:{rng.randint(0, 59):02}"), "tasks": [task | {"flavors": {"cpu": "default"}}],
        })  # fmt: skip
        assert len(cycles(of, running, waiting, 40)) < 40
