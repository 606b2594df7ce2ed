"""Explaining changes nothing: with every level of it an answer says the same, in every engine and both modes."""

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from tests.properties import test_kueue_cycle as kueue
from tests.properties import test_yunikorn_laws as yunikorn
from tests.properties.ytsaurus_trees import heartbeat
from tests.support import kai_world
from tests.support.profiles import examples, share
from tests.support.replay import answer
from tests.vectors.files import HERE, files, read

Json = dict[str, Any]
LAWS = examples(60, phases=[Phase.generate], suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
SEEDS = st.integers(0, 2**32)
RECORDED = share(40)
"""Decisions of each recorded file that are asked again."""


def decided(body: Json, level: str) -> Json:
    """The answer without its explanations, which are there exactly when asked for."""
    found = answer("/v1/decisions", json.dumps(body | {"explain": level}).encode())
    for decision in found["decisions"]:
        assert ("explanation" in decision) == (level != "none")
        decision.pop("explanation", None)
    return found


def holds(body: Json) -> None:
    silent = decided(body, "none")
    assert decided(body, "summary") == silent, body
    assert decided(body, "full") == silent, body


@st.composite
def of_kueue(draw: st.DrawFn) -> Json:
    configuration, running, pending = draw(kueue.clusters())
    return {
        "now": "2026-01-01T12:00:00Z", "configuration": configuration, "asks": pending,
        "state": {"workloads": running}, "mode": draw(st.sampled_from(["cycle", "independent"])),
    }  # fmt: skip


@st.composite
def of_yunikorn(draw: st.DrawFn) -> Json:
    world = draw(st.one_of(yunikorn.worlds(), yunikorn.tenants()))
    world.rules = draw(st.sampled_from(["documented", "shipped"]))
    asks = draw(yunikorn.asks_of(world, 4))
    return world.body(*asks, mode=draw(st.sampled_from(["cycle", "independent"])))


@st.composite
def of_kai(draw: st.DrawFn) -> Json:
    seed = draw(SEEDS)
    return draw(
        st.sampled_from(
            [
                kai_world.cluster(seed, kai_world.Shape(rules="documented")),
                kai_world.cluster(seed, kai_world.Shape(rules="shipped", shares_of_gpus=True, mode="independent")),
                kai_world.crowded(seed),
            ]
        )
    )


@st.composite
def of_ytsaurus(draw: st.DrawFn) -> Json:
    """One heartbeat or those of all nodes; nodes that are quiet, and some that are overcommitted; little pending."""
    seed = draw(SEEDS)
    rng, body = random.Random(seed), heartbeat(seed)
    for one in body["asks"]:
        one["tasks"][0]["count"] = rng.choice((0, 1, 1, 5))
    nodes = body["state"]["nodes"]
    for i in range(rng.randint(0, 3)):
        empty = {"user_slots": 9, "cpu": rng.choice((0, 9)), "memory": 90}
        nodes.insert(rng.randint(0, len(nodes)), {"name": f"e{i}", "capacity": empty})
    for one in nodes:
        if rng.random() < 0.3:
            one["capacity"]["cpu"] = max(0, one["capacity"]["cpu"] - 3)
        one["ytsaurus"] = rng.choice(({}, {"overcommit_since": "2026-01-01T11:00:00Z"}))
    if draw(st.booleans()):
        body["options"] = {"ytsaurus": {"heartbeat_node": rng.choice(nodes)["name"]}}
    return body | {"mode": draw(st.sampled_from(["cycle", "cycle", "independent"]))}


@pytest.mark.parametrize("bodies", [of_kueue, of_yunikorn, of_kai, of_ytsaurus])
def test_on_random_clusters(bodies: Callable[[], st.SearchStrategy[Json]]) -> None:
    @LAWS
    @given(bodies())
    def check(body: Json) -> None:
        holds(body)

    check()


@pytest.mark.parametrize(
    "path", files(HERE), ids=lambda path: f"{path.parent.name}-{path.name.removesuffix('.jsonl.gz')}"
)
def test_on_recorded_decisions(path: Path) -> None:
    vectors = [v for v in read(path) if v.get("path", "/v1/decisions") == "/v1/decisions" and "status" not in v]
    for vector in vectors[:: max(1, len(vectors) // RECORDED)]:
        body = copy.deepcopy(vector["request"])
        for mode in ("cycle", "independent"):
            holds(body | {"mode": mode})
