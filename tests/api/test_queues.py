"""One queue of a configuration at a time."""

from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

URL = "/v1/configurations/prod"
TREE: dict[str, Any] = {
    "engine": "kueue",
    "queues": [
        {"name": "all"},
        {"name": "a", "parent": "all", "quota": {"cpu": {"guaranteed": "8"}}},
        {"name": "b", "parent": "all", "quota": {"cpu": {"guaranteed": "8"}}},
    ],
}


def at(queue: str) -> str:
    return f"{URL}/queues/{quote(queue, safe='')}"


@pytest.fixture
def tag(service: TestClient) -> str:
    """The entity tag of the first revision of ``prod``."""
    return service.put(URL, json=TREE).headers["ETag"]


def queues(service: TestClient) -> dict[str, Any]:
    return {queue["name"]: queue for queue in service.get(URL).json()["configuration"]["queues"]}


def test_a_queue_is_read_with_the_tag_of_the_whole(service: TestClient, tag: str) -> None:
    read = service.get(at("a"))
    assert read.status_code == 200
    assert read.headers["ETag"] == tag
    assert (read.json()["name"], read.json()["revision"], read.json()["queue"]) == ("prod", 1, TREE["queues"][1])
    assert service.get(at("a"), headers={"If-None-Match": tag}).status_code == 304


def test_replacing_and_adding_are_revisions(service: TestClient, tag: str) -> None:
    more = {"name": "a", "parent": "all", "quota": {"cpu": {"guaranteed": "9"}}}
    replaced = service.put(at("a"), json=more, headers={"If-Match": tag})
    assert (replaced.status_code, replaced.json()["revision"], replaced.json()["created"]) == (200, 2, False)
    added = service.put(at("c"), json={"parent": "all"}, headers={"If-Match": replaced.headers["ETag"]})
    assert (added.status_code, added.json()["revision"], added.json()["created"]) == (201, 3, True)
    assert added.headers["Location"] == at("c")
    assert list(queues(service)) == ["all", "a", "b", "c"]
    assert queues(service)["a"] == more
    assert queues(service)["c"] == {"name": "c", "parent": "all"}
    assert service.get(f"{URL}/revisions/1").json()["configuration"] == TREE


def test_the_same_queue_is_no_new_revision(service: TestClient, tag: str) -> None:
    again = service.put(at("a"), json=TREE["queues"][1], headers={"If-Match": tag})
    assert (again.status_code, again.json()["changed"], again.json()["revision"]) == (200, False, 1)
    assert again.headers["ETag"] == tag


def test_a_queue_is_removed(service: TestClient, tag: str) -> None:
    removed = service.delete(at("b"), headers={"If-Match": tag})
    assert (removed.status_code, removed.json()["revision"], removed.json()["created"]) == (200, 2, False)
    assert removed.headers["ETag"] == service.get(URL).headers["ETag"]
    assert list(queues(service)) == ["all", "a"]
    assert service.get(at("b")).status_code == 404
    assert service.delete(at("b"), headers={"If-Match": "*"}).status_code == 404


def test_a_queue_with_children_stays(service: TestClient, tag: str) -> None:
    refused = service.delete(at("all"), headers={"If-Match": tag})
    assert refused.status_code == 409
    assert "'a', 'b'" in refused.json()["detail"]
    assert service.get(URL).headers["ETag"] == tag


@pytest.mark.parametrize("queue", ["a", "new"])
def test_writes_name_the_version_of_the_whole(service: TestClient, tag: str, queue: str) -> None:
    body = {"parent": "all", "weight": 2}
    assert service.put(at(queue), json=body).status_code == 428
    stale = service.put(at(queue), json=body, headers={"If-Match": '"0-x"'})
    assert (stale.status_code, stale.headers["ETag"]) == (412, tag)
    assert service.get(URL).headers["ETag"] == tag
    assert service.put(at(queue), json=body, headers={"If-Match": tag}).status_code in (200, 201)


def test_deleting_names_the_version_of_the_whole(service: TestClient, tag: str) -> None:
    assert service.delete(at("a")).status_code == 428
    assert service.delete(at("a"), headers={"If-Match": '"0-x"'}).status_code == 412
    assert service.get(URL).headers["ETag"] == tag


