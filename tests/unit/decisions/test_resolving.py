"""What a logged request only names is written in: which parts, from where, and what is said where there is nothing."""

import json
from contextlib import nullcontext
from datetime import datetime
from typing import Any, cast

import msgspec
import pytest
import zstandard
from sqlalchemy import RowMapping

from app.answering.sources import Documents, Used
from app.base.errors import Conflict, NotFound
from app.db.database import Database
from app.decisions import repository
from app.decisions.kept import Resolver
from app.solver.delta import StateDigest
from app.solver.model.decision import ConfigurationUsed, StateUsed
from app.solver.model.state import State
from tests.support.instead import Instead

Json = dict[str, Any]
STATE = msgspec.json.encode(State())
DIGEST = StateDigest(State()).hexdigest()
NAMED = Used(ConfigurationUsed(name="main", revision=3, digest="c"), StateUsed(digest=DIGEST))
UNNAMED = Used(ConfigurationUsed(digest="c"), StateUsed(digest=DIGEST))
KEPT = {7: [STATE], 8: [b'{"own":1}', b"never a change of it"]}


def squeezed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


class Stored:
    """Stands for the stored configurations."""

    def document(self, name: str, revision: int | None) -> bytes:
        return json.dumps({"stored": f"{name}@{revision}"}).encode()


class Sessions:
    def session(self) -> Any:
        return nullcontext()


@pytest.fixture
def resolver(instead: Instead) -> Resolver:
    instead(repository, chain=lambda _, identity: list(map(squeezed, KEPT[identity])))
    return Resolver(cast("Database", Sessions()), cast("Documents", Stored()))


def row(request: Json, **more: Any) -> RowMapping:
    own: Json = {
        "request": squeezed(msgspec.json.encode(request)), "engine": "kai", "now": 1_500_000, "state_digest": DIGEST,
        "configuration_name": "main", "configuration_revision": 3, "kept_state": 7, "kept_configuration": 8,
    }  # fmt: skip
    return cast("RowMapping", own | more)


def unnamed(request: Json, **more: Any) -> RowMapping:
    return row(request, configuration_name=None, configuration_revision=None, **more)


THEN: Json = {"engine": "kai", "now": "1970-01-01T00:00:01.500000Z", "mode": "independent"}
LIVE: Json = {"state": {"snapshot": "live"}}
EMPTY = json.loads(STATE)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (row({"state": {"x": 1}, "configuration": {"queues": []}, "asks": []}),
         {"state": {"x": 1}, "configuration": {"queues": []}, "asks": []}),
        (row({"configuration": "main", "mode": "cycle", "engine": "kai", "now": "2000-01-01T00:00:00Z"}),
         {"configuration": {"stored": "main@3"}, "mode": "cycle"}),
        (row(LIVE), {"state": EMPTY, "configuration": {"stored": "main@3"}}),
        (unnamed(LIVE | {"configuration": None}), {"state": EMPTY, "configuration": {"own": 1}}),
        (row(LIVE | {"configuration": {"queues": []}}), {"state": EMPTY, "configuration": {"queues": []}}),
    ],
    ids=["nothing", "a stored configuration", "a snapshot and its configuration", "one of its own", "only a state"],
)  # fmt: skip
def test_what_a_request_leaves_to_the_service_is_written_in(
    resolver: Resolver, given: RowMapping, expected: Json
) -> None:
    found = json.loads(resolver.resolved(given))
    now = datetime.fromisoformat(found.pop("now"))
    assert now == datetime.fromisoformat(THEN["now"])
    assert found == {name: value for name, value in THEN.items() if name != "now"} | expected


@pytest.mark.parametrize(
    ("given", "used", "expected"),
    [
        (row(LIVE), NAMED, {"engine": "kai", "state": EMPTY, "configuration": "main@3"}),
        (unnamed(LIVE), UNNAMED, {"engine": "kai", "state": EMPTY, "configuration": {"own": 1}}),
        (row(LIVE | {"configuration": "other", "engine": "kueue"}), NAMED,
         {"engine": "kueue", "state": EMPTY, "configuration": "other"}),
    ],
)  # fmt: skip
def test_a_snapshot_that_has_moved_on_is_decided_on_as_it_was(
    resolver: Resolver, given: RowMapping, used: Used, expected: Json
) -> None:
    assert json.loads(resolver.as_then(given, used)) == expected


@pytest.mark.parametrize("given", [row({"state": {"x": 1}}), row(LIVE, kept_state=None)])
def test_what_names_no_snapshot_or_has_no_state_is_decided_as_it_was_sent(
    resolver: Resolver, given: RowMapping
) -> None:
    assert squeezed(resolver.as_then(given, NAMED)) == given["request"]


NOT_KEPT = "the log has not kept the {} that this was decided on: it was behind, or the database lost it"


@pytest.mark.parametrize(
    ("given", "missing"),
    [(row(LIVE, kept_state=None), "state"), (row(LIVE, state_digest="another"), "state"),
     (unnamed(LIVE, kept_configuration=None), "configuration")],
)  # fmt: skip
def test_what_the_log_has_not_got_is_said(resolver: Resolver, given: RowMapping, missing: str) -> None:
    with pytest.raises(Conflict) as refused:
        resolver.resolved(given)
    assert (refused.value.detail, refused.value.extra) == (NOT_KEPT.format(missing), {"code": "state_not_kept"})


def test_where_nothing_is_stored_no_name_means_anything() -> None:
    nothing = Resolver(cast("Database", Sessions()), None)
    with pytest.raises(NotFound, match=r"^nothing is stored here: no configuration 'main'$"):
        nothing.resolved(row({"configuration": "main"}))
