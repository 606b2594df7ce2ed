"""Lists in chunks, and watches with bookmarks, as an API server answers them."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kubernetes.client.api_client import ApiClient
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ProtocolError

from app.following import reading as module
from app.following.objects import FOLLOWED, Absent, Broken, Denied, Event, Gone
from app.following.reading import CHUNK, Reader, connect
from app.formats.objects import Kind
from tests.support.bounds import Bounded
from tests.support.instead import Instead

QUEUE = FOLLOWED["kai"][0]


class Answer:
    """A response with ``lines``, in pieces that end anywhere."""

    def __init__(self, *lines: Any, status: int = 200) -> None:
        self.status = status
        self.data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
        self.released = 0
        self.headers: dict[str, str] = {}

    def stream(self, size: int) -> Iterator[bytes]:
        """The body with a last line break."""
        body = self.data + b"\n"
        piece = 7 if len(body) < 10_000 else size
        for at in range(0, len(body), piece):
            yield body[at : at + piece]

    def close(self) -> None:
        """Counted."""
        self.released += 1

    release_conn = close

    def shutdown(self) -> None:
        """All of it has come by then."""


class Silent(Answer):
    """Breaks off where its body begins."""

    def stream(self, size: int) -> Iterator[bytes]:
        """Nothing."""
        raise ProtocolError("broken off")


class Dripping(Answer):
    """Sends a blank now and then until it is shut down; then it ends, or breaks off."""

    def __init__(self, status: int = 200, *, breaks: bool = False) -> None:
        super().__init__(status=status)
        self._breaks = breaks
        self._shut = threading.Event()

    def stream(self, size: int) -> Iterator[bytes]:
        """Blanks."""
        while not self._shut.wait(0.01):
            yield b" "
        if self._breaks:
            raise ProtocolError("broken off")

    def shutdown(self) -> None:
        """Nothing more comes."""
        self._shut.set()


class Client:
    """Answers in turn; ``asked``: the parameters of each request."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.timeouts: list[tuple[float, float]] = []

    def param_serialize(self, method: str, path: str, query_params: Any, **_: Any) -> tuple[Any, ...]:
        """As the client library has it."""
        self.paths.append(path)
        self.asked.append(dict(query_params))
        return method, path

    def call_api(self, *_: Any, _request_timeout: tuple[float, float]) -> Any:
        """As the client library has it."""
        self.timeouts.append(_request_timeout)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(response=answer)


def page(*names: str, **metadata: str) -> Answer:
    return Answer({"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]})


def reading(*answers: Answer | Exception) -> tuple[Reader, Client]:
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


def test_a_list_that_never_ends_is_broken(bounded: Bounded) -> None:
    same = page("a", resourceVersion="7", **{"continue": "x"})
    reader, client = reading(same, same)
    with pytest.raises(Broken, match="goes on from where it was"):
        reader.list(QUEUE, "v2")
    assert len(client.asked) == 2
    chunks = [page(name, **{"continue": more}) for name, more in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "y"))]
    reader, client = reading(*chunks)
    with pytest.raises(Broken, match="goes on from where it was"):
        reader.list(QUEUE, "v2")
    assert len(client.asked) == 3, "a token comes again"
    reader, client = reading(*(page("a", "b", **{"continue": str(i)}) for i in range(9)))
    with pytest.raises(Broken, match="goes on from where it was"):
        reader.list(QUEUE, "v2")
    assert len(client.asked) == 2, "what comes under another token is what came before"
    reader, client = reading(*(page(**{"continue": str(i)}) for i in range(200)))
    with pytest.raises(Broken, match="goes on without objects"):
        reader.list(QUEUE, "v2")
    assert len(client.asked) == 101
    reader, _ = reading(page(**{"continue": "1"}), page("a", **{"continue": "2"}), page(), page())
    assert len(reader.list(QUEUE, "v2").items) == 1, "an answer may be empty"
    bounded(module, MOST_CHUNKS=3)
    reader, client = reading(*(page(resourceVersion="7", **{"continue": str(i)}) for i in range(9)))
    with pytest.raises(Broken, match="does not end after 3 answers"):
        reader.list(QUEUE, "v2")
    assert len(client.asked) == 3


def test_a_watch_of_nothing_but_bookmarks_ends() -> None:
    def told(*versions: int) -> list[Any]:
        return [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(i)}}} for i in versions]

    added = {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "8"}}}
    reader, _ = reading(Answer(*told(*range(1000)), added, *told(*range(1000))))
    assert len(list(reader.watch(QUEUE, "v2", "7"))) == 2002
    reader, _ = reading(Answer(*told(*range(1001))))
    with pytest.raises(Broken, match="the watch of queues tells of nothing but versions") as noise:
        list(reader.watch(QUEUE, "v2", "7"))
    assert noise.value.retry_after == 30


