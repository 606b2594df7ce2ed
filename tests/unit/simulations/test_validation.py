"""What is wrong with a job of a trace: where it stands and what is said, one fault at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.simulations.core import validation
from app.simulations.core.scenario import setting_of
from app.simulations.core.sink import FIRST, LATEST
from app.simulations.core.validation import MOST_PROBLEMS, check_jobs, problems_of
from app.simulations.schemas import Job
from app.solver.model.problems import InvalidInput
from tests.support.kueue_run import two_queues
from tests.support.placed_runs import NODES, configuration
from tests.unit.simulations.running import job, played, request_for

LONGEST = (LATEST - FIRST) // 10**6
ABOVE = "must be above 0, by a microsecond at least"
FAULTS: list[tuple[str, Callable[[dict[str, Any]], Any], dict[str, str]]] = [
    ("nothing", lambda j: None, {}),
    ("no length", lambda j: j.update(duration=0), {"/duration": ABOVE}),
    ("a length below nothing", lambda j: j.update(duration=-1), {"/duration": "negative"}),
    ("no length to tell", lambda j: j.update(duration="long"), {"/duration": "'long' is not a duration"}),
    ("a microsecond", lambda j: j.update(duration=1e-6), {}),
    ("less than a microsecond", lambda j: j.update(duration=1e-7), {"/duration": ABOVE}),
    ("past all times", lambda j: j.update(duration=3e11), {"/duration": "out of range"}),
    ("up to the last of all times", lambda j: j.update(duration=LONGEST - 5), {}),
    ("a second longer", lambda j: j.update(duration=LONGEST - 4), {"/duration": "out of range"}),
    ("a checkpoint at once", lambda j: j.update(checkpoint={"every": 0}), {"/checkpoint/every": ABOVE}),
    ("each microsecond", lambda j: j.update(checkpoint={"every": 1e-6, "cost": 0}), {}),
    ("a cost below 0", lambda j: j.update(checkpoint={"every": 1, "cost": -1}), {"/checkpoint/cost": "negative"}),
    ("at its submission", lambda j: j.update(cancelled_at=5), {"/cancelled_at": "not after its submission"}),
    ("just after it", lambda j: j.update(cancelled_at=5.000001), {}),
    ("no time to cancel", lambda j: j.update(cancelled_at="x"), {"/cancelled_at": "'x' is not a duration"}),
    ("no time", lambda j: j.update(submitted_at="x", cancelled_at=9), {"/submitted_at": "'x' is not a duration"}),
    (
        "a time without an offset",
        lambda j: j.update(submitted_at="2000-01-01T00:00:00"),
        {"/submitted_at": "'2000-01-01T00:00:00' is no RFC 3339 time with an offset"},
    ),
    ("past the last time", lambda j: j.update(submitted_at=3e11), {"/submitted_at": "out of range"}),
    ("as itself", lambda j: j["ask"].update(workload="one"), {}),
    ("as another", lambda j: j["ask"].update(workload="x"), {"/ask/workload": "a job is a workload of its own"}),
    ("no task", lambda j: j["ask"].update(tasks=[]), {"/ask/tasks": "a job without tasks has nothing to run"}),
    ("no queue", lambda j: j["ask"].update(queue="x"), {"/ask/queue": "no queue 'x'"}),
    ("itself before", lambda j: j.update(after=["one"]), {"/after/0": "'one' is not submitted before this job"}),
    ("somebody unknown before", lambda j: j.update(after=["x"]), {"/after/0": "no job 'x'"}),
    ("one of the same instant before", lambda j: j.update(after=["same"]), {}),
    (
        "a later one before",
        lambda j: j.update(after=["same", "later"]),
        {"/after/1": "'later' is not submitted before this job"},
    ),
]


def jobs(fault: Callable[[dict[str, Any]], Any]) -> list[dict[str, Any]]:
    one = job("one", "a", 1, 5, 10)
    fault(one)
    return [job("same", "a", 1, 5, 1), job("later", "a", 1, 5.5, 1), one]


def found(configuration: Any, given: list[Any], **more: Any) -> dict[str, str]:
    try:
        played(configuration, given, **more)
    except InvalidInput as invalid:
        return {problem.pointer: problem.detail for problem in invalid.problems}
    return {}


@pytest.mark.parametrize(("fault", "said"), [pytest.param(*rest, id=name) for name, *rest in FAULTS])
def test_each_fault_is_named_where_it_stands(fault: Callable[[dict[str, Any]], Any], said: dict[str, str]) -> None:
    assert found(two_queues(), jobs(fault), until=60) == {f"/trace/jobs/2{at}": text for at, text in said.items()}


@pytest.mark.parametrize("where", ["/required_node", "/feasible_nodes/1", "/tasks/0/required_node"])
def test_nodes_that_a_job_names_must_be_there_throughout(where: str) -> None:
    asked = job("one", "a", 1, 0, 5)
    of = asked["ask"]["tasks"][0] if where.startswith("/tasks") else asked["ask"]
    of |= {"feasible_nodes": ["n0", "n1"]} if where.endswith("1") else {"required_node": "n1"}
    for change in ([], [{"at": 3, "nodes": {"change": [NODES["nodes"][1]]}}]):
        assert found(configuration("kai"), [asked], changes=change, state=NODES) == {}
    leaves = [{"at": 3, "nodes": {"remove": ["n1"]}}]
    said = found(configuration("kai"), [asked], changes=leaves, state=NODES)
    assert said == {f"/trace/jobs/0/ask{where}": "node 'n1' is not there throughout"}


def test_one_can_run_if_it_can_under_any_configuration_or_on_a_node_that_comes_later() -> None:
    large = job("large", "a", 6, 0, 5)
    assert list(found(two_queues(), [large])) == ["/trace/jobs/0/ask"]
    grown = [{"at": 9, "queues": {"a": {"quota": {"cpu": {"guaranteed": 4}}}}}]
    assert found(two_queues(), [large], changes=grown) == {}
    roomy = configuration("kai")
    assert list(found(roomy, [large], state=NODES)) == ["/trace/jobs/0/ask"]
    comes = [{"at": 9, "nodes": {"add": [{"name": "wide", "capacity": {"cpu": 6, "gpu": 6}}]}}]
    assert found(roomy, [large], changes=comes, state=NODES) == {}


def test_lines_of_a_stored_trace_are_in_order_and_named_by_line() -> None:
    setting = setting_of(request_for(two_queues(), []), Compiled(None))
    given = [job("a", "a", 1, 5, 1), job("b", "a", 1, 5, 1), job("c", "a", 1, 4, 1), job("d", "a", 1, 4.5, 1)]
    located = [(f"/line/{n}", convert(one, Job)) for n, one in enumerate(given, 1)]
    said = "earlier than that of the job before"
    assert [(p.pointer, p.detail) for p in problems_of(located, setting)] == [
        ("/line/3/submitted_at", said), ("/line/4/submitted_at", said),
    ]  # fmt: skip
    check_jobs(located[:2], setting)
    with pytest.raises(InvalidInput) as refused:
        check_jobs([*located[:2], *[(f"/line/{n}", located[2][1]) for n in range(3, 200)]], setting)
    assert len(refused.value.problems) == MOST_PROBLEMS == 100


def test_a_second_job_of_a_name_is_named_each_time() -> None:
    one = job("one", "a", 1, 0, 5)
    assert found(two_queues(), [one, one, one]) == {
        f"/trace/jobs/{i}/ask/id": "a second job 'one'" for i in (1, 2)
    }  # fmt: skip


def test_jobs_that_come_after_one_another_are_named_for_they_would_never_come() -> None:
    given = [
        job("a", "a", 1, 5, 1, after=["c"]), job("b", "a", 1, 5, 1, after=["a", "free"]),
        job("c", "a", 1, 5, 1, after=["b"]), job("behind", "a", 1, 6, 1, after=["c", "free"]),
        job("free", "a", 1, 5, 1, after=["first"]), job("first", "a", 1, 5, 1),
        job("fine", "a", 1, 7, 1, after=["free"]),
    ]  # fmt: skip
    said = "it would never come: jobs before it come after one another"
    assert found(two_queues(), given) == {f"/trace/jobs/{i}/after": said for i in range(4)}
    assert played(two_queues(), given[4:]).of("fine").status == "finished"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("/asks/0/tasks/1/requests/cpu", "/ask/tasks/1/requests/cpu"), ("/asks/0", "/ask"), ("/state/nodes/3", "/ask"),
        ("/asks", "/ask"),
    ],
)  # fmt: skip
def test_what_an_engine_says_of_an_ask_is_said_of_the_job(where: str, expected: str) -> None:
    assert validation._inside(where) == expected  # pyright: ignore[reportPrivateUsage]
