"""Admission fair sharing: what LocalQueues have consumed, how it decays, and who goes first and last for it."""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.solver.engines.kueue.admission_sharing import NEW, LocalQueueUsage, Rates
from app.solver.engines.kueue.fair_share import Line, SharedLine, shape_of
from app.solver.engines.kueue.state import instant
from app.solver.model.problems import InvalidInput
from app.solver.model.state import Ask
from tests.unit.simulations.running import played
from tests.unit.solver.engines.kueue.cluster import asks, at, configuration, decide, findings, queue, runs, victims

Json = dict[str, Any]
BASED = "UsageBasedAdmissionFairSharing"
RATES = Rates(3600.0, 300 * 10**6, {})
HOUR = 3600 * 10**6


def shared(half_life: Any = "1h", mode: str = BASED, *, preempts: bool = True, **more: Any) -> Json:
    """One ClusterQueue of 2 cpu that may preempt lower priority in itself, or of 1 that preempts nobody."""
    block = queue("q", 2, preemption={"within_cluster_queue": "LowerPriority"}) if preempts else queue("q", 1)
    block.setdefault("kueue", {})
    block["kueue"] |= {"admission_mode": mode}
    settings = {"kueue": {"admission_fair_sharing": {"usage_half_life_time": half_life, **more}}}
    return configuration(block) | {"settings": settings}


def of(local: str, made: Json) -> Json:
    return made | {"kueue": {"local_queue": local}}


def consumed(cpu: Any, when: str | None = None, **more: Any) -> Json:
    return {"kueue": {"consumed": {"cpu": cpu}, **({} if when is None else {"updated_at": when}), **more}}


def first(queues: Json, *local: str, of_configuration: Json | None = None) -> str:
    """Of asks of these LocalQueues, the first of which has the highest priority, the one that is tried."""
    pending = [of(name, asks(name, "q", 1, priority=9 - i)) for i, name in enumerate(local)]
    return decide(of_configuration or shared(), [], pending, mode="cycle", queues=queues)["order"][0]


def test_who_has_consumed_least_goes_before_priority() -> None:
    queues = {"n/a": consumed("1500m"), "n/b": consumed("0.000000001")}
    assert first(queues, "n/a", "n/b") == "n/b"
    assert first(queues, "n/a", "n/b", of_configuration=shared(mode="NoAdmissionFairSharing")) == "n/a"
    assert first({}, "n/a", "n/b") == "n/a", "nobody has consumed anything"


def test_weights_and_penalties_count() -> None:
    assert first({"a": consumed(4, weight=4), "b": consumed(2)}, "a", "b") == "a"
    assert first({"a": consumed(0, weight=0), "b": consumed(9)}, "a", "b") == "b", "of weight 0: always last"
    assert first({"a": consumed(1, penalty={"cpu": 2}), "b": consumed(2)}, "a", "b") == "b"
    both = {name: {"kueue": {"consumed": amounts}} for name, amounts in (("a", {"cpu": 1}), ("b", {"gpu": 3}))}
    assert first(both, "b", "a") == "a"
    assert first(both, "a", "b", of_configuration=shared(resource_weights={"gpu": 0.25})) == "b"


def test_whoever_has_consumed_most_is_preempted_first() -> None:
    running = [of("n/a", runs("high", "q", 1, 2)), of("m/b", runs("low", "q", 1, 1))]
    queues = {"n/a": consumed(9), "m/b": consumed(1)}
    ask = of("n/c", asks("c", "q", 1, 5))
    assert victims(decide(shared(), running, [ask], queues=queues)["decisions"]["c"]) == ["high"]
    # Kueue compares LocalQueues by their names alone, whatever their namespaces.
    alike = [of("n/a", runs("high", "q", 1, 2)), of("m/a", runs("low", "q", 1, 1))]
    same = {"n/a": consumed(9), "m/a": consumed(1)}
    assert victims(decide(shared(), alike, [ask], queues=same)["decisions"]["c"]) == ["low"]


def test_samples_since_then_are_taken_with_what_runs() -> None:
    # Two hours before, at a half life of one: a quarter is left of 8, and three quarters of the 1 that runs come in.
    queues = {"a": consumed(8, at("10:00")), "b": consumed("2.7499")}
    running = [of("a", runs("r", "q", 1))]
    pending = [of("a", asks("x", "q", 1, 9)), of("b", asks("y", "q", 1))]
    answer = decide(shared(), running, pending, mode="cycle", queues=queues, explain="full")
    assert answer["order"] == ["y"]
    steps = [step for step in answer["decisions"]["x"]["explanation"]["steps"] if step["rule"] == "consumed"]
    assert steps[0]["numbers"]["usage"] == pytest.approx(2.75)
    unsampled = queues | {"a": consumed("2.8", at("11:56"))}
    assert decide(shared(), running, pending, mode="cycle", queues=unsampled)["order"] == ["y"], "no sample is due"


def test_what_nobody_said_is_told() -> None:
    answer = decide(shared(), [], [of("a", asks("x", "q", 1))], queues={}, explain="summary")
    assert "consumed-unknown" in [step["rule"] for step in answer["decisions"]["x"]["explanation"]["steps"]]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"half_life": -1}, "kueue.sharing-duration"),
        ({"usage_sampling_interval": 0}, "kueue.sharing-duration"),
        ({"usage_sampling_interval": "soon"}, "kueue.sharing-duration"),
        ({"resource_weights": {"cpu": -1}}, "kueue.sharing-weight"),
    ],
)
def test_rates_without_meaning_are_refused(given: Json, rule: str) -> None:
    document = shared(**given)
    assert rule in {found.rule for found in findings(document)}
    with pytest.raises(InvalidInput, match="admission_fair_sharing"):
        decide(document, [], [asks("x", "q", 1)])


