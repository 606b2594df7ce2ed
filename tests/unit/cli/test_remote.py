"""Commands that ask a service: what they send, what they print of the answer, with which exit code. No service runs."""

import io
import json
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from app.cli.remote import Reply, Service, Unreachable, commented
from tests.support.instead import Instead
from tests.support.remote import JSON_BODY, MAIN, Captured, Fake, Json, said

DOCUMENT: Json = {"engine": "kueue", "queues": [{"name": "q"}]}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Fake:
    return Fake(monkeypatch)


def test_applying_says_what_it_replaces(service: Fake, capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "main.yaml"
    file.write_text("engine: kueue\nqueues: [{name: q}]\n")
    finding = {"severity": "warning", "pointer": "/queues/0", "detail": "odd", "rule": "r"}
    service.says(f"PUT {MAIN}", {"revision": 1, "changed": True, "findings": [finding, finding | {"pointer": ""}]}, 201)
    assert said(capsys, "configuration", "apply", str(file), "--comment", "für später") == (
        0, ["main: revision 1"], ["  warning /queues/0: odd [r]", "  warning (document): odd [r]"],
    )  # fmt: skip
    ((_, body, headers),) = service.sent
    assert json.loads(body or b"") == DOCUMENT
    comment = "für später".encode().decode("latin-1")
    assert headers == JSON_BODY | {"If-None-Match": "*", "X-Comment": comment}
    service.says(f"GET {MAIN}", {}, etag='"1-a"')
    service.says(f"PUT {MAIN}?dry_run=true", {"revision": 1, "changed": False})
    assert said(capsys, "configuration", "apply", str(file), "--dry-run")[:2] == (
        0, ["main: would be unchanged at revision 1"]
    )  # fmt: skip
    assert service.sent[-1][2] == JSON_BODY | {"If-Match": '"1-a"'}
    wrong = {"title": "Invalid input", "detail": "no", "errors": [{"pointer": "/a", "detail": "b"}, {"detail": "c"}]}
    service.says("PUT /v1/configurations/a%2Fb", wrong | {"findings": [finding]}, 422)
    assert said(capsys, "configuration", "apply", str(file), "a/b") == (
        3, [], [f"{file}: 422 no", "  /a: b", "  (document): c", "  warning /queues/0: odd [r]"],
    )  # fmt: skip
    service.says("PUT /v1/configurations/x", None, 503)
    assert said(capsys, "configuration", "apply", str(file), "x") == (4, [], [f"{file}: 503 refused"])
    assert said(capsys, "configuration", "apply", "-")[0::2] == (
        3, ["-: 1 problem", "  (document): standard input has no name: say one after the -"],
    )  # fmt: skip
    assert said(capsys, "configuration", "apply", str(tmp_path / "none"))[0::2] == (
        3, [f"{tmp_path / 'none'}: No such file or directory"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "path"), [("main", MAIN), ("main@7", f"{MAIN}/revisions/7"), ("main@stable", f"{MAIN}/revisions/4")]
)
def test_getting_a_configuration_by_its_names(service: Fake, capsys: Captured, name: str, path: str) -> None:
    service.says(f"GET {path}", {"revision": 7, "configuration": {"b": 1, "a": "ü"}})
    service.says(f"GET {MAIN}/labels/stable", {"revision": 4})
    assert said(capsys, "configuration", "get", name) == (0, ["{", '  "a": "ü",', '  "b": 1', "}"], [])
    assert said(capsys, "configuration", "get", "main@ghost") == (3, [], ["main@ghost: 404 nothing there"])


def test_listing_goes_through_all_pages(service: Fake, capsys: Captured) -> None:
    service.says("GET /v1/configurations?limit=100", {
        "items": [{"name": "a", "revision": 1, "created_at": "then"}], "next_cursor": "x/y",
    })  # fmt: skip
    assert said(capsys, "configuration", "list") == (3, [], ["configurations: 404 nothing there"])
    service.says("GET /v1/configurations?limit=100&cursor=x%2Fy", {"items": [{"name": "longer", "revision": 12}]})
    assert said(capsys, "configuration", "list")[:2] == (
        0, ["NAME    REVISION  SINCE", "a       1         then", "longer  12"],
    )  # fmt: skip


def test_what_a_file_would_change(service: Fake, capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    service.says(f"GET {MAIN}", {"revision": 1, "configuration": DOCUMENT})
    file.write_text(json.dumps(DOCUMENT | {"flavors": []}))
    assert said(capsys, "configuration", "diff", "main", str(file)) == (0, [], []), "nothing that was said without need"
    file.write_text(json.dumps(DOCUMENT | {"engine": "kai"}))
    code, lines, _ = said(capsys, "configuration", "diff", "main", str(file))
    assert (code, lines[:2], lines[4:6]) == (
        1,
        ["--- main", f"+++ {file}"],
        ['-  "engine": "kueue",', '+  "engine": "kai",'],
    )


def test_what_a_revision_changed(service: Fake, capsys: Captured) -> None:
    changed = {
        "name": "main", "revision": 3, "against": 2, "identical": False, "reordered": True,
        "settings": [{"pointer": "/settings", "new": {"b": "ü", "a": 1}}],
        "flavors": {"added": [{"name": "spot"}]},
        "queues": {
            "removed": [{"name": "old"}],
            "changed": [{"name": "q", "changes": [{"pointer": "/queues/0/weight", "old": 1, "new": 2}]}],
        },
    }  # fmt: skip
    service.says(f"GET {MAIN}", {"revision": 3})
    service.says(f"GET {MAIN}/revisions/3/diff", changed)
    expected = [
        "main: revision 2 -> 3", '~ /settings: (default) -> {"a": 1, "b": "ü"}', "+ flavor spot", "- queue old",
        "~ queue q", "    /queues/0/weight: 1 -> 2", "~ order",
    ]  # fmt: skip
    for name in ("main", "main@3"):
        assert said(capsys, "configuration", "diff", name) == (1, expected, [])
    same = {"identical": True, "reordered": False, "settings": [], "flavors": {}, "queues": {}}
    service.says(f"GET {MAIN}/revisions/3/diff?against=1", same)
    assert said(capsys, "configuration", "diff", "main@3", "--against", "1") == (0, [], [])
    assert said(capsys, "configuration", "diff", "main@x") == (
        3,
        [],
        ["main@x: after @ comes the number of a revision"],
    )
    assert said(capsys, "configuration", "diff", "ghost") == (3, [], ["ghost: 404 nothing there"])
    assert said(capsys, "configuration", "diff", "main@9") == (3, [], ["main@9: 404 nothing there"])


def test_the_history_has_labels_and_comments(service: Fake, capsys: Captured) -> None:
    def item(revision: int, **more: Any) -> Json:
        return {"revision": revision, "created_at": "t", "author": "mo", **more}

    service.says(f"GET {MAIN}/labels", {"items": [
        {"label": "a", "revision": 2}, {"label": "b", "revision": 2}, {"label": "c", "revision": 9},
    ]})  # fmt: skip
    service.says(f"GET {MAIN}/revisions?limit=100", {
        "items": [item(3, restored_from=1), item(2, restored_from=1, comment="two\n lines")], "next_cursor": "n",
    })  # fmt: skip
    service.says(f"GET {MAIN}/revisions?limit=100&cursor=n", {"items": [item(1, comment="first")]})
    assert said(capsys, "configuration", "history", "main")[:2] == (0, [
        "REVISION  SINCE  AUTHOR  LABELS  COMMENT", "3         t      mo              restores 1",
        "2         t      mo      a b     restores 1: two lines", "1         t      mo              first",
    ])  # fmt: skip
    assert said(capsys, "configuration", "history", "ghost") == (3, [], ["ghost: 404 nothing there"])


def test_restoring_and_labels(service: Fake, capsys: Captured) -> None:
    service.says(f"GET {MAIN}", {}, etag='"3-x"')
    service.says(f"POST {MAIN}/revisions/1:restore", {"revision": 4, "changed": True})
    assert said(capsys, "configuration", "restore", "main@1", "--comment", "oops")[:2] == (0, ["main: revision 4"])
    assert service.sent == [(f"POST {MAIN}/revisions/1:restore", b"", {"If-Match": '"3-x"', "X-Comment": "oops"})]
    service.says(f"POST {MAIN}/revisions/1:restore", {"revision": 4, "changed": False})
    assert said(capsys, "configuration", "restore", "main@1")[1] == ["main: unchanged at revision 4"]
    for words in (("main",), ("main@x",), ("main@²",)):
        assert said(capsys, "configuration", "restore", *words)[0::2] == (
            3, [f"{words[0]}: say which revision, as in main@7"],
        )  # fmt: skip
    assert said(capsys, "configuration", "restore", "main@2")[0] == 3
    label = f"{MAIN}/labels/stable"
    service.says(f"PUT {label}", {"revision": 4})
    service.says(f"DELETE {label}", None, 204)
    assert said(capsys, "configuration", "label", "main", "stable")[0::2] == (3, ["main@stable: 404 nothing there"])
    assert said(capsys, "configuration", "label", "main", "stable", "4")[:2] == (0, ["main@stable: revision 4"])
    assert service.sent[-1] == (f"PUT {label}", b'{"revision": 4}', JSON_BODY | {"If-None-Match": "*"})
    service.says(f"GET {label}", {"revision": 3}, etag='"l"')
    assert said(capsys, "configuration", "label", "main", "stable")[:2] == (0, ["main@stable: revision 3"])
    assert said(capsys, "configuration", "label", "main", "stable", "--delete")[:2] == (0, ["main@stable: taken off"])
    assert service.sent[-1] == (f"DELETE {label}", None, {"If-Match": '"l"'})
    service.says(f"GET {MAIN}/labels", {"items": [{"label": "s", "revision": 4, "updated_at": "t", "author": "mo"}]})
    assert said(capsys, "configuration", "labels", "main")[1] == [
        "LABEL  REVISION  SINCE  AUTHOR",
        "s      4         t      mo",
    ]
    assert said(capsys, "configuration", "labels", "ghost")[0] == 3


CLUSTER: Json = {"name": "prod", "snapshot": "live/1", "followers": [{"age_seconds": 1}]}
AT = "/v1/snapshots/live%2F1"


def live(service: Fake, running: list[Json], waiting: list[Json], **of_follower: Any) -> None:
    cluster = {**CLUSTER, "followers": [one | of_follower for one in CLUSTER["followers"]]}
    service.says("GET /v1/clusters", {"items": [cluster]})
    service.says("GET /v1/clusters/prod", cluster)
    service.says(f"GET {AT}/asks", {"items": waiting})
    service.says(f"GET {AT}/state", {"workloads": running})


def protected(service: Fake, findings: list[Json] | None = None, **more: Any) -> None:
    carried = {} if findings is None else {"findings": findings}
    service.says("POST /v1/preemptibility", {"workloads": {"ml/train": more}, **carried})


def test_why_something_runs(service: Fake, capsys: Captured) -> None:
    train = {"id": "ml/train", "queue": "q", "started_at": "then", "priority": 5}
    live(service, [{"id": "other", "queue": "q"}, train], [])
    protected(service, preemptible=False, reason="min-runtime")
    assert said(capsys, "why", "ml/train") == (
        0, ["ml/train: runs in q since then, priority 5", "  protected: min-runtime"], [],
    )  # fmt: skip
    assert service.sent == [("POST /v1/preemptibility", b'{"state": {"snapshot": "live/1"}}', JSON_BODY)]
    code, (line,), _ = said(capsys, "why", "train", "--cluster", "prod", "--json")
    assert (code, json.loads(line)) == (
        0, {"workload": train, "protection": {"preemptible": False, "reason": "min-runtime"}, "evictions": []},
    )  # fmt: skip
    live(service, [{"id": "ml/train", "queue": "q"}], [])
    protected(service, preemptible=True)
    assert said(capsys, "why", "train")[1] == ["ml/train: runs in q, priority 0", "  may be preempted"]


@pytest.mark.parametrize(
    ("outcome", "evictions", "code"), [("admit", [], 0), ("wait", [], 2), ("infeasible", [], 2), ("preempt", ["w"], 1)]
)
def test_why_something_waits(service: Fake, capsys: Captured, outcome: str, evictions: list[str], code: int) -> None:
    ask = {"id": "ml/train", "queue": "q"}
    live(service, [ask], [ask])
    plan = {"evictions": [{"workload": w, "queue": "q", "reason": "r", "for_ask": "ml/train"} for w in evictions],
            "placements": []}  # fmt: skip
    beside = {"followed": {"cluster": "live", "age_seconds": 2.1}, "said_by_a_newer_service": True}
    service.says("POST /v1/decisions", {
        **beside, "id": "7", "stats": {}, "engine": "kai", "configuration": {"digest": "c"}, "state": {"digest": "s"},
        "decisions": [{"ask": "ml/train", "outcome": outcome, "victims": [], "conditions": []}], "plan": plan,
    })  # fmt: skip
    found = said(capsys, "why", "train")
    assert (found[0], found[1][0]) == (code, f"ml/train: {outcome}")
    body = {"state": {"snapshot": "live/1"}, "asks": [ask], "explain": "summary"}
    assert json.loads(service.sent[-1][1] or b"") == body
    assert json.loads(said(capsys, "why", "train", "--json")[1][0])["id"] == "7"


def test_why_says_what_of_the_cluster_was_not_read_as_it_is(service: Fake, capsys: Captured) -> None:
    found = [{"rule": "r", "severity": of, "pointer": "/Workload/ml/train", "detail": of} for of in
             ("error", "warning")]  # fmt: skip
    live(service, [{"id": "ml/train", "queue": "q"}], [], findings=found)
    protected(service, found, preemptible=True)
    assert said(capsys, "why", "train")[2] == [
        "  error /Workload/ml/train: error [r]", "  warning /Workload/ml/train: warning [r]",
    ]  # fmt: skip


def test_which_one_is_meant(service: Fake, capsys: Captured) -> None:
    live(service, [{"id": "a/x", "queue": "q"}, {"id": "b/x", "queue": "q"}], [])
    assert said(capsys, "why", "x")[2] == ["x: 1 problem", "  (document): several have that name: a/x, b/x"]
    assert said(capsys, "why", "ghost")[2] == [
        "ghost: 1 problem", "  (document): no such workload in cluster 'prod'",
    ]  # fmt: skip
    assert said(capsys, "why", "x", "--cluster", "none")[0::2] == (3, ["x: 404 nothing there"])
    for items, names in (([], "none"), ([{"name": "a"}, {"name": "b"}], "a, b")):
        service.says("GET /v1/clusters", {"items": items})
        assert said(capsys, "why", "x")[0::2] == (
            3, ["x: 1 problem", f"  (document): which cluster? say --cluster; followed: {names}"],
        )  # fmt: skip


class Answer:
    """What ``urlopen`` gives."""

    status = 201
    headers: Json = {"ETag": '"e"'}

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def read(self) -> bytes:
        return b'{"a":1}'


def test_requests_as_they_are_sent(instead: Instead) -> None:
    sent: list[urllib.request.Request] = []

    def opened(request: urllib.request.Request, timeout: float) -> Answer:
        assert timeout == 30
        sent.append(request)
        return Answer()

    instead(urllib.request, urlopen=opened)
    reply = Service("https://host/base/", "secret").put("/x", b"{}", {"If-Match": "*"})
    assert (reply, reply.ok, reply.json()) == (Reply(201, b'{"a":1}', '"e"'), True, {"a": 1})
    Service("http://host").get("/y")
    Service("http://host").delete("/z", {})
    assert [(one.get_method(), one.full_url, one.data) for one in sent] == [
        ("PUT", "https://host/base/x", b"{}"), ("GET", "http://host/y", None), ("DELETE", "http://host/z", None),
    ]  # fmt: skip
    assert sent[0].headers == {
        "Accept": "application/json", "Content-type": "application/json", "If-match": "*",
        "Authorization": "Bearer secret",
    }  # fmt: skip
    assert sent[1].headers == {"Accept": "application/json"}


def test_what_does_not_answer(instead: Instead, capsys: Captured) -> None:
    def opened(request: urllib.request.Request, timeout: float) -> Answer:
        if request.full_url.endswith("/refused"):
            headers = Message()
            headers["ETag"] = '"v"'
            raise urllib.error.HTTPError("u", 412, "no", headers, io.BytesIO(b"no json"))
        raise urllib.error.URLError("no route") if request.full_url.endswith("/away") else TimeoutError("late")

    instead(urllib.request, urlopen=opened)
    reply = Service("http://h").get("/refused")
    assert (reply, reply.ok, reply.json()) == (Reply(412, b"no json", '"v"'), False, {})
    for path, detail in (("/away", "http://h: no route"), ("/late", "http://h: late")):
        with pytest.raises(Unreachable, match=rf"^{detail}$"):
            Service("http://h").get(path)
    with pytest.raises(Unreachable, match=r"^ftp://h: not an http address$"):
        Service("ftp://h").get("/")
    assert said(capsys, "configuration", "list", "--url", "http://h") == (4, [], ["http://h: late"])
    assert [Reply(status, b"", None).ok for status in (199, 200, 299, 300)] == [False, True, True, False]
    assert (Reply(200, b"", None).json(), commented(None), commented("")) == ({}, {}, {})


HISTORY: Json = {
    "items": [
        {"at": "2026-11-22T12:00:00Z", "by": "ml/p", "reason": "InCohortReclamation", "outcome": "agreed"},
        {"at": "2026-11-22T11:00:00Z", "task": "pod-0", "outcome": "differs"},
        {"at": "2026-11-22T10:00:00Z", "reason": "PodsReadyTimeout"},
    ]
}
EVICTED = [
    "  evicted 2026-11-22T12:00:00Z for ml/p, InCohortReclamation; Arbiter agrees",
    "  evicted 2026-11-22T11:00:00Z (pod-0); Arbiter would not",
    "  evicted 2026-11-22T10:00:00Z, PodsReadyTimeout",
]


@pytest.fixture
def followed(service: Fake) -> Fake:
    """A cluster in which some workloads of a queue run."""
    service.says("GET /v1/clusters/prod", {"name": "prod", "snapshot": "s", "followers": [{"age_seconds": 1}]})
    service.says("GET /v1/snapshots/s/asks", {"items": []})
    ids = {
        "ml/job-train-3f2a1": "main",
        "yunikorn-ml-autogen": "ml/build-2-x7k2p",
        "ml/web-6d4b75cb6d-x7k2p": "x",
        "ml/pg-serve-40399c9c-2a6b-4d11-9c1f-0a1b2c3d4e5f": "serve-0",
        "app": "ml/driver",
    }
    running: list[Json] = [{"id": of, "queue": "q", "tasks": [{"name": task}]} for of, task in ids.items()]
    running.append({"id": "other/job-train-77ab0", "queue": "q", "tasks": []})
    service.says("GET /v1/snapshots/s/state", {"workloads": running})
    protection: Json = {one["id"]: {"preemptible": True, "reason": "r"} for one in running}
    service.says("POST /v1/preemptibility", {"workloads": protection})
    for one in running:
        of = one["id"].replace("/", "%2F")
        service.says(f"GET /v1/clusters/prod/evictions?limit=5&workload={of}", HISTORY)
    return service


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ml/job-train-3f2a1", "ml/job-train-3f2a1"),
        ("job-train-3f2a1", "ml/job-train-3f2a1"),
        ("ml/train", "ml/job-train-3f2a1"),
        ("ml/train-x7k2p", "ml/job-train-3f2a1"),
        ("ml/train-0-x7k2p", "ml/job-train-3f2a1"),
        ("serve", "ml/pg-serve-40399c9c-2a6b-4d11-9c1f-0a1b2c3d4e5f"),
        ("serve-0", "ml/pg-serve-40399c9c-2a6b-4d11-9c1f-0a1b2c3d4e5f"),
        ("ml/driver", "app"),
        ("ml/build", "yunikorn-ml-autogen"),
        ("web-6d4b75cb6d", "ml/web-6d4b75cb6d-x7k2p"),
        ("app", "app"),
    ],
)
def test_why_finds_work_by_its_own_name_and_tells_its_evictions(
    followed: Fake, capsys: Captured, name: str, found: str
) -> None:
    code, lines, _ = said(capsys, "why", name, "--cluster", "prod")
    assert (code, lines[0].split(":")[0], lines[2:]) == (0, found, EVICTED)


