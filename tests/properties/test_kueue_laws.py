"""Laws of Kueue's preemption on random clusters, classical and fair sharing alike.

Clusters are grown, not drawn: workloads are those that the engine itself admitted one after the other, so that no
state is one that Kueue could not have come to.
"""

import copy
import random
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.solver.engines.kueue.ahead import Ahead, verdict, wish_of
from app.solver.engines.kueue.engine import ENGINE
from app.solver.engines.kueue.nomination import Mode
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, State
from tests.support.profiles import Met, examples
from tests.unit.solver.engines.kueue.cluster import at, configuration, one, victims

Json = dict[str, Any]
LAWS = examples(100, suppress_health_check=list(HealthCheck))
RESOURCES = ("cpu", "gpu")
FLAVOR = "default"
FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"


class Cluster:
    """``of``: a configuration; ``running``; ``ask``: one that does not fit."""

    def __init__(self, of: Json, running: list[Json], ask: Json) -> None:
        self.of, self.running, self.ask = of, running, ask

    def decide(self, without: frozenset[str] = frozenset(), **more: Any) -> Json:
        return one(self.of, [w for w in self.running if w["id"] not in without], self.ask, **more)

    @property
    def queue(self) -> dict[str, Json]:
        return {q["name"]: q for q in self.of["queues"]}

    def path(self, name: str | None) -> list[str]:
        out: list[str] = []
        while name is not None:
            out.append(name)
            name = self.queue[name].get("parent")
        return out


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A root with up to two cohorts and up to five queues, cpu and gpu of one flavor, lending and borrowing limits."""
    seed, fair = draw(st.integers(0, 2**32)), draw(st.booleans())
    return grown(random.Random(seed), fair=fair)


def grown(
    rng: random.Random, *, fair: bool, strategies: list[str] | None = None, resources: Sequence[str] = RESOURCES
) -> Cluster:
    of = configuration(*_queues(rng), fair=fair)
    of["settings"]["kueue"]["preemption_strategies"] = strategies or rng.choice([[FINAL, INITIAL], [FINAL], [INITIAL]])
    names = [q["name"] for q in of["queues"] if "quota" in q and q["name"].startswith("q")]
    running: list[Json] = []
    for i in range(rng.randint(4, 14)):
        work = _work(rng, f"w{i}", rng.choice(names), "09", resources)
        if one(of, running, _as_ask(work))["outcome"] == "admit":
            running.append(work | {"started_at": at(f"10:{i:02}")})
    for i in range(20):
        ask = _as_ask(_work(rng, f"ask{i}", rng.choice(names), "10", resources)) | {
            "preemption_policy": "PreemptLowerPriority"
        }
        if one(of, running, ask)["outcome"] != "admit":
            return Cluster(of, running, ask)
    return Cluster(of, running, ask)


def _queues(rng: random.Random) -> list[Json]:
    cohorts = ["root", "left", "right"][: rng.randint(1, 3)]
    out: list[Json] = [{"name": c} | ({"parent": "root"} if c != "root" else {}) for c in cohorts]
    for cohort in out:
        cohort["weight"] = rng.choice([1, 1, 2])
        cohort["kueue"] = {"role": "cohort"}
    for i in range(rng.randint(2, 5)):
        reclaim = rng.choice(["Never", "LowerPriority", "Any", "Any"])
        preemption: Json = {
            "within_cluster_queue": rng.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaim_within_cohort": reclaim,
        }
        if reclaim != "Never" and rng.random() < 0.3:
            preemption["borrow_within_cohort"] = {"policy": "LowerPriority"}
            if rng.random() < 0.5:
                preemption["borrow_within_cohort"]["max_priority_threshold"] = rng.randint(0, 2)
        quota = {r: _quota(rng) for r in RESOURCES}
        out.append({
            "name": f"q{i}", "parent": rng.choice(cohorts), "quota": quota, "weight": rng.choice([0, 1, 1, 1, 2]),
            "kueue": {"preemption": preemption},
        })  # fmt: skip
    return out


def _quota(rng: random.Random) -> Json:
    out: Json = {"guaranteed": rng.randint(0, 6)}
    if rng.random() < 0.25:
        out["borrowing_limit"] = rng.randint(0, 6)
    if rng.random() < 0.25:
        out["lending_limit"] = rng.randint(0, out["guaranteed"])
    return out


def _work(rng: random.Random, name: str, queue: str, hour: str, resources: Sequence[str]) -> Json:
    requests = {r: rng.randint(1, 3) for r in resources if rng.random() < 0.7} or {"cpu": 1}
    task = {"name": "main", "requests": requests, "flavors": dict.fromkeys(requests, FLAVOR)}
    minute = rng.randint(0, 59)
    return {
        "id": name, "uid": f"{rng.randint(0, 99):02}-{name}", "queue": queue, "priority": rng.randint(0, 3),
        "created_at": at(f"{hour}:{minute:02}"), "tasks": [task],
    }  # fmt: skip


def _as_ask(work: Json) -> Json:
    return {k: v for k, v in work.items() if k != "started_at"} | {"preemption_policy": "Never"}


def usage(cluster: Cluster, name: str, resource: str) -> float:
    return sum(w["tasks"][0]["requests"].get(resource, 0) for w in cluster.running if w["queue"] == name)


@LAWS
@given(clusters())
def test_the_ask_fits_once_its_victims_are_gone(cluster: Cluster) -> None:
    found = cluster.decide()
    if found["outcome"] == "preempt":
        after = cluster.decide(frozenset(victims(found)))
        assert (after["outcome"], after["victims"]) == ("admit", [])


@st.composite
def full(draw: st.DrawFn) -> Cluster:
    """Queues of one cohort, each for itself, or of cohorts in it that lend, with more work than there is room for."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    cohorts = ["root", "left", "right"][: rng.choice([1, 1, 3])]
    queues: list[Json] = [{"name": c} | ({"parent": "root"} if c != "root" else {}) for c in cohorts]
    several = rng.randint(2, 4)
    for i in range(several):
        preemption = {
            "within_cluster_queue": rng.choice(["Never", "LowerPriority"]),
            "reclaim_within_cohort": rng.choice(["LowerPriority", "Any"]),
        }
        quota = {r: {"guaranteed": rng.randint(2, 9)} for r in RESOURCES}
        for cell in quota.values() if len(cohorts) > 1 else ():
            cell["lending_limit"] = rng.randint(0, cell["guaranteed"])
        parent = cohorts[min(i + 1, len(cohorts) - 1)]
        queues.append({"name": f"q{i}", "parent": parent, "quota": quota, "kueue": {"preemption": preemption}})
    of, running = configuration(*queues), list[Json]()
    for i in range(40):
        work = _work(rng, f"w{i}", f"q{rng.randrange(several)}", "09", RESOURCES)
        work["priority"] = rng.randint(0, 6)
        if one(of, running, _as_ask(work))["outcome"] == "admit":
            running.append(work | {"started_at": at(f"10:{i:02}")})
    return Cluster(of, running, _as_ask(_work(rng, "ask", "q0", "11", RESOURCES)))


