"""What one run needs, read from a request: instants, lengths, variants, and what is wrong with them."""

from typing import Any

import msgspec
import pytest

from app.answering.sources import Compiled
from app.base.decoding import convert
from app.base.errors import BadInput, NotFound
from app.simulations.accepting import Terms, accept
from app.simulations.core.scenario import Scenario, scenario_of, variants_of
from app.simulations.core.sink import EARLIEST, FIRST, LATEST, moment, span, time_of
from app.simulations.schemas import SimulationRequest
from app.solver import solve
from app.solver.model.base import DurationError
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.solve import Configured
from tests.support.kueue_run import two_queues
from tests.unit.simulations.running import job, request_for

S = 10**6


def of(jobs: Any = (), changes: Any = (), **more: Any) -> Scenario:
    trace = more.pop("trace", {})
    request = request_for(two_queues(), jobs, changes, **more)
    if trace:
        given = {"configuration": two_queues(), **more, "trace": {"jobs": list(jobs), **trace}}
        request = _converted(given)
    return scenario_of(request, Compiled(None))


def _converted(body: Any) -> SimulationRequest:
    return convert(body, SimulationRequest)


def refused(*args: Any, **more: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as found:
        of(*args, **more)
    return {problem.pointer: problem.detail for problem in found.value.problems}


def test_a_run_starts_when_the_request_says_else_the_trace_else_the_first_job_else_in_2000() -> None:
    late, early = "2001-02-03T04:05:06Z", "2001-02-03t04:05:05.5+00:00"
    jobs = [job("a", "a", 1, late, 1), job("b", "a", 1, early, 1), job("c", "a", 1, 3, 1)]
    assert time_of(of(jobs).start).isoformat() == "2001-02-03T04:05:05.500000+00:00"
    assert of([job("a", "a", 1, 3, 1)]).start == of().start == FIRST
    assert time_of(of(jobs, trace={"start": "1999-01-01T00:00:00Z"}).start).year == 1999
    assert time_of(of(jobs, trace={"start": "1999-01-01T00:00:00Z"}, start="1998-01-01T00:00:00Z").start).year == 1998
    found = [one.ask.id for one in of([job("z", "a", 1, 0, 1), *jobs, job("a2", "a", 1, early, 1)]).jobs]
    assert found == ["a2", "b", "z", "a", "c"], "by instant, then id; seconds count from the start"


def test_lengths_are_microseconds_and_have_defaults() -> None:
    plain = of()
    assert (plain.round_every, plain.grace, plain.until, plain.remaining, plain.total) == (S, 0, None, {}, 0)
    given = of([job("a", "a", 1, 0, 1)], round_every="1us", grace="2m", until=1.5)
    assert (given.round_every, given.grace, given.until, given.total) == (1, 120 * S, FIRST + 3 * S // 2, 1)
    assert of(until="2000-01-01T00:01:00Z").until == FIRST + 60 * S


def test_every_length_that_is_wrong_is_named() -> None:
    above = "must be above 0, by a microsecond at least"
    running = {"workloads": [{"id": w, "queue": "a", "tasks": [{"name": "t", "requests": {"cpu": 1}}]} for w in "xyz"]}
    assert refused(
        state=running, remaining={"x": 0, "y": "soon", "b": 1, "a": 1}, round_every=1e-7, grace=-1, until="x"
    ) == {
        "/round_every": above, "/grace": "negative", "/remaining/x": above,
        "/remaining/y": "'soon' is not a duration", "/remaining/a": "no workload 'a' runs at the start",
        "/remaining/b": "no workload 'b' runs at the start", "/until": "'x' is not a duration",
        "/state/workloads/2/id": "'z' runs, and neither trace nor `remaining` says how long",
    }  # fmt: skip


def test_instants_and_lengths_end_with_the_first_and_the_last_time_that_can_be_written() -> None:
    assert moment("9000-01-01T00:00:00Z", 7) == LATEST
    assert moment((LATEST - FIRST) // S, FIRST) == LATEST
    for value, start in (("9000-01-01T00:00:00.000001Z", 0), (1e-6, LATEST)):
        with pytest.raises(DurationError, match="out of range"):
            moment(value, start)
    assert moment("0001-01-01T00:00:00Z", 7) == moment(-1, EARLIEST + S) == EARLIEST
    for value, start in (("0001-01-01T00:00:00+00:01", 0), (-1e-6, EARLIEST)):
        with pytest.raises(DurationError):
            moment(value, start)
    assert (moment(-3, 10 * S), span(0), span("1.5s")) == (7 * S, 0, 3 * S // 2)
    with pytest.raises(DurationError, match="negative"):
        span(-1e-6)


def test_a_number_of_a_configuration_is_that_of_its_change() -> None:
    changes: list[dict[str, Any]] = [
        {"at": 9, "queues": {"a": {"weight": 3}}}, {"at": 2, "nodes": {}}, {"at": 5, "queues": {"a": {"weight": 2}}}
    ]  # fmt: skip
    found = of(changes=changes)
    weights = {n: found.configuration(n).configuration.queues[1].weight for n in (0, 2, 3)}
    assert weights == {0: 1, 2: 2, 3: 3}


def numbered(revision: int) -> dict[str, Any]:
    """Two queues below one with a weight of its own."""
    found = two_queues()
    found["queues"][0]["weight"] = revision
    return found


def variants(*given: dict[str, Any], **more: Any) -> dict[str, SimulationRequest]:
    request = request_for(two_queues(), [], variants=list(given), **more)
    return dict(variants_of(request, Compiled(None)))


def test_a_request_without_variants_is_its_own() -> None:
    request = request_for(two_queues(), [])
    assert list(variants_of(request, Compiled(None))) == [("", request)]


def test_a_variant_is_the_request_with_what_differs() -> None:
    other = {"engine": "kai", "queues": [{"name": "only"}]}
    fair = {"kueue": {"fair_sharing": True}}
    found = variants(
        {"name": "same"}, {"name": "other", "configuration": other}, {"name": "fair", "settings": fair},
        {"name": "set", "set": {"queues.a.weight": 5}}, {"name": "all", "engine": "kueue", "settings": fair,
        "configuration": numbered(9), "set": {"queues.a.weight": 7}},
        grace=3,
    )  # fmt: skip
    made = {name: one.configuration for name, one in found.items()}
    assert all(isinstance(one, Configuration) for one in made.values())
    told = {
        name: (one.queues[0].name, one.settings.kueue is not None, [q.weight for q in one.queues[:2]])
        for name, one in made.items() if isinstance(one, Configuration)
    }  # fmt: skip
    assert told == {
        "same": ("all", False, [1, 1]), "other": ("only", False, [1]), "fair": ("all", True, [1, 1]),
        "set": ("all", False, [1, 5]), "all": ("all", True, [9, 7]),
    }  # fmt: skip
    assert {name: one.engine for name, one in found.items()} == dict.fromkeys(made, None) | {"all": "kueue"}
    assert all(one.variants is None and one.grace == 3 for one in found.values())


def test_a_configuration_that_is_named_stays_a_name_unless_a_variant_changes_it() -> None:
    asked: list[str] = []
    named = solve.configure(convert(numbered(4), Configuration))

    class Stored(Compiled):
        def named(self, reference: str, engine: str | None) -> Configured:
            asked.append(reference)
            return named

    request = convert(
        {"configuration": "prod@3", "trace": {"jobs": []}, "variants": [
            {"name": "same"}, {"name": "later", "configuration": "prod@4"},
            {"name": "fair", "settings": {"kueue": {"fair_sharing": True}}},
            {"name": "set", "set": {"queues.a.weight": 5}},
        ]}, SimulationRequest,
    )  # fmt: skip
    found = {name: one.configuration for name, one in variants_of(request, Stored(None))}
    assert (found["same"], found["later"], asked) == ("prod@3", "prod@4", ["prod@3", "prod@3"])
    assert [one.queues[0].weight for one in (found["fair"], found["set"]) if isinstance(one, Configuration)] == [4, 4]


def test_variants_have_names_of_their_own_and_what_is_wrong_with_one_is_named_in_it() -> None:
    own = "a variant needs a name of its own"
    cases: list[tuple[list[dict[str, Any]], dict[str, str]]] = [
        ([], {"/variants": own}),
        ([{"name": "a"}, {"name": "b"}, {"name": "a"}, {"name": "b"}],
         {"/variants/2/name": own, "/variants/3/name": own}),
        ([{"name": "a"}, {"name": "b", "set": {"queues.x.weight": 1}}], {"/variants/1/set/queues.x.weight": "x"}),
    ]  # fmt: skip
    for given, said in cases:
        with pytest.raises(InvalidInput) as found:
            variants(*given)
        told = {problem.pointer: problem.detail for problem in found.value.problems}
        assert told.keys() == said.keys()
        assert all(text in told[where] for where, text in said.items())


class Documents:
    """One stored configuration, ``prod``, of which revision 3 is the newest."""

    def head(self, reference: str) -> tuple[str, int]:
        if reference.partition("@")[0] != "prod":
            raise NotFound(f"no configuration {reference!r}")
        return "prod", int(reference.partition("@")[2] or 3)

    def document(self, name: str, revision: int) -> bytes:
        return msgspec.json.encode(numbered(revision))


def accepted(body: dict[str, Any], variants: int = 2, jobs: int = 2) -> tuple[list[str], str | None, Any]:
    documents = Documents()
    found = accept(msgspec.json.encode(body), Terms(variants, jobs), documents, Compiled(documents))
    return found.names, found.trace, msgspec.json.decode(found.request)


def test_names_of_configurations_become_revisions_wherever_they_stand() -> None:
    body = {
        "configuration": "prod",
        "variants": [{"name": "new"}, {"name": "old", "configuration": "prod@1"}],
        "trace": {"changes": [{"at": 3, "configuration": "prod@2"}, {"at": 4, "configuration": two_queues()}]},
    }
    names, trace, request = accepted(body)
    assert (names, trace, request["configuration"]) == (["new", "old"], None, "prod@3")
    assert [one.get("configuration") for one in request["variants"]] == [None, "prod@1"]
    changed = [change["configuration"] for change in request["trace"]["changes"]]
    assert (changed[0], changed[1]["queues"][0]["name"]) == ("prod@2", "all")
    names, trace, request = accepted({"configuration": two_queues(), "trace": "stored"})
    assert (names, trace, request["configuration"]["queues"][0]["name"]) == ([""], "stored", "all")


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        ({"configuration": "nobody"}, NotFound, {}),
        ({"variants": [{"name": "x", "configuration": "nobody"}]}, NotFound, {}),
        ({"trace": {"changes": [{"at": 1, "configuration": "nobody"}]}}, NotFound, {}),
        ({"trace": {"jobs": [job(n, "a", 1, 0, 1) for n in "abc"]}}, BadInput,
         {"/trace/jobs": "more than 2 jobs (ARBITER_TRACE_JOBS)"}),
        ({"variants": []}, BadInput, {"/variants": "0 variants; 1 to 2 are allowed"}),
        ({"variants": [{"name": n} for n in "xyx"]}, BadInput,
         {"/variants/2/name": "another variant has this name", "/variants": "3 variants; 1 to 2 are allowed"}),
        ({"trace": {"jobs": [job("a", "x", 1, 0, 1)]}}, InvalidInput, {"/trace/jobs/0/ask/queue": "no queue 'x'"}),
        ({"trace": "stored", "until": "x"}, InvalidInput, {"/until": "'x' is not a duration"}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_when_it_is_asked_for(body: Any, error: Any, said: dict[str, str]) -> None:
    with pytest.raises(error) as found:
        accepted({"configuration": two_queues(), "trace": {}, **body})
    assert {problem.pointer: problem.detail for problem in found.value.problems} == said


def test_as_many_variants_and_jobs_as_are_allowed() -> None:
    jobs = [job(n, "a", 1, 0, 1) for n in "ab"]
    body = {"configuration": two_queues(), "trace": {"jobs": jobs}}
    assert accepted({**body, "variants": [{"name": "x"}, {"name": "y"}]})[0] == ["x", "y"]
    assert accepted({**body, "variants": [{"name": "x"}]}, variants=1)[0] == ["x"]