def test_why_says_which_are_meant_and_what_was_there(followed: Fake, capsys: Captured) -> None:
    code, _, errors = said(capsys, "why", "train", "--cluster", "prod")
    assert code == 3
    assert "several have that name: ml/job-train-3f2a1, other/job-train-77ab0" in errors[1]
    followed.says("GET /v1/clusters/prod/evictions?limit=5&workload=ml%2Fgone", {"items": []})
    followed.says("GET /v1/clusters/prod/evictions?limit=5&job=ml%2Fgone", HISTORY)
    assert said(capsys, "why", "ml/gone", "--cluster", "prod") == (0, ["ml/gone: neither waits nor runs", *EVICTED], [])
    followed.says("GET /v1/clusters/prod/evictions?limit=5&job=ml%2Fgone", {"items": []})
    code, _, errors = said(capsys, "why", "ml/gone", "--cluster", "prod")
    assert (code, "no such workload" in errors[1]) == (3, True)


def test_why_says_why_work_was_left_out(service: Fake, capsys: Captured) -> None:
    left = {
        "rule": "no-queue",
        "severity": "warning",
        "pointer": "/Workload/ml/job-gone-3f2a1/spec",
        "detail": "no queue",
    }
    other = {"rule": "r", "severity": "warning", "pointer": "", "detail": "of nothing"}
    live(service, [], [], findings=[other, left])
    for kind in ("workload", "job"):
        service.says(f"GET /v1/clusters/prod/evictions?limit=5&{kind}=gone", {"items": []})
    assert said(capsys, "why", "gone")[0::2] == (3, ["gone: 1 problem", "  (document): ml/job-gone-3f2a1: no queue"])
