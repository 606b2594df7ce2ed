"""The engine of kube-scheduler against the released code, on clusters drawn at random."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.build import missing_oracle
from tests.support.kube_scheduler_clusters import drawn
from tests.support.kube_scheduler_oracle import Oracle, difference, running
from tests.support.profiles import examples
from tests.unit.solver.engines.kube_scheduler.asked import ask, decided, node, pod, request


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """The released code; skipped where there is no Go."""
    if (why := missing_oracle()) is not None:
        pytest.skip(why)
    with running() as found:
        yield found


@examples(1000)
@given(seed=st.integers(0, 2**31), mode=st.sampled_from(["independent", "cycle"]))
def test_every_cluster_is_decided_as_by_the_released_code(oracle: Oracle, seed: int, mode: str) -> None:
    body = {**drawn(seed), "mode": mode, "explain": "summary"}
    assert difference(oracle, body, decided(body)) is None


def test_a_difference_would_be_seen(oracle: Oracle) -> None:
    body = request([node("n0", 1)], [pod("p0", "n0"), pod("p1", "n0", 0)], [ask()], mode="independent")
    other = request([node("n0", 1)], [pod("p0", "n0", priority=10)], [ask()], mode="independent")
    assert difference(oracle, body, decided(body)) is None
    assert "outcome is wait, released: preempt" in (difference(oracle, body, decided(other)) or "")


def test_pods_that_are_one_victim_come_in_any_order(oracle: Oracle) -> None:
    """Found among clusters drawn: of three groups of six the released code lists the pods in one of many orders."""
    groups: list[Any] = []
    for name in ("a", "b", "c"):
        made = pod(name, "n0", 0.1, priority=1, labels={"app": name})
        tasks = [{**made["tasks"][0], "name": f"{name}{i}"} for i in range(6)]
        groups.append({**made, "tasks": tasks, "disruption_mode": "all"})
    body = request([node("n0", 2)], groups, [ask(cpu=2)], mode="independent", settings={"workload_aware": True})
    answer = decided({**body, "explain": "summary"})
    assert len(answer.decisions[0].victims) == 18
    assert difference(oracle, body, answer) is None
