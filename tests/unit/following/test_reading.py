"""Lists in chunks, and watches with bookmarks, as an API server answers them."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kubernetes.client.api_client import ApiClient

from app.following.kinds import FOLLOWED
from app.following.reading import CHUNK, Broken, Event, Gone, Reader

QUEUE = FOLLOWED["kai"][0]


class Answer:
    """A response with ``lines``, in pieces that end anywhere."""

    def __init__(self, *lines: Any, status: int = 200) -> None:
        self.status = status
        self.data = b"\n".join(json.dumps(line).encode() for line in lines)

    def stream(self, size: int) -> Iterator[bytes]:
        """The body with a last line break."""
        del size
        body = self.data + b"\n"
        for at in range(0, len(body), 7):
            yield body[at : at + 7]

    def close(self) -> None:
        """Nothing to do."""

    release_conn = close


class Client:
    """Answers in turn; ``asked``: the parameters of each request."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, str]] = []

    def param_serialize(self, method: str, path: str, query_params: Any, **_: Any) -> tuple[Any, ...]:
        """As the client library has it."""
        self.asked.append(dict(query_params))
        return method, path

    def call_api(self, *_: Any, **__: Any) -> Any:
        """As the client library has it."""
        return SimpleNamespace(response=self._answers.pop(0))


def page(*names: str, **metadata: str) -> Answer:
    return Answer({"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]})


def reading(*answers: Answer) -> tuple[Reader, Client]:
    client = Client(*answers)
    return Reader(cast(ApiClient, client)), client


def test_a_list_comes_in_chunks_of_one_moment() -> None:
    reader, client = reading(page("a", "b", resourceVersion="7", **{"continue": "x"}), page("c", resourceVersion="7"))
    found = reader.list(QUEUE, "v2")
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b", "c"]
    assert found.version == "7"
    assert client.asked == [{"limit": str(CHUNK)}, {"limit": str(CHUNK), "continue": "x"}]


def test_a_list_that_took_too_long_for_one_moment_is_no_list() -> None:
    gone = Answer({"message": "too old"}, status=410)
    reader, _ = reading(page("a", resourceVersion="7", **{"continue": "x"}), gone)
    with pytest.raises(Gone, match="too old"):
        reader.list(QUEUE, "v2")


def test_a_watch_asks_for_bookmarks_and_goes_on_from_them() -> None:
    reader, client = reading(Answer(
        {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "8"}}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}}},
        {"type": "DELETED", "object": {"metadata": {"name": "a", "resourceVersion": "13"}}},
    ))  # fmt: skip
    found = list(reader.watch(QUEUE, "v2", "7"))
    named = {"metadata": {"name": "a"}}
    assert found == [
        Event(False, None, "7"),
        Event(False, named, "8"),
        Event(False, None, "12"),
        Event(True, named, "13"),
    ]
    (asked,) = client.asked
    assert (asked["allowWatchBookmarks"], asked["resourceVersion"]) == ("true", "7")


@pytest.mark.parametrize(("code", "raised"), [(410, Gone), (504, Gone), (500, Broken)])
def test_a_watch_that_ends_with_an_error_says_whether_the_history_is_gone(code: int, raised: type[Exception]) -> None:
    reader, _ = reading(Answer({"type": "ERROR", "object": {"code": code, "message": "because"}}))
    with pytest.raises(raised, match="because"):
        list(reader.watch(QUEUE, "v2", "7"))
