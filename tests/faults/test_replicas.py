"""Two services on one database: what one writes, the other decides with."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest

from tests.api.requests import decision
from tests.faults.outage import Outage
from tests.support.live import serving

LIMIT = 30.0


class Replica:
    """A running service, by HTTP."""

    def __init__(self, address: str) -> None:
        self.address = address

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        sent = {"Content-Type": "application/json", **{name.replace("_", "-"): said for name, said in headers.items()}}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def put(self, cpu: int) -> int:
        """Write a revision of ``prod`` with room for ``cpu``; its number."""
        document = {"engine": "kueue", "queues": [{"name": "a", "quota": {"cpu": {"guaranteed": cpu}}}]}
        status, body = self.call("PUT", "/v1/configurations/prod", document, If_Match="*")
        if status == 412:
            status, body = self.call("PUT", "/v1/configurations/prod", document)
        assert status in (200, 201), body
        return body["revision"]

    def decides_with(self, reference: str) -> int | None:
        """The revision of a decision by ``reference``; None where it is unknown."""
        request = {**decision(), "configuration": reference, "state": {}}
        status, body = self.call("POST", "/v1/decisions", request)
        if status == 404:
            return None
        assert status == 200, body
        return body["configuration"]["revision"]

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(self.address + "/metrics", timeout=30) as answer:
            lines: list[str] = answer.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))


def until(what: Callable[[], bool]) -> float:
    """Seconds until ``what`` holds."""
    begun = time.monotonic()
    while not what():
        assert time.monotonic() - begun < LIMIT, "it never came"
        time.sleep(0.005)
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def url(migrated_database: Callable[[], str]) -> str:
    return migrated_database()


@pytest.fixture(scope="module")
def replicas(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Replica, Replica]]:
    """One that decides in its own process, and one that has a worker decide everything."""
    folder = tmp_path_factory.mktemp("data")
    common = {"ARBITER_DATABASE_CONNECT_TIMEOUT": "1", "ARBITER_DATABASE_POOL_TIMEOUT": "1"}
    with (
        serving(url, folder, ARBITER_WORKERS="0", **common) as (one, _),
        serving(url, folder, ARBITER_WORKERS="1", ARBITER_SMALL_BODY_BYTES="0", **common) as (other, _),
    ):
        yield Replica(one), Replica(other)


def test_each_sees_a_revision_of_the_other_within_a_second(replicas: tuple[Replica, Replica]) -> None:
    took: list[float] = []
    for turn in range(8):
        writer, reader = replicas if turn % 2 else replicas[::-1]
        written = writer.put(10 + turn)
        assert writer.decides_with("prod") == written, "who has written knows at once"
        took.append(until(lambda reader=reader, written=written: reader.decides_with("prod") == written))
    assert median(took) < 1.0, took


def test_labels_and_deletions_are_seen_too(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    first = one.put(50)
    second = one.put(51)
    path = "/v1/configurations/prod/labels/stable"
    took: list[float] = []
    for revision in (first, second):
        assert one.call("PUT", path, {"revision": revision}, If_Match="*")[0] in (200, 412)
        one.call("PUT", path, {"revision": revision}, If_None_Match="*")
        took.append(until(lambda revision=revision: other.decides_with("prod@stable") == revision))
    assert other.call("DELETE", path, If_Match="*")[0] == 204
    took.append(until(lambda: one.decides_with("prod@stable") is None))
    assert other.call("DELETE", "/v1/configurations/prod", If_Match="*")[0] == 204
    assert other.decides_with("prod") is None
    took.append(until(lambda: one.decides_with("prod") is None))
    assert median(took) < 1.0, took


def test_both_go_on_while_the_database_is_away(replicas: tuple[Replica, Replica], url: str) -> None:
    one, other = replicas
    first = one.put(70)
    path = "/v1/configurations/prod/labels/stable"
    assert one.call("PUT", path, {"revision": first})[0] == 201
    last = one.put(71)
    time.sleep(2)  # nobody decides on it before the database is gone
    outage = Outage(url)
    outage.begin()
    try:
        for replica in replicas:
            until(lambda replica=replica: replica.call("GET", "/readyz")[1]["configurations"] == "stale")
            assert replica.decides_with("prod") == last
            assert replica.decides_with("prod@stable") == first
            status, body = replica.call("GET", "/readyz")
            assert (status, body["status"], body["database"]) == (503, "unready", "unreachable")
            assert body["configurations_as_of"] is not None
            status, body = replica.call("GET", "/readyz?for=decisions")
            assert (status, body["status"], body["configurations"]) == (200, "ready", "stale")
            assert replica.metric("arbiter_configurations_stale") == 1.0
            assert replica.metric("arbiter_configurations_age_seconds") < 60
            assert replica.call("POST", "/v1/decisions", {**decision(), "configuration": "other"})[0] == 503
            assert replica.call("DELETE", "/v1/configurations/prod", If_Match="*")[0] == 503
    finally:
        outage.end()
    for replica in replicas:
        until(lambda replica=replica: replica.call("GET", "/readyz")[1]["configurations"] == "current")
        assert replica.metric("arbiter_configurations_stale") == 0.0
    written = other.put(72)
    assert until(lambda: one.decides_with("prod") == written) < LIMIT
