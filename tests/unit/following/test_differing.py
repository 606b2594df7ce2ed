"""What changed between two translations: each object once, in the smallest form that says it; and what queues use."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.clusters.schemas import QueueUse, UseReport
from app.following.grouped import Translated
from app.following.translator import change_summary, delta, use_of
from app.solver.model.configuration import Configuration, Flavor, Queue
from app.solver.model.state import Ask, Delta, Node, Task, TaskName, TaskOf, Workload

NONE = Configuration()


def translated(*objects: Node | Workload | Ask) -> Translated:
    return Translated(
        NONE,
        {one.name: one for one in objects if isinstance(one, Node)},
        {one.id: one for one in objects if isinstance(one, Workload)},
        {one.id: one for one in objects if isinstance(one, Ask)},
        [], {}, {},
    )  # fmt: skip


def node(name: str, cpu: int = 1) -> Node:
    return Node(name=name, capacity={"cpu": cpu})


def tasks(*names: str, cpu: int = 1) -> list[Task]:
    return [Task(name=name, requests={"cpu": cpu}) for name in names]


def between(old: Translated, new: Translated) -> Delta:
    return delta(old, new, 7, {"Pod": "12"})


def test_each_kind_says_what_came_changed_and_went() -> None:
    kept, was, now = node("kept"), node("other"), node("other", cpu=2)
    old = translated(
        kept, was, node("gone"), Workload(id="w", queue="q"), Workload(id="out", queue="q"),
        Ask(id="a", queue="q", tasks=[]), Ask(id="over", queue="q", tasks=[]),
    )  # fmt: skip
    new = translated(
        node("kept"), now, node("new"), Workload(id="w", queue="r"), Workload(id="in", queue="q"),
        Ask(id="a", queue="r", tasks=[]), Ask(id="next", queue="q", tasks=[]),
    )  # fmt: skip
    found = between(old, new)
    assert (found.generation, found.resource_versions) == (7, {"Pod": "12"})
    assert (found.nodes.add, found.nodes.change, found.nodes.remove) == ([node("new")], [now], ["gone"])
    workloads = found.workloads
    assert [one.id for one in workloads.add] == ["in"]
    assert workloads.change == [Workload(id="w", queue="r")]
    assert workloads.remove == ["out"]
    asks = found.asks
    assert ([one.id for one in asks.add], [one.queue for one in asks.change], asks.remove) == (
        ["next"],
        ["r"],
        ["over"],
    )
    assert (found.tasks.add, found.tasks.change, found.tasks.remove) == ([], [], [])


BEFORE = tasks("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("now", "add", "change", "remove"),
    [
        pytest.param([*BEFORE, *tasks("f")], "f", "", "", id="one more"),
        pytest.param([*BEFORE[:2], *BEFORE[3:]], "", "", "c", id="one less"),
        pytest.param([*BEFORE[:4], *tasks("e", cpu=2)], "", "e", "", id="one changed"),
        pytest.param([BEFORE[0], *BEFORE[2:], *tasks("f")], "f", "", "b", id="one went, one came"),
        pytest.param([BEFORE[0], *tasks("b", "c", cpu=2), *BEFORE[3:]], "", "bc", "", id="two of five"),
        pytest.param([BEFORE[0], *tasks("b", "c", "d", cpu=2), BEFORE[4]], None, None, None, id="three of five: whole"),
        pytest.param([*tasks("0"), *BEFORE], None, None, None, id="a new one that is not last: whole"),
        pytest.param([BEFORE[1], BEFORE[0], *BEFORE[2:]], None, None, None, id="another order: whole"),
        pytest.param([*BEFORE, *tasks("f", "f")], None, None, None, id="one name twice: whole"),
        pytest.param([*BEFORE[:4], *tasks("e", "e")], None, None, None, id="an old name twice: whole"),
    ],
)  # fmt: skip
def test_a_few_tasks_of_a_workload_are_told_by_themselves(now: list[Task], add: Any, change: Any, remove: Any) -> None:
    old, new = Workload(id="w", queue="q", tasks=BEFORE), Workload(id="w", queue="q", tasks=now)
    found = between(translated(old), translated(new))
    if add is None:
        assert found.workloads.change == [new]
        assert (found.tasks.add, found.tasks.change, found.tasks.remove) == ([], [], [])
        return
    by_name = {task.name: task for task in now}
    assert found.workloads.change == []
    assert found.tasks.add == [TaskOf(workload="w", task=by_name[name]) for name in add]
    assert found.tasks.change == [TaskOf(workload="w", task=by_name[name]) for name in change]
    assert found.tasks.remove == [TaskName(workload="w", task=name) for name in remove]


def test_half_of_the_tasks_or_another_field_tell_the_workload_whole() -> None:
    four = tasks("a", "b", "c", "d")
    old = Workload(id="w", queue="q", tasks=four)
    half = Workload(id="w", queue="q", tasks=[*four[:2], *tasks("c", "d", cpu=2)])
    assert between(translated(old), translated(half)).workloads.change == [half]
    moved = Workload(id="w", queue="other", tasks=[*four[:3], *tasks("d", cpu=2)])
    assert between(translated(old), translated(moved)).workloads.change == [moved]


def test_a_comment_names_queues_and_flavors() -> None:
    def configuration(*queues: Queue, flavors: list[Flavor] | None = None) -> Configuration:
        return Configuration(queues=list(queues), flavors=flavors or [])

    a, b = Queue(name="a"), Queue(name="b")
    assert change_summary(None, configuration(a, b)) == "followed from the cluster: 2 queues"
    old = configuration(a, b, flavors=[Flavor(name="f")])
    new = configuration(Queue(name="a", parent="c"), Queue(name="c"))
    assert change_summary(old, new) == (
        "followed from the cluster: queue c added; queue a changed; queue b removed; flavor f removed"
    )
    assert change_summary(configuration(a, b), configuration(b, a)) == "followed from the cluster: the order of queues"
    many = [Queue(name=f"q{number}") for number in range(7)]
    assert (
        change_summary(NONE, configuration(*many))
        == "followed from the cluster: queue q0, q1, q2, q3, q4 and 2 more added"
    )
    assert change_summary(NONE, configuration(*many[:5])) == "followed from the cluster: queue q0, q1, q2, q3, q4 added"
    long = "x" * 150
    assert (
        change_summary(NONE, configuration(Queue(name=long))) == f"followed from the cluster: queue {long[:100]} added"
    )


def test_what_queues_use_is_counted_with_what_is_below_by_flavor() -> None:
    def work(name: str, queue: str, *tasks: Task, evicted: bool = False) -> Workload:
        return Workload(id=name, queue=queue, tasks=list(tasks), evicted=evicted)

    gpu = Task(name="g", count=2, requests={"gpu": 1, "cpu": "1500m"}, flavors={"gpu": "a100"})
    over = Task(name="o", requests={"cpu": 8}, state="succeeded")
    leaving = Task(name="l", requests={"cpu": 1}, state="preempted")
    queues = [Queue(name="leaf", parent="mid"), Queue(name="mid", parent="top"), Queue(name="top"), Queue(name="other")]
    workloads = [
        work("a", "leaf", gpu, over), work("b", "mid", leaving), work("c", "other", gpu, evicted=True),
    ]  # fmt: skip
    asks = [Ask(id="x", queue="leaf", tasks=[gpu]), Ask(id="y", queue="other", tasks=[leaving])]
    found = Translated(
        Configuration(engine="kueue", queues=queues), {}, {one.id: one for one in workloads},
        {one.id: one for one in asks}, [], {}, {},
    )  # fmt: skip
    at = datetime(2026, 3, 1, tzinfo=UTC)
    leaf = QueueUse(usage={"": {"cpu": 3}, "a100": {"gpu": 2}}, waiting={"cpu": 3, "gpu": 2})
    above = QueueUse(usage={"": {"cpu": 4}, "a100": {"gpu": 2}}, waiting={"cpu": 3, "gpu": 2})
    assert use_of(found, at) == UseReport(
        at=at, total=QueueUse(usage=above.usage, waiting={"cpu": 4, "gpu": 2}),
        queues={"leaf": leaf, "mid": above, "top": above, "other": QueueUse(waiting={"cpu": 1})},
    )  # fmt: skip


def test_what_one_tenant_asks_for_hides_nobody_elses_use() -> None:
    """A report has amounts below 2^63, and a thousand names of resources."""
    many = Task(name="m", requests={f"r{i:04}": 1 for i in range(1500)})
    much = Task(name="n", count=2**31 - 1, requests={"cpu": 2**53 - 1})
    asks = {name: Ask(id=name, queue="q", tasks=[of]) for name, of in (("a", many), ("b", much))}
    running = {"w": Workload(id="w", queue="p", tasks=[many])}
    translated = Translated(Configuration(engine="kueue"), {}, running, asks, [], {}, {})
    use = use_of(translated, datetime(2026, 3, 1, tzinfo=UTC))
    assert msgspec.convert(msgspec.to_builtins(use), UseReport) == use
    assert (len(use.queues["q"].waiting), use.queues["q"].waiting["cpu"]) == (1000, 2.0**63)
    assert len(use.queues["p"].usage[""]) == 1000
