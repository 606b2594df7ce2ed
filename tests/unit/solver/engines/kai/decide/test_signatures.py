"""Which job is easier than one that failed, by hand."""

from typing import Any

import pytest

from app.solver.engines.kai.placing import Failed, Signatures
from tests.support.kai_parts import open_overlay
from tests.support.kai_world import Json
from tests.unit.solver.engines.kai.case import ask, node, queue, workload

ROOT = queue("root", gpu="unlimited")


def failed_by(*asks: Any, release: str = "0.13") -> tuple[Failed, dict[str, int]]:
    body = {
        "engine": "kai", "mode": "cycle", "now": "2027-01-15T08:00:00Z",
        "configuration": {"queues": [ROOT, queue("a", "root", gpu=9)], "settings": {"kai": {"release": release}}},
        "state": {"nodes": [node("n", gpu=1)], "workloads": []}, "asks": list(asks),
    }  # fmt: skip
    overlay = open_overlay(body)
    failed = Failed(Signatures(overlay))
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


SHARES: list[tuple[tuple[float, Json], tuple[float, Json], bool, bool]] = [
    ((0.5, {}), (0.492, {}), False, True), ((0.5, {}), (0.49, {}), True, True),
    ((0.5, {}), (0.5, {"gpu_devices": 2}), False, False), ((1, {}), (0.5, {"gpu_devices": 2}), False, False),
    ((0.5, {"gpu_devices": 4}), (1, {}), False, True), ((0.5, {"gpu_devices": 2}), (0.5, {}), True, True),
    ((1, {}), (0, {"gpu_memory": 100}), True, True), ((0, {"gpu_memory": 100}), (0, {}), True, False),
    ((0, {"gpu_memory": 100, "gpu_devices": 2}), (0, {"gpu_memory": 200}), True, False),
    ((0.5, {}), (0, {}), True, True), ((2, {}), (1, {}), True, True), ((0.25, {}), (0.25, {}), False, False),
]  # fmt: skip


@pytest.mark.parametrize(("failed", "pod", "before", "now"), SHARES)
def test_shares_are_compared_by_devices_and_parts_and_since_0_17_by_what_they_count(
    failed: tuple[float, Json], pod: tuple[float, Json], before: bool, now: bool
) -> None:
    """In 0.13 parts that differ by less than a hundredth are equal, and memory is a part of none."""
    asks = [ask(name, "a", gpu=gpu, task=more) for name, (gpu, more) in (("f", failed), ("p", pod))]
    for release, easier in (("0.13", before), ("0.17", now)):
        others, job = failed_by(*asks, ask("s", "a", gpu=0.7), release=release)
        others.add(job["f"])
        assert others.easier(job["p"]) is easier


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


def gang(name: str, *gpus: int) -> Any:
    """An ask whose pods differ."""
    return ask(name, "a", len(gpus)) | {
        "tasks": [{"name": f"{name}-{i}", "requests": {"cpu": 1, "gpu": gpu}} for i, gpu in enumerate(gpus)]
    }


@pytest.mark.parametrize(
    ("sizes", "easier"),
    [
        ((2, 4), False), ((4, 2), False), ((5, 4), False), ((1, 4), True), ((4, 1), True), ((1, 9), True),
        ((2, 3), True), ((3, 4), False), ((3, 3), True),
    ],
)  # fmt: skip
def test_pods_are_compared_from_the_smallest_on(sizes: tuple[int, ...], easier: bool) -> None:
    """However the request lists them; some smaller one is enough."""
    failed, job = failed_by(gang("f", 4, 2), gang("p", *sizes))
    failed.add(job["f"])
    assert failed.easier(job["p"]) is easier


def test_a_gang_takes_the_place_of_one_that_failed_if_no_pod_of_it_is_larger() -> None:
    for sizes, kept in (((3, 4), False), ((2, 5), True), ((4, 3), False), ((4, 4), False)):
        failed, job = failed_by(gang("f", 4, 4), gang("p", *sizes), gang("q", 3, 4))
        failed.add(job["f"])
        assert failed.easier(job["q"])
        failed.add(job["p"])
        assert failed.easier(job["q"]) is (kept or sizes == (4, 4))


def test_a_job_that_has_found_all_its_places_is_no_easier_and_no_measure() -> None:
    """An attempt for another job may place its pods while the action goes on; its constraints are asked for once."""
    failed, job = failed_by(ask("f", "a", gpu=4), ask("p", "a", gpu=3), ask("q", "a", gpu=2))
    assert failed.easier(job["p"])
    overlay = failed._signatures._overlay  # pyright: ignore[reportPrivateUsage]
    failed.add(job["f"])
    overlay.pipeline(overlay.jobs.tasks[job["p"]][0], 0)
    overlay.commit("reclaim", job["f"])
    assert not failed.easier(job["p"])
    failed.add(job["p"])
    assert failed.easier(job["q"])


def test_pods_that_run_are_no_part_of_a_signature() -> None:
    """The gang that grows by one pod is like a gang of one."""
    body = {
        "engine": "kai", "mode": "cycle", "now": "2027-01-15T08:00:00Z", "asks": [ask("g", "a", workload="w")],
        "configuration": {"queues": [ROOT, queue("a", "root", gpu=9)]},
        "state": {"nodes": [node("n")], "workloads": [workload("w", "a", "n"), workload("v", "a", "n", "n")]},
    }  # fmt: skip
    overlay = open_overlay(body | {"asks": [ask("g", "a", workload="w"), ask("p", "a")]})
    signatures = Signatures(overlay)
    grown, alone = (overlay.jobs.of_ask[a] for a in (0, 1))
    assert len(signatures.of(grown)) == len(signatures.of(alone)) == 1
    assert signatures.of(overlay.jobs.by_id["v"]) == ()
    overlay.evict(overlay.jobs.tasks[grown][0])
    assert len(signatures.of(grown)) == 1, "as it stood when first asked for"
