"""Lines of the formats, one by one: what becomes a job, what is noted, what is refused, each by hand."""

from decimal import Decimal
from typing import Any

import pytest

from app.solver.model.base import to_datetime
from app.traces.formats import (
    MAX_PROBLEMS,
    POD_COLUMNS,
    Complaints,
    LineError,
    Notes,
    Record,
    SwfHeader,
    alibaba_nodes,
    alibaba_pods,
    decimal_of,
    micros_of,
    numbered,
    swf_records,
)
from tests.support.formats import POD, line, rows

Zero = str | int | float


def jobs(body: bytes, zero: Zero = "refuse", header: SwfHeader | None = None) -> tuple[list[Record], list[str]]:
    """The jobs of a log, and what was said, ``!`` before what refuses it."""
    complaints, notes = Complaints(), Notes()
    found = list(swf_records(body, header or SwfHeader(), zero, complaints, notes))
    return found, [f"!{one.detail}" for one in complaints.listed] + [f"{one.line} {one.detail}" for one in notes.listed]


def one(zero: Zero = "refuse", **more: Any) -> Record:
    (found,), said = jobs(line(**more), zero)
    assert [text for text in said if text.startswith("!")] == []
    return found


def test_a_job_of_swf() -> None:
    found = one(preceding_job=9)
    assert found[:4] == (1, "1", 3_000_000, 100_000_000)
    assert found.after == "9"
    assert (found.columns["processors"], found.columns["memory"]) == ("4", "64")
    assert (found.columns["wait"], found.columns["cpu_time"], found.columns["partition"]) == ("5", "", "")
    assert [one(preceding_job=before).after for before in (0, -1)] == [None, None]
    assert one(submit="0.5", run_time=10.5)[2:4] == (500_000, 10_500_000)
    assert one(status=5, run_time=3).duration == 3_000_000


@pytest.mark.parametrize(
    ("requested", "allocated", "processors"), [(4, 2, "4"), (-1, 2, "2"), (0, 2, "2"), (0, 0, ""), (-1, -1, "")]
)
def test_what_is_asked_for_as_requested_else_as_allocated(requested: int, allocated: int, processors: str) -> None:
    found = one(requested_processors=requested, allocated_processors=allocated)
    assert found.columns["processors"] == processors


@pytest.mark.parametrize(
    ("fields", "zero", "said"),
    [
        ({"status": 2}, "refuse", "1 a partial execution (status 2) is part of the job before it"),
        ({"status": 4, "submit": -1}, "refuse", "1 a partial execution (status 4) is part of the job before it"),
        ({"run_time": -1}, 1, "1 it never ran: no run time is known"),
        ({"run_time": -1, "status": 5}, 1, "1 it never ran: no run time is known"),
        ({"run_time": 0, "status": 5}, 1, "1 it was cancelled before it ran"),
        ({"run_time": "0.0", "status": 5}, 1, "1 it was cancelled before it ran"),
        ({"run_time": 0}, "skip", "1 its run time is 0 s"),
        (
            {"run_time": 0},
            "refuse",
            "!line 1: run_time: 0 s; zero_run_time of the mapping says what becomes of such jobs",
        ),
        ({"submit": -1}, "refuse", "!line 1: submit: the time of submission is needed"),
        ({"status": 6}, "refuse", "!line 1: status: 6 is none of -1 and 0 to 5"),
        ({"user": "x"}, "refuse", "!line 1: user: 'x' is not a number of 0 or more"),
        ({"user": -2}, "refuse", "!line 1: user: '-2' is not a number of 0 or more"),
        ({"user": "1 1"}, "refuse", "!line 1: 19 fields, 18 are needed"),
        ({"user": ""}, "refuse", "!line 1: 17 fields, 18 are needed"),
        ({"user": "ü"}, "refuse", "!line 1: not ASCII"),
        ({"run_time": 10**10 + 1}, "refuse", "!line 1: run_time: 10000000001 is past 10000000000 s"),
    ],
)
def test_what_is_no_job_of_swf(fields: dict[str, Any], zero: Zero, said: str) -> None:
    assert jobs(line(**fields), zero) == ([], [said])


