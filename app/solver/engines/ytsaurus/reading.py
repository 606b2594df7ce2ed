"""Values of settings, parsed: durations in microseconds, resource maps in integer steps, formulas over tags."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from app.solver.model import base
from app.solver.model.base import Duration, QuantityError, Resources, parse_quantity, scale_of
from app.solver.model.problems import Problem, pointer

Steps = dict[str, int]
Where = tuple[str | int, ...]

SECOND = 1_000_000
SLOTS = "user_slots"


@dataclass(slots=True)
class Reader:
    """Parses values and collects what is wrong with them, each with its pointer."""

    at: Where
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, name: str, detail: str) -> None:
        """Record a problem with the setting ``name``."""
        self.problems.append(Problem(pointer=pointer(*self.at, name), detail=detail))

    def below(self, name: str) -> "Reader":
        """The reader of a block below this one."""
        return Reader((*self.at, name), self.problems)

    def number(
        self, name: str, value: float | None, low: float, high: float = math.inf, *, above: bool = False
    ) -> None:
        """Refuse ``value`` outside [low, high] (``above``: outside (low, high])."""
        if value is None:
            return
        if not math.isfinite(value) or value > high or value < low or (above and value == low):
            limits = f"{'above' if above else 'at least'} {low:g}" + (
                "" if high == math.inf else f" and at most {high:g}"
            )
            self.refuse(name, f"{value!r} is out of range: {limits}")

    def micros(self, name: str, value: Duration | None) -> int | None:
        """A duration in microseconds; 0 after a problem."""
        if value is None:
            return None
        try:
            parsed = base.parse_duration(value)
        except base.DurationError as error:
            self.refuse(name, str(error))
            return 0
        if parsed < 0:
            self.refuse(name, f"{value!r} is negative")
        return parsed

    def steps(self, name: str, value: Resources | None) -> Steps | None:
        """A resource map in integer steps by name."""
        if value is None:
            return None
        out: Steps = {}
        for resource, amount in value.items():
            try:
                out[resource] = parse_quantity(amount, scale_of(resource))
            except QuantityError as error:
                self.problems.append(Problem(pointer=pointer(*self.at, name, resource), detail=str(error)))
        return out

    def threshold(self, value: Resources | None, old_slots: int | None) -> Steps | None:
        """non_preemptible_resource_usage_threshold, with the old job count as its user_slots unless that is given."""
        steps = self.steps("non_preemptible_resource_usage_threshold", value)
        if old_slots is None:
            return steps
        return {SLOTS: old_slots} | (steps or {})

    def preferred(self, new: str, old: str, value: Duration | None, alias: Duration | None) -> int | None:
        """A duration that has an older name; the new one wins."""
        newer = self.micros(new, value)
        older = self.micros(old, alias)
        return older if newer is None else newer


_TOKEN = re.compile(r"\s*(?:([&|!()])|([A-Za-z0-9_][-A-Za-z0-9_.:/=]*)|(\S))")
MAX_LENGTH = 4096
MAX_DEPTH = 100


class FormulaError(ValueError):
    """A formula that is none; the text says where."""


class Formula(NamedTuple):
    """In postfix order: names, and the operators ``&``, ``|`` and ``!``."""

    steps: tuple[str, ...]

    def holds(self, tags: frozenset[str]) -> bool:
        """Whether it holds for a node with ``tags``."""
        stack: list[bool] = []
        for step in self.steps:
            if step == "!":
                stack.append(not stack.pop())
            elif step in ("&", "|"):
                right, left = stack.pop(), stack.pop()
                stack.append(left and right if step == "&" else left or right)
            else:
                stack.append(step in tags)
        return stack.pop() if stack else True


def tags_of(labels: Mapping[str, str]) -> frozenset[str]:
    """The tags of a node with ``labels``."""
    return frozenset(labels) | {f"{name}={value}" for name, value in labels.items()}


def has_labels(labels: Mapping[str, str], wanted: Iterable[tuple[str, str]]) -> bool:
    """Whether a node with ``labels`` has each of ``wanted``, the entries of a ``node_selector``."""
    return all(labels.get(key) == value for key, value in wanted)


def parse_formula(text: str) -> Formula:
    """Raises FormulaError."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"longer than {MAX_LENGTH} characters")
    tokens: list[tuple[str, int]] = []
    for match in _TOKEN.finditer(text):
        if match[3]:
            raise FormulaError(f"{match[3]!r} at character {match.start(3) + 1} is neither a tag nor an operator")
        token = match[1] or match[2]
        tokens.append((token, match.end() - len(token) + 1))
    if not tokens:
        return Formula(())
    parser = _Parser(tokens)
    parser.either(0)
    if parser.here is not None:
        raise FormulaError(f"{parser.here!r} at character {parser.place} is not expected there")
    return Formula(tuple(parser.out))


class _Parser:
    """Recursive descent: ``|`` binds less than ``&``, ``&`` less than ``!``."""

    def __init__(self, tokens: list[tuple[str, int]]) -> None:
        self._tokens = tokens
        self._at = 0
        self.out: list[str] = []

    @property
    def here(self) -> str | None:
        """The token that comes next."""
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    @property
    def place(self) -> int:
        """Which character it is at."""
        return self._tokens[self._at][1]

    def either(self, depth: int) -> None:
        """Terms joined by ``|``."""
        self._both(depth)
        while self.here == "|":
            self._at += 1
            self._both(depth)
            self.out.append("|")

    def _both(self, depth: int) -> None:
        self._one(depth)
        while self.here == "&":
            self._at += 1
            self._one(depth)
            self.out.append("&")

    def _one(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise FormulaError(f"nested deeper than {MAX_DEPTH} levels")
        token = self.here
        if token is None:
            raise FormulaError("it ends where a tag should stand")
        place = self.place
        self._at += 1
        if token == "!":
            self._one(depth + 1)
            self.out.append("!")
        elif token == "(":
            self.either(depth + 1)
            if self.here != ")":
                raise FormulaError(f"the bracket at character {place} is not closed")
            self._at += 1
        elif token in "&|)":
            raise FormulaError(f"{token!r} at character {place} stands where a tag should")
        else:
            self.out.append(token)
