"""Objects of an API server: lists in chunks, and watches from where a list ended.

The official client says who we are and how the server is reached (kubeconfig, a pod's account, exec plugins, proxies);
answers are decoded here, as plain values: an object of ours has no model there.
"""

import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, cast

import msgspec
from kubernetes import config
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION
from urllib3.exceptions import HTTPError

from app.base.documents import Unreadable, as_list, as_mapping, read_one
from app.following.objects import Absent, Broken, Denied, Event, Gone, Listed, trimmed
from app.following.replaying import Recorder
from app.formats.objects import Item, Key, Kind, key_of, part
from app.solver.model.problems import InvalidInput

CHUNK = 500
"""Objects of one answer to a list."""
_MOST_KUBECONFIG = 4 << 20
MOST_ANSWER = 256 << 20
"""Bytes of one answer: a chunk of objects of at most 1.5 MB each rarely has a tenth of it."""
MOST_LISTED = 8 << 30
"""Bytes of all answers of one list: ten times what a large cluster has."""
MOST_LINE = 16 << 20
"""Bytes of one line of a watch, which holds one object."""
_DEEPEST = 100
"""Levels: nothing that is read of an object is half as deep."""
MOST_CHUNKS = 20_000
"""Answers of one list: ten million objects. A server whose lists never end is broken."""
MOST_EMPTY = 100
"""Answers of one list, one after the other, that have no object and go on all the same."""
MOST_BOOKMARKS = 1000
"""One after the other in one watch: a server sends one a minute."""
_SILENCE = 30.0
"""Seconds until such a server is asked again."""
_LONGEST_WAIT = 300.0
"""Seconds that a server may ask to be left alone for: one that asks for more is asked whether it still means it."""
CONNECT_SECONDS = 10.0
"""Seconds for a connection, and for saying which kinds there are."""
ANSWER_SECONDS = 60.0
"""Seconds between two pieces of an answer, and for all of it: a server may send a byte now and then for ever."""
LIST_SECONDS = 900.0
"""Seconds for one list: an API server forgets the moment of a list sooner than that."""
_WATCH = (30, 45)
"""Seconds that a watch lasts: it is asked for anew from where it ended, and a peer that died is found out."""