@pytest.mark.parametrize(
    ("status", "said", "seconds"),
    [(429, "7", 7.0), (503, "99999999999999", 300.0), (429, "-5", 0.0), (429, "Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
     (503, "²", 0.0), (429, "1e9", 0.0), (403, "2", 2.0), (429, None, 0.0)],
)  # fmt: skip
def test_a_server_says_when_to_ask_again(status: int, said: str | None, seconds: float) -> None:
    busy = Answer({"message": "m"}, status=status)
    busy.headers = {} if said is None else {"Retry-After": said}
    reader, _ = reading(busy)
    with pytest.raises(Broken) as refused:
        reader.list(QUEUE, "v2")
    assert refused.value.retry_after == seconds


def shortly(low: int, high: int) -> float:
    """A watch that may last no longer than an answer."""
    del low, high
    return 0.1 - 30


@pytest.mark.parametrize("breaks", [False, True])
def test_an_answer_that_drips_for_ever_ends(bounded: Bounded, instead: Instead, *, breaks: bool) -> None:
    bounded(module, ANSWER_SECONDS=0.1)
    instead(module.random, randint=shortly)
    drips = Dripping(breaks=breaks)
    reader, _ = reading(drips)
    with pytest.raises(Broken, match=r"^/apis/scheduling.run.ai/v2/queues does not end within 0.1 s$"):
        reader.list(QUEUE, "v2")
    watch = Dripping(breaks=breaks)
    reader, _ = reading(watch)
    with pytest.raises(Broken, match=r"^the watch of queues does not end within [0-9.]+ s$"):
        list(reader.watch(QUEUE, "v2", "7"))
    refusal = Dripping(500, breaks=breaks)
    reader, _ = reading(refusal)
    with pytest.raises(Broken, match=r"queues: 500 \(no answer\)$"):
        reader.list(QUEUE, "v2")
    assert (drips.released, watch.released, refusal.released, reader.answers) == (1, 1, 1, 0)


def test_a_list_whose_answers_take_too_long_together_is_broken(bounded: Bounded) -> None:
    bounded(module, LIST_SECONDS=-1)
    reader, client = reading(page("a", **{"continue": "x"}), page("b"))
    with pytest.raises(Broken, match=r"^the list of queues does not end within -1 s$"):
        reader.list(QUEUE, "v2")
    assert (len(client.asked), reader.answers) == (1, 1)


def test_a_list_is_left_once_nobody_wants_it() -> None:
    reader, client = reading(*(page(f"q{i}", **{"continue": str(i)}) for i in range(9)))
    assert len(reader.list(QUEUE, "v2", lambda: len(client.asked) == 2).items) == 2


def test_answers_and_lines_that_are_too_long_are_not_kept(bounded: Bounded) -> None:
    bounded(module, MOST_ANSWER=2 << 20, MOST_LINE=1000)
    long = Answer(b"[" + b"1," * (1 << 20) + b"1]")
    reader, _ = reading(long)
    with pytest.raises(Broken, match="an answer of more than 2 MiB"):
        reader.list(QUEUE, "v2")
    assert long.released == 1
    line = Answer({"type": "ADDED", "object": {"metadata": {"name": "a" * 1000}}})
    reader, _ = reading(line)
    with pytest.raises(Broken, match="a line of a watch has more than"):
        list(reader.watch(QUEUE, "v2", "7"))
    assert line.released == 1


COHORT = Kind("Cohort", "kueue.x-k8s.io", "cohorts", ("v1beta2", "v1beta1"), needed=False)
UNKNOWN = {"message": "the server could not find the requested resource"}


def resources(*names: str) -> Answer:
    return Answer({"resources": [{"name": name} for name in names]})


def test_the_best_version_is_the_first_that_has_the_kind() -> None:
    reader, client = reading(resources("workloads", "cohorts"))
    assert reader.version(COHORT) == "v1beta2"
    assert (client.paths, client.asked) == (["/apis/kueue.x-k8s.io/v1beta2"], [{}])
    for first in (Answer(UNKNOWN, status=404), resources("workloads"), Answer({})):
        reader, client = reading(first, resources("cohorts"))
        assert reader.version(COHORT) == "v1beta1"
        assert client.paths[1] == "/apis/kueue.x-k8s.io/v1beta1"
        assert first.released
    reader, _ = reading(Answer(UNKNOWN, status=404), resources())
    with pytest.raises(Absent, match=r"^the API server has no cohorts\.kueue\.x-k8s\.io$"):
        reader.version(COHORT)
    reader, _ = reading(resources())
    with pytest.raises(Absent, match=r"no pods\.core$"):
        reader.version(Kind("Pod", "", "pods", ("v1",)))


def test_objects_of_a_list_are_told_what_they_are_and_trimmed() -> None:
    answer = Answer({"items": [{"metadata": {"name": "a", "resourceVersion": "3"}, "status": {}}]})
    reader, client = reading(answer)
    kind = Kind("Queue", "g", "queues", ("v2",), selector="reason=Evict")
    found = reader.list(kind, "v2")
    assert found == ([{"metadata": {"name": "a"}, "kind": "Queue", "apiVersion": "g/v2"}], "")
    assert client.asked == [{"limit": "500", "fieldSelector": "reason=Evict"}]
    assert (client.paths, client.timeouts, answer.released) == (["/apis/g/v2/queues"], [(10.0, 60.0)], 1)
    reader, _ = reading(Answer({"items": None, "metadata": None}))
    assert reader.list(kind, "v2") == ([], "")


def test_a_watch_lasts_for_a_while_and_its_connection_a_little_longer(instead: Instead) -> None:
    instead(module.random, randint=lambda low, high: (low, high) == (30, 45) and 75)
    answer = Answer({"type": "MODIFIED", "object": {"metadata": {"name": "a"}}})
    reader, client = reading(answer)
    kind = Kind("Event", "", "events", ("v1",), selector="x=y")
    assert list(reader.watch(kind, "v1", "7")) == [
        Event(False, None, "7"), Event(False, {"metadata": {"name": "a"}}, ""),
    ]  # fmt: skip
    assert client.asked == [{
        "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "75", "resourceVersion": "7",
        "fieldSelector": "x=y",
    }]  # fmt: skip
    assert (client.timeouts, answer.released) == ([(10.0, 105.0)], 1)


@pytest.mark.parametrize(
    ("answer", "raised", "why"),
    [
        (Answer({"message": "gone"}, status=410), Gone, "^gone$"),
        (Answer({"message": "m"}, status=404), Absent, "^/apis/scheduling.run.ai/v2/queues: m$"),
        (Answer({"message": "m"}, status=401), Denied, "queues: 401 m$"),
        (Answer({"message": "m"}, status=403), Denied, "queues: 403 m$"),
        (Answer({"message": "m"}, status=500), Broken, "queues: 500 m$"),
        (Answer({"message": "m" * 600}, status=500), Broken, "500 m{500}$"),
        (Answer({}, status=500), Broken, "500 $"),
        (Answer(b"x" * 300, status=502), Broken, "502 x{200}$"),
        (Answer(b"\xff[]", status=502), Broken, "502 \ufffd\\[\\]$"),
        (Silent(status=500), Broken, r"500 \(no answer\)$"),
        (Silent(), Broken, "broken off"),
        (Answer(b"{"), Broken, "^/apis/scheduling.run.ai/v2/queues: "),
        (ApiException("no"), Broken, "^the API server does not answer: "),
        (ProtocolError("no"), Broken, "^the API server does not answer: no"),
        (OSError("no"), Broken, "^the API server does not answer: no"),
    ],
)
def test_what_can_not_be_read_says_why(answer: Answer | Exception, raised: type[Exception], why: str) -> None:
    for asks in ("list", "watch"):
        if asks == "watch" and isinstance(answer, Answer) and answer.status == 200:
            why = "^the watch of queues broke: "
        reader, _ = reading(answer)
        with pytest.raises(raised, match=why) as caught:
            list(getattr(reader, asks)(QUEUE, "v2", *(["7"] if asks == "watch" else [])))
        assert type(caught.value) is raised
    if isinstance(answer, Answer):
        assert answer.released == 2, "its connection is given back, each time"


def test_an_error_in_a_watch_has_its_message() -> None:
    reader, _ = reading(Answer({"type": "ERROR", "object": {"code": 500, "message": "because"}}))
    with pytest.raises(Broken, match=r"^the watch ended: because$"):
        list(reader.watch(QUEUE, "v2", "7"))
    reader, _ = reading(Answer({"type": "ERROR", "object": {"code": 410}}))
    with pytest.raises(Gone, match=r"^$"):
        list(reader.watch(QUEUE, "v2", "7"))


def _kubeconfig(folder: Path) -> str:
    cluster = {"cluster": {"server": "https://cluster.test:6443"}, "name": "c"}
    context = {"context": {"cluster": "c", "user": "u"}, "name": "own"}
    made = {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {"token": "secret"}}]}
    (folder / "config").write_text(json.dumps(made | {"current-context": "own"}))
    return str(folder / "config")


