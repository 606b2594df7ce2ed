import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.answering.answers import Answered, answer, effective_settings, preemptibility, shares
from app.answering.sources import Compiled, Sources, nothing_stored
from app.base.errors import NotFound

EXAMPLE = Path(__file__).parents[3] / "examples" / "kueue-classic.json"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def example(**changes: Any) -> bytes:
    return json.dumps({**json.loads(EXAMPLE.read_bytes()), **changes}).encode()


def decided(body: bytes, now: datetime = NOON) -> Answered:
    return answer(body, now, nothing_stored())


def shuffled(value: Any) -> Any:
    """The same document with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: shuffled(child) for key, child in reversed(value.items())}
    return [shuffled(child) for child in value] if isinstance(value, list) else value


def test_the_same_bytes_give_the_same_bytes() -> None:
    assert decided(example()).body == decided(example()).body


def test_the_order_of_keys_does_not_show() -> None:
    body = json.dumps(shuffled(json.loads(example()))).encode()
    assert decided(body).body == decided(example()).body


def test_the_host_clock_counts_only_where_the_request_has_no_now() -> None:
    later = datetime(2027, 1, 1, tzinfo=UTC)
    assert decided(example(), later).body == decided(example(), NOON).body
    without = {key: value for key, value in json.loads(example()).items() if key != "now"}
    body = json.dumps(without).encode()
    assert decided(body, later).body != decided(body, NOON).body
    assert decided(body, later).facts.now == int(later.timestamp() * 1_000_000)


def test_explaining_changes_nothing_but_the_explanation() -> None:
    def bare(body: bytes) -> Any:
        document = json.loads(decided(body).body)
        for decision in document["decisions"]:
            decision.pop("explanation", None)
        return document

    assert bare(example(explain="none")) == bare(example(explain="summary")) == bare(example(explain="full"))
    assert "explanation" not in json.loads(decided(example(explain="none")).body)["decisions"][0]


def test_explain_can_be_overruled() -> None:
    full = answer(example(explain="none"), NOON, nothing_stored(), "full")
    assert full.body == decided(example(explain="full")).body


def test_facts_say_what_the_log_keeps() -> None:
    facts = decided(example()).facts
    assert (facts.engine, facts.asks, facts.outcomes) == ("kueue", ["embeddings-rollout"], ["preempt"])
    assert (facts.evicted, facts.victims) == (["sweep-17"], {"InCohortReclamation": 1})
    assert list(decided(example()).seconds) == ["decode", "compile", "solve", "encode"]


class OneDocument:
    """A store with a single configuration, revision 3."""

    def head(self, reference: str) -> tuple[str, int]:
        assert reference == "main"
        return "main", 3

    def document(self, name: str, revision: int) -> bytes:
        assert (name, revision) == ("main", 3)
        return b'{"engine": "kueue"}'


def test_a_named_configuration_is_named_in_the_answer() -> None:
    body = json.dumps({"configuration": "main", "state": {}, "asks": []}).encode()
    used = json.loads(answer(body, NOON, Sources(Compiled(OneDocument()))).body)["configuration"]
    assert (used["name"], used["revision"]) == ("main", 3)


@pytest.mark.parametrize("question", [answer, shares, preemptibility, effective_settings])
def test_without_a_store_names_are_unknown(question: Any) -> None:
    body = json.dumps({"configuration": "main", "state": {}}).encode()
    with pytest.raises(NotFound) as refused:
        question(body, NOON, nothing_stored()) if question is not effective_settings else question(
            body, nothing_stored()
        )
    assert [problem.pointer for problem in refused.value.problems] == ["/configuration"]


@pytest.mark.parametrize("question", [answer, shares, preemptibility])
def test_without_a_store_snapshots_are_unknown(question: Any) -> None:
    body = json.dumps({"configuration": {"engine": "kueue"}, "state": {"snapshot": "s"}}).encode()
    with pytest.raises(NotFound) as refused:
        question(body, NOON, nothing_stored())
    assert [problem.pointer for problem in refused.value.problems] == ["/state/snapshot"]
