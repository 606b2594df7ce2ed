"""Kueue's rounds against plain lists that are looked through whole, and what they say of entitlements."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from app.solver.engines.kueue.configuration import CompiledConfiguration
from app.solver.engines.kueue.cycle import OTHERS, OUTRUN, OVERLAP
from app.solver.engines.kueue.engine import ENGINE
from app.solver.engines.kueue.knobs import ask_turns, victim_turns
from app.solver.engines.kueue.rounds import KueueRounds
from app.solver.model.base import micros, to_datetime
from app.solver.model.configuration import Configuration
from app.solver.model.decision import Decision, Plan, PlannedEviction, Result
from app.solver.model.kueue import Ask as Block
from app.solver.model.kueue import FlavorScan
from app.solver.model.kueue import RunOptions as KueueRun
from app.solver.model.request import RunOptions
from app.solver.model.state import Ask, State, Workload
from app.solver.question import Question
from tests.unit.solver.engines.kueue.cluster import configuration, queue

Json = dict[str, Any]
HOUR = 3_600_000_000
AT_ONCE = RunOptions(kueue=KueueRun(requeue_batch_period=0))
PENALTY = {"long_runner_penalty": {"grace": "1h", "rate_per_hour": 1, "floor": 0}}
TRIGGER = {"trigger_after_workload_waiting_seconds": 5400}
BOOST = {"waiting_boost": {"grace": 0, "rate_per_hour": 1, "ceiling": 4}}
QUEUES = [
    queue("co", 3), queue("inner", 1, "co"), queue("a", 2, "inner"),
    queue("b", 2, "co", queueing_strategy="StrictFIFO"), queue("c", 2, preemption=TRIGGER),
    queue("d", 2, preemption=PENALTY | BOOST), queue("e", 2, "co", preemption=BOOST), queue("f", 2, "inner"),
]  # fmt: skip
ROOT = {"a": "co", "b": "co", "c": "c", "d": "d", "e": "co", "f": "co"}
BY_CLASS = {"a", "f"}


def compiled(*queues: Json) -> CompiledConfiguration:
    return ENGINE.configure(msgspec.convert(configuration(*queues), Configuration))


class Plain:
    """What waits, who is head, whether a round is due and when time matters, without any index. ``failed``: queue and
    priority of those that are aside with all that are like them; they differ in nothing else here. ``sticky`` by queue;
    ``scans``: where they stopped, in which cycle, and how often the queue had changed; ``period``: until those come
    back that are aside."""

    def __init__(self, of: CompiledConfiguration, period: int) -> None:
        self.period = period
        self.freed_trees: set[str] = set()
        self.returns: int | None = None
        self.sticky: dict[str, str] = {}
        self.scans: dict[str, tuple[dict[str, dict[str, int]], int, int]] = {}
        self.generation: Counter[str] = Counter()
        self.cycle = 0
        self.blocks = {name: of.policy[of.tree.index[name]] for name in ROOT}
        self.waiting: dict[str, Ask] = {}
        self.aside: set[str] = set()
        self.failed: set[tuple[str, int]] = set()
        self.heads: dict[str, Ask] = {}
        self.wakes: dict[str, int] = {}
        self.running: dict[str, tuple[str, int, int]] = {}
        self.flag = False

    def arrive(self, ask: Ask) -> None:
        self.waiting[ask.id] = ask
        self.aside.discard(ask.id)
        self._look(ask.queue)

    def leave(self, job: str) -> None:
        gone = self.waiting.pop(job, None)
        self.aside.discard(job)
        self.running.pop(job, None)
        self.wakes.pop(job, None)
        self.scans.pop(job, None)
        if gone is not None:
            if self.sticky.get(gone.queue) == job:
                del self.sticky[gone.queue]
            self._look(gone.queue)

    def freed(self, of: str) -> None:
        self.generation[of] += 1
        self.freed_trees.add(ROOT[of])
        if not self.period:
            self._return()
        self.flag = self.flag or any(ROOT[name] == ROOT[of] for name in self.heads)

    def _return(self) -> None:
        tree = [name for name in ROOT if ROOT[name] in self.freed_trees]
        self.aside -= {name for name in self.aside if self.waiting[name].queue in tree}
        self.failed = {(name, priority) for name, priority in self.failed if name not in tree}
        self.freed_trees, self.returns = set(), None
        for name in tree:
            self._look(name)

    def changed(self, trees: set[str]) -> None:
        for name in ROOT:
            self.generation[name] += ROOT[name] in trees
        self.freed_trees |= trees
        if trees and not self.period:
            self._return()
        self.flag = bool(self.heads)

    def wakes_at(self) -> int | None:
        found = [*self.wakes.values(), *([] if self.returns is None else [self.returns])]
        return min(found, default=None) if self.waiting else None

    def asked(self) -> list[Ask]:
        """The heads, with what they carry."""
        return [self._carrying(ask) for ask in sorted(self.heads.values(), key=lambda ask: ask.id)]

    def _carrying(self, ask: Ask) -> Ask:
        sticky, scan = self.sticky.get(ask.queue) == ask.id, None
        if ask.id in self.scans:
            flavors, cycle, generation = self.scans[ask.id]
            changed = self.generation[ask.queue] != generation
            scan = FlavorScan(flavors=flavors, cycles=self.cycle + 1 - cycle, changed=changed)
        if not sticky and scan is None:
            return ask
        return msgspec.structs.replace(ask, kueue=Block(preemption_pending=sticky, flavor_scan=scan))

    def due(self, now: int) -> bool:
        if self.freed_trees:
            self.returns = self.returns or now + self.period
            if self.returns <= now:
                self._return()
        while due := sorted((when, job) for job, when in self.wakes.items() if when <= now):
            for _, job in due:
                self._turn(job, now)
        return self.flag and bool(self.heads)

    def _turn(self, job: str, now: int) -> None:
        del self.wakes[job]
        if job in self.running:
            self.freed(self.running[job][0])
            self.runs(job, *self.running[job], now)
            return
        ask = self.waiting[job]
        self.aside.discard(job)
        self._look(ask.queue)
        self.flag = self.flag or self.heads.get(ask.queue) is ask

    def runs(self, job: str, of: str, priority: int, since: int, now: int) -> None:
        penalty = self.blocks[of].preemption.long_runner_penalty
        if penalty is not None:
            self.running[job] = of, priority, since
            self._wake(job, victim_turns(penalty, priority, since, now))

    def _wake(self, job: str, when: int | None) -> None:
        self.wakes.pop(job, None)
        if when is not None:
            self.wakes[job] = when

    def answered(self, order: Sequence[str], decisions: dict[str, Decision], now: int, evicted: bool) -> bool:
        more = evicted
        self.cycle += 1
        for name in order:
            ask, decision = self.waiting[name], decisions[name]
            if decision.outcome == "admit":
                self.leave(name)
                self.generation[ask.queue] += 1
                self.runs(name, ask.queue, ask.priority or 0, now, now)
                more = True
                continue
            self._wake(name, ask_turns(self.blocks[ask.queue].preemption, ask, now))
            nominated = decision.outcome == "preempt" or decision.conditions[0].message.startswith(
                (OUTRUN, OVERLAP, OTHERS)
            )
            pending = decision.outcome == "preempt" or decision.conditions[0].message.startswith(OTHERS)
            if pending and not self.blocks[ask.queue].strict_fifo:
                self.sticky[ask.queue] = name
            before = self.scans.pop(name, (None,))[0]
            scan = None if decision.kueue is None else decision.kueue.flavor_scan
            if scan is not None:
                self.scans[name] = (scan.flavors, self.cycle, self.generation[ask.queue])
            more = more or before != (None if scan is None else scan.flavors)
            steps_aside = (decision.outcome == "infeasible" or not nominated) and scan is None
            if steps_aside and not self.blocks[ask.queue].strict_fifo:
                self.aside.add(name)
                self.failed |= {(ask.queue, ask.priority or 0)} if ask.queue in BY_CLASS else set()
                self._look(ask.queue)
                more = True
        self.flag = more
        return more

    def _look(self, of: str) -> None:
        here = [ask for ask in self.waiting.values() if ask.queue == of]
        active = [ask for ask in here if ask.id not in self.aside and (of, ask.priority or 0) not in self.failed]
        head = min(active, key=lambda ask: (self.sticky.get(of) != ask.id, *_order(ask)), default=None)
        if head is None:
            self.heads.pop(of, None)
        elif self.heads.get(of) is not head:
            self.heads[of] = head
            self.flag = True


def _order(ask: Ask) -> tuple[int, int, str, str]:
    made = -(2**62) if ask.created_at is None else micros(ask.created_at)
    return -(ask.priority or 0), made, ask.uid or "", ask.id


def new_ask(rng: random.Random, now: int) -> Ask:
    return Ask(
        id=f"j{rng.randint(0, 11)}", queue="", uid=rng.choice([None, "u", "v"]),
        priority=rng.choice([None, 0, 1, -1]), tasks=[],
        created_at=rng.choice([None, to_datetime(now - now % HOUR), to_datetime(now - HOUR)]),
    )  # fmt: skip


def answers(rng: random.Random, asks: Sequence[Ask], now: int) -> tuple[Result, dict[str, Decision]]:
    """Something for every ask, as a cycle could answer."""
    decisions: list[Decision] = []
    for ask in asks:
        outcome, message = rng.choice(
            [("admit", ""), ("preempt", "p"), ("infeasible", "never"), ("infeasible", OUTRUN), ("wait", "short")]
            + [("wait", f"{said}; short") for said in (OUTRUN, OVERLAP, OTHERS)]
        )
        condition = {
            "type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message,
            "last_transition_time": to_datetime(now).isoformat(),
        }  # fmt: skip
        left = {}
        if outcome in ("wait", "infeasible") and not message.startswith(OTHERS) and rng.random() < 0.4:
            left = {"kueue": {"flavor_scan": {"flavors": {"main": {"cpu": rng.randint(0, 1)}}}}}
        of = {"ask": ask.id, "outcome": outcome, "victims": [], "conditions": [condition]}
        decisions.append(msgspec.convert(of | left, Decision))
    gone = [PlannedEviction(workload=name, queue="a", reason="r") for name in rng.choice([[], ["x"], ["x", "y"]])]
    order = [ask.id for ask in asks]
    rng.shuffle(order)
    return Result(decisions=decisions, order=order, plan=Plan(evictions=gone, placements=[])), {
        one.ask: one for one in decisions
    }


@pytest.mark.parametrize("seed", range(40))
def test_rounds_are_those_of_plain_lists(seed: int) -> None:
    rng, of = random.Random(seed), compiled(*QUEUES)
    period = seed % 2 * HOUR // 4
    options = RunOptions(kueue=KueueRun(requeue_batch_period=period // 10**6))
    rounds, plain = KueueRounds(of, of.source, options), Plain(of, period)
    home = {f"j{i}": rng.choice(sorted(ROOT)) for i in range(12)}
    now, lent = 100 * HOUR, 3
    for _ in range(120):
        now += rng.choice([0, 0, 1, HOUR // 2, HOUR])
        act = rng.random()
        if act < 0.35:
            ask = new_ask(rng, now)
            ask = msgspec.structs.replace(ask, queue=home[ask.id])
            rounds.arrive(ask)
            plain.arrive(ask)
        elif act < 0.45:
            job = f"j{rng.randint(0, 11)}"
            rounds.leave(job)
            plain.leave(job)
        elif act < 0.55:
            name = rng.choice(sorted(ROOT))
            rounds.freed(name)
            plain.freed(name)
        elif act < 0.56:
            rounds.changed(of, of.source, [])
            plain.changed(set())
        elif act < 0.58:
            quota = rng.choice([*(one for one in range(1, 9) if one != lent), 9])
            trees = {"co"} if quota != lent else set[str]()
            of, lent = compiled(queue("co", quota), *QUEUES[1:]), quota
            rounds.changed(of, of.source, [])
            plain.changed(trees)
        elif act < 0.63 and plain.running:
            job = rng.choice(sorted(plain.running))
            running = Workload(id=job, queue="d", tasks=[])
            assert rounds.evicting(running, None).evicted
            plain.running.pop(job)
            plain.wakes.pop(job, None)
        due = plain.due(now)
        assert rounds.due(now) is due
        question = rounds.question(now, lambda name: False)
        assert question.asks == plain.asked()
        assert (question.now, question.mode) == (now, "cycle")
        assert rounds.wakes_at() == plain.wakes_at()
        if due and rng.random() < 0.8:
            result, decisions = answers(rng, question.asks, now)
            turn = rounds.answered(question, result, lambda eviction: eviction.workload == "x")
            assert [one.workload for one in turn.evicted] == (["y"] if len(result.plan.evictions) == 2 else [])
            assert [one.job for one in turn.started] == [
                name for name in result.order or () if decisions[name].outcome == "admit"
            ]
            assert turn.more is plain.answered(result.order or (), decisions, now, bool(turn.evicted))


def test_what_ran_before_the_first_round_counts_too() -> None:
    """After an hour of grace a point falls off each hour: d1 has run for 90 minutes, d2 is leaving, e1 never falls."""
    of = compiled(*QUEUES)
    rounds, now = KueueRounds(of, of.source, AT_ONCE), 100 * HOUR
    began = to_datetime(now - HOUR * 3 // 2).isoformat()
    running = [
        {"id": "d1", "queue": "d", "priority": 3, "started_at": began},
        {"id": "d2", "queue": "d", "priority": 3, "started_at": began, "evicted": True},
        {"id": "d3", "queue": "d", "priority": 3},
        {"id": "e1", "queue": "e", "priority": 3, "started_at": began},
    ]
    state = msgspec.convert({"workloads": running}, State)
    assert rounds.before(ENGINE.load(of, state), state, now) is None
    assert rounds.wakes_at() is None, "nobody waits"
    rounds.arrive(Ask(id="x", queue="d", tasks=[]))
    assert rounds.wakes_at() == now + HOUR // 2
    rounds.answered(Question(now, []), Result(decisions=[], plan=Plan(evictions=[], placements=[])), lambda _: False)
    assert [rounds.due(now + HOUR // 2 - 1), rounds.due(now + HOUR // 2)] == [False, True]
    assert rounds.wakes_at() == now + HOUR * 3 // 2
    empty = State()
    rounds.before(ENGINE.load(of, empty), empty, now)
    assert rounds.wakes_at() is not None, "what a round has seen is not looked at again"
    rounds.changed(of, of.source, [])
    rounds.before(ENGINE.load(of, state), state, now + 2 * HOUR)
    assert rounds.wakes_at() == now + HOUR * 5 // 2


def test_entitlements_are_nominal_quota_of_the_subtree() -> None:
    flavors = [{"name": f, "quota": {"cpu": {"guaranteed": 1}, "memory": {"guaranteed": 5}}} for f in "xy"]
    groups = {"resource_groups": [{"resources": ["cpu", "memory"], "flavors": flavors}]}
    of = compiled(queue("co", 3), queue("in", 1, "co"), queue("a", parent="in") | groups, queue("alone", 2))
    rounds = KueueRounds(of, of.source, AT_ONCE)
    assert rounds.guarantees() == {
        "co": {"cpu": 6000, "memory": 10}, "in": {"cpu": 3000, "memory": 10}, "a": {"cpu": 2000, "memory": 10},
        "alone": {"cpu": 2000},
    }  # fmt: skip
    assert rounds.capacity([]) == {"cpu": 8000, "memory": 10}
