"""What an explanation says is true of the answer that it comes with, and every rule that it names stands in the
catalogue."""

import gzip
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kai.rule_sets import RULES
from tests.support.kai_world import ALL_ACTIONS, Json, Outcome, Shape, cluster, crowded, decide
from tests.support.profiles import examples

FAST = examples(200)
SEEDS = st.integers(0, 2**32)
VECTORS = Path(__file__).parents[1] / "vectors" / "kai"
KNOWN = {rule.rule for rule in RULES}
ORDERS = [ALL_ACTIONS, ["reclaim", "preempt"], ["preempt", "reclaim"], ["preempt", "consolidation", "reclaim"]]


def any_cluster(seed: int) -> Json:
    random = Random(seed)
    if random.random() < 0.3:
        return crowded(seed)
    shape = Shape(
        queues=random.randint(2, 8), nodes=random.randint(1, 5), workloads=random.randint(2, 14),
        asks=random.randint(1, 8), rules=random.choice(["documented", "shipped"]), actions=random.choice(ORDERS),
        shares_of_gpus=random.random() < 0.2, constraints=random.random() < 0.3,
    )  # fmt: skip
    return cluster(seed, shape)


@FAST
@given(SEEDS)
def test_an_explanation_is_that_of_the_answer_given(seed: int) -> None:
    body = any_cluster(seed)
    plain, summary, full = (decide(body | {"explain": level}) for level in ("none", "summary", "full"))
    _every_candidate_has_one_verdict_and_the_victims_are_those_of_the_answer(Outcome(body, full))
    _groups_are_the_candidates_counted(full, summary)
    _who_waits_is_told_what_stands_in_the_way(full)
    assert _rules_of(full) <= KNOWN
    _explaining_changes_nothing_else(plain, {"summary": summary, "full": full})


def _explaining_changes_nothing_else(plain: Json, explained: dict[str, Json]) -> None:
    for level, answer in explained.items():
        for decision in answer["decisions"]:
            assert decision.pop("explanation")["level"] == level
        assert {k: v for k, v in answer.items() if k != "stats"} == {k: v for k, v in plain.items() if k != "stats"}


def _every_candidate_has_one_verdict_and_the_victims_are_those_of_the_answer(outcome: Outcome) -> None:
    for decision in outcome.answer["decisions"]:
        candidates = decision["explanation"].get("candidates", [])
        names = [(c["workload"], c.get("task")) for c in candidates]
        assert len(names) == len(set(names))
        assert not {w for w, task in names if task is None} & {w for w, task in names if task is not None}
        victims = {(v["workload"], v["task"]) for v in decision["victims"]}
        went = {(c["workload"], c.get("task")): c for c in candidates if c["verdict"] in ("victim", "moved")}
        assert went.keys() == victims
        assert {key for key, c in went.items() if c["verdict"] == "moved"} == victims & outcome.moved.keys()
        for c in candidates:
            key = c["workload"], c.get("task")
            assert c["verdict"] != "put-back" or key not in victims
            assert (c["rule"] == "goes-for-another") <= (key in outcome.evicted.keys() - victims)
        own = outcome.asks[decision["ask"]].get("workload")
        running = {
            w["id"]
            for w in outcome.workloads.values()
            if any(t.get("state", "running") == "running" for t in w["tasks"])
        }
        assert not candidates or running - {own} <= {workload for workload, _ in names} <= running


def _groups_are_the_candidates_counted(full: Json, summary: Json) -> None:
    for one, other in zip(full["decisions"], summary["decisions"], strict=True):
        candidates, groups = one["explanation"].get("candidates", []), other["explanation"].get("groups", [])
        assert Counter((c["verdict"], c["rule"]) for c in candidates) == {
            (g["verdict"], g["rule"]): g["count"] for g in groups
        }


def _who_waits_is_told_what_stands_in_the_way(full: Json) -> None:
    for decision in full["decisions"]:
        explanation = decision["explanation"]
        assert (decision["outcome"] in ("wait", "infeasible")) == bool(explanation.get("blocker"))
        assert decision["ask"] in explanation["headline"]


OTHERS = ("fair-share.jsonl.gz", "min-runtime.jsonl.gz")
"""Which ask for shares and protections alone."""
DECIDED = [file for file in sorted(VECTORS.glob("*.jsonl.gz")) if file.name not in OTHERS]


@pytest.mark.parametrize("file", DECIDED, ids=lambda file: file.name)
def test_every_rule_of_a_recorded_decision_stands_in_the_catalogue(file: Path) -> None:
    with gzip.open(file, "rt") as lines:
        bodies = [vector["request"] for vector in map(json.loads, lines) if "path" not in vector]
    assert bodies
    for body in bodies[:100]:
        assert _rules_of(decide({"mode": "independent"} | body | {"explain": "full"})) <= KNOWN


def _rules_of(full: Json) -> set[str]:
    found: set[str] = set()
    for decision in full["decisions"]:
        explanation = decision["explanation"]
        found |= {step["rule"] for step in explanation["steps"]}
        found |= {candidate["rule"] for candidate in explanation.get("candidates", [])}
    return found
