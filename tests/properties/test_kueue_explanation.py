"""What is told is told of the answer given: laws of explanations on random clusters, in both modes."""

from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.solver.engines.kueue.findings import RULES
from tests.properties import test_kueue_laws
from tests.support.kueue_cycle import NEUTRAL, Cluster, clusters
from tests.support.profiles import examples
from tests.unit.solver.engines.kueue.cluster import decide, preemptibility

Json = dict[str, Any]
LAWS = examples(150, suppress_health_check=[HealthCheck.too_slow])
MODES = st.sampled_from(["independent", "cycle"])
CATALOGUE = {rule.rule for rule in RULES}


@st.composite
def contested(draw: st.DrawFn) -> Cluster:
    """Clusters whose asks meet one another: many heads that preempt, most of them one level below the root."""
    of, running, pending = draw(clusters())
    for queue in of["queues"][3:]:
        queue["kueue"]["preemption"]["reclaim_within_cohort"] = draw(st.sampled_from(["LowerPriority", "Any"]))
        if draw(st.booleans()):
            queue["parent"] = "root"
        if draw(st.integers(0, 9)) == 0:
            queue["kueue"]["preemption"] |= NEUTRAL
    for ask in pending:
        ask["priority"] += draw(st.integers(0, 2))
        if draw(st.integers(0, 9)) == 0:
            ask["preemption_policy"] = "Never"
    return of, running, pending


def told(of: Cluster, mode: str, level: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer, and its explanations by ask taken out of it."""
    answer = decide(*of, mode=mode, explain=level)
    return answer, {name: d.pop("explanation") for name, d in answer["decisions"].items()}


@LAWS
@given(contested(), MODES)
def test_what_is_told_is_told_of_the_answer_given(of: Cluster, mode: str) -> None:
    plain = decide(*of, mode=mode)
    answer, full = told(of, mode, "full")
    shorter, summary = told(of, mode, "summary")
    assert plain == answer == shorter, "explaining changes nothing"
    _the_candidates_called_victims_are_the_victims(of, answer, full)
    _groups_and_candidates_add_up(full, summary)
    _who_waits_is_told_what_is_in_the_way(answer, summary)
    _a_rule_that_is_named_stands_in_the_catalogue(of, full)


def _the_candidates_called_victims_are_the_victims(of: Cluster, answer: Json, explanations: Json) -> None:
    running = {w["id"] for w in of[1]}
    for name, decision in answer["decisions"].items():
        candidates = explanations[name]["candidates"]
        names = [c["workload"] for c in candidates]
        assert len(names) == len(set(names))
        assert {c["workload"] for c in candidates if c["verdict"] == "victim"} == {
            v["workload"] for v in decision["victims"]
        }
        assert {c["workload"]: c["rule"] for c in candidates if c["verdict"] == "victim"} == {
            v["workload"]: v["reason"] for v in decision["victims"]
        }
        assert not names or set(names) == running, "a verdict for everybody, once anybody is looked at"
        if decision["outcome"] == "admit":
            assert not names


def _groups_and_candidates_add_up(full: Json, summary: Json) -> None:
    for name, explained in summary.items():
        counts: dict[tuple[str, str], int] = {}
        for candidate in full[name]["candidates"]:
            key = candidate["verdict"], candidate["rule"]
            counts[key] = counts.get(key, 0) + 1
        assert {(g["verdict"], g["rule"]): g["count"] for g in explained["groups"]} == counts
        assert (explained["headline"], explained.get("blocker")) == (full[name]["headline"], full[name].get("blocker"))


def _who_waits_is_told_what_is_in_the_way(answer: Json, explanations: Json) -> None:
    for name, decision in answer["decisions"].items():
        waits = decision["outcome"] in ("wait", "infeasible")
        assert bool(explanations[name].get("blocker")) == waits


def _a_rule_that_is_named_stands_in_the_catalogue(of: Cluster, explanations: Json) -> None:
    for explained in explanations.values():
        assert {step["rule"] for step in explained["steps"]} <= CATALOGUE
        assert {candidate["rule"] for candidate in explained["candidates"]} <= CATALOGUE
    for ask in (None, of[2][0]):
        lines = preemptibility(of[0], of[1], ask=ask)["workloads"].values()
        assert {line["reason"] for line in lines} <= CATALOGUE


@LAWS
@given(test_kueue_laws.clusters())
def test_a_cluster_of_two_resources_is_told_alike(cluster: test_kueue_laws.Cluster) -> None:
    """Lending limits, two resources, thresholds: what the other clusters here do not have."""
    found = cluster.decide(explain="full")
    candidates = found.pop("explanation")["candidates"]
    assert found == cluster.decide()
    assert {c["workload"] for c in candidates if c["verdict"] == "victim"} == {v["workload"] for v in found["victims"]}
    assert {c["rule"] for c in candidates} <= CATALOGUE
