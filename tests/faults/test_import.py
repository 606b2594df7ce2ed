"""Import is under the deadline, and in nobody's way: text takes long to read."""

import json
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.bodies import watched
from tests.support.live import Live, running

_QUEUE = """\
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: queue-%d}
spec:
  cohortName: all
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 8}]}]}]
"""


def yaml() -> bytes:
    return "".join(_QUEUE % i for i in range(20_000)).encode()


def listed() -> bytes:
    kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue"}
    items = [{**kind, "metadata": {"name": f"q{i}"}, "spec": {}} for i in range(100_000)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


@pytest.fixture(params=["0", "1"])
def live(migrated_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Live]:
    with running(migrated_url, tmp_path, WORKERS=request.param) as found:
        yield found


def imported(live: Live, body: bytes, seconds: str) -> tuple[int, float]:
    """Status, and how long it took."""
    connection = HTTPConnection(urlsplit(live.address).netloc, timeout=120)
    headers = {"Content-Type": "application/yaml", "Request-Timeout": seconds}
    began = time.monotonic()
    connection.request("POST", "/v1/configurations:import?format=kueue", body, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, time.monotonic() - began


@pytest.mark.parametrize("written", [yaml, listed])
def test_import_ends_at_the_deadline(live: Live, written: Callable[[], bytes]) -> None:
    body = written()
    assert imported(live, (_QUEUE % 1).encode(), "60")[0] == 200
    with watched(live) as taken:
        status, seconds = imported(live, body, "300ms")
    assert status == 504
    assert seconds < 4
    assert max(taken) < 3
    assert imported(live, (_QUEUE % 1).encode(), "60")[0] == 200
