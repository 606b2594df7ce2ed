"""Scheduling tag filters: boolean formulas over the tags of a node, in YTsaurus' syntax.

``&``, ``|``, ``!``, parentheses and names. A node has a tag for each of its labels: the label's name, and
``name=value``. An empty formula holds for every node.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

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
