"""The whole path with what can go wrong at each of its steps: where it is said, and where it points."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.apply import Index
from app.solver.delta import apply_delta
from app.solver.engine import all_facts
from app.solver.model.base import Time, micros
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, Plan, Result
from app.solver.model.problems import InvalidInput
from app.solver.model.request import Mode, Options
from app.solver.model.state import Ask, Delta, State, Task
from app.solver.question import ProtectionQuestion, Question
from app.solver.solve import BrokenLaw
from tests.support.document import document

KUEUE = {"engine": "kueue", "queues": [{"name": "q", "parent": "co", "quota": {"cpu": {"guaranteed": 4}}}]}
DECIDE = document()["paths"]["/v1/decisions"]["post"]
EXAMPLES: dict[str, Any] = DECIDE["requestBody"]["content"]["application/json"]["examples"]
MODES: tuple[Mode, ...] = ("independent", "cycle")
BROKEN = {"nodes": [{"name": "n", "capacity": {"cpu": "x"}}]}


def configuration(**fields: Any) -> Configuration:
    return msgspec.convert(KUEUE | fields, Configuration)


def asks(*queues: str) -> list[Ask]:
    return [Ask(id=f"a{i}", queue=queue, tasks=[Task(name="t", count=1)]) for i, queue in enumerate(queues)]


def refused(work: Any) -> list[str]:
    with pytest.raises(InvalidInput) as found:
        work()
    return [p.pointer for p in found.value.problems]


def loaded(of: dict[str, Any] | None = None) -> solve.Loaded:
    return solve.load(solve.configure(configuration()), msgspec.convert(of or {}, State))


def test_the_engine_is_the_requests_own_else_the_configurations() -> None:
    assert solve.engine_name(None, configuration()) == "kueue"
    assert solve.engine_name("kai", configuration()) == "kai"
    assert refused(lambda: solve.engine_name(None, Configuration())) == ["/engine"]
    assert refused(lambda: solve.engine_name("nobody", configuration())) == ["/engine"]


def test_a_configuration_is_refused_whole() -> None:
    wrong = configuration(queues=[{"name": "q", "weight": -1}, {"name": "q"}])
    assert refused(lambda: solve.configure(wrong)) == [
        "/configuration/queues/1/name",
        "/configuration/queues/0/weight",
    ]
    assert solve.configure(configuration()).names == {"q", "co"}
    assert refused(lambda: solve.configure(configuration(engine="yunikorn"))) == ["/configuration/queues/0/parent"]
    named = solve.configure(configuration(), name="prod", revision=3).used
    assert (named.name, named.revision, len(named.digest)) == ("prod", 3, 64)


def test_a_state_is_refused_before_and_after_a_delta() -> None:
    assert refused(lambda: loaded({"workloads": [{"id": "w", "queue": "ghost"}]})) == ["/state/workloads/0/queue"]
    assert refused(lambda: loaded({"queues": {"ghost": {}}})) == ["/state/queues/ghost"]
    kept = solve.with_beside(loaded(), solve.Beside(asks("q"), {"pods": "7"}))
    assert refused(lambda: solve.with_beside(kept, solve.Beside(asks("q", "ghost")))) == ["/asks/1/queue"]
    for queue, problems in (("q", []), ("ghost", ["/state/workloads/0/queue"])):
        delta = msgspec.convert({"generation": 1, "workloads": {"add": [{"id": "w", "queue": queue}]}}, Delta)
        state, index, changes = apply_delta(kept.state, kept.index, delta)
        if problems:
            assert refused(lambda: solve.update(kept, state, index, changes, generation=2)) == problems  # noqa: B023
            continue
        after = solve.update(kept, state, index, changes, generation=2)
        assert (after.generation, after.beside, after.state) == (2, kept.beside, state)
        assert after.used.digest == loaded({"workloads": [{"id": "w", "queue": "q"}]}).used.digest
        assert after.used.resource_versions == {"pods": "7"}


def test_what_an_engine_stumbles_over_without_a_problem_is_no_fault_of_the_input() -> None:
    """A defect of an engine stays visible."""

    def stumble(*anything: object) -> None:
        raise KeyError("defect")

    configured = solve.configure(configuration())
    broken = replace(configured, engine=replace(configured.engine, load=stumble))
    with pytest.raises(KeyError):
        solve.load(broken, State())
    assert refused(lambda: solve.load(broken, msgspec.convert(BROKEN, State))) == ["/state/nodes/0/capacity/cpu"]


def test_asks_are_checked_wherever_they_come() -> None:
    of = loaded()
    wrong, right = asks("ghost"), asks("q")
    assert refused(lambda: solve.decide(of, Question(0, wrong))) == ["/asks/0/queue"]
    assert refused(lambda: solve.shares(of, wrong, 0)) == ["/asks/0/queue"]
    assert refused(lambda: solve.preemptibility(of, ProtectionQuestion(0, wrong))) == ["/asks/0/queue"]
    assert refused(lambda: solve.preemptibility(of, ProtectionQuestion(0, right, wrong[0]))) == ["/ask/queue"]
    assert solve.preemptibility(of, ProtectionQuestion(0, right)) == {"workloads": {}}
    answer = solve.decide(of, Question(0, right))
    assert (answer.engine, [d.ask for d in answer.decisions]) == ("kueue", ["a0"])


def test_an_answer_is_verified_before_it_leaves() -> None:
    of = loaded()
    nothing = Result(decisions=[], plan=Plan(evictions=[], placements=[]))

    def plan(*_: Any) -> Result:
        return nothing

    configured = replace(of.configured, engine=replace(of.configured.engine, plan=plan))
    with pytest.raises(BrokenLaw):
        solve.decide(replace(of, configured=configured), Question(0, asks("q")))


def test_settings_of_a_state_that_is_wrong_are_refused() -> None:
    configured = solve.configure(configuration())
    assert refused(lambda: solve.effective_settings(configured, msgspec.convert(BROKEN, State))) == [
        "/state/nodes/0/capacity/cpu"
    ]
    for state in (None, State()):
        assert set(solve.effective_settings(configured, state)["queues"]) == {"q", "co"}


@pytest.mark.parametrize(
    ("engine", "settings", "release"),
    [
        ("kai", {}, "0.13"), ("kai", {"kai": {}}, "0.13"), ("kai", {"kai": {"release": "0.17"}}, "0.17"),
        ("kueue", {"kai": {"release": "0.17"}}, None),
    ],
)  # fmt: skip
def test_an_answer_says_by_which_of_several_releases(engine: str, settings: Any, release: str | None) -> None:
    configuration = {"engine": engine, "queues": [{"name": "q"}], "settings": settings}
    configured = solve.configure(msgspec.convert(configuration, Configuration))
    state = State(workloads=[], nodes=[])
    assert solve.decide(solve.load(configured, state), Question(0, [], "cycle")).release == release


def test_findings_are_of_the_document_and_then_of_the_engine() -> None:
    """What makes it unusable comes alone; the engine's own, and promises past a parent's, only of what is usable."""
    broken = configuration(queues=[{"name": "q", "weight": -1, "quota": {"cpu": {"borrowing_limit": 1}}}])
    assert [(f.rule, f.pointer) for f in solve.findings(broken)] == [("invalid-document", "/queues/0/weight")]
    queues = [
        {"name": "co", "quota": {"cpu": {"guaranteed": 1}}},
        {"name": "q", "parent": "co", "quota": {"cpu": {"guaranteed": 4, "lending_limit": 5}}},
    ]
    assert [(f.rule, f.pointer) for f in solve.findings(configuration(queues=queues))] == [
        ("kueue.lending-over-nominal", "/queues/1/quota/cpu/lending_limit"),
        ("queues.oversubscribed-children", "/queues/0/quota/cpu/guaranteed"),
    ]
    limit = {"quota": {"cpu": {"guaranteed": 1}}}
    on_root = configuration(engine="yunikorn", queues=[{"name": "root"} | limit, {"name": "root.a", "parent": "root"}])
    assert [f.severity for f in solve.findings(on_root)][:1] == ["error"]
    index = Index(State())
    assert (index.workloads, index.nodes) == ({}, frozenset())


@pytest.mark.parametrize("engine", [facts.name for facts in all_facts() if facts.places])
def test_that_there_are_no_nodes_is_said_in_those_words(engine: str) -> None:
    """Whoever looks at each of them in turn has nothing to say of none."""
    body = next(one["value"] for one in EXAMPLES.values() if one["value"]["engine"] == engine)
    tasks = [{**task, "name": f"t{i}"} for i, task in enumerate(body["asks"][0]["tasks"])]
    ask = {"id": "ask", "queue": body["asks"][0]["queue"], "tasks": tasks}
    configured = solve.configure(msgspec.convert({"engine": engine, **body["configuration"]}, Configuration))
    for mode in ("independent", "cycle"):
        question = Question(0, [msgspec.convert(ask, Ask)], mode, Options(), "none")
        (decision,) = solve.decide(solve.load(configured, State()), question).decisions
        assert decision.outcome in ("wait", "infeasible")
        assert decision.conditions[0].message.count("there are no nodes in the state") == 1


@pytest.mark.parametrize("engine", ["yunikorn", "kube-scheduler"])
def test_an_ask_without_tasks_is_refused_where_its_system_has_none(engine: str) -> None:
    body = next(one["value"] for one in EXAMPLES.values() if one["value"]["engine"] == engine)
    configured = solve.configure(msgspec.convert({"engine": engine, **body["configuration"]}, Configuration))
    state = solve.load(configured, msgspec.convert(body["state"], State))
    ask = Ask(id="ask", queue=body["asks"][0]["queue"], tasks=[])
    question = Question(0, [ask], "independent", Options(), "full")
    assert refused(lambda: solve.decide(state, question)) == ["/asks/0/tasks"]


def moment(given: dict[str, Any]) -> int:
    return micros(msgspec.convert(given["now"], Time))


HELD = {"reason": "Unschedulable", "message": "no room in pool a100", "since": "2026-03-02T09:00:00Z"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_work_that_its_scheduler_does_not_try_waits_and_is_in_nobodys_way(name: str) -> None:
    """Each ask of an example with another one that is held: the others fare as without it, and it never goes."""
    given = EXAMPLES[name]["value"]
    made = solve.load(
        solve.configure(msgspec.convert({"engine": given["engine"], **given["configuration"]}, Configuration)),
        msgspec.convert(given["state"], State),
    )

    def decided(mode: Mode, *of: dict[str, Any]) -> Result:
        return solve.planned(made, Question(moment(given), msgspec.convert(list(of), list[Ask]), mode))

    (ask,) = given["asks"]
    held = {**ask, "id": "held", "uid": "held", "pending_reason": {**HELD, "tried_again": False}}
    for mode in MODES:
        alone = decided(mode, ask)
        both = decided(mode, held, ask)
        assert [one.ask for one in both.decisions] == ["held", ask["id"]]
        waits, same = both.decisions
        assert (waits.outcome, waits.victims) == ("wait", [])
        assert [(one.reason, one.message) for one in waits.conditions] == [("Unschedulable", "no room in pool a100")]
        assert msgspec.structs.replace(same, plan=None) == msgspec.structs.replace(alone.decisions[0], plan=None)
        assert (both.plan, both.order) == (alone.plan, alone.order)
        assert decided(mode, held).plan == Plan(evictions=[], placements=[])


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_a_scheduler_says_of_work_that_it_tries_again_stands_beside_why_that_waits(name: str) -> None:
    given = EXAMPLES[name]["value"]
    made = solve.load(
        solve.configure(msgspec.convert({"engine": given["engine"], **given["configuration"]}, Configuration)),
        msgspec.convert(given["state"], State),
    )

    options = msgspec.convert(given.get("options", {}), Options)

    def decided(ask: dict[str, Any]) -> Decision:
        question = Question(moment(given), [msgspec.convert(ask, Ask)], given.get("mode", "independent"), options)
        (one,) = solve.planned(made, question).decisions
        return one

    (ask,) = given["asks"]
    tasks = [{**task, "requests": dict.fromkeys(task["requests"], 10**6)} for task in ask["tasks"]]
    for of in (ask, {**ask, "tasks": tasks}):
        plain, told = decided(of), decided({**of, "pending_reason": HELD})
        more = told.conditions[len(plain.conditions) :]
        assert msgspec.structs.replace(told, conditions=plain.conditions) == plain, "the rules decide"
        said = [(one.type, one.reason, one.message) for one in more]
        waits = plain.outcome in ("wait", "infeasible")
        assert said == ([("Pending", "Unschedulable", "no room in pool a100")] if waits else [])
    assert waits
