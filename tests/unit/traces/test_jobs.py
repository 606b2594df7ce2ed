"""From a line to a job, and what holds between lines: each by hand."""

from typing import Any

import msgspec
import pytest

from app.simulations.schemas import Change, Job
from app.solver.model.state import Expression
from app.traces.formats import Complaints, LineError, Record
from app.traces.jobs import Mapper, Mapping, Order, filled, moment, problems_of

CELLS = {"user": "ann", "group": "", "n": "3", "mem": "1.5", "qos": "BE", "spec": "A|B"}


def mapped(after: str | None = None, cells: dict[str, str] | None = None, **mapping: Any) -> Job:
    of = msgspec.convert({"resources": {"cpu": 1}} | mapping, Mapping)
    return Mapper(of).job(Record(7, "j", 1_500_000, 2_000_000, CELLS | (cells or {}), after))


def test_a_job_without_a_word_of_the_mapping() -> None:
    job = mapped(after="i")
    (task,) = job.ask.tasks
    assert (job.ask.id, job.ask.queue, job.ask.priority, job.ask.preemptible) == ("j", "default", 0, True)
    assert (task.count, task.requests, task.node_affinity, job.ask.min_available) == (1, {"cpu": 1}, None, None)
    assert (job.submitted_at, job.duration, job.after, job.checkpoint) == (1.5, 2, [], None)


def test_a_job_of_columns() -> None:
    job = mapped(
        after="i",
        queue="{group}/{user}-q",
        count="n",
        min_available=2,
        dependencies=True,
        priority={"column": "qos", "values": {"BE": 5}},
        preemptible={"column": "qos", "values": {"LS": True}, "default": False},
        node_label={"key": "k", "column": "spec"},
        checkpoint={"every": 60, "cost": 1},
        resources={
            "memory": {"column": "mem", "times": 4},
            "cpu": {"column": "mem"},
            "gpu": {"column": "group", "default": 2},
        },
    )
    (task,) = job.ask.tasks
    assert (job.ask.queue, job.ask.priority, job.ask.preemptible, job.ask.min_available) == (
        "unknown/ann-q",
        5,
        False,
        2,
    )
    assert (task.count, job.after, job.checkpoint is None) == (3, ["i"], False)
    assert task.node_affinity == [[Expression(key="k", operator="In", values=["A", "B"])]]
    assert list(task.requests.items()) == [("cpu", "1500m"), ("gpu", 2), ("memory", 6)]
    other = mapped(
        cells={"qos": "x", "spec": "", "mem": "0.0"},
        resources={"cpu": {"column": "mem"}, "gpu": {"column": "group"}},
        priority={"column": "qos", "values": {"BE": 5}, "default": 9},
        node_label={"key": "k", "column": "spec"},
        preemptible={"column": "qos", "values": {"BE": False}},
    )
    assert (other.ask.priority, other.ask.preemptible) == (9, True)
    assert (other.ask.tasks[0].requests, other.ask.tasks[0].node_affinity) == ({}, None)


@pytest.mark.parametrize(
    ("cells", "mapping", "detail"),
    [
        ({"n": "0"}, {"count": "n"}, "n: '0' is no number of tasks"),
        ({"n": ""}, {"count": "n"}, "n: '' is no number of tasks"),
        ({"n": str(2**31)}, {"count": "n"}, "n: '2147483648' is no number of tasks"),
        ({"n": "1.0"}, {"count": "n"}, "n: '1.0' is no number of tasks"),
        ({"mem": "0.0005"}, {"resources": {"cpu": {"column": "mem"}}}, "mem: 0.0005 of cpu is finer than 1/1000"),
        ({"mem": "1.5"}, {"resources": {"memory": {"column": "mem"}}}, "mem: 1.5 of memory is finer than 1"),
        ({"mem": "x"}, {"resources": {"cpu": {"column": "mem"}}}, "mem: 'x' is not a number of 0 or more"),
    ],
)
def test_a_line_that_the_mapping_can_not_take(cells: dict[str, str], mapping: Any, detail: str) -> None:
    with pytest.raises(LineError) as refused:
        mapped(cells=cells, **mapping)
    assert str(refused.value) == detail
    for count in (1, 2**31 - 1):
        assert mapped(cells={"n": str(count)}, count="n").ask.tasks[0].count == count


