"""Answers as people read them."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from app.answering.comparison import Comparison, VariantAnswer
from app.cli.output import say, table
from app.solver.model.decision import Answer, Decision, Explanation, Placement, Plan, PlannedEviction, planned

_MOST_ROWS = 200
_MOST_DOMAINS = 5
_MOST_MESSAGES = 5


def answer(result: Answer, *, why: bool) -> None:
    """Each ask with its outcome and victims, and ``why``; then what the plan has beyond them."""
    each_alone = len(result.decisions) > 1 and any(decision.plan is not None for decision in result.decisions)
    for decision in result.decisions:
        _decision(decision)
        if why and decision.explanation is not None:
            _explanation(decision.explanation)
        if each_alone and decision.plan is not None:
            _rest_of_plan(decision.plan, [decision])
        say()
    if each_alone:
        say("each ask as if it were alone: their plans exclude one another (--mode cycle decides them together)")
    _rest_of_plan(result.plan, result.decisions)


def _decision(decision: Decision) -> None:
    say(f"{decision.ask}: {decision.outcome}{_where(decision)}{_victim_count(decision)}")
    if decision.victims:
        table(
            ("VICTIM", "QUEUE", "NODE", "FREES", "REASON"),
            (
                (_label(v.workload, v.task), v.queue, v.node or "", _quantities(v.freed), v.reason)
                for v in decision.victims[:_MOST_ROWS]
            ),
        )
        _more(len(decision.victims))
    for message in list(dict.fromkeys(v.message for v in decision.victims))[:_MOST_MESSAGES]:
        say(f"  {message}")
    for condition in decision.conditions:
        if condition.message:
            say(f"  {condition.reason}: {condition.message}")
    for short in decision.shortages or ():
        place = ", ".join(part for part in (short.queue, short.flavor, short.node) if part)
        requested, free = amount(short.requested), amount(short.available)
        say(f"  short of {amount(short.short)} {short.resource} ({requested} requested, {free} free; {place})")


def _where(decision: Decision) -> str:
    parts: list[str] = []
    if decision.node:
        parts.append(f" on {decision.node}")
    for task, flavors in (decision.assignment or {}).items():
        parts.append(f", {task} on {', '.join(f'{resource}={flavor}' for resource, flavor in flavors.items())}")
    for task, placed in (decision.topology_assignment or {}).items():
        domains = [f"{'/'.join(domain.values)} ({domain.count})" for domain in placed.domains[:_MOST_DOMAINS]]
        more = len(placed.domains) - len(domains)
        parts.append(f", {task} at {', '.join(domains)}{f' and {more} more' if more else ''}")
    if decision.borrowing:
        parts.append(", borrowing")
    return "".join(parts)


def _victim_count(decision: Decision) -> str:
    count = len(decision.victims)
    return f", evicts {count}" if count else ""


def _more(count: int) -> None:
    if count > _MOST_ROWS:
        say(f"  and {count - _MOST_ROWS} more; --json has all")


def _explanation(explained: Explanation) -> None:
    if explained.headline:
        say(f"  why: {explained.headline}")
    for step in explained.steps[:_MOST_ROWS]:
        say(f"  - {step.detail} [{step.rule}]")
    _more(len(explained.steps))
    if explained.candidates:
        table(
            ("CANDIDATE", "QUEUE", "NODE", "BECAME", "RULE", "DETAIL", "NUMBERS"),
            (
                (
                    _label(c.workload, c.task),
                    c.queue or "",
                    c.node or "",
                    c.verdict,
                    c.rule,
                    c.detail,
                    _numbers(c.numbers),
                )
                for c in explained.candidates[:_MOST_ROWS]
            ),
        )
        _more(len(explained.candidates))
    if explained.groups:
        table(
            ("CANDIDATES", "BECAME", "RULE", "SUCH AS"),
            ((str(g.count), g.verdict, g.rule, ", ".join(g.examples)) for g in explained.groups),
        )
    if explained.blocker:
        say(f"  in the way: {explained.blocker}")
    for change in explained.smallest_change or ():
        of = f"{change.queue}{f' ({change.flavor})' if change.flavor else ''}"
        current = "none" if change.current is None else amount(change.current)
        needed = amount(change.needed)
        what = "would let it in" if explained.blocker else "would keep a budget"
        say(f"  {what}: {change.field} of {change.resource} in {of} from {current} to {needed}")


def _rest_of_plan(plan: Plan, decisions: list[Decision]) -> None:
    told = {(v.workload, v.task) for decision in decisions for v in decision.victims}
    others = [e for e in plan.evictions if (e.workload, e.task) not in told]
    if others:
        say("also evicted")
        table(("WORKLOAD", "QUEUE", "NODE", "REASON", "FOR"), (_eviction(e) for e in others[:_MOST_ROWS]))
        _more(len(others))
    if placements := plan.placements:
        say("placed")
        table(("WHAT", "NODE", "WHEN", "STAGE"), (_placement(p) for p in placements[:_MOST_ROWS]))
        _more(len(placements))


def _eviction(eviction: PlannedEviction) -> tuple[str, str, str, str, str]:
    label = _label(eviction.workload, eviction.task)
    return label, eviction.queue, eviction.node or "", eviction.reason, eviction.for_ask or ""


def _placement(placement: Placement) -> tuple[str, str, str, str]:
    when = "once freed" if placement.pipelined else "now"
    label = _label(placement.ask or placement.workload or "", placement.task)
    return label, placement.node, when, placement.stage or ""


def comparison(result: Comparison) -> None:
    """Each variant in a line, then where they differ."""
    table(
        ("VARIANT", "ENGINE", "OUTCOMES", "EVICTIONS"),
        (_variant(one) for one in result.variants),
        indent="",
    )
    for one in result.variants:
        for problem in one.problems[:_MOST_MESSAGES]:
            say(f"  {one.name}: refused, {problem.pointer}: {problem.detail}")
        for finding in one.findings:
            say(f"  {one.name}: {finding.severity} {finding.pointer}: {finding.detail}")
    say()
    if not result.differences:
        say("no differences")
    for difference in result.differences[:_MOST_ROWS]:
        say(f"{difference.ask or 'beside the asks'}: {difference.field}")
        table(("VARIANT", "SAYS"), ((name, _value(value)) for name, value in difference.values.items()))
        if difference.rules is not None:
            say(f"  by {', '.join(difference.rules) or 'chance'}")


def _variant(one: VariantAnswer) -> tuple[str, str, str, str]:
    if one.answer is None:
        return one.name, "", "refused", ""
    tally = _tally(decision.outcome for decision in one.answer.decisions)
    return one.name, one.answer.engine, tally, str(len(planned(one.answer)))


def _tally(outcomes: Iterable[str]) -> str:
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome] = counts.get(outcome, 0) + 1
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nobody"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "-" if value is None else str(value)


def _label(workload: str, task: str | None) -> str:
    return workload if task is None else f"{workload}/{task}"


def _quantities(quantities: dict[str, int | float]) -> str:
    return ", ".join(f"{resource} {amount(value)}" for resource, value in quantities.items())


def amount(value: float) -> str:
    """Whole mebibytes and more in the largest binary unit that divides them."""
    for exponent, unit in ((40, "Ti"), (30, "Gi"), (20, "Mi")):
        if value and value % (1 << exponent) == 0:
            return f"{int(value) >> exponent}{unit}"
    return str(value)


def _numbers(numbers: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in _flat(numbers, ""))


def _flat(numbers: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from _flat(cast(dict[str, Any], value), f"{prefix}{name} ")
        else:
            yield prefix + name, value
