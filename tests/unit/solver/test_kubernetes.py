"""Kubernetes' matching of pods with nodes, each rule by hand."""

import pytest

from app.solver.kubernetes import matches, matches_any, parse_int, problems, selects, tolerates, untolerated
from app.solver.model.configuration import Taint
from app.solver.model.state import Expression, Task, Toleration

SPOT = Taint(key="spot", value="yes", effect="NoSchedule")


def expression(key: str, operator: str, *values: str) -> Expression:
    return Expression(key=key, operator=operator, values=list(values))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="spot", value="yes"), True),
        (Toleration(key="spot", value="no"), False),
        (Toleration(key="spot"), False),
        (Toleration(key="spot", operator="Exists"), True),
        (Toleration(key="spot", operator="Exists", value="no"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(value="yes"), True),
        (Toleration(value="no"), False),
        (Toleration(key="spot", operator="Exists", effect="NoSchedule"), True),
        (Toleration(key="spot", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="Spot", value="yes"), False),
    ],
)
def test_toleration(toleration: Toleration, tolerated: bool) -> None:
    assert tolerates(toleration, SPOT) is tolerated


def test_the_first_taint_that_repels_is_named() -> None:
    evicting, soft = Taint(key="gpu", effect="NoExecute"), Taint(key="a", effect="PreferNoSchedule")
    taints = [soft, SPOT, evicting]
    assert untolerated(taints, []) is SPOT
    assert untolerated(taints, [Toleration(key="spot", operator="Exists")]) is evicting
    assert untolerated(taints, [Toleration(key="gpu"), Toleration(key="spot", value="yes")]) is None
    assert untolerated([soft], []) is None


def test_a_node_selector_needs_every_pair() -> None:
    labels = {"zone": "a", "disk": ""}
    assert selects({}, labels)
    assert selects({"zone": "a", "disk": ""}, labels)
    assert not selects({"zone": "a", "disk": "ssd"}, labels)
    assert not selects({"rack": ""}, labels)


@pytest.mark.parametrize(
    ("operator", "values", "on_five", "unlabelled"),
    [
        ("In", ["4", "5"], True, False),
        ("In", ["4"], False, False),
        ("NotIn", ["5"], False, True),
        ("NotIn", ["4"], True, True),
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
        ("Gt", ["4"], True, False),
        ("Gt", ["5"], False, False),
        ("Lt", ["6"], True, False),
        ("Lt", ["5"], False, False),
        ("Lt", ["-1"], False, False),
    ],
)
def test_operators(operator: str, values: list[str], on_five: bool, unlabelled: bool) -> None:
    of = expression("n", operator, *values)
    assert matches(of, {"n": "5"}) is on_five
    assert matches(of, {"m": "5"}) is unlabelled


@pytest.mark.parametrize("label", ["many", "1_0", " 10", "10 ", "１０", "1e1", "0xa", "9223372036854775808"])
def test_a_label_that_is_no_number_is_neither_more_nor_less(label: str) -> None:
    assert not matches(expression("n", "Gt", "1"), {"n": label})
    assert not matches(expression("n", "Lt", "1"), {"n": label})


def test_what_kubernetes_refuses_matches_nothing() -> None:
    labels = {"n": "5"}
    assert not matches(expression("n", "NotIn"), labels)
    assert not matches(expression("n", "Gt", "1", "2"), labels)
    assert not matches(expression("n", "Gt"), labels)
    assert not matches(expression("n", "Lt", "1_0"), labels)
    assert not matches(expression("n", "Exists", "5"), labels)


def test_terms_are_alternatives_and_expressions_are_not() -> None:
    arm = [expression("zone", "In", "a"), expression("arch", "In", "arm")]
    assert matches_any([arm, [expression("zone", "In", "c")]], {"zone": "a", "arch": "arm"})
    assert matches_any([arm, [expression("zone", "In", "c")]], {"zone": "c", "arch": "x86"})
    assert not matches_any([arm, [expression("zone", "In", "c")]], {"zone": "a", "arch": "x86"})


def test_an_empty_term_matches_nothing() -> None:
    assert not matches_any([[]], {"zone": "a"})
    assert not matches_any([], {"zone": "a"})
    assert matches_any([[], [expression("zone", "Exists")]], {"zone": "a"})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+3", 3),
        ("007", 7),
        ("000", 0),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0" * 5000 + "12", 12),
    ],
)
def test_numbers_as_go_parses_them(text: str, number: int) -> None:
    assert parse_int(text) == number


@pytest.mark.parametrize(
    "text",
    [
        None, "", "+", "-", "--1", "+-1", "1.0", " 1", "1 ", "1\n", "1_0", "_1", "0x1", "1e3", "٣", "１",
        "9223372036854775808", "-9223372036854775809", "9" * 20, "9" * 5000,
    ],
)  # fmt: skip
def test_what_go_does_not_parse(text: str | None) -> None:
    assert parse_int(text) is None


def test_what_kubernetes_refuses_is_a_problem_with_a_place() -> None:
    task = Task(
        name="t",
        tolerations=[Toleration(), Toleration(operator="Exists", value="x"), Toleration(operator="Exists")],
        node_affinity=[
            [expression("a", "In")],
            [expression("a", "Gt", "1", "2"), expression("a", "Exists", "x"), expression("a", "In", "x")],
            [expression("a", "Lt", "1"), expression("a", "Lt", "1_0"), expression("a", "DoesNotExist")],
        ],
    )
    assert [(p.pointer, p.detail) for p in problems(task, ("asks", 0, "tasks", 0))] == [
        ("/asks/0/tasks/0/tolerations/0/operator", "a toleration without a key needs operator Exists"),
        ("/asks/0/tasks/0/tolerations/1/value", "operator Exists takes no value"),
        ("/asks/0/tasks/0/node_affinity/0/0/values", "operator In needs at least one value"),
        ("/asks/0/tasks/0/node_affinity/1/0/values", "operator Gt needs exactly one integer"),
        ("/asks/0/tasks/0/node_affinity/1/1/values", "operator Exists takes no values"),
        ("/asks/0/tasks/0/node_affinity/2/1/values", "operator Lt needs exactly one integer"),
    ]
