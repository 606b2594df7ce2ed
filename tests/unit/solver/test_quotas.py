from typing import Any

import msgspec

from app.solver.model.configuration import Queue, quotas
from app.solver.model.problems import pointer


def found(at: tuple[str | int, ...] = (), **queue: Any) -> list[tuple[str, str, Any, str]]:
    of = msgspec.convert({"name": "q", **queue}, Queue)
    return [(one.flavor, one.resource, one.quota.guaranteed, pointer(*one.where)) for one in quotas(of, at)]


def test_both_forms_give_every_quota_and_its_place() -> None:
    flavors = [
        {"name": "a", "quota": {"cpu": {"guaranteed": 1}, "x/y": {"guaranteed": 2}}},
        {"name": "b", "quota": {"cpu": {"guaranteed": 3}}},
    ]
    groups = [{"resources": ["cpu", "x/y"], "flavors": flavors}, {"resources": ["gpu"], "flavors": []}]
    assert found(("queues", 4), resource_groups=groups) == [
        ("a", "cpu", 1, "/queues/4/resource_groups/0/flavors/0/quota/cpu"),
        ("a", "x/y", 2, "/queues/4/resource_groups/0/flavors/0/quota/x~1y"),
        ("b", "cpu", 3, "/queues/4/resource_groups/0/flavors/1/quota/cpu"),
    ]
    assert found(quota={"gpu": {"guaranteed": 5}, "cpu": {}}) == [
        ("default", "gpu", 5, "/quota/gpu"), ("default", "cpu", None, "/quota/cpu"),
    ]  # fmt: skip
    assert found() == []