@LAWS
@given(st.one_of(clusters(), full(), full()), st.integers(0, 2**32))
def test_whoever_has_to_wait_by_limits_alone_waits(met: Met, cluster: Cluster, seed: int) -> None:
    """Asks of all priorities look one after the other at what does not change meanwhile, and leave behind what the
    next may not find either."""
    rng, configured = random.Random(seed), ENGINE.configure(msgspec.convert(cluster.of, Configuration))
    ahead = Ahead(ENGINE.load(configured, msgspec.convert({"workloads": cluster.running}, State)))
    names = [q["name"] for q in cluster.of["queues"] if q["name"].startswith("q")]
    for i in range(30):
        work = _as_ask(_work(rng, f"other{i}", rng.choice(names), rng.choice(["08", "11"]), RESOURCES))
        work["preemption_policy"] = rng.choice(["PreemptLowerPriority"] * 9 + ["Never"])
        work["priority"] = rng.randint(0, 7)
        for task in work["tasks"]:
            task["requests"] = {name: rng.randint(1, 6) for name in task["requests"]}
            del task["flavors"]
        ask = msgspec.convert(work, Ask)
        queue, wish = configured.tree.index[ask.queue], wish_of(configured, ask)
        assert wish is not None
        outcome = one(cluster.of, cluster.running, work, explain="none")["outcome"]
        if ahead.waits(queue, ask, wish):
            met([ask])
            assert outcome in ("wait", "infeasible")
        elif (alone := verdict(ahead, queue, ask, wish)) is not None:
            gets = "admit" if alone.mode is Mode.FIT else "preempt" if alone.targets else None
            assert outcome == gets or (gets is None and outcome in ("wait", "infeasible"))


@LAWS
@given(clusters())
def test_no_victim_can_be_put_back(met: Met, cluster: Cluster) -> None:
    """True of a fit as the attempt understood it: one that was not to borrow keeps a victim for that alone."""
    found = cluster.decide()
    gone = victims(found)
    for spared in met(gone):
        after = cluster.decide(frozenset(gone) - {spared}, explain="none")
        assert after["outcome"] != "admit" or _borrows(cluster, frozenset(gone) - {spared})


def _borrows(cluster: Cluster, gone: frozenset[str]) -> bool:
    """Whether the ask, with these workloads gone, takes its queue past nominal quota."""
    left = Cluster(cluster.of, [w for w in cluster.running if w["id"] not in gone], cluster.ask)
    quota, requests = cluster.queue[cluster.ask["queue"]]["quota"], cluster.ask["tasks"][0]["requests"]
    return any(usage(left, cluster.ask["queue"], r) + n > quota[r]["guaranteed"] for r, n in requests.items())


