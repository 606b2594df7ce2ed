"""Amounts of Kubernetes: rounded up to what Arbiter counts in, and sums as Kubernetes makes them."""

from typing import Any

import pytest

from app.formats.pods import largest, plus, quantities, steps, total
from app.formats.reader import Findings, Reader


def read(**amounts: Any) -> tuple[dict[str, int], list[str]]:
    findings = Findings()
    return steps(Reader({"of": amounts}, (), findings), "of"), [one.pointer for one in findings.all()]


@pytest.mark.parametrize(
    ("cpu", "thousandths"),
    [
        ("1", 1000), ("1m", 1), ("100u", 1), ("1n", 1), ("1001u", 2), ("2000u", 2), ("0.0001", 1), ("0.0011", 2),
        (0.0001, 1), (0.5, 500), (0, 0), ("1.5", 1500), (2, 2000), ("0", 0),
    ],
)  # fmt: skip
def test_what_is_finer_than_a_thousandth_of_a_cpu_is_rounded_up(cpu: Any, thousandths: int) -> None:
    assert read(cpu=cpu) == ({"cpu": thousandths}, [])


@pytest.mark.parametrize(("memory", "units"), [("1", 1), ("1500m", 2), ("0.5", 1), ("1n", 1), (0.1, 1), ("1Ki", 1024)])
def test_what_is_finer_than_a_byte_is_rounded_up(memory: Any, units: int) -> None:
    assert read(memory=memory) == ({"memory": units}, [])


@pytest.mark.parametrize(
    "amount", ["0.0000000001", "x", "-1", "-1m", "1e99", "9" * 40, "1e30n", [], {}, "", float("nan")]
)
def test_what_is_no_amount_is_left_out(amount: Any) -> None:
    assert read(cpu=amount, memory=1) == ({"memory": 1}, ["/of/cpu"])


def test_nothing_is_no_amount_and_no_finding() -> None:
    assert read(cpu=None, memory=1, gpu=None, x=2) == ({"memory": 1, "x": 2}, [])


def test_sums() -> None:
    one, other = {"a": 1, "b": 5}, {"b": 2, "c": 3}
    assert plus(one, other) == {"a": 1, "b": 7, "c": 3}
    assert largest(one, other) == largest(other, one) == {"a": 1, "b": 5, "c": 3}
    assert total([one, other, one]) == {"a": 2, "b": 12, "c": 3}
    assert total([]) == {}
    assert quantities({"cpu": 1500, "gpu": 2000, "memory": 1500, "x/gpu": 1}) == {
        "cpu": "1500m", "gpu": 2, "memory": 1500, "x/gpu": "1m",
    }  # fmt: skip
