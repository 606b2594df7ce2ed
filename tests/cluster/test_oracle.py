"""The engine of kube-scheduler against the released code, on clusters drawn at random."""

from collections.abc import Iterator

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
