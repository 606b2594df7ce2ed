"""Manifests in and out: which class a manifest is read in, whose words are written, and the tag of each form."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from app.answering.operations import Operation
from app.base.errors import BadInput, BadRequest
from app.configurations import manifests
from app.configurations.repository import Revision
from app.formats import export
from app.http.openapi import Preconditions
from app.solver.model.configuration import Configuration
from app.workers.dispatcher import Dispatcher, Offload
from tests.support.instead import Instead

DOCUMENT = b'{"engine":"kueue","queues":[{"name":"a","priority":3}]}'
ANYBODYS = b'{"queues":[]}'
ANY = Preconditions(None, None)


class Wired:
    """Stands for what the app is wired with: does at once what it is given."""

    def __init__(self) -> None:
        self.classes: list[str] = []
        self.asked: list[Any] = []

    def __call__(self, request: Any, kind: type[Any]) -> Any:
        dispatcher = SimpleNamespace(here=self._here, run=self._import, class_of=self._class)
        return {Dispatcher: dispatcher, Offload: self}[cast("Any", kind)]

    async def run(self, of: str, function: Callable[..., Any], *args: Any) -> Any:
        self.classes.append(of)
        return function(*args)

    def _class(self, operation: Operation, body: bytes) -> str:
        return f"{operation.value} of {len(body)}"

    def _here(self, work: Callable[[], Any]) -> Any:
        self.asked.append("here")
        return work()

    def _import(self, asked: Any, body: bytes) -> Any:
        self.asked.append((asked, body))
        return SimpleNamespace(body=b'{"read":1}')


@pytest.fixture
def wired(instead: Instead) -> Wired:
    made = Wired()
    instead(manifests, service=made)
    return made


def request(accept: str | None = None) -> Any:
    return SimpleNamespace(headers={} if accept is None else {"accept": accept})


class Stored:
    """Stands for the configurations: one document, whose first revision names no engine."""

    def get(self, name: str, number: int = 2) -> Revision:
        document = ANYBODYS if number == 1 else DOCUMENT
        return Revision(name, number, "0123456789abcdef", datetime.now(UTC), "mo", None, None, document)


def exported(
    accept: str | None = None, *, number: int | None = None, format: str | None = None,  # noqa: A002
    conditions: Preconditions = ANY,
) -> Any:  # fmt: skip
    asked = (request(accept), "team"), (cast("Any", Stored()), conditions, cast("Any", format))
    if number is None:
        return asyncio.run(manifests.export_current(*asked[0], *asked[1]))
    return asyncio.run(manifests.export_revision(*asked[0], number, *asked[1]))


def test_a_manifest_is_read_in_the_class_of_its_size_now(wired: Wired) -> None:
    before = datetime.now(UTC)
    answer = asyncio.run(manifests.import_manifest(request(), b"a: 1", "kueue"))
    assert (answer.status_code, answer.body) == (200, b'{"read":1}')
    ((asked, body),) = wired.asked
    assert (asked.operation, asked.format, body) == (Operation.IMPORT, "kueue", b"a: 1")
    assert before <= asked.now <= datetime.now(UTC)
    assert wired.classes == ["import of 4"]
    for nothing in (b"", b" \n\t"):
        with pytest.raises(BadRequest, match="there is no manifest"):
            asyncio.run(manifests.import_manifest(request(), nothing, "kueue"))
    assert len(wired.asked) == 1


def test_a_configuration_is_written_in_its_engines_words_unless_others_are_wanted(wired: Wired) -> None:
    document = msgspec.json.decode(DOCUMENT, type=Configuration)
    for wanted, chosen in ((None, "kueue"), ("ytsaurus", "ytsaurus"), ("kueue", "kueue")):
        found = exported(format=wanted)
        made = export(document, cast("Any", chosen))
        assert (found.status_code, found.body.decode(), found.media_type) == (200, made.text, made.media_type)
        assert found.headers["Arbiter-Findings"] == str(len(made.findings))
        assert (found.headers["ETag"], found.headers["Vary"]) == (f'"2-0123456789ab-{chosen}"', "Accept")
        told = exported("application/json", format=wanted)
        said = msgspec.json.decode(told.body)
        assert (said["format"], said["text"]) == (chosen, made.text)
        assert said["findings"] == msgspec.to_builtins(made.findings)
        assert (told.headers["ETag"], told.headers["Vary"]) == (f'"2-0123456789ab-{chosen}-json"', "Accept")
    assert exported("text/html, application/json;q=0.9").media_type == "application/json"
    assert exported("*/*").media_type == "application/yaml"
    assert set(wired.classes) == {"slow"}
    assert wired.asked == ["here"] * len(wired.classes)


def test_one_that_is_known_is_not_sent_again_in_the_same_form(wired: Wired) -> None:
    known = Preconditions(None, ('"2-0123456789ab-kueue"',))
    same = exported(conditions=known)
    assert (same.status_code, same.body, same.headers["ETag"], same.headers["Vary"]) == (
        304, b"", '"2-0123456789ab-kueue"', "Accept",
    )  # fmt: skip
    for other in (exported("application/json", conditions=known), exported(format="kai", conditions=known)):
        assert other.status_code == 200


def test_whose_words_must_be_said_where_the_document_names_no_engine(wired: Wired) -> None:
    with pytest.raises(BadInput) as refused:
        exported(number=1)
    (problem,) = refused.value.problems
    assert (problem.pointer, problem.detail) == (
        "/engine", "the configuration names no engine: say which format",
    )  # fmt: skip
    assert exported(number=1, format="kai").headers["ETag"] == '"1-0123456789ab-kai"'