def connect(context: str | None = None, kubeconfig: str | None = None) -> ApiClient:
    """A client of the cluster that kubectl would speak to; in a pod without a kubeconfig, of its own cluster. Raises
    Broken."""
    configuration = Configuration()
    loading: Any = config
    try:
        for path in (kubeconfig or KUBE_CONFIG_DEFAULT_LOCATION).split(os.pathsep):
            _look_through(Path(path).expanduser())
        try:
            loading.load_kube_config(config_file=kubeconfig, context=context, client_configuration=configuration)
        except ConfigException:
            if context is not None or kubeconfig is not None:
                raise
            loading.load_incluster_config(client_configuration=configuration)
    except InvalidInput as error:
        raise Broken(f"no cluster to follow: {'; '.join(problem.detail for problem in error.problems)}") from None
    except (ConfigException, OSError) as error:
        raise Broken(f"no cluster to follow: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Broken(f"no cluster to follow: the kubeconfig is not one ({type(error).__name__}: {error})") from None
    configuration.retries = False
    configuration.connection_pool_maxsize = 16
    client = ApiClient(configuration)
    connections: Any = client.rest_client.pool_manager
    pools = connections.pool_classes_by_scheme
    connections.pool_classes_by_scheme = {scheme: _in_time(pool) for scheme, pool in pools.items()}
    return client


def _in_time(pool: Any) -> Any:
    """Connections for which a timeout is that of all of an answer's head, and not between two bytes of it."""
    before = pool.ConnectionCls

    def answer(connection: Any) -> Any:
        with _ended_after(connection.timeout, lambda: connection.sock.shutdown(socket.SHUT_RDWR)) as is_late:
            try:
                head = before.getresponse(connection)
                if not is_late.is_set():
                    return head
            except (HTTPException, OSError):
                if not is_late.is_set():
                    raise
        raise TimeoutError

    return type(pool.__name__, (pool,), {"ConnectionCls": type(before.__name__, (before,), {"getresponse": answer})})


@contextmanager
def _ended_after(seconds: float, end: Callable[[], object]) -> Generator[threading.Event]:
    """Do ``end`` where what is done here goes on for longer; whether it has."""
    is_late = threading.Event()

    def late() -> None:
        is_late.set()
        with suppress(AttributeError, RuntimeError, ValueError, OSError):  # it has just ended by itself
            end()

    timer = threading.Timer(seconds, late)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


def _look_through(path: Path) -> None:
    """Refuse a hostile kubeconfig before the client library reads it, which recurses into whatever is there. Raises
    InvalidInput, OSError."""
    if path.is_file():
        with path.open("rb") as file:
            document = read_one(file.read(_MOST_KUBECONFIG + 1), f"the kubeconfig {path}", _MOST_KUBECONFIG)
        if not isinstance(document, dict):
            raise Unreadable(f"the kubeconfig {path} is no mapping")


class Reader:
    """Reads one cluster. Safe to use from several threads."""

    recorder: Recorder | None = None
    answers: int = 0
    """Those that have come whole."""

    def __init__(self, client: ApiClient, recorder: Recorder | None = None) -> None:
        """``recorder``: is told all that is read."""
        self.recorder = recorder
        untyped: Any = client
        self._serialize, self._call = untyped.param_serialize, untyped.call_api

    def version(self, kind: Kind) -> str:
        """The best version in which the server has ``kind``. Raises Absent, Broken."""
        for version in kind.versions:
            try:
                listed = self._get(kind.base(version), {}, CONNECT_SECONDS)
            except Absent:
                continue
            if any(resource.get("name") == kind.plural for resource in listed.get("resources", ())):
                return version
        raise Absent(f"the API server has no {kind.plural}.{kind.group or 'core'}")

    def list(self, kind: Kind, version: str, stopped: Callable[[], bool] = bool) -> Listed:
        """All objects of ``kind``, in chunks of one moment; once ``stopped`` those so far. Raises Gone when it took too
        long for that, Broken."""
        items: dict[Key, Item] = {}
        tokens: set[str] = set()
        empty = 0
        query = {"limit": str(CHUNK), **_selected(kind)}
        begun, size = time.monotonic(), 0
        for _ in range(MOST_CHUNKS):
            body = self._body(kind.path(version), query, ANSWER_SECONDS)
            size += len(body)
            if size > MOST_LISTED:
                raise Broken(f"the list of {kind.plural} has more than {MOST_LISTED >> 20} MiB")
            answer = self._answer(kind.path(version), body)
            if not isinstance(answer.get("items", ""), list | None):
                raise Broken(f"{kind.path(version)}: the answer is no list")
            before = len(items)
            for listed in as_list(answer["items"]):
                item = _object(kind, listed)
                item["kind"], item["apiVersion"] = kind.name, kind.api_version(version)
                if self.recorder is not None:
                    self.recorder.item(kind, item)
                items[key_of(item)] = trimmed(kind.name, item)
            metadata = part(answer, "metadata")
            more = metadata.get("continue")
            if not more or stopped():
                return Listed(list(items.values()), _version(metadata))
            empty = 0 if answer["items"] else empty + 1
            if str(more) in tokens or (answer["items"] and len(items) == before):
                raise Broken(f"the list of {kind.plural} goes on from where it was")
            if empty > MOST_EMPTY:
                raise Broken(f"the list of {kind.plural} goes on without objects")
            tokens.add(str(more))
            if time.monotonic() - begun > LIST_SECONDS:
                raise Broken(f"the list of {kind.plural} does not end within {LIST_SECONDS:g} s")
            query["continue"] = str(more)
        raise Broken(f"the list of {kind.plural} does not end after {MOST_CHUNKS} answers")

    def watch(self, kind: Kind, version: str, since: str) -> Iterator[Event]:
        """What happens to objects of ``kind`` after ``since``, until the watch ends. Raises Gone, Broken."""
        seconds = random.randint(*_WATCH)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            "resourceVersion": since,
            **_selected(kind),
        }
        most = seconds + 30.0
        response = self._request(kind.path(version), query, most)
        yield Event(False, None, since)  # it is connected
        bookmarks = 0
        try:
            for line in _lines(_pieces(f"the watch of {kind.plural}", response, 1 << 16, most)):
                said = as_mapping(_decoded(line))
                if self.recorder is not None:
                    self.recorder.event(kind, said)
                event = _event(kind, said)
                bookmarks = bookmarks + 1 if event.item is None else 0
                if bookmarks > MOST_BOOKMARKS:
                    raise Broken(f"the watch of {kind.plural} tells of nothing but versions", _SILENCE)
                yield event
        except (HTTPError, OSError, msgspec.DecodeError) as error:
            raise Broken(f"the watch of {kind.plural} broke: {error}") from None
        finally:
            response.close()

    def _get(self, path: str, query: dict[str, str], seconds: float) -> dict[str, Any]:
        return self._answer(path, self._body(path, query, seconds))

    def _body(self, path: str, query: dict[str, str], seconds: float) -> bytes:
        response = self._request(path, query, seconds)
        try:
            return _whole(path, response, seconds)
        except (HTTPError, OSError) as error:
            raise Broken(f"{path}: {error}") from None
        finally:
            response.release_conn()

    def _answer(self, path: str, body: bytes) -> dict[str, Any]:
        try:
            answer = _decoded(body)
        except msgspec.DecodeError as error:
            raise Broken(f"{path}: {error}") from None
        if not isinstance(answer, dict):
            raise Broken(f"{path}: the answer is no mapping")
        self.answers += 1
        return cast(dict[str, Any], answer)

    def _request(self, path: str, query: dict[str, str], seconds: float) -> Any:
        try:
            request = self._serialize(
                "GET", path, query_params=list(query.items()), header_params={"Accept": "application/json"},
                auth_settings=["BearerToken"],
            )  # fmt: skip
            answer = self._call(*request, _request_timeout=(CONNECT_SECONDS, seconds))
        except (HTTPError, OSError, ConfigException, ApiException) as error:
            raise Broken(f"the API server does not answer: {error}") from None
        response = answer.response
        if response.status == HTTPStatus.OK:
            return response
        detail = _detail(path, response)
        if response.status == HTTPStatus.GONE:
            raise Gone(detail)
        if response.status == HTTPStatus.NOT_FOUND:
            raise Absent(f"{path}: {detail}")
        refused = response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        raise (Denied if refused else Broken)(f"{path}: {response.status} {detail}", _asked_for(response))


