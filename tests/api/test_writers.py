"""Many writers at once on a real PostgreSQL: whoever was told that it is done finds it done."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

URL = "/v1/configurations/prod"
WRITERS = 12


def insist(service: TestClient, method: str, path: str, tagged: str, body: Any = None) -> Response:
    """Write as clients do: read the tag, write, start over after a lost race, ask again when nobody had time."""
    key = str(uuid4())
    while True:
        read = service.get(tagged)
        headers = {"If-Match": read.headers["ETag"]} if read.status_code == 200 else {"If-None-Match": "*"}
        if random.random() < 0.5:
            headers["Idempotency-Key"] = key
        answer = service.request(method, path, json=body, headers=headers)
        if answer.status_code not in (412, 503):
            assert answer.status_code < 300, answer.text
            return answer
        time.sleep(random.random() / 50)


@pytest.mark.slow
def test_no_update_is_ever_lost(service: TestClient) -> None:
    service.put(URL, json={"engine": "kueue", "queues": [{"name": "all"}]})
    told: list[int] = []

    def work(writer: int) -> None:
        for step in range(3):
            added = insist(service, "PUT", f"{URL}/queues/w{writer}-{step}", URL, {"parent": "all", "weight": writer})
            told.append(added.json()["revision"])
        changed = insist(service, "PUT", f"{URL}/queues/w{writer}-0", URL, {"parent": "all", "weight": 100 + writer})
        removed = insist(service, "DELETE", f"{URL}/queues/w{writer}-1", URL)
        told.extend((changed.json()["revision"], removed.json()["revision"]))
        insist(service, "PUT", f"{URL}/labels/w{writer}", f"{URL}/labels/w{writer}", {"revision": told[-1]})

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))

    assert sorted(told) == list(range(2, 2 + 5 * WRITERS)), "every write made a revision of its own"
    stored = service.get(URL).json()
    assert stored["revision"] == 1 + 5 * WRITERS
    expected = {"all": 1.0}
    for writer in range(WRITERS):
        expected |= {f"w{writer}-0": 100.0 + writer, f"w{writer}-2": float(writer)}
    assert {queue["name"]: queue.get("weight", 1.0) for queue in stored["configuration"]["queues"]} == expected
    for revision in random.Random(7).sample(told, 20):
        found = service.get(f"{URL}/revisions/{revision}/diff").json()["queues"]
        assert sum(len(found.get(kind, ())) for kind in ("added", "removed", "changed")) == 1
    assert len(service.get(f"{URL}/labels").json()["items"]) == WRITERS


@pytest.mark.slow
def test_a_label_is_moved_by_one_at_a_time(service: TestClient) -> None:
    service.put(URL, json={"queues": [], "engine": "kueue"})
    for number in range(9):
        service.put(f"{URL}/queues/q{number}", json={}, headers={"If-Match": "*"})
    label = f"{URL}/labels/turn"
    service.put(label, json={"revision": 1})

    def step(_: int) -> int:
        """Move the label to the next revision, counting from where it is found; how often that was lost."""
        lost = 0
        while True:
            read = service.get(label)
            wanted = {"revision": read.json()["revision"] % 10 + 1}
            answer = service.put(label, json=wanted, headers={"If-Match": read.headers["ETag"]})
            if answer.status_code == 200:
                return lost
            assert answer.status_code in (412, 503), answer.text
            lost += 1

    with ThreadPoolExecutor(12) as pool:
        lost = sum(pool.map(step, range(50)))
    assert service.get(label).json()["revision"] == 1
    assert service.get(label).headers["ETag"] == '"51-1"'
    assert lost > 0, "nobody ever raced"
