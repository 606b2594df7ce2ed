"""Commands that read or keep something at a service beside what they work out here."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from app.base.documents import Unreadable
from app.cli import plan as plans
from tests.cluster import kueue
from tests.support.instead import Instead, Machine
from tests.support.remote import JSON_BODY, MAIN, Captured, Fake, said

EXAMPLES = Path(__file__).parents[3] / "examples"
REQUEST = json.loads((EXAMPLES / "kueue-classic.json").read_text())
KUEUE = EXAMPLES / "kueue-cluster.yaml"
JOB = EXAMPLES / "job.yaml"
Json = dict[str, Any]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Fake:
    return Fake(monkeypatch)


def test_a_logged_decision_is_explained_as_it_was(service: Fake, capsys: Captured) -> None:
    service.says("GET /v1/decisions/a%2Fb/request?resolved=true", REQUEST)
    code, lines, _ = said(capsys, "explain", "--decision", "a/b")
    assert (code, any(line.startswith("  why: ") for line in lines)) == (1, True)
    assert said(capsys, "explain", "--decision", "ghost") == (3, [], ["ghost: 404 nothing there"])


def test_an_import_is_stored_over_what_was_read(service: Fake, capsys: Captured) -> None:
    finding = {"severity": "warning", "pointer": "/queues/0", "detail": "odd", "rule": "r"}
    service.says(f"PUT {MAIN}", {"revision": 1, "changed": True, "findings": [finding]}, 201)
    code, lines, complaints = said(capsys, "import", str(KUEUE), "--store", "main")
    assert (code, lines, complaints[-1]) == (0, ["main: revision 1"], "  warning /queues/0: odd [r]")
    ((_, body, headers),) = service.sent
    assert json.loads(body or b"")["engine"] == "kueue"
    assert headers == JSON_BODY | {"If-None-Match": "*"}
    service.says(f"GET {MAIN}", {}, etag='"1"')
    service.says(f"PUT {MAIN}", {"revision": 1, "changed": False})
    assert said(capsys, "import", str(KUEUE), "--store", "main")[1] == ["main: unchanged at revision 1"]
    assert service.sent[-1][2] == JSON_BODY | {"If-Match": '"1"'}
    assert said(capsys, "import", str(KUEUE), "--store", "other")[::2] == (3, ["other: 404 nothing there"])


def test_an_import_says_that_nobody_answers(capsys: Captured) -> None:
    code, lines, complaints = said(capsys, "import", str(KUEUE), "--store", "x", "--url", "ftp://h")
    assert (code, lines, complaints[-1]) == (4, [], "ftp://h: not an http address")
    code, lines, complaints = said(capsys, "export", "x", "--stored", "--url", "ftp://h")
    assert (code, lines, complaints) == (4, [], ["ftp://h: not an http address"])


def test_a_stored_configuration_is_exported(service: Fake, capsys: Captured) -> None:
    stored = {"configuration": {"engine": "kueue", "queues": [{"name": "q"}]}}
    service.says(f"GET {MAIN}", stored)
    service.says(f"GET {MAIN}/revisions/2", stored)
    for name in ("main", "main@2"):
        code, lines, _ = said(capsys, "export", name, "--stored")
        assert (code, "kind: ClusterQueue" in lines) == (0, True)
    code, (line, *_), _ = said(capsys, "export", "main", "--stored", "--json")
    assert (code, line) == (0, "{")
    assert said(capsys, "export", "ghost", "--stored") == (3, [], ["ghost: 1 problem", "  (document): nothing there"])
    service.says("GET /v1/configurations/bare", None, 500)
    assert said(capsys, "export", "bare", "--stored")[2][1] == "  (document): the service answered 500"
    service.says("GET /v1/configurations/none", {"configuration": {"queues": []}})
    assert said(capsys, "export", "none", "--stored")[2][1] == "  /engine: no engine is named: say --format"


def test_a_plan_takes_a_stored_configuration(service: Fake, capsys: Captured) -> None:
    own = json.loads("\n".join(said(capsys, "import", str(KUEUE))[1]))
    expected = said(capsys, "plan", str(JOB), "-f", str(KUEUE))[:2]
    service.says(f"GET {MAIN}/revisions/2", {"configuration": own})
    assert said(capsys, "plan", str(JOB), "-f", str(KUEUE), "--configuration", "main@2")[:2] == expected
    assert said(capsys, "plan", str(JOB), "-f", str(KUEUE), "--configuration", "ghost")[::2] == (
        3, ["ghost: 1 problem", "  (document): nothing there"],
    )  # fmt: skip


def test_a_document_of_a_system_is_not_applied_but_imported(service: Fake, capsys: Captured) -> None:
    code, _, complaints = said(capsys, "configuration", "apply", str(KUEUE), "main")
    assert (code, service.sent) == (3, [])
    assert "`arbiter import FILE --store NAME`" in complaints[1]


def plan(outcome: str, *findings: Json) -> Json:
    return {
        "engine": "kueue", "configuration": {"digest": "c"}, "state": {"digest": "s"}, "outcome": outcome, "work": [],
        "asks": [], "waiting": [], "decisions": [], "plan": {"evictions": [], "placements": []},
        "findings": list(findings), "stats": {}, "queues": [],
    }  # fmt: skip


@pytest.mark.parametrize(("outcome", "code"), [("admit", 0), ("preempt", 1), ("wait", 2), ("infeasible", 2)])
def test_work_is_planned_on_a_snapshot(service: Fake, capsys: Captured, outcome: str, code: int) -> None:
    service.says("POST /v1/plans", plan(outcome))
    words = ("plan", str(JOB), "--snapshot", "s", "--configuration", "c", "--waited", "5m", "-n", "ml", "--queue", "q")
    assert said(capsys, *words, "--set", "a=1")[0] == code
    ((_, body, headers),) = service.sent
    assert json.loads(body or b"") == {
        "manifest": JOB.read_text(), "queue": "q", "namespace": "ml", "waited": "5m", "set": {"a": 1},
        "state": {"snapshot": "s"}, "configuration": "c",
    }  # fmt: skip
    assert headers == JSON_BODY


def test_a_plan_with_an_error_is_an_exit_code_of_its_own(service: Fake, capsys: Captured) -> None:
    finding = {"severity": "error", "pointer": "/spec", "detail": "left out", "rule": "r"}
    service.says("POST /v1/plans", plan("admit", finding))
    code, (line,), complaints = said(capsys, "plan", str(JOB), "--snapshot", "s", "--json")
    assert (code, json.loads(line)["outcome"], complaints) == (3, "admit", ["  error /spec: left out [r]"])
    service.says("POST /v1/plans", plan("admit", {**finding, "severity": "warning"}))
    assert said(capsys, "plan", str(JOB), "--snapshot", "s")[0] == 0
    sent = json.loads(service.sent[-1][1] or b"")
    assert (sent["queue"], sent["namespace"], sent["waited"], sent["set"]) == (None, "default", "0s", {})
    service.says("POST /v1/plans", {"detail": "no"}, 422)
    assert said(capsys, "plan", str(JOB), "--snapshot", "s") == (3, [], [f"{JOB}: 422 no"])


def test_a_cluster_that_is_followed_is_planned_on_as_its_freshest_follower_knows_it(
    service: Fake, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    followers = [
        {"age_seconds": 9, "local_queues": {"old": "x"}}, {"age_seconds": 2, "local_queues": {"a/l": "q"}, "more": 1},
    ]  # fmt: skip
    service.says("GET /v1/clusters/prod", {"name": "prod", "snapshot": "live", "followers": followers})
    service.says("POST /v1/plans", plan("admit"))
    assert said(capsys, "plan", str(JOB), "-f", "prod")[0] == 0
    sent = json.loads(service.sent[-1][1] or b"")
    assert (sent["state"], sent["asks"], sent["local_queues"]) == ({"snapshot": "live"}, "pending", {"a/l": "q"})
    assert "priority_classes" not in sent
    assert "more" not in sent
    monkeypatch.setenv("ARBITER_CLUSTER", "prod")
    assert said(capsys, "plan", str(JOB), "--configuration", "c@5")[0] == 0
    assert json.loads(service.sent[-1][1] or b"") == {**sent, "configuration": "c@5"}
    monkeypatch.delenv("ARBITER_CLUSTER")
    assert said(capsys, "plan", str(JOB), "-f", "ghost")[::2] == (3, ["ghost: 404 nothing there"])
    for words in (("-f", "prod.yaml"), ("-f", "a/b"), ("-f", "prod", "-f", "other")):
        asked = len(service.asked)
        assert said(capsys, "plan", str(JOB), *words)[0] == 3
        assert len(service.asked) == asked, "a file is meant"
    (tmp_path / "prod").write_text("queues: []")
    assert said(capsys, "plan", str(JOB), "-f", "prod")[2] != ["ghost: 404 nothing there"]
    assert len(service.asked) == asked
    said(capsys, "plan", str(JOB), "--snapshot", "s", "-f", "prod2")
    assert service.asked[-1] == "POST /v1/plans"


STATE: Json = {"nodes": [], "more": 1}
CONFIGURATION: Json = {"engine": "kueue", "queues": []}
BODY: Json = {"engine": "kai", "state": {}, "mode": "cycle", "now": "then"}


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([CONFIGURATION], {"configuration": CONFIGURATION}),
        ([STATE], {"state": STATE}),
        ([{"workloads": []}], {"state": {"workloads": []}}),
        ([{"reservations": []}, CONFIGURATION], {"state": {"reservations": []}, "configuration": CONFIGURATION}),
        ([BODY], {"engine": "kai", "state": {}, "now": "then"}),
        ([{"configuration": "c", "asks": []}], {"configuration": "c", "asks": []}),
        ([BODY, {"configuration": "c"}], {"engine": "kai", "state": {}, "now": "then", "configuration": "c"}),
        ([{"queues": {}}], {"cluster": '{"queues": {}}'}),
        ([[STATE]], {"cluster": '[{"nodes": [], "more": 1}]'}),
        ([{"a": 1}, {"b": 2}], {"cluster": '[{"a": 1}, {"b": 2}]'}),
        ([STATE, {"a": 1}], {"state": STATE, "cluster": '{"a": 1}'}),
    ],
)
def test_what_files_say_of_a_cluster(documents: list[Any], expected: Json, tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.json" for i in range(len(documents))]
    for file, document in zip(files, documents, strict=True):
        file.write_text(json.dumps(document))
    names = [str(file) for file in files]
    configuration = names[1] if len(names) > 1 else None
    for where in (plans.Where(cluster=names), plans.Where(cluster=names[:1], configuration=configuration)):
        assert plans._cluster(where, plans._Blamed("")) == expected  # pyright: ignore


def test_work_is_text_and_yson_a_document() -> None:
    assert plans._work(b"\xef\xbb\xbfkind: Job") == "kind: Job"  # pyright: ignore
    assert plans._work(b'{"a"=1;"b"=["c"]}') == {"a": 1, "b": ["c"]}  # pyright: ignore
    with pytest.raises(Unreadable, match="not UTF-8 at byte 1"):
        plans._work(b"a\xff")  # pyright: ignore


def test_revisions_are_numbers_of_ascii_digits(service: Fake, capsys: Captured) -> None:
    for given in ("²", "٣", "3x", "-1"):
        assert said(capsys, "configuration", "diff", f"main@{given}") == (
            3, [], [f"main@{given}: after @ comes the number of a revision"],
        )  # fmt: skip
    assert service.asked == []


def test_what_several_files_have_to_say_names_each(capsys: Captured, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.yaml").write_text(f"apiVersion: v9\nkind: Odd{number}\nmetadata: {{name: x}}\n")
    one, two = (str(tmp_path / f"{number}.yaml") for number in range(2))
    complaints = said(capsys, "import", one, "-f", two)[2]
    found = {name: line for line in complaints for name in (one, two) if f"{name}: " in line}
    assert found == {name: f"  {name}: info /kind: Odd{i} means nothing to this import [unknown-kind]"
                     for i, name in enumerate((one, two))}  # fmt: skip
    assert all(line.startswith("  ") for line in complaints)


def test_the_level_is_the_one_that_is_asked_for(service: Fake, capsys: Captured) -> None:
    service.says("GET /v1/decisions/7/request?resolved=true", REQUEST)
    brief, full = (said(capsys, "explain", "--decision", "7", *more)[1] for more in ((), ("--full",)))
    assert any(line.startswith("  CANDIDATES ") for line in brief)
    assert not any(line.startswith("  CANDIDATE ") for line in brief)
    assert any(line.startswith("  CANDIDATE ") for line in full)


def asking(*amounts: Any) -> Json:
    (one, *_) = REQUEST["asks"]
    (task,) = one["tasks"]
    asks = [
        {**one, "id": f"a{i}", "uid": f"a{i}", "tasks": [{**task, "requests": dict.fromkeys(task["requests"], amount)}]}
        for i, amount in enumerate(amounts)
    ]
    return {**REQUEST, "state": {**REQUEST["state"], "workloads": []}, "asks": asks}


@pytest.mark.parametrize(("amounts", "code"), [((1,), 0), ((1, 10**6), 2), ((10**6, 1), 2)])
def test_one_ask_that_can_not_run_is_enough_for_the_exit_code(
    amounts: tuple[int, ...], code: int, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(asking(*amounts)))
    assert said(capsys, "decide", str(file))[0] == code


def test_several_files_must_all_be_manifests(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUEST))
    for first, second in ((file, KUEUE), (KUEUE, file), (file, file)):
        code, lines, complaints = said(capsys, "decide", str(first), "-f", str(second))
        assert (code, lines) == (3, [])
        assert complaints[-2:] == [f"{file}: 1 problem", "  (document): several files must all be manifests"]


def test_a_request_of_several_asks_is_a_cycle(tmp_path: Path, capsys: Captured, machine: Machine) -> None:
    queue = kueue.local_queue("l", "q")
    around = [kueue.cluster_queue("q", 4), queue, kueue.flavor()]
    for count, mode in ((0, None), (1, None), (2, "cycle")):
        objects = [*around, *(kueue.workload(f"w{i}", "l", 1) for i in range(count))]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        machine.reads(text.encode())
        code, lines, _ = said(capsys, "import", "-f", "-", "--request")
        found = json.loads("\n".join(lines))
        assert (code, len(found["asks"]), found.get("mode")) == (0, count, mode)


def test_who_is_next_is_stopped_where_there_will_be_no_answer(
    service: Fake, capsys: Captured, instead: Instead
) -> None:
    instead(time, sleep=lambda _: None)
    one = "/v1/exposures/00000000-0000-0000-0000-000000000001"
    state = {"id": one.rpartition("/")[2], "status": "queued", "created_at": "2026-01-01T00:00:00Z"}
    service.says("POST /v1/exposures", state, 202)
    asked = ("next", "--snapshot", "live")
    for status, said_of_it in ((403, "live: 403 not yours"), (404, "  (document): the question was stopped")):
        service.says(f"GET {one}", {"detail": "not yours"}, status)
        code, lines, complaints = said(capsys, *asked)
        assert (code, lines, complaints[-1]) == (3, [], said_of_it)
        assert service.asked[-1] == f"DELETE {one}"
    service.says(f"GET {one}", state | {"status": "failed", "error": "out of memory"})
    assert said(capsys, *asked) == (3, [], ["live: 1 problem", "  (document): out of memory"])
    (posted, body, headers) = service.sent[-1]
    assert (posted, headers) == ("POST /v1/exposures", JSON_BODY)
    assert json.loads(body or b"")["state"] == {"snapshot": "live"}


def test_who_is_next_waits_out_a_service_that_is_away_for_a_while(
    service: Fake, capsys: Captured, instead: Instead
) -> None:
    one = "/v1/exposures/00000000-0000-0000-0000-000000000001"
    state = {"id": one.rpartition("/")[2], "status": "running", "created_at": "2026-01-01T00:00:00Z"}
    service.says("POST /v1/exposures", state, 202)
    service.says(f"GET {one}", None, 503)

    def comes_back(_: float) -> None:
        if service.asked.count(f"GET {one}") == 2:
            service.says(f"GET {one}", state | {"status": "cancelled"})

    instead(time, sleep=comes_back)
    assert said(capsys, "next", "--snapshot", "live")[::2] == (3, ["live: 1 problem", "  (document): cancelled"])
    assert f"DELETE {one}" not in service.asked
