# pyright: reportPrivateUsage=false
"""What a plan tells of a queue: what it uses before and after, and what it has of that."""

from typing import Any

import msgspec
import pytest

from app.answering import plan
from app.solver.model.configuration import Queue

Json = dict[str, Any]


def queue(*quotas: Json) -> Queue:
    flavors = [{"name": f"f{i}", "quota": {"nvidia.com/gpu": quota}} for i, quota in enumerate(quotas)]
    groups = [{"resources": ["nvidia.com/gpu"], "flavors": flavors}]
    return msgspec.convert({"name": "q", "resource_groups": groups}, Queue)


@pytest.mark.parametrize(
    ("quotas", "guaranteed", "limit"),
    [
        ([], None, None), ([{}], None, None), ([{"guaranteed": 2, "limit": 3}], 2, 3),
        ([{"guaranteed": 2, "limit": 3}, {"guaranteed": "1", "limit": 4}], 3, 7),
        ([{"guaranteed": 2, "limit": 3}, {}], 2, None),
        ([{"guaranteed": 2, "limit": 3}, {"guaranteed": "unlimited", "limit": "unlimited"}], "unlimited", "unlimited"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["gpu", "nvidia.com/gpu"])
def test_flavors_count_together_and_one_without_a_limit_is_without_bound(
    quotas: list[Json], guaranteed: Any, limit: Any, name: str
) -> None:
    found = plan._change("q", queue(*quotas), {"q": {"usage": {}}}, {"q": {"usage": {name: 1}}}, set())
    assert found is not None
    resource = found.resources[name]
    assert (resource.guaranteed, resource.limit) == (guaranteed, limit)
    other = plan._change("q", queue({"guaranteed": 1}), {}, {"q": {"usage": {"cpu": 1}}}, set())
    assert other is not None
    assert other.resources["cpu"].guaranteed is None


def test_what_changes_or_is_asked_for_is_told_in_order() -> None:
    before = {
        "q": {"usage": {"b": 1, "a": 2, "c": 3}, "fair_share": {"a": 0.5}, "share": 0.25, "dominant_usage_share": 9}
    }
    after = {"q": {"usage": {"b": 2, "a": 2, "c": 3, "d": 1}, "fair_share": {"b": 0.75}, "share": 0.5}}
    found = plan._change("q", None, before, after, {"c", "z"})
    assert found is not None
    assert [(name, one.used_before, one.used_after) for name, one in found.resources.items()] == [
        ("b", 1, 2), ("c", 3, 3), ("d", 0, 1),
    ]  # fmt: skip
    assert (found.share_before, found.share_after) == (0.25, 0.5)
    assert (found.resources["b"].fair_share_before, found.resources["b"].fair_share_after) == (None, 0.75)
    assert plan._change("q", None, before, before, set()) is None


def test_a_queue_that_was_not_there_used_nothing_and_had_no_share() -> None:
    found = plan._change("q", None, {}, {"q": {"usage": {"cpu": 1}, "share": 0.5}}, set())
    assert found is not None
    assert (found.resources["cpu"].used_before, found.share_before, found.share_after) == (0, None, None)
