"""The search of 0.17 with every rule as it was in 0.13 is the search of 0.13, which spares most of its work."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kai.jobs import NOWHERE
from app.solver.engines.kai.rule_sets import CHANGES, KAI_0_13, KAI_0_17, ReleaseRules
from app.solver.engines.kai.scenario import Scenario
from tests.support.kai_world import ALL_ACTIONS, Json, Shape, cluster, crowded, decide
from tests.support.profiles import examples

FAST = examples(150)


def _by_name(scenario: Scenario) -> list[int]:
    """0.13 leaves the order of nodes to a map, and looks at those too where nothing is listed."""
    assert scenario.latest is not None
    names, node = scenario.overlay.node_names, scenario.overlay.node
    here = {node[t] for t in scenario.overlay.jobs.tasks[scenario.latest]} - {NOWHERE}
    return [n for n in sorted(here, key=names.__getitem__) if scenario.victims_on(n)]


def _one_prefix(rules: ReleaseRules) -> bool:
    del rules
    return False


@FAST
@given(
    seed=st.integers(0, 2**32), rules=st.sampled_from(["shipped", "documented"]), constraints=st.booleans(),
    actions=st.sampled_from([ALL_ACTIONS, ["reclaim"], ["preempt", "reclaim"]]), gangs=st.booleans(),
)  # fmt: skip
def test_with_every_rule_undone_it_decides_as_0_13(
    seed: int, rules: str, constraints: bool, actions: list[str], gangs: bool
) -> None:
    body = crowded(seed) if gangs else cluster(
        seed, Shape(queues=4 + seed % 6, nodes=1 + seed % 5, workloads=6 + seed % 9, rules=rules,
                    constraints=constraints, actions=actions)
    )  # fmt: skip
    body["configuration"]["settings"]["kai"]["release"] = "0.13"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scenario, "nodes_of_latest", _by_name)
        before = _decided(decide(body))
        patch.setattr(ReleaseRules, "one_prefix", property(_one_prefix))
        assert before == _decided(decide(body))


def test_undoing_every_rule_gives_the_row_of_0_13() -> None:
    rules: Any = KAI_0_17
    for change in CHANGES:
        assert change.undone(rules) != rules
        rules = change.undone(rules)
    assert rules.one_prefix
    assert replace(rules, release="0.13", source=KAI_0_13.source, draws=False) == KAI_0_13


def _decided(answer: Json) -> Json:
    """Parts of a gang that begin anew evict in another order than those that go on: nobody else."""
    evicted = sorted((e["workload"], e["task"], e["reason"], e["for_ask"]) for e in answer["plan"]["evictions"])
    return {
        "evicted": evicted, "order": answer["order"], "placed": {p["task"]: p for p in answer["plan"]["placements"]},
        "outcomes": [d["outcome"] for d in answer["decisions"]],
    }  # fmt: skip
