"""Which rule of a new release decided."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.comparison import compare
from app.answering.sources import nothing_stored
from app.solver.engines.kai.rule_sets import CHANGES
from tests.support.kai_world import Shape, cluster
from tests.support.profiles import examples
from tests.unit.solver.engines.kai.case import queue

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
Json = dict[str, Any]


def releases(body: Json, *, changes: Json | None = None) -> Any:
    """The comparison of both releases; ``changes``: settings that the newer one has besides."""
    own = body["configuration"].get("settings", {}).get("kai", {})
    variants = [
        {"name": name, "settings": {"kai": {**own, **more, "release": name}}}
        for name, more in (("0.13", {}), ("0.17", changes or {}))
    ]
    return json.loads(compare(json.dumps({**body, "variants": variants}).encode(), NOON, nothing_stored()))


def _free_room() -> Json:
    """A reclaimer that would fit in free room, and a queue within its share."""
    running = {
        "id": "w", "queue": "a", "preemptible": True, "min_available": 1, "started_at": "2026-03-01T00:00:00Z",
        "tasks": [{"name": f"w-{i}", "requests": {"gpu": 1}, "node": "n", "state": "running"} for i in range(3)],
    }  # fmt: skip
    ask = {"id": "x", "queue": "b", "preemptible": True, "tasks": [{"name": "x-0", "requests": {"gpu": 1}}]}
    return {
        "engine": "kai", "now": "2026-03-02T12:00:00Z", "mode": "cycle", "asks": [ask],
        "configuration": {
            "queues": [queue("a", gpu=4), queue("b", gpu=2)],
            "settings": {"kai": {"rules": "shipped", "actions": ["reclaim"]}},
        },
        "state": {"nodes": [{"name": "n", "capacity": {"gpu": 4}}], "workloads": [running]},
    }  # fmt: skip


def test_the_rule_that_decides_is_named() -> None:
    found = releases(_free_room())["differences"]
    assert [(one["ask"], one["field"], one["rules"]) for one in found] == [("x", "node", ["reclaim-victim-filter"])]


def test_no_rule_is_named_where_variants_differ_in_more() -> None:
    found = releases(_free_room(), changes={"default_reclaim_min_runtime": 5})["differences"]
    assert found
    assert all("rules" not in one for one in found)


@examples(40)
@given(seed=st.integers(0, 2**32), rules=st.sampled_from(["shipped", "documented"]))
def test_every_difference_of_releases_has_rules_of_the_catalogue(seed: int, rules: str) -> None:
    known = {change.rule for change in CHANGES}
    body = cluster(seed, Shape(queues=4 + seed % 4, nodes=1 + seed % 4, workloads=6 + seed % 6, rules=rules))
    for one in releases(body)["differences"]:
        assert set(one["rules"]) <= known


@pytest.mark.parametrize("older", [0, 1])
def test_the_order_of_the_variants_does_not_matter(older: int) -> None:
    body = _free_room()
    names = ["0.13", "0.17"] if older == 0 else ["0.17", "0.13"]
    own = body["configuration"]["settings"]["kai"]
    body["variants"] = [{"name": name, "settings": {"kai": {**own, "release": name}}} for name in names]
    found = json.loads(compare(json.dumps(body).encode(), NOON, nothing_stored()))["differences"]
    assert {rule for one in found for rule in one["rules"]} == {"reclaim-victim-filter"}
