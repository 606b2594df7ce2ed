"""Taints, tolerations, selectors and affinity of flavors."""

from app.solver.engines.kueue.flavors import refusal
from app.solver.model.configuration import Flavor, Taint
from app.solver.model.state import Expression, Task, Toleration

SPOT = Taint(key="spot", value="yes", effect="NoSchedule")


def flavor(**labels: str) -> Flavor:
    return Flavor(name="f", node_labels=labels)


def terms(*of: tuple[str, str, list[str]]) -> list[Expression]:
    return [Expression(key=key, operator=operator, values=values) for key, operator, values in of]  # type: ignore[arg-type]


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