def test_a_line_that_is_refused_ends_nothing() -> None:
    found, said = jobs(line(user="x") + b"\n" + line(job=2))
    assert ([record.id for record in found], len(said)) == (["2"], 1)


def test_a_run_of_0_s_may_count_as_so_long() -> None:
    for text, zero, duration in (("0", 1, 1_000_000), ("0.0", 1.5, 1_500_000)):
        (found,), said = jobs(line(run_time=text), zero)
        assert (found.duration, said) == (duration, [f"1 its run time of 0 s counts as {zero:g} s"])


def test_the_header_is_what_comments_say_first() -> None:
    header = SwfHeader()
    text = b"; MaxNodes: 128 (of 2)\r\n;MaxNodes: 7\n; UnixStartTime: 749458803\n\n;; no: field\n; MaxProcs: 0\n"
    found, said = jobs(text + line() + b"\r\n \t\n" + line(job=2) + b"\n; Note: late", "refuse", header)
    assert ([record[:2] for record in found], said) == ([(7, "1"), (9, "2")], [])
    assert (header.number("MaxNodes"), header.number("MaxProcs"), header.number("MaxJobs")) == (128, None, None)
    assert header.start == to_datetime(749458803 * 10**6)


@pytest.mark.parametrize(
    ("text", "start", "number"),
    [
        ("1", 1, 1), ("0", None, None), ("-1", None, None), ("", None, None), ("99999999999", 99999999999, 99999999999),
        ("100000000000", None, 100000000000), ("999999999999", None, 999999999999), ("1000000000000", None, None),
        ("7x", None, 7), ("٣", None, None),
    ],
)  # fmt: skip
def test_numbers_of_a_header(text: str, start: int | None, number: int | None) -> None:
    header = SwfHeader()
    header.add(f"; UnixStartTime: {text}".encode())
    assert header.start == (None if start is None else to_datetime(start * 10**6))
    assert header.number("UnixStartTime") == number


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0", 0),
        ("5", 5_000_000),
        ("0.5", 500_000),
        (".25", 250_000),
        ("5.", 5_000_000),
        ("0.0000019", 1),
        ("0" * 19 + "5", 5_000_000),
        ("1." + "0" * 30, 1_000_000),
        ("1" + "0" * 10, 10**16),
    ],
)
def test_seconds(text: str, micros: int) -> None:
    assert micros_of(text, "x") == micros


