"""Which job is easier than one that failed, by hand."""

from typing import Any

import pytest

from app.solver.engines.kai.decide.actions.signatures import Failed, Signatures
from tests.properties.test_kai_parts import open_overlay
from tests.unit.solver.engines.kai.case import ask, node, queue

ROOT = queue("root", gpu="unlimited")


def failed_by(*asks: Any) -> tuple[Failed, dict[str, int]]:
    body = {
        "engine": "kai", "mode": "cycle", "now": "2027-01-15T08:00:00Z",
        "configuration": {"queues": [ROOT, queue("a", "root", gpu=9)]},
        "state": {"nodes": [node("n", gpu=1)], "workloads": []}, "asks": list(asks),
    }  # fmt: skip
    overlay = open_overlay(body)
    failed = Failed(overlay, Signatures(overlay))
    return failed, {one["id"]: overlay.jobs.of_ask[a] for a, one in enumerate(asks)}


@pytest.mark.parametrize(
    ("gpu", "cpu", "easier"),
    [(2, 4, False), (1, 4, True), (2, 3, True), (3, 3, False), (3, 4, False), (1, 1, True), (2, 5, False)],
)
def test_a_smaller_pod_is_easier(gpu: int, cpu: int, easier: bool) -> None:
    """No larger in any resource and not the same; one resource less does not make up for another."""
    failed, job = failed_by(ask("f", "a", gpu=2, cpu=4), ask("p", "a", gpu=gpu, cpu=cpu))
    assert failed.easier(job["p"]), "nobody failed yet"
    failed.add(job["f"])
    assert failed.easier(job["p"]) is easier


def test_as_many_pods_are_no_easier_and_another_number_is_another_kind() -> None:
    failed, job = failed_by(*(ask(name, "a", pods) for name, pods in (("f", 2), ("one", 1), ("two", 2), ("three", 3))))
    failed.add(job["f"])
    assert [failed.easier(job[name]) for name in ("one", "two", "three")] == [True, False, True]


def test_the_smallest_that_failed_is_kept() -> None:
    failed, job = failed_by(
        ask("f", "a", gpu=4), ask("small", "a", gpu=2), ask("mid", "a", gpu=3), ask("p", "a", gpu=1)
    )
    failed.add(job["f"])
    assert failed.easier(job["mid"])
    failed.add(job["small"])
    assert not failed.easier(job["mid"])
    failed.add(job["mid"])
    assert not failed.easier(job["mid"]), "a larger one that fails later changes nothing"
    assert failed.easier(job["p"])


def test_other_constraints_are_another_matter() -> None:
    failed, job = failed_by(
        ask("f", "a", gpu=2), ask("p", "a", gpu=2, task={"node_selector": {"x": "y"}}), ask("q", "a", gpu=2)
    )
    failed.add(job["f"])
    assert failed.easier(job["p"])
    assert not failed.easier(job["q"])