@LAWS
@given(clusters())
def test_nobody_outside_the_policies_is_touched(met: Met, cluster: Cluster) -> None:
    mine = cluster.ask
    policy = cluster.queue[mine["queue"]]["kueue"]["preemption"]
    running = {w["id"]: w for w in cluster.running}
    for victim in met(cluster.decide()["victims"]):
        other = running[victim["workload"]]
        own = other["queue"] == mine["queue"]
        rule = policy["within_cluster_queue"] if own else policy["reclaim_within_cohort"]
        lower = other["priority"] < mine["priority"]
        newer = other["priority"] == mine["priority"] and other["created_at"] > mine["created_at"]
        assert {
            "Never": False, "LowerPriority": lower, "LowerOrNewerEqualPriority": lower or newer, "Any": True,
        }[rule]  # fmt: skip
        assert own == (victim["reason"] == "InClusterQueue")


@LAWS
@given(clusters())
def test_a_queue_within_its_nominal_quota_loses_to_no_other(met: Met, cluster: Cluster) -> None:
    found = cluster.decide()
    short = {s["resource"] for s in found.get("shortages", [])}
    for queue in met(victim["queue"] for victim in found["victims"] if victim["queue"] != cluster.ask["queue"]):
        quota = cluster.queue[queue]["quota"]
        assert any(usage(cluster, queue, r) > quota[r]["guaranteed"] for r in short)


@LAWS
@given(clusters(), st.integers(0, 2**32))
def test_the_order_of_lists_and_keys_changes_nothing(cluster: Cluster, seed: int) -> None:
    rng = random.Random(seed)
    shuffled = Cluster(_shuffled(rng, cluster.of), _shuffled(rng, cluster.running), _shuffled(rng, cluster.ask))
    rng.shuffle(shuffled.running)
    rng.shuffle(shuffled.of["queues"])
    assert shuffled.decide() == cluster.decide()


def _shuffled(rng: random.Random, value: Any) -> Any:
    if isinstance(value, dict):
        items = [(k, _shuffled(rng, v)) for k, v in value.items()]
        rng.shuffle(items)
        return dict(items)
    return [_shuffled(rng, v) for v in value] if isinstance(value, list) else value


@LAWS
@given(clusters(), st.sampled_from(["summary", "full"]))
def test_explaining_changes_nothing(cluster: Cluster, level: str) -> None:
    told = cluster.decide(explain=level)
    explanation = told.pop("explanation")
    assert told == cluster.decide()
    if told["outcome"] == "wait":
        assert explanation["blocker"]
    if told["victims"] and level == "full":
        verdicts = {c["workload"]: c["verdict"] for c in explanation["candidates"]}
        assert {name for name, verdict in verdicts.items() if verdict == "victim"} == set(victims(told))
        assert set(verdicts) == {w["id"] for w in cluster.running}


@LAWS
@given(clusters())
def test_the_smallest_change_does_let_the_ask_in_and_one_step_less_does_not(met: Met, cluster: Cluster) -> None:
    told = cluster.decide(explain="summary")
    changes = told["explanation"].get("smallest_change", [])
    for change in met(change for change in changes if "alone" in change["detail"]):
        assert _changed(cluster, change, 0).decide()["outcome"] != "wait"
        assert _changed(cluster, change, -0.001).decide()["outcome"] == "wait"


def _changed(cluster: Cluster, change: Json, by: float) -> Cluster:
    of = copy.deepcopy(cluster.of)
    (queue,) = [q for q in of["queues"] if q["name"] == change["queue"]]
    quota = queue.setdefault("quota", {}).setdefault(change["resource"], {"guaranteed": 0})
    assert quota.get(change["field"], 0) == change["current"]
    quota[change["field"]] = round(change["needed"] + by, 3)
    return Cluster(of, cluster.running, cluster.ask)


@LAWS
@given(st.integers(0, 2**32), st.booleans())
def test_feeding_decisions_back_ends(seed: int, fair: bool) -> None:
    """Victims ask again, with the age they had. Whoever can gets in; it ends, and no state comes twice.

    In fair sharing Kueue's rules promise that for one resource and LessThanOrEqualToFinalShare only
    (docs/engines/kueue.md, and tests in test_fair.py of what happens otherwise)."""
    resources = RESOURCES[:1] if fair else RESOURCES
    cluster = grown(random.Random(seed), fair=fair, strategies=[FINAL], resources=resources)
    running, waiting = list(cluster.running), [cluster.ask]
    seen: set[tuple[str, ...]] = set()
    for minute in range(120):
        state = tuple(sorted(w["id"] for w in running))
        assert state not in seen, "a cycle"
        seen.add(state)
        moved = _round(cluster.of, running, waiting, minute)
        if not moved:
            return
    raise AssertionError("it does not end")


def _round(of: Json, running: list[Json], waiting: list[Json], minute: int) -> bool:
    """Let the first ask in that can be; its victims wait behind the others."""
    for ask in waiting:
        found = one(of, running, ask)
        if found["outcome"] in ("admit", "preempt"):
            gone = set(victims(found))
            back = [_as_ask(w) | {"preemption_policy": "PreemptLowerPriority"} for w in running if w["id"] in gone]
            started = {k: v for k, v in ask.items() if k != "preemption_policy"} | {"started_at": _later(minute)}
            running[:] = [w for w in running if w["id"] not in gone] + [started]
            waiting[:] = [w for w in waiting if w is not ask] + back
            return True
    return False


def _later(minute: int) -> str:
    return at(f"{13 + minute // 60}:{minute % 60:02}")