def _asked_for(response: Any) -> float:
    """Seconds of ``Retry-After``, within bounds; 0 where it says none."""
    said = str(response.headers.get("Retry-After", ""))
    return min(float(said[:10]), _LONGEST_WAIT) if said.isascii() and said.isdecimal() else 0.0


def _pieces(of: str, response: Any, size: int, seconds: float) -> Iterator[bytes]:
    """Its body. Raises Broken where it goes on after ``seconds``, and what reading it raises."""
    late = Broken(f"{of} does not end within {seconds:g} s")
    with _ended_after(seconds, response.shutdown) as is_late:
        try:
            for piece in response.stream(size):
                if is_late.is_set():
                    raise late
                yield piece
        except (HTTPError, OSError):
            if is_late.is_set():
                raise late from None
            raise
        if is_late.is_set():
            raise late


def _whole(path: str, response: Any, seconds: float) -> bytes:
    """The body. Raises Broken where it is too long or takes too long, and what reading it raises."""
    body = bytearray()
    for piece in _pieces(path, response, 1 << 20, seconds):
        body += piece
        if len(body) > MOST_ANSWER:
            raise Broken(f"{path}: an answer of more than {MOST_ANSWER >> 20} MiB")
    return bytes(body)


def _selected(kind: Kind) -> dict[str, str]:
    return {} if kind.selector is None else {"fieldSelector": kind.selector}


def _detail(path: str, response: Any) -> str:
    try:
        body = _whole(path, response, ANSWER_SECONDS)
    except (HTTPError, OSError, Broken):
        return "(no answer)"
    finally:
        response.release_conn()
    try:
        return str(msgspec.json.decode(body, type=dict[str, Any]).get("message", ""))[:500]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return body[:200].decode(errors="replace")


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Raises Broken at a line that is too long."""
    left = bytearray()
    for chunk in chunks:
        end, *more = chunk.split(b"\n")
        left += end
        for start in more:
            if left:
                yield bytes(left)
            left = bytearray(start)
        if len(left) > MOST_LINE:
            raise Broken(f"a line of a watch has more than {MOST_LINE >> 20} MiB")


_MARK = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def _decoded(body: bytes) -> Any:
    """A JSON value. What is nested more deeply than any object is read (managed fields are as deep as whoever writes
    them likes) is null: one object does not keep all others from being read. Raises DecodeError."""
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        return msgspec.json.decode(_shallow(body))


def _shallow(body: bytes) -> bytes:
    left, depth, end = bytearray(), 0, 0
    for match in _MARK.finditer(body):
        mark = match[0]
        if mark in b"[{":
            depth += 1
            if depth == _DEEPEST + 1:
                left += body[end : match.start()] + b"null"
        elif mark in b"]}":
            if depth == _DEEPEST + 1:
                end = match.end()
            depth -= 1
    return bytes(left + body[end:])


def _object(of: Kind, item: Any) -> Item:
    """Raises Broken where it is none."""
    metadata = part(as_mapping(item), "metadata")
    known = metadata.get("name"), metadata.get("namespace") or ""
    if not all(isinstance(name, str) for name in known):
        raise Broken(f"the API server tells of {of.plural} that have no name")
    return item


def _version(metadata: dict[str, Any]) -> str:
    """Raises Broken where it is none."""
    version = metadata.get("resourceVersion") or ""
    if not isinstance(version, str) or len(version) > _LONGEST_VERSION or not version.isprintable():
        raise Broken("the API server tells a resource version that is none")
    return version


_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_LONGEST_VERSION = 200


def _event(of: Kind, said: dict[str, Any]) -> Event:
    kind, item = said.get("type"), part(said, "object")
    if kind == "ERROR":
        if item.get("code") in (HTTPStatus.GONE, HTTPStatus.GATEWAY_TIMEOUT):  # compacted; or newer than the server
            raise Gone(str(item.get("message", "")))
        raise Broken(f"the watch ended: {item.get('message')}")
    version = _version(part(item, "metadata"))
    if kind == "BOOKMARK":
        return Event(False, None, version)
    if kind not in _CHANGES or item.get("kind", of.name) != of.name:
        raise Broken(f"the watch of {of.plural} tells of something else")
    _object(of, item)
    return Event(kind == "DELETED", trimmed(of.name, item), version)