def test_a_queue_can_be_added_whatever_else_has_changed(service: TestClient, tag: str) -> None:
    only_new = {"If-None-Match": "*"}
    assert service.put(at("c"), json={"parent": "all"}, headers=only_new).status_code == 201
    assert service.put(at("c"), json={"parent": "all", "weight": 3}, headers=only_new).status_code == 412
    both = {"If-None-Match": "*", "If-Match": tag}
    assert service.put(at("d"), json={"parent": "all"}, headers=both).status_code == 412
    assert list(queues(service)) == ["all", "a", "b", "c"]


@pytest.mark.parametrize(
    "queue",
    ["root.a.b", "a/b", "/a/", "a b", "\N{SNOWMAN}.\N{LATIN SMALL LETTER O WITH DIAERESIS}", "100%", "x:export", "?"],
)
def test_names_may_hold_anything(service: TestClient, tag: str, queue: str) -> None:
    added = service.put(at(queue), json={"name": queue, "parent": "all"}, headers={"If-Match": tag})
    assert added.status_code == 201, added.text
    assert service.get(added.headers["Location"]).json()["queue"] == {"name": queue, "parent": "all"}
    assert service.delete(at(queue), headers={"If-Match": "*"}).status_code == 200
    assert queue not in queues(service)


def test_the_body_and_the_path_name_the_same_queue(service: TestClient, tag: str) -> None:
    refused = service.put(at("a"), json={"name": "b"}, headers={"If-Match": tag})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/name")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"colour": "red"}, "/colour"),
        ({"weight": "heavy"}, "/weight"),
        ({"parent": "all", "quota": {"cpu": {"guaranteed": "1.5.2"}}}, "/quota/cpu/guaranteed"),
        ({"parent": "all", "quota": {"cpu": {"guaranteed": 1, "lending_limit": 2}}}, "/quota/cpu/lending_limit"),
        ({"parent": "a"}, "/parent"),
        ({"parent": "all", "kai": {"reclaim_min_runtime": 10**30}}, "/kai/reclaim_min_runtime"),
    ],
)
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_errors_point_into_the_queue(
    service: TestClient, tag: str, body: dict[str, Any], pointer: str, query: str
) -> None:
    refused = service.put(at("a") + query, json=body, headers={"If-Match": tag})
    assert refused.status_code == 422, refused.text
    assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]
    assert service.get(URL).headers["ETag"] == tag


def test_errors_elsewhere_in_the_document_say_where(service: TestClient) -> None:
    tree = {"engine": "yunikorn", "queues": [{"name": "root"}, {"name": "root.a", "parent": "root"}]}
    tree["queues"] += [{"name": "root.a.b", "parent": "root.a", "quota": {"vcore": {"limit": 4}}}]
    made = service.put(URL, json=tree)
    assert made.status_code == 201, made.text
    small = {"parent": "root", "quota": {"vcore": {"limit": 1}}}
    refused = service.put(at("root.a"), json=small, headers={"If-Match": "*"})
    assert refused.status_code == 422, refused.text
    (error,) = refused.json()["errors"]
    assert error["pointer"] == ""
    assert "/queues/2/quota" in error["detail"]


def test_warnings_come_back_and_do_not_refuse(service: TestClient) -> None:
    tree = {"engine": "kueue", "queues": [{"name": "all", "quota": {"cpu": {"guaranteed": 4}}}]}
    service.put(URL, json=tree)
    body = {"parent": "all", "quota": {"cpu": {"guaranteed": 9}}}
    stored = service.put(at("a"), json=body, headers={"If-Match": "*"})
    assert stored.status_code == 201
    assert [finding["rule"] for finding in stored.json()["findings"]] == ["queues.oversubscribed-children"]


def test_dry_runs_change_nothing(service: TestClient, tag: str) -> None:
    would = service.put(at("c") + "?dry_run=true", json={"parent": "all"})
    assert (would.status_code, would.json()["revision"], would.json()["created"]) == (200, 2, True)
    gone = service.delete(at("a") + "?dry_run=true")
    assert (gone.status_code, gone.json()["revision"], gone.json()["changed"]) == (200, 2, True)
    assert service.get(URL).headers["ETag"] == tag


def test_what_is_not_there(service: TestClient, tag: str) -> None:
    assert service.get(at("zz")).status_code == 404
    for path in ("/v1/configurations/other/queues/a", "/v1/configurations/a%2Fb/queues/a", f"{URL}/queues/"):
        assert service.get(path).status_code in (404, 422)
        assert service.put(path, json={}, headers={"If-None-Match": "*"}).status_code in (404, 422)
    assert service.put("/v1/configurations/other/queues/a", json={}, headers={"If-Match": "*"}).status_code == 412
    assert service.delete("/v1/configurations/other/queues/a").status_code == 404
