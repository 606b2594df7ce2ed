"""Taints, tolerations, selectors and affinity of flavors."""

import pytest

from app.solver.engines.kueue.eligibility import integer, matches, problems, refusal, tolerates
from app.solver.model.configuration import Flavor, Taint
from app.solver.model.state import Expression, Task, Toleration

SPOT = Taint(key="spot", value="yes", effect="NoSchedule")


def flavor(**labels: str) -> Flavor:
    return Flavor(name="f", node_labels=labels)


def terms(*of: tuple[str, str, list[str]]) -> list[Expression]:
    return [Expression(key=key, operator=operator, values=values) for key, operator, values in of]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="spot", value="yes"), True),
        (Toleration(key="spot", value="no"), False),
        (Toleration(key="spot", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(key="spot", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
    ],
)
def test_toleration(toleration: Toleration, tolerated: bool) -> None:
    assert tolerates(toleration, SPOT) is tolerated


def test_every_blocking_taint_needs_a_toleration() -> None:
    tainted = Flavor(name="f", node_taints=[SPOT, Taint(key="gpu", effect="NoExecute")])
    one = Task(name="t", tolerations=[Toleration(key="spot", operator="Exists")])
    both = Task(name="t", tolerations=[Toleration(operator="Exists")])
    assert "gpu" in (refusal(tainted, one) or "")
    assert refusal(tainted, both) is None


def test_a_preference_of_a_taint_blocks_nobody() -> None:
    assert refusal(Flavor(name="f", node_taints=[Taint(key="a", effect="PreferNoSchedule")]), Task(name="t")) is None


def test_selector_keys_that_the_flavor_does_not_label_are_ignored() -> None:
    task = Task(name="t", node_selector={"zone": "a", "disk": "ssd"})
    assert refusal(flavor(zone="a"), task) is None
    assert refusal(flavor(zone="b"), task) is not None
    assert refusal(flavor(), task) is None


def test_terms_are_alternatives_and_expressions_are_not() -> None:
    task = Task(
        name="t", node_affinity=[terms(("zone", "In", ["a"]), ("arch", "In", ["arm"])), terms(("zone", "In", ["c"]))]
    )
    assert refusal(flavor(zone="a", arch="arm"), task) is None
    assert refusal(flavor(zone="a", arch="x86"), task) is not None
    assert refusal(flavor(zone="c", arch="x86"), task) is None


def test_a_term_without_a_known_key_voids_all_terms() -> None:
    task = Task(name="t", node_affinity=[terms(("zone", "In", ["a"])), terms(("rack", "In", ["7"]))])
    assert refusal(flavor(zone="b"), task) is None
    assert refusal(flavor(zone="b", rack="1"), task) is not None


@pytest.mark.parametrize(
    ("operator", "values", "matched"),
    [
        ("In", ["4", "5"], True),
        ("NotIn", ["5"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["4"], True),
        ("Gt", ["5"], False),
        ("Lt", ["6"], True),
        ("Lt", ["-1"], False),
    ],
)
def test_operators(operator: str, values: list[str], matched: bool) -> None:
    assert matches(terms(("n", operator, values))[0], {"n": "5"}) is matched


def test_a_label_that_is_no_number_is_neither_more_nor_less() -> None:
    assert not matches(terms(("n", "Gt", ["1"]))[0], {"n": "many"})
    assert not matches(terms(("n", "Lt", ["1"]))[0], {"n": "many"})


def test_numbers_are_signed_64_bit() -> None:
    assert integer("9223372036854775807") == 2**63 - 1
    assert integer("9223372036854775808") is None
    assert integer("+3") == 3
    for wrong in ("", "+", "--1", "1.0", " 1", "٣", None):
        assert integer(wrong) is None


def test_what_kubernetes_refuses_is_a_problem_with_a_place() -> None:
    task = Task(
        name="t",
        tolerations=[Toleration(), Toleration(operator="Exists", value="x")],
        node_affinity=[
            terms(("a", "In", [])),
            terms(("a", "Gt", ["1", "2"]), ("a", "Exists", ["x"]), ("a", "In", ["x"])),
        ],
    )
    assert [p.pointer for p in problems(task, ("asks", 0, "tasks", 0))] == [
        "/asks/0/tasks/0/tolerations/0/operator",
        "/asks/0/tasks/0/tolerations/1/value",
        "/asks/0/tasks/0/node_affinity/0/0/values",
        "/asks/0/tasks/0/node_affinity/1/0/values",
        "/asks/0/tasks/0/node_affinity/1/1/values",
    ]