def test_texts_with_columns() -> None:
    texts = {
        "plain": "plain",
        "{user}": "ann",
        "a-{group}": "a-unknown",
        "{user}{group}/{n}": "annunknown/3",
        "{1}": "{1}",
    }
    assert {text: filled(text)(CELLS) for text in texts} == texts


def test_every_column_that_is_not_there_is_named() -> None:
    no = {"column": "no"}
    mapping = {
        "queue": "{user}-{no}",
        "count": "no",
        "resources": {"cpu": no, "memory": {"column": "mem", "default": "x"}, "gpu": -1},
        "priority": no | {"values": {}},
        "preemptible": no | {"values": {}},
        "node_label": no | {"key": "k"},
        "cluster": {"each": {"queue": {"name": "*"}, "groups": "{user}{no}"}},
    }
    found = problems_of(msgspec.convert(mapping, Mapping), CELLS.keys())
    assert [one.pointer for one in found] == [
        "/queue",
        "/count",
        "/resources/cpu/column",
        "/resources/memory",
        "/resources/gpu",
        "/priority/column",
        "/preemptible/column",
        "/node_label/column",
        "/cluster/each/groups",
    ]
    assert problems_of(msgspec.convert({"resources": {"cpu": 1}}, Mapping), ()) == []


def job(name: str, at: Any, **more: Any) -> Job:
    ask = {"id": name, "queue": "q", "tasks": []}
    return msgspec.convert({"ask": ask, "submitted_at": at, "duration": 5} | more, Job)


def complaints(*lines: Job | Change) -> tuple[list[str], Order]:
    said = Complaints()
    order = Order(said)
    for number, line in enumerate(lines, 1):
        if isinstance(line, Job):
            order.job(number, line)
        else:
            order.change(number, line)
    return [one.detail.split(":", 2)[0] + ":" + one.detail.split(":", 2)[1] for one in said.listed], order


def test_times_go_forward_for_jobs_and_for_changes() -> None:
    change = [msgspec.convert({"at": at}, Change) for at in (9, 4, 9)]
    said, order = complaints(job("a", 3), change[0], job("b", 3), change[1], change[2], job("c", 2), job("d", 3.5))
    assert said == ["line 4: at", "line 6: submitted_at"]
    assert (order.first, order.last, order.start) == (3_000_000, 9_000_000, None)
    assert (order.knows("c"), order.knows("e")) == (True, False)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"duration": 0}, "duration"),
        ({"duration": "-1s"}, "duration"),
        ({"duration": "soon"}, "duration"),
        ({"duration": 10**11 + 1}, "duration"),
        ({"cancelled_at": 2}, "cancelled_at"),
        ({"cancelled_at": 3}, None),
        ({"after": ["z"]}, "after"),
        ({"after": ["b"]}, "after"),
        ({"after": ["a"]}, None),
        ({"checkpoint": {"every": 0, "cost": 0}}, "checkpoint.every"),
        ({"checkpoint": {"every": 1, "cost": -1}}, "checkpoint.cost"),
        ({"checkpoint": {"every": 1, "cost": 0}}, None),
        ({"ask": {"id": "a", "queue": "q", "tasks": []}}, "ask.id"),
        ({"submitted_at": "2026-01-01T00:00:00Z"}, "submitted_at"),
    ],
)
def test_what_a_job_may_not_say(more: Any, said: str | None) -> None:
    found, _ = complaints(job("a", 3), job("b", 3, **more))
    assert found == ([] if said is None else [f"line 2: {said}"])


def test_a_trace_of_times_knows_when_it_began() -> None:
    found, order = complaints(job("a", "2026-01-01T00:00:01Z"), job("b", "2026-01-01T00:00:02+00:00"), job("c", 5))
    assert found == ["line 3: submitted_at"]
    begun = order.start
    assert (begun, order.last) == (1767225601 * 10**6, 1767225602 * 10**6)
    assert moment("1h", "x") == (False, 3600 * 10**6)
    with pytest.raises(LineError, match="no time of RFC 3339"):
        moment("2026-01-01T00:00:01 o", "x")
