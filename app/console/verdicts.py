"""What became of each candidate: grouped by verdict and rule, and one by one in the order in which they were seen."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.console.api import Json

PAGE = 200
"""Rows of a table on one page."""


class Word(NamedTuple):
    """How a verdict is called and marked; the mark is a shape, so that nothing depends on its colour."""

    title: str
    mark: str
    says: str


VERDICTS: dict[str, Word] = {
    "victim": Word("Stops", "■", "the answer evicts it"),
    "moved": Word("Moves", "▶", "evicted, and placed again elsewhere"),
    "put-back": Word("Spared", "↩", "was taken in the search, and given back: the ask fits with it"),
    "not-needed": Word("Not needed", "○", "could have gone; the search ended without it"),
    "protected": Word("Protected", "▲", "a rule forbids it"),
    "out-of-reach": Word("Out of reach", "·", "was never looked at for this ask"),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The sentences of an engine's rules, by id."""

    by_id: dict[str, Json]

    def sentence(self, rule: str) -> str:
        """What the rule says; its id where the catalogue has none."""
        return str(self.by_id.get(rule, {}).get("sentence", rule))

    def source(self, rule: str) -> str:
        """Where the real system says so."""
        return str(self.by_id.get(rule, {}).get("source", ""))


def rules_of(catalogue: Json) -> Rules:
    """From the answer of ``GET /v1/rules``."""
    return Rules({rule["rule"]: rule for rule in catalogue["rules"]})


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates that met the same fate by the same rule."""

    verdict: str
    rule: str
    count: int
    examples: list[str]


def groups(explanation: Json) -> list[Group]:
    """Most telling verdicts first, large groups before small ones."""
    if (given := explanation.get("groups")) is not None:
        found = [Group(one["verdict"], one["rule"], one["count"], one["examples"]) for one in given]
    else:
        found = list(_collapsed(explanation.get("candidates") or ()))
    order = list(VERDICTS)
    return sorted(found, key=lambda one: (order.index(one.verdict), -one.count, one.rule))


def _collapsed(candidates: Iterable[Json]) -> Iterable[Group]:
    counted = Counter[tuple[str, str]]()
    examples: dict[tuple[str, str], list[str]] = {}
    for one in candidates:
        key = (one["verdict"], one["rule"])
        counted[key] += 1
        if counted[key] <= 3:
            examples.setdefault(key, []).append(named(one))
    return (Group(verdict, rule, count, examples[verdict, rule]) for (verdict, rule), count in counted.items())


def named(one: Json) -> str:
    """A workload, or one of its tasks."""
    return f"{one['workload']}/{one['task']}" if one.get("task") else str(one["workload"])


class Page(NamedTuple):
    """Some rows of many. ``first``: the number of the first one, from 1; ``number`` and ``last`` count pages from 1."""

    rows: list[Any]
    first: int
    total: int
    number: int
    last: int


def paged(rows: list[Any], number: int, size: int = PAGE) -> Page:
    """Page ``number`` of ``rows``, the nearest there is."""
    last = max(1, -(-len(rows) // size))
    number = min(max(1, number), last)
    start = (number - 1) * size
    return Page(rows[start : start + size], start + 1, len(rows), number, last)


def chosen(explanation: Json, verdict: str | None, rule: str | None, words: str | None) -> list[tuple[int, Json]]:
    """Candidates with their place in the order in which they were looked at, from 1."""
    found = list[tuple[int, Json]]()
    for place, one in enumerate(explanation.get("candidates") or (), 1):
        fits = verdict in (None, one["verdict"]) and rule in (None, one["rule"])
        if fits and (not words or words.lower() in f"{named(one)} {one.get('queue')} {one.get('node')}".lower()):
            found.append((place, one))
    return found


def sentence(decision: Json) -> str:
    """The answer in one sentence."""
    ask, victims = decision["ask"], decision["victims"]
    explanation: Json = decision.get("explanation") or {}
    headline = str(explanation.get("headline") or "")
    told = headline and headline != f"{ask}: {decision['outcome']}"
    if told and decision["outcome"] != "preempt":  # who stops is named below, where they are few
        return headline
    place = f" on {decision['node']}" if decision.get("node") else ""
    if decision["outcome"] == "admit":
        return f"{ask} can start now{place}; nothing has to stop."
    if decision["outcome"] == "preempt":
        return f"{ask} can start{place} once {_stopping(victims)}."
    why = next((c["message"] for c in decision["conditions"] if c.get("message")), "")
    what = "can never start under this configuration" if decision["outcome"] == "infeasible" else "has to wait"
    return f"{ask} {what}{f': {why}' if why else '.'}"


def _stopping(victims: list[Json]) -> str:
    """Who stops, by name where they are few."""
    tasks = sum(1 for victim in victims if victim.get("task"))
    workloads = list(dict.fromkeys(str(victim["workload"]) for victim in victims))
    many = f"{len(workloads)} workloads"
    if tasks:
        whose = workloads[0] if len(workloads) == 1 else many
        return f"1 task of {whose} has stopped" if tasks == 1 else f"{tasks} tasks of {whose} have stopped"
    if len(workloads) <= 3:
        return f"{' and '.join(workloads)} {'has' if len(workloads) == 1 else 'have'} stopped"
    return f"{many} have stopped"
