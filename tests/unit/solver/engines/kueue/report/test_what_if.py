"""The smallest changes, and which limit on the way up is reached."""

from typing import Any

import pytest

from tests.unit.solver.engines.kueue.cluster import asks, configuration, flavors, one, queue, runs

PINNED = {"flavors": {"cpu": "default"}}


def told(of: dict[str, Any], running: list[dict[str, Any]], cpu: float, **more: Any) -> dict[str, Any]:
    return one(of, running, asks("x", "q", cpu, 5, **PINNED, **more), explain="summary")["explanation"]


def changes(explained: dict[str, Any]) -> list[tuple[str, str, float, float]]:
    return [(c["queue"], c["field"], c["current"], c["needed"]) for c in explained.get("smallest_change", [])]


def limit(guaranteed: float, **limits: float) -> dict[str, float]:
    return {"guaranteed": guaranteed} | limits


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ([queue("q", 4)], "its own quota is used up"),
        ([queue("co", 4), queue("q", 0, "co")], "what cohort co has in all is used up"),
        ([queue("co", 9), queue("q", limit(2, borrowing_limit=2), "co")], "the borrowing limit of q is reached"),
        (
            [queue("root", 9), queue("mid", limit(0, borrowing_limit=4), "root"), queue("q", 0, "mid")],
            "the borrowing limit of mid is reached",
        ),
        (
            [
                queue("root", 9), queue("mid", limit(0, borrowing_limit=4), "root"),
                queue("q", limit(0, borrowing_limit=5), "mid"),
            ],
            "the borrowing limit of mid is reached",
        ),
        (
            [
                queue("root", 9), queue("mid", limit(0, borrowing_limit=5), "root"),
                queue("q", limit(0, borrowing_limit=4), "mid"),
            ],
            "the borrowing limit of q is reached",
        ),
        (
            [queue("root", 4), queue("mid", parent="root"), queue("q", limit(0, borrowing_limit=4), "mid")],
            "what cohort root has in all is used up",
        ),
        (
            [queue("co", 1), queue("q", limit(3, lending_limit=1, borrowing_limit=2), "co")],
            "what cohort co has in all is used up",
        ),
    ],
)  # fmt: skip
def test_the_bottleneck(queues: list[dict[str, Any]], said: str) -> None:
    """4 run in q; one more is asked for."""
    explained = told(configuration(*queues), [runs("w", "q", 4)], 1)
    assert said in explained["blocker"]


def test_a_limit_above_leaves_only_quota_of_its_own() -> None:
    """q may have 6 and mid 8: of the single numbers only q's own quota raises both."""
    of = configuration(
        queue("root", 20), queue("mid", limit(0, borrowing_limit=6), "root"),
        queue("q", limit(2, borrowing_limit=4), "mid"),
    )  # fmt: skip
    explained = told(of, [runs("w", "q", 6)], 3)
    assert changes(explained) == [("q", "guaranteed", 2, 5)]
    (change,) = explained["smallest_change"]
    assert (change["flavor"], change["resource"], change["detail"]) == ("default", "cpu", "this alone lets the ask in")


def test_one_number_is_enough() -> None:
    """q may borrow 4 of 20 and has 2: 6 run, 3 more are 3 more of the limit, or of its own."""
    of = configuration(queue("co", 20), queue("q", limit(2, borrowing_limit=4), "co"))
    explained = told(of, [runs("w", "q", 6)], 3)
    assert changes(explained) == [("q", "borrowing_limit", 4, 7), ("q", "guaranteed", 2, 5)]


def test_the_cohort_may_get_more() -> None:
    of = configuration(queue("root", 1), queue("mid", 1, "root"), queue("q", 1, "mid"))
    explained = told(of, [runs("w", "q", 3)], 2)
    assert changes(explained) == [("q", "guaranteed", 1, 3), ("mid", "guaranteed", 1, 3), ("root", "guaranteed", 1, 3)]


def test_the_lender_with_most_to_spare_lends() -> None:
    of = configuration(
        queue("co"), queue("q", 1, "co"), queue("some", limit(5, lending_limit=1), "co"),
        queue("more", limit(9, lending_limit=2), "co"), queue("little", limit(3, lending_limit=2), "co"),
    )  # fmt: skip
    explained = told(of, [runs("w", "q", 1), runs("v", "some", 1), runs("u", "more", 1)], 7)
    assert ("more", "lending_limit", 2, 4) in changes(explained)
    assert not [c for c in changes(explained) if c[0] in ("some", "little")]


def test_what_nobody_could_change_alone_is_changed_together() -> None:
    group = {
        "resources": ["cpu", "memory"],
        "flavors": [{"name": "f", "quota": {"cpu": limit(1), "memory": limit(4)}}],
    }
    of = configuration({"name": "q", "resource_groups": [group]}, flavors=[{"name": "f"}])
    task = {"name": "main", "requests": {"cpu": 2, "memory": 9}, "flavors": {"cpu": "f", "memory": "f"}}
    explained = one(of, [], asks("x", "q", 0) | {"tasks": [task]}, explain="full")["explanation"]
    assert [(c["resource"], c["current"], c["needed"], c["detail"]) for c in explained["smallest_change"]] == [
        ("cpu", 1, 2, "together with the others lets the ask in"),
        ("memory", 4, 9, "together with the others lets the ask in"),
    ]


def test_at_most_five_are_named() -> None:
    names = [f"f{i}" for i in range(8)]
    of = configuration(queue("q", **flavors(**dict.fromkeys(names, 1))), flavors=[{"name": name} for name in names])
    explained = one(of, [], asks("x", "q", 2), explain="summary")["explanation"]
    assert [c["flavor"] for c in explained["smallest_change"]] == names[:5]


def test_the_largest_lack_against_what_was_wanted_is_named() -> None:
    """cpu lacks 1 of 4, memory 6 of 10: memory is further away, although cpu is counted in more steps."""
    quota = {"cpu": limit(3), "memory": limit(4)}
    task = {"name": "main", "requests": {"cpu": 4, "memory": 10}, "flavors": {"cpu": "default", "memory": "default"}}
    of = configuration(
        queue("co", 9) | {"quota": {"cpu": limit(9), "memory": limit(20)}}, queue("q", parent="co") | {"quota": quota}
    )
    running = [runs("w", "q", 9), runs("v", "q", 0)]
    running[1]["tasks"][0] |= {"requests": {"memory": 20}, "flavors": {"memory": "default"}}
    explained = one(of, running, asks("x", "q", 0) | {"tasks": [task]}, explain="summary")["explanation"]
    assert explained["blocker"].startswith("default/memory: 6 more needed; what cohort co has in all is used up")


def test_a_lender_may_give_all_that_it_keeps() -> None:
    """``more`` keeps 2 of its 4 to itself and uses none of them: it can lend 2 more, and not 3."""
    of = configuration(queue("co"), queue("q", 1, "co"), queue("more", limit(4, lending_limit=2), "co"))
    for wanted, expected in ((5, [("more", "lending_limit", 2, 4)]), (6, [])):
        found = changes(told(of, [], wanted))
        assert [change for change in found if change[0] == "more"] == expected