@pytest.mark.parametrize(
    "text", ["", ".", "-1", "+1", "1e3", "1.2.3", "nan", "٣", "1" + "0" * 9 + "1", "0" * 20 + "1", "1." + "0" * 31]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(LineError, match=r"^x: "):
        micros_of(text, "x")


def test_what_is_too_large() -> None:
    assert decimal_of(str(2**63), "x") == Decimal(2**63)
    with pytest.raises(LineError, match="too large"):
        decimal_of(str(2**63 + 1), "x")


def test_lines_have_numbers_and_no_ends() -> None:
    assert list(numbered(b"a\r\nb\n\nc")) == [(1, b"a"), (2, b"b"), (3, b""), (4, b"c")]
    assert list(numbered(b"\n\na\n")) == [(1, b""), (2, b""), (3, b"a")]
    assert list(numbered(b"")) == []


def test_what_is_listed_has_a_bound_and_what_is_counted_has_none() -> None:
    complaints, notes = Complaints(), Notes()
    for i in range(MAX_PROBLEMS + 1):
        complaints.add(i, "no", "/a")
        notes.add(i, "so")
    assert (complaints.count, len(complaints.listed), notes.count, len(notes.listed)) == (201, 200, 201, 100)
    assert (complaints.listed[7].detail, complaints.listed[7].pointer, notes.listed[7]) == (
        "line 7: no",
        "/a",
        (7, "so"),
    )


def pods(body: bytes, zero: Zero = "refuse") -> tuple[list[Record], list[str]]:
    complaints, notes = Complaints(), Notes()
    found = list(alibaba_pods(body, zero, complaints, notes))
    return found, [f"!{one.detail}" for one in complaints.listed] + [f"{one.line} {one.detail}" for one in notes.listed]


def test_a_pod_of_alibaba() -> None:
    (found,), said = pods(rows(POD))
    assert (found[:4], said) == ((2, "p", 5_000_000, 2_500_000), [])
    assert {name: found.columns[name] for name in ("cpus", "memory_bytes", "gpus", "qos")} == {
        "cpus": "1.5", "memory_bytes": "524288", "gpus": "0.5", "qos": "LS"
    }  # fmt: skip
    (waited,), _ = pods(rows(POD | {"scheduled_time": "", "cpu_milli": 2000}))
    assert (waited.duration, waited.columns["cpus"]) == (4_500_000, "2")
    for zero, duration in ((1, 1_000_000), (0.5, 500_000)):
        (brief,), _ = pods(rows(POD | {"scheduled_time": 5, "deletion_time": 5}), zero)
        assert brief.duration == duration


@pytest.mark.parametrize(
    ("fields", "zero", "said"),
    [
        ({"name": ""}, 1, "!line 2: name: it has none"),
        ({"deletion_time": ""}, 1, "2 it has no end: deletion_time is empty"),
        ({"deletion_time": 6}, 1, "!line 2: its times go backwards: creation_time, scheduled_time, deletion_time"),
        ({"scheduled_time": 4}, 1, "!line 2: its times go backwards: creation_time, scheduled_time, deletion_time"),
        ({"deletion_time": 7}, "skip", "2 it ran for 0 s"),
        (
            {"deletion_time": 7},
            "refuse",
            "!line 2: it ran for 0 s; zero_run_time of the mapping says what becomes of such pods",
        ),
        ({"creation_time": "x"}, 1, "!line 2: creation_time: 'x' is not a number of 0 or more"),
        ({"num_gpu": ""}, 1, "!line 2: num_gpu: '' is not a number of 0 or more"),
        ({"qos": "a,b"}, 1, "!line 2: 13 columns, 12 are needed"),
    ],
)
def test_what_is_no_pod_of_alibaba(fields: dict[str, Any], zero: Zero, said: str) -> None:
    assert pods(rows(POD | fields), zero) == ([], [said])


def test_rows_that_can_not_be_read() -> None:
    good = rows(POD)
    found, said = pods(good + b"\n\n" + b"\xff" + good.splitlines()[1] + b"\n" + good.splitlines()[1])
    assert ([record.line for record in found], said) == ([2, 5], ["!line 4: not UTF-8, or not a line of CSV"])
    assert pods(b"name,qos\np,LS") == ([], ["!line 1: the names of the columns lack " + ", ".join(
        name for name in POD_COLUMNS if name not in ("name", "qos")
    )])  # fmt: skip


def test_a_row_that_is_refused_ends_nothing() -> None:
    for wrong in ({"name": ""}, {"qos": "a,b"}):
        found, said = pods(rows(POD | wrong, POD))
        assert ([record.line for record in found], len(said)) == ([3], 1)


def test_nodes_of_alibaba() -> None:
    node = {"sn": "n", "cpu_milli": 96500, "memory_mib": 1024, "gpu": 8, "model": "V100"}
    complaints = Complaints()
    body = rows(node, node | {"sn": "m", "gpu": 0, "model": ""}, node | {"sn": ""}, node | {"cpu_milli": 1})
    first, second = alibaba_nodes(body, complaints)
    assert (first.name, first.labels) == ("n", {"gpu-model": "V100"})
    assert first.capacity == {"cpu": "96.5", "memory": str(2**30), "gpu": "8"}
    assert (second.name, second.labels, "gpu" in second.capacity) == ("m", {}, False)
    assert [one.detail for one in complaints.listed] == [
        "line 4: nodes: sn: it has no name",
        "line 5: nodes: 'n' is there twice",
    ]
