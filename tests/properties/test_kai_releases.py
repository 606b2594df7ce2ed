"""The search of 0.17 with every rule as it was in 0.13 is the search of 0.13, which spares most of its work."""

from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.solver import solve
from app.solver.engines.kai.configuration import noted, undone
from app.solver.engines.kai.jobs import NOWHERE
from app.solver.engines.kai.rule_sets import CHANGES, KAI_0_13, KAI_0_17, ReleaseRules
from app.solver.engines.kai.scenario import Headroom, Scenario
from app.solver.engines.kai.search import Prefix, Search, Tape
from app.solver.engines.kai.solver import Hope
from app.solver.model.base import micros
from app.solver.model.request import DecisionRequest
from app.solver.question import Question
from tests.support.instead import Instead
from tests.support.kai_world import ALL_ACTIONS, Json, Shape, cluster, crowded, decide
from tests.support.profiles import Met, examples

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
        Instead(patch)(Scenario, nodes_of_latest=_by_name)
        before = _decided(decide(body))
        Instead(patch)(ReleaseRules, one_prefix=property(_one_prefix))
        assert before == _decided(decide(body))


@FAST
@example(seed=482918, rules="shipped", gangs=True, shares=False)  # a scenario that takes nobody fails in no way
@example(seed=5602122, rules="documented", gangs=True, shares=False)
@example(seed=2516140287, rules="shipped", gangs=False, shares=True)  # to try again goes by what the first try left
@example(seed=565789209, rules="shipped", gangs=False, shares=True)
@given(
    seed=st.integers(0, 2**32), rules=st.sampled_from(["shipped", "documented"]), gangs=st.booleans(),
    shares=st.booleans(),
)  # fmt: skip
def test_what_the_search_of_0_17_spares_changes_no_answer(seed: int, rules: str, gangs: bool, shares: bool) -> None:
    """Each part walks the order from its beginning, and whatever it offers is simulated: the same is decided."""
    shape = Shape(queues=4 + seed % 6, nodes=1 + seed % 5, workloads=6 + seed % 12, rules=rules, gangs=(1, 2, 4, 6),
                  constraints=seed % 3 == 0, shares_of_gpus=shares)  # fmt: skip
    body = crowded(seed) if gangs else cluster(seed, shape)
    body["configuration"]["settings"]["kai"]["release"] = "0.17"
    spared = decide(body)
    with pytest.MonkeyPatch.context() as patch:
        Instead(patch)(Prefix, go_on=lambda *_: False)
        Instead(patch)(Tape, serves=lambda *_: False)
        patch.setattr(Search, "_headroom", lambda *_: None)
        Instead(patch)(Search, repeats=lambda *_: False)
        whole = decide(body)
    assert {key: spared[key] for key in ("plan", "decisions")} == {key: whole[key] for key in ("plan", "decisions")}


def test_a_part_goes_on_where_the_last_one_stopped() -> None:
    """Otherwise the test above looks at nothing."""
    seen: Counter[str] = Counter()
    went, served, could, any_node = Prefix.go_on, Tape.serves, Headroom.enough, Hope.of_any_node
    repeats = Search.repeats
    with pytest.MonkeyPatch.context() as patch:
        Instead(patch)(Prefix, go_on=lambda *of: _counted(seen, "on", went(*of)))
        Instead(patch)(Tape, serves=lambda *of: _counted(seen, "served", served(*of)))
        Instead(patch)(Headroom, enough=lambda *of: _counted(seen, "could", could(*of)))
        Instead(patch)(Hope, of_any_node=lambda *of: _counted(seen, "any node", any_node(*of)))
        Instead(patch)(Search, repeats=lambda *of: _counted(seen, "again", repeats(*of)))
        for seed in range(1, 200):
            body = crowded(seed)
            body["configuration"]["settings"]["kai"]["release"] = "0.17"
            decide(body)
    assert (
        min(seen["on"], seen["served"], seen["no could"], seen["no any node"], seen["any node"], seen["again"]) > 10
    ), seen


def _counted(seen: Counter[str], what: str, said: bool) -> bool:
    seen[what if said else f"no {what}"] += 1
    return said


@examples(20)
@given(seed=st.integers(0, 2**32), rules=st.sampled_from(["shipped", "documented"]), gangs=st.booleans(),
       shares=st.booleans())  # fmt: skip
def test_a_rule_that_was_not_asked_for_changes_nothing(
    met: Met, seed: int, rules: str, gangs: bool, shares: bool
) -> None:
    """A comparison of releases undoes the others alone."""
    shape = Shape(queues=3 + seed % 4, nodes=1 + seed % 4, workloads=4 + seed % 6, rules=rules, shares_of_gpus=shares)
    body = crowded(seed) if gangs else cluster(seed, shape)
    body["configuration"]["settings"]["kai"]["release"] = "0.17"
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.asks, list)
    configured = solve.configure(request.configuration, request.engine)
    question = Question(0 if request.now is None else micros(request.now), request.asks, request.mode)

    def decided(compiled: Any) -> bytes:
        loaded = solve.load(replace(configured, compiled=compiled), request.state)
        return msgspec.json.encode(solve.decide(loaded, question))

    compiled, asked = noted(configured.compiled)
    found = decided(compiled)
    assert found == decided(configured.compiled)
    others = met(change.rule for change in CHANGES if change.rule not in asked())
    for rule in others:
        assert decided(undone(configured.compiled, {rule})) == found, rule


def test_undoing_every_rule_gives_the_row_of_0_13() -> None:
    rules: Any = KAI_0_17
    for change in CHANGES:
        assert change.undone(rules) != rules
        rules = change.undone(rules)
    assert rules.one_prefix
    assert replace(rules, release="0.13", source=KAI_0_13.source, draws=False, budgets_time=False) == KAI_0_13


def _decided(answer: Json) -> Json:
    """Parts of a gang that begin anew evict in another order than those that go on: nobody else."""
    evicted = sorted((e["workload"], e["task"], e["reason"], e["for_ask"]) for e in answer["plan"]["evictions"])
    return {
        "evicted": evicted, "order": answer["order"], "placed": {p["task"]: p for p in answer["plan"]["placements"]},
        "outcomes": [d["outcome"] for d in answer["decisions"]],
    }  # fmt: skip
