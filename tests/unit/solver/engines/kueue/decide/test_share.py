"""The shares of many nodes at once are those of each."""

import random
from typing import Any

import msgspec

from app.solver import solve
from app.solver.engines.kueue.fair_share import share, shares
from app.solver.engines.kueue.overlay import Usage
from app.solver.model.configuration import Configuration
from app.solver.model.state import State
from tests.unit.solver.engines.kueue.cluster import configuration, flavors, queue, runs


def test_many_shares_at_once_are_those_of_each() -> None:
    draw = random.Random(5)
    queues: list[dict[str, Any]] = [queue("all"), queue("empty", parent="all")]
    for i in range(40):
        more = {"weight": draw.choice([0, 0.5, 1, 3])} | (flavors(f0=draw.randrange(4), f1=2) if i % 4 == 0 else {})
        queues.append(queue(f"q{i}", None if i % 4 == 0 else draw.randrange(4), "all", **more))
    running = [
        runs(f"w{i}", f"q{of}", draw.choice([0.1, 1, 7]), flavor=f"f{draw.randrange(2)}" if of % 4 == 0 else "default")
        for i in range(120)
        if (of := draw.randrange(40)) is not None
    ]
    document = configuration(*queues, fair=True) | {"flavors": [{"name": "f0"}, {"name": "f1"}, {"name": "default"}]}
    configured = solve.configure(msgspec.convert(document, Configuration))
    state = solve.load(configured, msgspec.convert({"workloads": running}, State)).compiled
    compiled, nodes = configured.compiled, range(len(configured.compiled.tree))
    found = shares(compiled, Usage.of(state), nodes)
    assert found == [share(compiled, Usage.of(state), node) for node in nodes]
    assert len(set(found)) > 10
    assert {True, False} == {weightless for weightless, _ in found}
