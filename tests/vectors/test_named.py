"""Which rule of KAI 0.17 a comparison with 0.13 names, and which ones switched off in the released code gave the old
answer back (``why`` of a record)."""

from typing import Any

import msgspec
import pytest

from app.answering.answers import Stopwatch
from app.answering.comparison import ComparisonRequest, made_of, releases_of
from app.answering.sources import nothing_stored
from app.base.decoding import decode
from app.solver.model.base import micros
from app.solver.model.decision import Answer
from tests.vectors.files import AT_HAND, SHARED, files, lines

PARTS = 5 if AT_HAND == SHARED else 1

_OF_MAPS = "nodes-by-name"
"""No record has it: what 0.13 did there was one of several answers."""


def _planned(answer: Answer) -> tuple[frozenset[Any], frozenset[Any]]:
    evictions = ((eviction.workload, eviction.task) for eviction in answer.plan.evictions)
    return frozenset(evictions), frozenset((place.task, place.node) for place in answer.plan.placements)


def _named(record: dict[str, Any]) -> set[str]:
    """What is named of the whole plan; nothing where the releases agree on it."""
    request: dict[str, Any] = record["request"]
    own = request["configuration"]["settings"]["kai"]
    variants = [{"name": release, "settings": {"kai": {**own, "release": release}}} for release in ("0.13", "0.17")]
    body = decode(msgspec.json.encode({**request, "variants": variants}), ComparisonRequest)
    assert body.now is not None
    (older, asked), (newer, asked_newer) = made_of(body, micros(body.now), nothing_stored(), Stopwatch())
    assert older.answer is not None
    assert newer.answer is not None
    assert asked is not None
    assert asked_newer is not None
    if _planned(older.answer) == _planned(newer.answer):
        return set()
    (pair,) = releases_of([(0, *asked), (1, *asked_newer)])
    return set(pair.decided(_planned, _planned(older.answer)))


@pytest.mark.parametrize("part", range(PARTS))
def test_the_rule_that_a_comparison_names_is_the_one_that_was_switched_off(part: int) -> None:
    (path,) = (path for path in files(AT_HAND) if path.name == "0.17-replayed.jsonl.gz")
    records = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines(path)]
    differing = [record for record in records if record["before"] == "differs"][part::PARTS]
    assert differing
    wrong, exact = dict[str, set[str]](), 0
    for record in differing:
        named, why = _named(record), set(record["why"])
        exact += named == why
        if not (named & why or named == {_OF_MAPS}):
            wrong[record["id"]] = named
    assert wrong == {}
    assert exact >= 0.8 * len(differing)
