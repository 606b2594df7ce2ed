"""What is kept so that decisions on snapshots can be made again: how much it is, and what it is told against."""

from app.answering.recording import Kept, Known, put_together
from app.decisions.kept.content import squeezed, unsqueezed
from app.decisions.kept.ledger import LONGEST, Ledger
from app.solver.digest import StateDigest
from benchmarks import audit_trail


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


def whole(digest: str) -> Kept:
    return Kept(digest, b"{}")


def test_a_ledger_knows_what_the_log_has() -> None:
    ledger = Ledger()
    assert ledger.known("s") == Known()
    ledger.taken("s", "a", "c", [whole("a"), whole("c")])
    assert ledger.known("s") == Known("a", "c")
    assert ledger.has("s", "a")
    ledger.taken("s", "b", "c", [Kept("b", b"{}", "a")])
    assert ledger.known("s") == Known("b", "c")
    assert not ledger.has("t", "b")
    ledger.lost({"b"})
    assert ledger.known("s") == Known()


def test_after_a_thousand_changes_a_state_is_kept_whole_again() -> None:
    ledger = Ledger()
    ledger.taken("s", "0", "c", [whole("0"), whole("c")])
    for number in range(1, LONGEST + 1):
        assert ledger.known("s").state == str(number - 1)
        ledger.taken("s", str(number), "c", [Kept(str(number), b"{}", str(number - 1))])
    assert ledger.known("s") == Known(configuration="c")
    ledger.taken("s", "new", "c", [whole("new")])
    assert ledger.known("s").state == "new"
