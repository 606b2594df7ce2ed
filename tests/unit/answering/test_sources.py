"""Where configurations and states are found: compiled once each, as they are now or as they were."""

import msgspec
import pytest

from app.answering.sources import Compiled, Sources, Used, nothing_stored
from app.base.errors import Conflict, NotFound
from app.base.ticket import Ticket, TooSlow, holding
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.decision import StateUsed
from app.solver.model.state import State
from app.solver.solve import Configured, Loaded
from tests.support.sources import Documents, document


def test_an_equal_configuration_is_compiled_once() -> None:
    sources = Compiled(None)
    first = sources.written(document("a", "b"), None)
    assert sources.written(document("a", "b"), None) is first
    assert sources.written(document("a", "c"), None) is not first
    assert sources.written(document("a", "b"), "kai").engine.name == "kai"
    assert sources.written(document("a", "b"), None) is first


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    sources = Compiled(None, most=2)
    first, _ = sources.written(document("a"), None), sources.written(document("b"), None)
    assert sources.written(document("a"), None) is first
    sources.written(document("c"), None)
    assert sources.written(document("a"), None) is first
    second = sources.written(document("b"), None)
    assert second.configuration == document("b")


def test_a_stored_configuration_is_compiled_once_for_each_revision_and_engine() -> None:
    documents = Documents()
    sources = Compiled(documents)
    first = sources.named("main", None)
    assert (first.used.name, first.used.revision, first.engine.name) == ("main", 1, "kueue")
    assert sources.named("main@1", None) is first
    assert sources.named("main", "kai").engine.name == "kai"
    documents.revision = 2
    second = sources.named("main", None)
    assert (second.used.revision, second.configuration) == (2, document("main-2"))
    assert sources.named("main@1", None) is first
    assert documents.read == [("main", 1), ("main", 1), ("main", 2)]


class LargeDocuments(Documents):
    """As large as one has to be that no small request is answered from."""

    def document(self, name: str, revision: int) -> bytes:
        self.read.append((name, revision))
        return msgspec.json.encode(document(*(f"{name}-{i}-{'x' * 100}" for i in range(5000))))


def test_a_small_request_about_a_large_configuration_is_answered_elsewhere() -> None:
    """Neither when it would have to be compiled, nor when it is: each state for it takes long."""
    documents = LargeDocuments()
    sources = Compiled(documents)
    with holding(Ticket("small", 9.0, 9.0)), pytest.raises(TooSlow):
        sources.named("main", None)
    with holding(Ticket("slow", 9.0, 9.0)):
        compiled = sources.named("main", None)
    assert len(compiled.configuration.queues) == 5000
    assert documents.read == [("main", 1)] * 2
    with holding(Ticket("small", 9.0, 9.0)), pytest.raises(TooSlow):
        sources.named("main", None)
    assert sources.named("main", None) is compiled
    with holding(Ticket("small", 9.0, 9.0)):
        assert Compiled(Documents()).named("main", None).used.name == "main"


def test_configurations_take_memory_by_their_queues() -> None:
    """8 KiB a queue and as much besides: of a budget for five of those a second one of two is too much."""
    sources = Compiled(None, budget=5 * 8192)
    first = sources.written(document("a", "b"), None)
    assert sources.written(document("a", "b"), None) is first
    sources.written(document("c", "d"), None)
    assert sources.written(document("a", "b"), None) is not first
    roomy = Compiled(None, budget=6 * 8192)
    first = roomy.written(document("a", "b"), None)
    roomy.written(document("c", "d"), None)
    assert roomy.written(document("a", "b"), None) is first


class Kept:
    """One snapshot, put with a configuration by name or in full."""

    def __init__(self, own: tuple[str | Configuration, str | None]) -> None:
        self._own = own

    def own(self, name: str) -> tuple[str | Configuration, str | None]:
        assert name == "live"
        return self._own

    def loaded(self, configured: Configured, name: str) -> Loaded:
        return solve.load(configured, State(), snapshot=name, generation=7)


def test_the_configuration_of_a_snapshot_is_the_one_that_it_was_put_with() -> None:
    def own(put: tuple[str | Configuration, str | None], engine: str | None) -> tuple[str | None, str]:
        found = Sources(Compiled(Documents()), Kept(put)).own("live", engine)
        return found.used.name, found.engine.name

    assert own(("main", None), None) == ("main", "kueue")
    assert own(("main", "kai"), None) == ("main", "kai")
    assert own(("main", "kai"), "ytsaurus") == ("main", "ytsaurus")
    assert own((document("a"), "kai"), None) == (None, "kai")


def test_what_is_pinned_is_as_it_was() -> None:
    documents = Documents()
    documents.revision = 2
    sources = Sources(Compiled(documents), Kept(("main", None)))
    configured = sources.configurations.named("main@1", None)
    digest = sources.loaded(configured, "live").used.digest

    def pinned(generation: int, of: str) -> Sources:
        used = Used(configured.used, StateUsed(digest=of, snapshot="live", generation=generation))
        return sources.pinned(used)

    then = pinned(7, digest)
    assert then.configurations.named("whatever", None) is configured
    assert then.configurations.written(document("a"), None).configuration == document("a")
    assert then.own("live", None) is configured
    assert then.loaded(configured, "live").generation == 7
    for moved in (pinned(6, digest), pinned(7, "another")):
        with pytest.raises(Conflict, match=r"^snapshot 'live' has moved on from generation [67]$"):
            moved.loaded(configured, "live")
    assert Sources(Compiled(None)).pinned(Used(configured.used, StateUsed(digest="d"))).states is None


def test_what_is_not_stored_here_is_said_with_what_to_do() -> None:
    for call, where, detail in (
        (lambda: nothing_stored().configurations.named("main", None), "/configuration",
         "nothing is stored here: write configuration 'main' out in full"),
        (lambda: nothing_stored().own("live", None), "/state/snapshot",
         "nothing is stored here: write the state of 'live' out in full"),
    ):  # fmt: skip
        with pytest.raises(NotFound) as refused:
            call()
        assert [(one.pointer, one.detail) for one in refused.value.problems] == [(where, detail)]
        assert refused.value.detail == detail
