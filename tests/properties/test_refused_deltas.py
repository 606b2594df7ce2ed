"""A delta that is refused changes nothing: whatever was refused before, a kept state is what loading afresh gives, and
refuses what loading afresh refuses, in the same words. In every engine."""

import json
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.delta import apply_delta
from app.solver.model.base import micros
from app.solver.model.problems import InvalidInput
from app.solver.model.request import DecisionRequest
from app.solver.model.state import Delta
from app.solver.question import Question
from app.solver.solve import Loaded
from tests.support.mutations import mutated
from tests.vectors.files import HERE, files, lines

Json = dict[str, Any]
REQUESTS = 12
"""Of each recorded file."""
STEPS = 10
MOST = 120
"""Workloads of a state: more would only take longer."""


def wrong(state: Json, random: Random, step: int) -> Json:
    """A delta with things of ``state`` in it that somebody may have got wrong."""
    delta: Json = {"generation": 1}
    for kind, key in (("workloads", "id"), ("nodes", "name")):
        there = state.get(kind) or []
        if not there or random.random() < 0.3:
            continue
        some = random.sample(there, min(3, len(there)))
        fresh = [one | {key: f"{one[key]}-{step}-{i}", "uid": f"{step}-{i}"} for i, one in enumerate(some[:2])]
        if kind == "nodes":
            fresh = [{name: value for name, value in one.items() if name != "uid"} for one in fresh]
        times = random.choice((0, 0, 1, 1, 2))
        delta[kind] = {
            "add": mutated(fresh, random, times),
            "change": mutated(some[2:], random, times // 2 if some[2:] else 0),
        }
        if random.random() < 0.3:
            delta[kind]["remove"] = [some[0][key]]
    return delta


def outcome(loaded: Any, question: Question) -> Any:
    """The answer to a question on what ``loaded`` gives, or what is wrong with it."""
    try:
        return msgspec.json.encode(solve.decide(loaded(), question))
    except InvalidInput as invalid:
        return sorted((problem.pointer, problem.detail) for problem in invalid.problems)


def follow(body: Json, random: Random) -> int:
    """How many deltas were refused on the way."""
    request = msgspec.convert(body, DecisionRequest)
    configured = solve.configure(request.configuration, request.engine)
    question = Question(micros(request.now) if request.now else 0, request.asks, request.mode, request.options)
    kept, raw, refused = solve.load(configured, request.state), body["state"], 0
    for step in range(STEPS):
        try:
            delta = msgspec.convert(wrong(raw, random, step), Delta)
            state, index, changes = apply_delta(kept.state, kept.index, delta)
        except (msgspec.ValidationError, InvalidInput):
            continue  # it is refused before any engine sees it
        before = kept

        def updated(old: Loaded = before, new: Any = (state, index, changes)) -> Loaded:
            return solve.update(old, *new, generation=None)

        found = outcome(updated, question)
        assert found == outcome(lambda now=state: solve.load(configured, now), question), (body, delta)
        if isinstance(found, bytes):
            kept, raw = updated(), msgspec.to_builtins(state)
        else:
            refused += 1
            assert outcome(lambda old=before: old, question) == outcome(
                lambda old=before: solve.load(configured, old.state), question
            )
    return refused


def _id(path: Path) -> str:
    return f"{path.parent.name}-{path.name.removesuffix('.jsonl.gz')}"


@pytest.mark.parametrize("path", files(HERE), ids=_id)
def test_what_was_refused_leaves_no_trace(path: Path) -> None:
    random, refused, asked = Random(path.name), 0, 0
    for line in random.sample(lines(path), min(REQUESTS, len(lines(path)))):
        vector = json.loads(line)
        body = vector["request"]
        if vector.get("path", "/v1/decisions") != "/v1/decisions" or vector.get("status", 200) != 200:
            continue
        if not 0 < len(body.get("state", {}).get("workloads", [])) <= MOST:
            continue
        refused += follow(body, random)
        asked += 1
    assert refused or asked < 3
