from typing import Any

import msgspec

from app.solver import solve
from app.solver.model.configuration import Configuration


def found(*queues: dict[str, Any]) -> list[tuple[str, str, str]]:
    configuration = msgspec.convert({"engine": "kueue", "queues": list(queues)}, Configuration)
    return [(f.rule, f.severity, f.pointer) for f in solve.findings(configuration) if f.rule.startswith("queues.")]


def queue(name: str, parent: str | None = None, **quota: Any) -> dict[str, Any]:
    return {"name": name, "quota": {"cpu": quota}, **({"parent": parent} if parent else {})}


def test_children_with_more_than_their_parent_are_a_warning() -> None:
    assert found(
        queue("all", guaranteed=8), queue("a", "all", guaranteed=4), queue("b", "all", guaranteed="4500m")
    ) == [("queues.oversubscribed-children", "warning", "/queues/0/quota/cpu/guaranteed")]


def test_children_above_the_limit_are_a_warning() -> None:
    assert found(queue("a", "all", guaranteed=9), queue("all", limit=8)) == [
        ("queues.oversubscribed-children", "warning", "/queues/1/quota/cpu/limit")
    ]


def test_children_within_are_not() -> None:
    assert found(queue("all", guaranteed=8), queue("a", "all", guaranteed=4), queue("b", "all", guaranteed=4)) == []


def test_a_parent_without_figures_or_without_bounds_is_not() -> None:
    assert found(queue("all"), queue("a", "all", guaranteed=4)) == []
    assert found(queue("all", guaranteed=0), queue("a", "all", guaranteed=4)) == []
    assert found(queue("all", guaranteed="unlimited"), queue("a", "all", guaranteed=4)) == []


def test_flavors_are_counted_apart() -> None:
    def of(flavor: str, amount: int) -> dict[str, Any]:
        quota = {"cpu": {"guaranteed": amount}}
        return {"resource_groups": [{"resources": ["cpu"], "flavors": [{"name": flavor, "quota": quota}]}]}

    parent, spot, other = (
        {"name": "all", **of("spot", 8)},
        {"name": "a", "parent": "all"},
        {"name": "b", "parent": "all"},
    )
    assert found(parent, {**spot, **of("spot", 8)}, {**other, **of("reserved", 8)}) == []
    assert found(parent, {**spot, **of("spot", 9)}) == [
        ("queues.oversubscribed-children", "warning", "/queues/0/resource_groups/0/flavors/0/quota/cpu/guaranteed")
    ]
