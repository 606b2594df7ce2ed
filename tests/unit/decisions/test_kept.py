"""What is kept so that decisions on snapshots can be made again: how much it is, and what it is told against."""

import pytest
from zstandard import ZstdCompressor

from app.answering.sources import Known, LogDocument, put_together
from app.decisions.kept import LONGEST, LoggedStates, squeezed, unsqueezed
from app.solver.delta import StateDigest
from benchmarks import audit_trail
from tests.support.bounds import Bounded


@pytest.mark.slow
def test_a_hundred_changes_between_decisions_cost_less_than_a_third_of_the_log() -> None:
    found = audit_trail.measured(4, 40)
    assert found.changes > 0
    assert found.ratio(LONGEST) <= 1.3, found


def test_states_are_put_together_from_what_was_kept() -> None:
    bodies: list[bytes] = []
    for entry in audit_trail.entries(4, 2):
        (state, *configuration) = entry.documents
        assert (state.base is None, len(configuration)) == (not bodies, 0 if bodies else 1)
        bodies.append(unsqueezed(squeezed(state).content))
        assert StateDigest(put_together(bodies)).hexdigest() == entry.kept_state


def whole(digest: str) -> LogDocument:
    return LogDocument(digest, b"{}")


def test_a_ledger_knows_what_the_log_has() -> None:
    logged_states = LoggedStates()
    assert logged_states.known("s") == Known()
    logged_states.taken("s", "a", "c", [whole("a"), whole("c")])
    assert logged_states.known("s") == Known("a", "c")
    assert logged_states.has("s", "a")
    logged_states.taken("s", "b", "c", [LogDocument("b", b"{}", "a")])
    assert logged_states.known("s") == Known("b", "c")
    assert not logged_states.has("t", "b")
    logged_states.lost({"b"})
    assert logged_states.known("s") == Known()


def test_after_a_thousand_changes_a_state_is_kept_whole_again() -> None:
    logged_states = LoggedStates()
    logged_states.taken("s", "0", "c", [whole("0"), whole("c")])
    for number in range(1, LONGEST + 1):
        assert logged_states.known("s").state == str(number - 1)
        logged_states.taken("s", str(number), "c", [LogDocument(str(number), b"{}", str(number - 1))])
    assert logged_states.known("s") == Known(configuration="c")
    logged_states.taken("s", "new", "c", [whole("new")])
    assert logged_states.known("s").state == "new"


def test_a_configuration_is_known_from_when_it_was_taken_with_a_decision() -> None:
    logged_states = LoggedStates()
    logged_states.taken("s", "a", "c", [whole("a")])
    assert logged_states.known("s") == Known("a")
    logged_states.taken("s", "b", "c", [LogDocument("b", b"{}", "a"), whole("c")])
    logged_states.taken("s", "b", "other", [])
    assert logged_states.known("s") == Known("b", "c")
    assert not logged_states.has("s", "a")
    logged_states.taken("t", "b", "d", [whole("b"), whole("d")])
    logged_states.lost({"c", "x"})
    assert (logged_states.known("s"), logged_states.known("t")) == (Known(), Known("b", "d"))


def test_a_ledger_forgets_whom_it_has_not_heard_of_for_longest(bounded: Bounded) -> None:
    bounded("app.decisions.kept", MOST_SNAPSHOTS=2)
    logged_states = LoggedStates()
    for name in ("a", "b", "a", "c"):
        logged_states.taken(name, "s", "c", [whole("s")])
    assert [logged_states.has(name, "s") for name in ("a", "b", "c")] == [True, False, True]


def test_a_change_is_squeezed_harder_than_a_whole_state() -> None:
    """A state is written once in a thousand decisions, a change each time: as small as 12 of 22 levels make it."""
    body = b"".join(b'{"id":"w%d","requests":{"cpu":%d}}' % (i, i * i) for i in range(500))
    as_state, as_change = squeezed(LogDocument("0a", body)), squeezed(LogDocument("0a", body, "0b"))
    assert (as_state.digest, as_state.base, as_change.base) == (b"\x0a", None, b"\x0b")
    assert as_state.content == ZstdCompressor(level=3).compress(body)
    assert as_change.content == ZstdCompressor(level=12).compress(body)
    assert unsqueezed(as_change.content) == body


def test_changes_of_a_state_that_is_not_known_count_from_there(bounded: Bounded) -> None:
    bounded("app.decisions.kept", LONGEST=2)
    logged_states = LoggedStates()
    for number, known in ((1, Known("1")), (2, Known())):
        logged_states.taken("s", str(number), "c", [LogDocument(str(number), b"{}", str(number - 1))])
        assert logged_states.known("s") == known