def test_a_kubeconfig_says_which_cluster(tmp_path: Path, instead: Instead) -> None:
    file = _kubeconfig(tmp_path)
    client: Any = connect("own", file)
    assert client.configuration.host == "https://cluster.test:6443"
    assert client.configuration.retries is False, "who asks knows when to ask again"
    for context, kubeconfig in ((None, str(tmp_path / "none")), ("other", file), ("other", None)):
        with pytest.raises(Broken, match=r"^no cluster to follow: "):
            connect(context, kubeconfig)
    loads: list[Any] = []

    def within(*, client_configuration: Any) -> None:
        client_configuration.host = "https://own.test"
        loads.append(client_configuration)

    def no_config(**_: Any) -> None:
        raise module.ConfigException("no kubeconfig")

    instead(module.config, load_incluster_config=within, load_kube_config=no_config)
    client = connect()
    assert client.configuration.host == "https://own.test", "a pod without a kubeconfig follows its own cluster"
    for context, kubeconfig in (("own", None), (None, file)):
        with pytest.raises(Broken, match=r"^no cluster to follow: no kubeconfig$"):
            connect(context, kubeconfig)
    assert len(loads) == 1


def test_a_server_that_hangs_is_found_out_before_anything_is_listed(tmp_path: Path, bounded: Bounded) -> None:
    bounded(module, CONNECT_SECONDS=0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        clusters = [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.getsockname()[1]}"}}]
        contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
        users = [{"name": "u", "user": {"token": "t"}}]
        file = tmp_path / "config"
        file.write_text(json.dumps(
            {"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": clusters, "users": users,
             "contexts": contexts}
        ))  # fmt: skip
        with pytest.raises(Broken, match="the API server does not answer"):
            Reader(connect(kubeconfig=str(file))).version(QUEUE)


def deep(levels: int) -> bytes:
    """An object with managed fields of so many levels, and text in which brackets mean nothing."""
    fields = b'{"f:a":' * levels + b"[1]" + b"}" * levels
    return b'{"metadata":{"name":"deep","labels":{"a":"\\"{["},"managedFields":' + fields + b'},"spec":{"n":1}}'


def test_an_object_that_is_nested_too_deeply_keeps_no_other_from_being_read() -> None:
    other = b'{"metadata":{"name":"other"}}'
    pages = b'{"metadata":{"resourceVersion":"7"},"items":[' + deep(5000) + b"," + other + b"]}"
    reader, _ = reading(Answer(pages), Answer(b'{"type":"ADDED","object":' + deep(5000) + b"}"))
    first, second = reader.list(QUEUE, "v2").items
    assert (first["metadata"], first["spec"]) == ({"name": "deep", "labels": {"a": '"{['}}, {"n": 1})
    assert second["metadata"] == {"name": "other"}
    _, event = reader.watch(QUEUE, "v2", "7")
    assert event.item is not None
    assert event.item["spec"] == {"n": 1}


NO_LISTS: list[tuple[Any, str]] = [
    ({}, "no list"), ({"items": {}}, "no list"), ([], "no mapping"), ({"items": [5]}, "queues that have no name"),
    ({"items": [{"metadata": {"name": []}}]}, "queues that have no name"),
    ({"items": [{"metadata": {"name": "a", "namespace": 5}}]}, "queues that have no name"),
    ({"items": [], "metadata": {"resourceVersion": {"a": 1}}}, "a resource version that is none"),
    ({"items": [], "metadata": {"resourceVersion": "7\0"}}, "a resource version that is none"),
    ({"items": [], "metadata": {"resourceVersion": "7" * 201}}, "a resource version that is none"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "why"), NO_LISTS)
def test_what_is_no_list_is_not_taken_for_an_empty_cluster(answer: Any, why: str) -> None:
    reader, _ = reading(Answer(answer))
    with pytest.raises(Broken, match=why):
        reader.list(QUEUE, "v2")


@pytest.mark.parametrize(
    "event",
    [
        5, {"type": "ADDED", "object": {"kind": "Secret", "metadata": {"name": "a"}}},
        {"type": "ADDED", "object": {"kind": "Queue"}}, {"type": "SOMETHING", "object": {"metadata": {"name": "a"}}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": 5}}},
    ],
)  # fmt: skip
def test_a_watch_that_tells_of_something_else_is_broken(event: Any) -> None:
    reader, _ = reading(Answer(event))
    with pytest.raises(Broken, match=r"something else|no name|is none"):
        list(reader.watch(QUEUE, "v2", "7"))


def test_a_list_of_new_objects_without_end_takes_no_memory_without_end(bounded: Bounded) -> None:
    bounded(module, MOST_LISTED=1000)
    reader, client = reading(*(page(f"a{i}", resourceVersion="7", **{"continue": str(i)}) for i in range(50)))
    with pytest.raises(Broken, match="more than 0 MiB"):
        reader.list(QUEUE, "v2")
    assert len(client.asked) < 20


def test_a_line_in_pieces_of_a_byte_is_put_together_once() -> None:
    pieces = [b"a"] * 5000 + [b"\n", b"\n\nb", b"\nc"]
    assert list(module._lines(iter(pieces))) == [b"a" * 5000, b"b"]  # pyright: ignore[reportPrivateUsage]
