"""Who changed what, when and why; what differs; bringing it back."""

from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from app.auth.audit import acting

URL = "/v1/configurations/prod"


def tree(*queues: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"engine": "kueue", "queues": [{"name": "all"}, *queues], **more}


def queue(name: str, cpu: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "parent": "all", "quota": {"cpu": {"guaranteed": cpu}}, **more}


def write(service: TestClient, document: dict[str, Any], query: str = "", **headers: str) -> int:
    done = service.put(URL + query, json=document, headers=headers or {"If-Match": "*"})
    if done.status_code == 412:
        done = service.put(URL + query, json=document)
    assert done.status_code in (200, 201), done.text
    return done.json()["revision"]


def diff(service: TestClient, revision: int, **params: int) -> dict[str, Any]:
    answer = service.get(f"{URL}/revisions/{revision}/diff", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_history_says_who_when_and_why(service: TestClient) -> None:
    write(service, tree(), "?comment=first%20steps")
    with acting("token:ops"):
        service.put(URL, json=tree(queue("a", 1)), headers={"If-Match": "*", "X-Comment": "Grüße".encode()})
    write(service, tree(queue("a", 2)))
    third, second, first = service.get(f"{URL}/revisions").json()["items"]
    assert (first["comment"], first["author"]) == ("first steps", "anonymous")
    assert (second["comment"], second["author"]) == ("Grüße", "token:ops")
    assert "comment" not in third
    times = [datetime.fromisoformat(item["created_at"]) for item in (first, second, third)]
    assert times == sorted(times)
    assert service.get(f"{URL}/revisions/1").json()["comment"] == "first steps"


@pytest.mark.parametrize("comment", ["\x00", "a\x07b", "x" * 1001])
def test_comments_are_short_and_printable(service: TestClient, comment: str) -> None:
    refused = service.put(f"{URL}?comment={quote(comment)}", json=tree())
    assert refused.status_code in (400, 422)
    assert service.get(URL).status_code == 404


def test_every_write_is_audited_with_it(service: TestClient) -> None:
    write(service, tree(queue("a", 1)), "?comment=why")
    service.put(f"{URL}/queues/b", json={"parent": "all"}, headers={"If-Match": "*"})
    service.put(f"{URL}/labels/stable", json={"revision": 1})
    service.delete(f"{URL}/queues/b", headers={"If-Match": "*"})
    service.post(f"{URL}/revisions/1:restore", headers={"If-Match": "*"})
    service.delete(f"{URL}/labels/stable", headers={"If-Match": "*"})
    service.put(f"{URL}/queues/%00", json={"parent": "all"}, headers={"If-Match": "*"})
    service.delete(URL, headers={"If-Match": "*"})
    service.delete(URL, headers={"If-Match": "*"})
    lines = service.get("/v1/audit").json()["items"][::-1]
    assert [line["action"].removeprefix("configuration.") for line in lines] == [
        "put", "queue.put", "label.move", "queue.delete", "label.delete", "queue.put", "delete",
    ]  # fmt: skip
    assert {line["target"] for line in lines} == {"prod"}
    assert lines[0]["detail"] == {"revision": 1, "comment": "why"}
    assert lines[1]["detail"] == {"revision": 2, "queue": "b"}


def test_diff_by_structure(service: TestClient) -> None:
    flavor = {"name": "spot", "node_labels": {"pool": "spot"}}
    write(service, tree(queue("a", 1), queue("b", 2), queue("c", 3), flavors=[flavor]))
    after = tree(
        queue("c", 3),
        queue("a", 4, weight=2.0, kueue={"queueing_strategy": "StrictFIFO"}),
        queue("d", 5),
        flavors=[{"name": "spot"}, {"name": "on~demand/"}],
        settings={"kueue": {"fair_sharing": True}},
    )
    write(service, after)
    found = diff(service, 2)
    assert (found["revision"], found["against"], found["identical"], found["reordered"]) == (2, 1, False, True)
    assert found["settings"] == [{"pointer": "/settings", "new": {"kueue": {"fair_sharing": True}}}]
    assert found["queues"] == {
        "added": [{"name": "d", "pointer": "/queues/3", "value": queue("d", 5)}],
        "removed": [{"name": "b", "pointer": "/queues/2", "value": queue("b", 2)}],
        "changed": [
            {
                "name": "a",
                "changes": [
                    {"pointer": "/queues/2/quota/cpu/guaranteed", "old": 1, "new": 4},
                    {"pointer": "/queues/2/weight", "new": 2.0},
                    {"pointer": "/queues/2/kueue", "new": {"queueing_strategy": "StrictFIFO"}},
                ],
            }
        ],
    }
    assert found["flavors"]["added"] == [
        {"name": "on~demand/", "pointer": "/flavors/1", "value": {"name": "on~demand/"}}
    ]
    assert found["flavors"]["changed"] == [
        {"name": "spot", "changes": [{"pointer": "/flavors/0/node_labels", "old": {"pool": "spot"}}]}
    ]


def test_diff_backwards_of_nothing_and_of_itself(service: TestClient) -> None:
    write(service, tree(queue("a", 1)))
    write(service, tree())
    back = diff(service, 1, against=2)
    assert [one["name"] for one in back["queues"]["added"]] == ["a"]
    assert diff(service, 2, against=2)["identical"] is True
    whole = diff(service, 1)
    assert (whole["against"], len(whole["queues"]["added"])) == (0, 2)
    assert whole["settings"] == [{"pointer": "/engine", "new": "kueue"}]


def test_a_diff_is_conditional_and_needs_both_revisions(service: TestClient) -> None:
    write(service, tree())
    read = service.get(f"{URL}/revisions/1/diff")
    assert service.get(f"{URL}/revisions/1/diff", headers={"If-None-Match": read.headers["ETag"]}).status_code == 304
    for path in (f"{URL}/revisions/2/diff", f"{URL}/revisions/1/diff?against=7", f"{URL}x/revisions/1/diff"):
        assert service.get(path).status_code == 404
    assert service.get(f"{URL}/revisions/1/diff?against=-1").status_code == 422


def test_an_old_revision_comes_back_as_a_new_one(service: TestClient) -> None:
    write(service, tree(queue("a", 1)))
    write(service, tree(queue("a", 2)))
    assert service.post(f"{URL}/revisions/1:restore").status_code == 428
    assert service.post(f"{URL}/revisions/1:restore", headers={"If-Match": '"1-x"'}).status_code == 412
    tag = service.get(URL).headers["ETag"]
    restored = service.post(f"{URL}/revisions/1:restore?comment=oops", headers={"If-Match": tag})
    assert (restored.status_code, restored.json()["revision"]) == (200, 3)
    now = service.get(URL)
    assert now.headers["ETag"] == restored.headers["ETag"]
    assert now.json()["configuration"] == tree(queue("a", 1))
    assert (now.json()["restored_from"], now.json()["comment"]) == (1, "oops")
    again = service.post(f"{URL}/revisions/1:restore", headers={"If-Match": "*"})
    assert (again.status_code, again.json()["changed"], again.json()["revision"]) == (200, False, 3)
    assert service.post(f"{URL}/revisions/9:restore", headers={"If-Match": "*"}).status_code == 404
    assert service.post("/v1/configurations/x/revisions/1:restore").status_code == 404


def test_a_deleted_configuration_comes_back(service: TestClient) -> None:
    write(service, tree(queue("a", 1)))
    service.delete(URL, headers={"If-Match": "*"})
    assert service.get(URL).status_code == 404
    restored = service.post(f"{URL}/revisions/1:restore")
    assert (restored.status_code, restored.json()["revision"]) == (201, 2)
    assert service.get(URL).json()["configuration"] == tree(queue("a", 1))


def test_a_dry_run_of_restoring(service: TestClient) -> None:
    write(service, tree(queue("a", 1)))
    write(service, tree(queue("a", 2)))
    would = service.post(f"{URL}/revisions/1:restore?dry_run=true")
    assert (would.status_code, would.json()["revision"], would.json()["dry_run"]) == (200, 3, True)
    assert service.get(URL).json()["revision"] == 2
