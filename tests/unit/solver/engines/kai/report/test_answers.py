"""Whole answers, word for word and number for number (``clusters``): decisions, explanations, what protects whom,
shares, settings, remarks, and what the search cost."""

import json

import msgspec
import pytest

from app.solver import solve
from app.solver.engines.kai import solver
from app.solver.engines.kai.answer import findings
from app.solver.model.base import micros
from app.solver.model.configuration import Configuration
from app.solver.model.request import DecisionRequest
from app.solver.model.state import State
from app.solver.question import ProtectionQuestion, Question
from tests.support.instead import Instead
from tests.support.kai_answers import ANSWERS
from tests.support.kai_world import Json
from tests.unit.solver.engines.kai.report.clusters import CLUSTERS


class Counting(solver.Budget):
    """A budget that tells what was spent of it."""

    made: list["Counting"] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)

    @property
    def steps(self) -> int:
        return solver.MOST_STEPS - self.left


def answered(body: Json, patch: pytest.MonkeyPatch) -> Json:
    """What Arbiter says of a cluster."""
    request = msgspec.convert(body, DecisionRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    assert request.now is not None
    now = micros(request.now)
    configured = solve.configure(request.configuration, "kai")
    loaded = solve.load(configured, request.state)
    Instead(patch)(Counting, made=[])
    Instead(patch)("app.solver.engines.kai.engine", Budget=Counting)
    answer = solve.decide(loaded, Question(now, request.asks, request.mode, request.options, "full"))
    steps = sum(one.steps for one in Counting.made)
    protection = {
        ask.id: solve.preemptibility(loaded, ProtectionQuestion(now, request.asks, ask))["workloads"]
        for ask in request.asks[:2]
    }
    settings = solve.effective_settings(configured, request.state)
    found = {
        "decisions": answer.decisions, "order": answer.order, "plan": answer.plan, "preemptibility": protection,
        "shares": solve.shares(loaded, request.asks, now)["queues"], "settings": settings["settings"],
        "queues": settings["queues"], "findings": findings(request.configuration), "steps": steps,
    }  # fmt: skip
    return json.loads(msgspec.json.encode(found))


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_is_answered_as_worked_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = answered(CLUSTERS[name], monkeypatch)
    assert found.keys() == ANSWERS[name].keys()
    for part, expected in ANSWERS[name].items():
        assert found[part] == expected, part
