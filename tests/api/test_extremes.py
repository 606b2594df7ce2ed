"""What is well formed and yet fits nowhere: halves of surrogate pairs, the ends of the calendar, NUL."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.requests import decision
from tests.support.bad_input import JSON, refused

OUTSIDE = ("0001-01-01T00:00:00+14:00", "0001-01-01T13:59:59.999999+14:00", "9999-12-31T23:59:59-00:01")
ENDS = ("0001-01-01T00:00:00Z", "0001-01-01T14:00:00+14:00", "9999-12-31T23:59:59.999999Z")
ENGINES = ("kueue", "yunikorn", "kai", "ytsaurus")


def timed(engine: str) -> dict[str, Any]:
    """A decision with an instant everywhere that one can be for any engine."""
    at = "2026-01-02T03:04:05Z"
    request = decision() | {"engine": engine}
    request["configuration"]["queues"][1]["created_at"] = at
    request["state"]["nodes"] = [{"name": "n", "capacity": {"cpu": 16}}]
    for workload in request["state"]["workloads"]:
        workload |= {"created_at": at, "started_at": at}
        workload["tasks"][0] |= {"created_at": at, "started_at": at, "node": "n"}
    request["asks"][0] |= {"created_at": at}
    request["asks"][0]["tasks"][0] |= {"created_at": at}
    if engine == "yunikorn":
        named = json.dumps(request).replace('"all"', '"root"')
        for leaf in "ab":
            named = named.replace(f'"name": "{leaf}"', f'"name": "root.{leaf}"')
            named = named.replace(f'"queue": "{leaf}"', f'"queue": "root.{leaf}"')
        request = json.loads(named)
    return request


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield at
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(child, (*at, key))


def at(document: Any, place: tuple[str | int, ...]) -> Any:
    for step in place:
        document = document[step]
    return document


def put(document: Any, place: tuple[str | int, ...], value: Any) -> Any:
    if not place:
        return value
    document = json.loads(json.dumps(document))
    at(document, place[:-1])[place[-1]] = value
    return document


TIMES = [place for place in places(timed("kueue")) if str(at(timed("kueue"), place)).startswith("2026-")]


def post(service: TestClient, path: str, body: Any) -> Any:
    return service.post(path, content=json.dumps(body).encode(), headers=JSON)


@pytest.mark.parametrize("half", ["\ud800", {"\udfff": 1}, ["\ud800"], "x\udbff"])
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(homeless: TestClient, half: Any) -> None:
    for place in places(timed("kueue")):
        refused(post(homeless, "/v1/decisions", put(timed("kueue"), place, half)), 400, "")


def test_a_whole_surrogate_pair_is_a_letter(homeless: TestClient) -> None:
    request = put(timed("kueue"), ("asks", 0, "id"), "\U0001f600")
    assert post(homeless, "/v1/decisions", request).json()["decisions"][0]["ask"] == "\U0001f600"
    wrong = put(request, ("asks", 0, "priority"), "high")
    refused(post(homeless, "/v1/decisions", wrong), 422, "/asks/0/priority")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moment", OUTSIDE)
def test_what_its_offset_takes_out_of_the_calendar_is_pointed_at(
    homeless: TestClient, engine: str, moment: str
) -> None:
    for place in TIMES:
        pointer = "/" + "/".join(map(str, place))
        refused(post(homeless, "/v1/decisions", put(timed(engine), place, moment)), 422, pointer)


@pytest.mark.parametrize("moment", [*OUTSIDE, *ENDS])
def test_however_a_moment_is_written(homeless: TestClient, moment: str) -> None:
    body = json.dumps(timed("kueue") | {"now": moment}).encode()
    escaped = body.replace(moment.encode(), "".join(f"\\u{ord(letter):04x}" for letter in moment).encode())
    plain, other = (homeless.post("/v1/decisions", content=sent, headers=JSON) for sent in (body, escaped))
    assert plain.status_code == other.status_code == (422 if moment in OUTSIDE else 200)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moment", ENDS)
def test_the_ends_of_the_calendar_are_moments(homeless: TestClient, engine: str, moment: str) -> None:
    for place in TIMES:
        request = put(timed(engine), place, moment)
        assert post(homeless, "/v1/decisions", request).status_code == 200, place
        for path, left_out in (("shares", ()), ("preemptibility", ()), ("effective-settings", ("now", "asks"))):
            asked = {name: value for name, value in request.items() if name not in left_out}
            assert post(homeless, f"/v1/{path}", asked).status_code == 200, (path, place)


def test_what_ends_after_the_calendar_is_shown_as_its_end(homeless: TestClient) -> None:
    request = timed("kai") | {"now": ENDS[2]}
    request["state"]["workloads"][0]["started_at"] = ENDS[2]
    request["configuration"]["queues"][1]["kai"] = {"preempt_min_runtime": "10000h", "reclaim_min_runtime": "10000h"}
    answer = post(homeless, "/v1/preemptibility", {k: v for k, v in request.items() if k != "asks"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("moment", [*OUTSIDE, *ENDS])
def test_queries_and_manifests_too(service: TestClient, moment: str) -> None:
    for name in ("since", "until"):
        assert service.get("/v1/decisions", params={name: moment}).status_code in (200, 422)
    manifest = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "q", "creationTimestamp": moment},
        "spec": {},
    }
    for format in ("kueue", "kai", "kubernetes"):  # noqa: A001
        found = service.post(f"/v1/configurations:import?format={format}", json=manifest)
        assert found.status_code in (200, 422), found.text
        if found.status_code == 200 and found.json()["configuration"].get("queues"):
            document = found.json()["configuration"] | {"engine": "kueue"}
            assert service.put("/v1/configurations/c", json=document, headers={"If-Match": "*"}).status_code < 500


@pytest.mark.parametrize("moment", ENDS)
def test_a_configuration_as_old_as_the_calendar_is_exported(service: TestClient, moment: str) -> None:
    document = {"engine": "kueue", "queues": [{"name": "q", "created_at": moment}]}
    assert service.put("/v1/configurations/c", json=document).status_code == 201
    for format in ("kueue", "kai"):  # noqa: A001
        assert service.get("/v1/configurations/c:export", params={"format": format}).status_code == 200


@pytest.mark.parametrize("name", ["a\x00b", "\x00", "a\nb", "\x1b[31mred", "\x7f", "a\u2028b"])
def test_a_name_that_can_not_be_shown_names_no_token(guarded: TestClient, name: str) -> None:
    answer = guarded.post("/v1/tokens", json={"name": name, "scopes": ["read"]})
    refused(answer, 422, "/name")
    assert len(guarded.get("/v1/tokens").json()["items"]) == 1


@pytest.mark.parametrize("moment", [*OUTSIDE, *ENDS])
def test_tokens_too(guarded: TestClient, moment: str) -> None:
    answer = guarded.post("/v1/tokens", json={"name": "x", "scopes": ["read"], "expires_at": moment})
    assert answer.status_code == (422 if moment in OUTSIDE else 201), answer.text
    assert guarded.get("/v1/tokens").status_code == 200


def test_an_open_service_makes_no_tokens(service: TestClient) -> None:
    answer = service.post("/v1/tokens", json={"name": "x", "scopes": ["read"]})
    assert answer.status_code == 403
    assert service.get("/v1/tokens").json()["items"] == []


def test_nul_in_any_text_is_an_answer(service: TestClient) -> None:
    for place in places(timed("kueue")):
        assert post(service, "/v1/decisions", put(timed("kueue"), place, "\x00")).status_code < 500, place
    for name in ("configuration", "ask", "workload", "since", "cursor"):
        assert service.get("/v1/decisions", params={name: "\x00"}).status_code < 500, name
    for name in ("actor", "action", "cursor"):
        assert service.get("/v1/audit", params={name: "\x00"}).status_code < 500, name
    document = {"engine": "kueue", "queues": [{"name": "a\x00b"}]}
    assert service.put("/v1/configurations/c", json=document).status_code < 500
    assert service.put("/v1/configurations/d", json=document, params={"comment": "\x00"}).status_code < 500
