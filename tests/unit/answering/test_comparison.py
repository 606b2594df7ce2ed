import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.answering.answers import answer
from app.answering.comparison import compare
from app.answering.sources import nothing_stored
from app.solver.model.problems import InvalidInput
from tests.support import released

EXAMPLE = json.loads((Path(__file__).parents[3] / "examples" / "kueue-classic.json").read_bytes())
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def compared(*variants: dict[str, Any], **changes: Any) -> Any:
    body = json.dumps({**EXAMPLE, **changes, "variants": list(variants)}).encode()
    return json.loads(compare(body, NOON, nothing_stored()))


def refused(*variants: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidInput) as error:
        compared(*variants)
    return {problem.pointer: problem.detail for problem in error.value.problems}


def never_reclaiming() -> dict[str, Any]:
    configuration = json.loads(json.dumps(EXAMPLE["configuration"]))
    for queue in configuration["queues"]:
        queue.pop("kueue", None)
    return configuration


def test_variants_that_agree_have_no_differences() -> None:
    found = compared({"name": "as is"}, {"name": "named", "engine": "kueue"})
    assert found["differences"] == []
    assert found["variants"][0]["answer"] == found["variants"][1]["answer"]


def test_each_answer_is_what_the_decision_would_have_been() -> None:
    found = compared({"name": "as is"}, {"name": "fair", "settings": {"kueue": {"fair_sharing": True}}})
    alone = json.loads(answer(json.dumps(EXAMPLE).encode(), NOON, nothing_stored()).body)
    assert found["variants"][0]["answer"] == alone
    fair = json.loads(json.dumps(EXAMPLE))
    fair["configuration"]["settings"] = {"kueue": {"fair_sharing": True}}
    expected = json.loads(answer(json.dumps(fair).encode(), NOON, nothing_stored()).body)
    assert found["variants"][1]["answer"] == expected


def test_differences_say_where_and_what() -> None:
    found = compared({"name": "any"}, {"name": "never", "configuration": never_reclaiming()})
    assert found["differences"] == [
        {"ask": "embeddings-rollout", "field": "outcome", "values": {"any": "preempt", "never": "wait"}},
        {"ask": "embeddings-rollout", "field": "victims", "values": {"any": ["sweep-17"], "never": []}},
    ]


def test_where_the_pods_of_a_gang_go_is_a_difference() -> None:
    """0.13 places two pods, 0.17 finds nobody to take from."""
    more = {"name": "m", "capacity": {"gpu": 1, "cpu": 8, "memory": "8Gi", "pods": 100}}
    gang = {"tasks": [{"name": f"x{i}", "requests": {"gpu": 1}} for i in range(2)], "min_available": 2}
    question = {
        "engine": "kai", "now": "2026-03-02T12:00:00Z", "configuration": released.configuration("0.13"),
        "state": {**released.STATE, "nodes": [*released.STATE["nodes"], more]}, "asks": [{**released.WAITS, **gang}],
    }  # fmt: skip
    variants = [{"name": name, "settings": {"kai": released.settings(name)}} for name in ("0.13", "0.17")]
    body = json.dumps({**question, "variants": variants}).encode()
    differences = json.loads(compare(body, NOON, nothing_stored()))["differences"]
    (placed,) = (difference for difference in differences if difference["field"] == "placements")
    assert {name: sorted(places) for name, places in placed["values"].items()} == {
        "0.13": ["x0 to n", "x1 to n"], "0.17": [],
    }  # fmt: skip
    assert placed["rules"] == [released.RULE]


def test_problems_point_into_the_variant_that_brings_them() -> None:
    cyclic = {"queues": [{"name": "serving", "parent": "serving"}, {"name": "research"}]}
    _, broken = compared({"name": "a"}, {"name": "b", "configuration": cyclic})["variants"]
    assert [problem["pointer"] for problem in broken["problems"]] == ["/variants/1/configuration/queues/0/parent"]


def test_problems_of_the_shared_part_name_the_variant() -> None:
    _, broken = compared({"name": "a"}, {"name": "b", "configuration": {"queues": [{"name": "research"}]}})["variants"]
    (problem,) = broken["problems"]
    assert "variant 'b'" in problem["detail"]


def test_variants_need_names_of_their_own() -> None:
    assert refused({"name": "a"}, {"name": "a"}) == {"/variants/1/name": "a second variant 'a'"}
    assert list(refused()) == ["/variants"]