def test_a_mode_without_rates_is_said() -> None:
    document = shared()
    document["settings"] = {}
    assert [found.rule for found in findings(document)] == ["kueue.sharing-unused"]


amounts = st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.decimals(0, 1000, places=9))


@given(amounts, amounts, st.integers(0, 10**12), st.sampled_from([1.0, 60.0, 3600.0, 1e6]))
def test_a_sample_lies_between_what_was_and_what_runs(
    was: dict[str, Decimal], runs: dict[str, Decimal], elapsed: int, half_life: float
) -> None:
    rates = Rates(half_life, 10**6, {})
    after = LocalQueueUsage(was, {}, 0, 1.0).sampled(runs, elapsed, rates)
    assert after.updated == elapsed // 10**6 * 10**6
    for name, amount in after.consumed.items():
        before, in_the_end = was.get(name, Decimal(0)), runs.get(name, Decimal(0))
        assert min(before, in_the_end) - Decimal("1e-8") <= amount <= max(before, in_the_end)
        left = 0.5 ** (elapsed // 10**6 / half_life)
        assert math.isclose(float(amount), float(in_the_end) + float(before - in_the_end) * left, abs_tol=1e-6)


def test_an_admission_costs_a_sampling_interval_beforehand() -> None:
    held = {"cpu": Decimal(4)}
    after = NEW.sampled({}, HOUR, RATES).admitted(held, {"cpu": Decimal(4)}, HOUR, RATES)
    assert float(after.consumed["cpu"]) == pytest.approx(4 * (1 - 0.5 ** (300 / 3600)))
    assert after.admitted(held, held, HOUR, RATES._replace(half_life=0.0)).consumed == {"cpu": 0}


class Plain:
    """A line that is looked through whole."""

    def __init__(self, waiting: dict[str, Ask], used: Callable[[str], float]) -> None:
        self.waiting, self.used = waiting, used
        self.aside: set[bytes] = set()
        self.sticky: str | None = None

    def head(self) -> Ask | None:
        there = [ask for ask in self.waiting.values() if shape_of(ask) not in self.aside]
        return min(there, key=self._order, default=None)

    def _order(self, ask: Ask) -> tuple[Any, ...]:
        assert ask.kueue is not None
        used = self.used(ask.kueue.local_queue or "")
        return used, ask.id != self.sticky, -(ask.priority or 0), instant(ask.created_at), ask.uid or "", ask.id


@given(st.randoms(use_true_random=False))
def test_a_shared_line_is_as_one_that_is_looked_through(random: Any) -> None:
    waiting: dict[str, Ask] = {}
    used = dict.fromkeys("abc", 0.0)
    line, plain = SharedLine(waiting, used.__getitem__), Plain(waiting, used.__getitem__)
    assert isinstance(line, Line)
    for i in range(40):
        move = random.randrange(6)
        if move < 2:
            made = of(random.choice("abc"), asks(f"j{i}", "q", random.choice([1, 2]), priority=random.randrange(3)))
            ask = msgspec.convert(json.loads(json.dumps(made)), Ask)
            waiting[ask.id] = ask
            line.arrive(ask, shape_of(ask))
        elif move == 2 and waiting:
            gone = random.choice(sorted(waiting))
            del waiting[gone]
            line.leave(gone)
            plain.sticky = None if plain.sticky == gone else plain.sticky
        elif move == 3 and (head := line.head()) is not None:
            line.step_aside(head.id)
            plain.aside.add(shape_of(head))
        elif move == 4:
            used[random.choice("abc")] = random.choice([0.0, 1.0, 2.5])
            line.sticky = plain.sticky = random.choice(sorted(waiting)) if waiting else None
        elif random.random() < 0.5:
            line.come_back()
            plain.aside.clear()
        assert line.head() is plain.head()


def test_over_time_local_queues_take_turns() -> None:
    jobs = [
        {
            "submitted_at": 0, "duration": 600,
            "ask": of(local, {"id": f"{local}{i}", "queue": "q", "priority": priority,
                              "tasks": [{"name": "main", "requests": {"cpu": 1}}]}),
        }
        for local, priority in (("a", 9), ("b", 0))
        for i in range(3)
    ]  # fmt: skip
    at_once = {"kueue": {"requeue_batch_period": 0}}
    told = played(shared(preempts=False), jobs, options=at_once)
    assert [job for line in told.rounds for job in line.admitted] == ["a0", "b0", "a1", "b1", "a2", "b2"]
    plain = played(shared(mode="NoAdmissionFairSharing", preempts=False), jobs, options=at_once)
    assert [job for line in plain.rounds for job in line.admitted] == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_one_that_steps_back_is_sticky_only_once_it_waits() -> None:
    later = {"preemption_pending": True, "requeue_at": "2000-01-01T00:00:30Z"}
    jobs = [
        {"submitted_at": 0, "duration": 5, "ask": asks("back", "q", 1) | {"kueue": later}},
        {"submitted_at": 1, "duration": 5, "ask": asks("now", "q", 1, 3)},
    ]
    told = played(configuration(queue("q", 1)), jobs)
    assert [job for line in told.rounds for job in line.admitted] == ["now", "back"]
