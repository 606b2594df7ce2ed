"""Explanations are those of the answer given, and asking for them changes nothing else in it."""

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.yunikorn.engine import RULES
from tests.support.profiles import Met, examples
from tests.support.yunikorn_laws import QUICK, asks_of, tenants, worlds
from tests.support.yunikorn_world import Json, World

KNOWN = {rule.rule for rule in RULES}
TAKEN = {"victim", "moved"}


@st.composite
def questions(draw: Any) -> tuple[World, list[Json], Json]:
    """A cluster, asks of one or several tasks, some bound to a node, some alike; and the rest of the request."""
    of = draw(st.one_of(worlds(), tenants()))
    of.rules = draw(st.sampled_from(["documented", "shipped"]))
    asks = draw(asks_of(of, 3))
    names = [node["name"] for node in of.nodes]
    for one in asks:
        kind = draw(st.sampled_from(["plain", "plain", "several", "several", "bound", "picky"]))
        if kind == "several":
            one["tasks"] = [{**one["tasks"][0], "count": draw(st.integers(2, 3))}]
        elif kind == "bound":
            one["required_node"] = draw(st.sampled_from(names))
        elif kind == "picky":
            one["feasible_nodes"] = draw(st.lists(st.sampled_from(names), unique=True))
    if draw(st.booleans()):
        asks = [one | {"tasks": asks[0]["tasks"]} for one in asks]
    asks += [one | {"id": f"{one['id']}-again"} for one in asks if draw(st.booleans())]
    for workload in of.workloads:
        for one in workload["tasks"]:
            one["state"] = draw(st.sampled_from(["running"] * 8 + ["preempted"]))
    held = draw(st.lists(st.sampled_from(names), unique=True, max_size=1))
    of.reservations = [{"node": name, "ask": draw(asks_of(of, 1))[0] | {"id": "holder"}} for name in held]
    choice = draw(st.sampled_from(["first", "scored"]))
    return of, asks, {
        "mode": draw(st.sampled_from(["cycle", "independent"])), "options": {"yunikorn": {"node_choice": choice}}
    }  # fmt: skip


def without_why(answer: Json) -> str:
    """The answer but for its explanations."""
    for decision in answer["decisions"]:
        decision.pop("explanation", None)
    return json.dumps(answer, sort_keys=True)


@examples(300, QUICK)
@given(questions())
def test_an_explanation_is_that_of_the_answer_given(question: tuple[World, list[Json], Json]) -> None:
    of, asks, more = question
    plain, summary, full = (of.decide(*asks, explain=level, **more) for level in ("none", "summary", "full"))
    for short, decision in zip(summary["decisions"], full["decisions"], strict=True):
        groups, why = short["explanation"]["groups"], decision["explanation"]
        candidates = [(one["workload"], one["task"]) for one in why["candidates"]]
        assert len(set(candidates)) == len(candidates)
        counted = Counter((one["verdict"], one["rule"]) for one in why["candidates"])
        assert counted == {(group["verdict"], group["rule"]): group["count"] for group in groups}
        taken = [(v["workload"], v["task"]) for v in decision["victims"]]
        shown = [one for one in why["candidates"] if one["verdict"] in TAKEN]
        shown.sort(key=lambda one: one["numbers"]["place"])
        assert [(one["workload"], one["task"]) for one in shown] == taken
        assert {rule for _, rule in counted} | {step["rule"] for step in why["steps"]} <= KNOWN
        assert (why.get("blocker") is not None) == (decision["outcome"] == "wait")
    assert without_why(plain) == without_why(summary) == without_why(full)


@examples(60, QUICK)
@given(questions())
def test_protections_name_known_rules(met: Met, question: tuple[World, list[Json], Json]) -> None:
    of, asks, _ = question
    for wanted in (None, asks[0]):
        for workload in met(of.preemptibility(wanted)["workloads"].values()):
            assert {workload["reason"], *(task["reason"] for task in workload["tasks"].values())} <= KNOWN
