"""Configurations by REST: revisions, entity tags, findings."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.base.ticket import FairGate
from app.configurations.router import EXAMPLE
from app.http.body import Budget
from app.http.openapi import encode_cursor

URL = "/v1/configurations/prod"


def document(cpu: str = "8", **more: Any) -> dict[str, Any]:
    return {"engine": "kueue", "queues": [{"name": "a", "quota": {"cpu": {"guaranteed": cpu}}}], **more}


@pytest.fixture
def tag(service: TestClient) -> str:
    """The entity tag of the first revision of ``prod``."""
    created = service.put(URL, json=document())
    assert created.status_code == 201
    return created.headers["ETag"]


def names(service: TestClient) -> dict[str, int]:
    return {item["name"]: item["revision"] for item in service.get("/v1/configurations").json()["items"]}


def test_create_and_read_back(service: TestClient) -> None:
    created = service.put(URL, json=EXAMPLE)
    assert created.status_code == 201
    assert created.json()["revision"] == 1
    assert created.headers["Location"] == URL
    read = service.get(URL)
    assert read.headers["ETag"] == created.headers["ETag"]
    assert read.json()["configuration"] == EXAMPLE
    assert read.json()["digest"] == created.json()["digest"]


def test_every_write_is_a_revision_that_stays(service: TestClient, tag: str) -> None:
    second = service.put(URL, json=document("9"), headers={"If-Match": tag})
    assert (second.status_code, second.json()["revision"]) == (200, 2)
    assert second.headers["ETag"] != tag
    first = service.get(f"{URL}/revisions/1")
    assert first.json()["configuration"] == document("8")
    assert first.headers["ETag"] == tag
    assert service.get(URL).json()["configuration"] == document("9")
    assert [item["revision"] for item in service.get(f"{URL}/revisions").json()["items"]] == [2, 1]


def test_the_same_document_is_no_new_revision(service: TestClient, tag: str) -> None:
    again = service.put(URL, json=dict(reversed(document().items())), headers={"If-Match": tag})
    assert (again.status_code, again.json()["changed"], again.json()["revision"]) == (200, False, 1)
    assert again.headers["ETag"] == tag


def test_writing_over_needs_if_match(service: TestClient, tag: str) -> None:
    refused = service.put(URL, json=document("9"))
    assert refused.status_code == 428
    assert refused.headers["ETag"] == tag
    assert service.delete(URL).status_code == 428
    assert names(service) == {"prod": 1}


@pytest.mark.parametrize("stale", ['"1-000000000000"', '"7-other", "8-other"'])
def test_a_stale_tag_is_refused(service: TestClient, tag: str, stale: str) -> None:
    refused = service.put(URL, json=document("9"), headers={"If-Match": stale})
    assert refused.status_code == 412
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.headers["ETag"] == tag
    assert service.delete(URL, headers={"If-Match": stale}).status_code == 412
    assert names(service) == {"prod": 1}


@pytest.mark.parametrize("condition", ["*", "{tag}", 'W/{tag}, "x"', '"x",{tag}'])
def test_a_current_tag_is_accepted(service: TestClient, tag: str, condition: str) -> None:
    written = service.put(URL, json=document("9"), headers={"If-Match": condition.format(tag=tag)})
    assert written.status_code == 200


def test_creation_can_insist_on_being_first(service: TestClient) -> None:
    assert service.put(URL, json=document(), headers={"If-None-Match": "*"}).status_code == 201
    assert service.put(URL, json=document("9"), headers={"If-None-Match": "*"}).status_code == 412


def test_a_tag_of_what_is_not_there_is_refused(service: TestClient) -> None:
    assert service.put(URL, json=document(), headers={"If-Match": '"1-abc"'}).status_code == 412
    assert service.put(URL, json=document(), headers={"If-Match": "*"}).status_code == 412
    assert names(service) == {}


def test_an_unreadable_tag_is_refused(service: TestClient, tag: str) -> None:
    assert service.put(URL, json=document("9"), headers={"If-Match": tag.strip('"')}).status_code == 400
    assert names(service) == {"prod": 1}


def test_reads_are_conditional(service: TestClient, tag: str) -> None:
    for path in (URL, f"{URL}/revisions", f"{URL}/revisions/1", "/v1/configurations"):
        read = service.get(path)
        assert read.status_code == 200
        unchanged = service.get(path, headers={"If-None-Match": read.headers["ETag"]})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        assert unchanged.headers["ETag"] == read.headers["ETag"]
    assert service.get(URL, headers={"If-None-Match": '"other"'}).status_code == 200


def test_of_many_writers_one_wins(service: TestClient, tag: str) -> None:
    def write(cpu: int) -> int:
        return service.put(URL, json=document(str(cpu)), headers={"If-Match": tag}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(write, range(100, 116)))
    assert sorted(statuses) == [200] + [412] * 15
    assert names(service) == {"prod": 2}


def test_of_many_creators_one_wins(service: TestClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(service.put, URL, json=document(str(cpu))) for cpu in range(100, 116)]
        statuses = sorted(each.result().status_code for each in sent)
    assert statuses[0] == 201
    assert set(statuses[1:]) <= {412, 428}
    assert names(service) == {"prod": 1}


def test_no_update_is_lost_when_writers_read_again(service: TestClient, tag: str) -> None:
    def add(queue: str) -> None:
        while True:
            read = service.get(URL)
            changed = read.json()["configuration"]
            changed["queues"].append({"name": queue})
            written = service.put(URL, json=changed, headers={"If-Match": read.headers["ETag"]})
            if written.status_code == 200:
                return
            assert written.status_code == 412

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, [f"q{i}" for i in range(12)]))
    stored = service.get(URL).json()
    assert {queue["name"] for queue in stored["configuration"]["queues"]} == {"a", *(f"q{i}" for i in range(12))}
    assert stored["revision"] == 13


def test_delete_hides_and_never_gives_a_number_twice(service: TestClient, tag: str) -> None:
    assert service.delete(URL, headers={"If-Match": tag}).status_code == 204
    for path in (URL, f"{URL}/revisions", f"{URL}/revisions/1"):
        assert service.get(path).status_code == 404
    assert service.delete(URL).status_code == 404
    assert names(service) == {}
    again = service.put(URL, json=document())
    assert (again.status_code, again.json()["revision"]) == (201, 2)


def test_unknown_is_404(service: TestClient, tag: str) -> None:
    for path in ("/v1/configurations/other", "/v1/configurations/other/revisions", f"{URL}/revisions/2"):
        missing = service.get(path)
        assert missing.status_code == 404
        assert missing.headers["Content-Type"] == "application/problem+json"


def test_dry_run_says_what_would_happen_and_changes_nothing(service: TestClient, tag: str) -> None:
    new = service.put("/v1/configurations/other?dry_run=true", json=document())
    assert new.status_code == 200
    assert (new.json()["dry_run"], new.json()["changed"], new.json()["revision"]) == (True, True, 1)
    next_one = service.put(f"{URL}?dry_run=true", json=document("9"))
    assert (next_one.status_code, next_one.json()["revision"]) == (200, 2)
    assert service.put(f"{URL}?dry_run=true", json=document("9"), headers={"If-Match": '"x"'}).status_code == 412
    assert names(service) == {"prod": 1}


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_errors_refuse_with_all_findings(service: TestClient, query: str) -> None:
    wrong = document()
    wrong["queues"] += [
        {"name": "lonely", "quota": {"cpu": {"guaranteed": 1, "borrowing_limit": 2}}},
        {"name": "greedy", "parent": "all", "quota": {"cpu": {"guaranteed": 1, "lending_limit": 2}}},
        {"name": "all", "quota": {"cpu": {"limit": 1}}},
        {"name": "other", "parent": "all", "quota": {"cpu": {"guaranteed": 7}}},
    ]
    refused = service.put(URL + query, json=wrong)
    assert refused.status_code == 422
    body = refused.json()
    assert [(error["pointer"]) for error in body["errors"]] == [
        "/queues/1/quota/cpu/borrowing_limit",
        "/queues/2/quota/cpu/lending_limit",
    ]
    rules = {(finding["rule"], finding["severity"]) for finding in body["findings"]}
    assert {("kueue.limit-without-parent", "error"), ("queues.oversubscribed-children", "warning")} <= rules
    assert names(service) == {}


def test_warnings_do_not_refuse(service: TestClient) -> None:
    over = document()
    over["queues"] = [
        {"name": "all", "quota": {"cpu": {"guaranteed": 4}}},
        {"name": "a", "parent": "all", "quota": {"cpu": {"guaranteed": 8}}},
    ]
    stored = service.put(URL, json=over)
    assert stored.status_code == 201
    (finding,) = stored.json()["findings"]
    assert (finding["rule"], finding["severity"]) == ("queues.oversubscribed-children", "warning")
    assert finding["pointer"] == "/queues/0/quota/cpu/guaranteed"


def test_lists_are_paged_by_cursor(service: TestClient) -> None:
    for name in ("b", "a", "Z", "c"):
        service.put(f"/v1/configurations/{name}", json=document())
    seen: list[str] = []
    page = service.get("/v1/configurations?limit=3").json()
    while True:
        seen += [item["name"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        page = service.get("/v1/configurations", params={"limit": 3, "cursor": page["next_cursor"]}).json()
    assert seen == ["Z", "a", "b", "c"]


def test_revisions_are_paged_by_cursor(service: TestClient, tag: str) -> None:
    for cpu in range(10, 15):
        tag = service.put(URL, json=document(str(cpu)), headers={"If-Match": tag}).headers["ETag"]
    first = service.get(f"{URL}/revisions?limit=4").json()
    rest = service.get(f"{URL}/revisions", params={"limit": 4, "cursor": first["next_cursor"]}).json()
    assert [item["revision"] for item in first["items"] + rest["items"]] == [6, 5, 4, 3, 2, 1]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("cursor", ["nonsense", "W10", "WzFd", "WyJhIiwxXQ", "\N{SNOWMAN}", "WyJcdTAwMDAiXQ"])
def test_a_foreign_cursor_is_refused(service: TestClient, cursor: str) -> None:
    assert service.get("/v1/configurations", params={"cursor": cursor}).status_code == 400


@pytest.mark.parametrize("last", [0, 1, 2**31, 2**40, 2**63 - 1])
def test_a_cursor_may_point_past_every_revision(service: TestClient, tag: str, last: int) -> None:
    page = service.get(f"{URL}/revisions", params={"cursor": encode_cursor(last)})
    assert (page.status_code, len(page.json()["items"])) == (200, int(last > 1))
    assert service.get(f"{URL}/revisions", params={"cursor": encode_cursor(2**63)}).status_code == 400


@pytest.mark.parametrize(
    ("pointer", "change"),
    [
        ("/queues/0/priority", {"priority": 10**30}),
        ("/queues/0/kai/reclaim_min_runtime", {"kai": {"reclaim_min_runtime": 10**30}}),
        (
            "/queues/0/ytsaurus/fair_share_starvation_timeout",
            {"ytsaurus": {"fair_share_starvation_timeout": -(10**30)}},
        ),
    ],
)
def test_numbers_that_no_machine_holds_are_pointed_at(
    service: TestClient, pointer: str, change: dict[str, Any]
) -> None:
    refused = service.put(URL, json={"engine": "kueue", "queues": [{"name": "a", **change}]})
    assert (refused.status_code, [error["pointer"] for error in refused.json()["errors"]]) == (422, [pointer])


@pytest.mark.parametrize("name", ["a@1", "-a", "a b", "\N{SNOWMAN}", "x" * 129])
def test_names_that_no_reference_could_mean_are_refused(service: TestClient, name: str) -> None:
    refused = service.put(f"/v1/configurations/{name}", json=document())
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["parameter"] == "name"


def test_decisions_use_names_and_revisions(service: TestClient, tag: str) -> None:
    service.put(URL, json=document("2"), headers={"If-Match": tag})

    def decide(reference: str) -> dict[str, Any]:
        ask = {"id": "x", "queue": "a", "tasks": [{"name": "t", "requests": {"cpu": 4}}]}
        body = {"configuration": reference, "state": {"workloads": []}, "asks": [ask]}
        answer = service.post("/v1/decisions", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    new, old = decide("prod"), decide("prod@1")
    assert (new["configuration"]["revision"], new["decisions"][0]["outcome"]) == (2, "infeasible")
    assert (old["configuration"]["revision"], old["decisions"][0]["outcome"]) == (1, "admit")


# All that reads a stored document, or changes a part of one.
WORK = [
    ("GET", ""), ("GET", ":export"), ("GET", "/queues/q7"), ("PUT", "/queues/q7"), ("DELETE", "/queues/q7"),
    ("GET", "/revisions/1"), ("GET", "/revisions/1:export"), ("GET", "/revisions/2/diff"),
    ("GET", "/revisions/2/diff?against=1"), ("GET", "/revisions/1/diff?against=2"), ("POST", "/revisions/1:restore"),
]  # fmt: skip


def test_of_large_documents_few_are_worked_on_at_once(service: TestClient) -> None:
    """Where there is no turn to be had what is about a large one is late, the older of two revisions or the newer; what
    is about another is not."""
    queues = [{"name": f"q{i}", "quota": {"cpu": {"guaranteed": "1"}}} for i in range(1500)]
    large, small = document() | {"queues": queues}, document() | {"queues": queues[:9]}
    for name, documents in {"large": [large, large | {"flavors": [{"name": "f"}]}], "mixed": [large, small]}.items():
        condition: dict[str, str] = {}
        for body in documents:
            put = service.put(f"/v1/configurations/{name}", json=body, headers=condition)
            assert put.status_code in (200, 201), put.text
            condition = {"If-Match": put.headers["ETag"]}
    budget = cast(FastAPI, service.app).state.services.of(Budget)
    budget.working = FairGate(0)

    def statuses(name: str) -> list[int]:
        said = {"Request-Timeout": "0.3"}
        return [
            service.request(
                method, f"/v1/configurations/{name}{path}", headers=said, json={} if method == "PUT" else None
            ).status_code
            for method, path in WORK
        ]

    assert statuses("large") == [504] * len(WORK)
    late = [path for (_, path), status in zip(WORK, statuses("mixed"), strict=True) if status == 504]
    assert late == [path for _, path in WORK if path.startswith("/revisions/")]
