"""Every operation with its documented examples, against a service: accepted, and answered as documented."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from app.auth.audit import Caller, Scope
from app.auth.router import Sessions
from app.auth.tokens import Tokens
from app.base.settings import Settings
from app.service.main import create_app
from tests.support.document import document
from tests.support.schemathesis import closed
from tests.support.working import working

DOCUMENT: dict[str, Any] = closed(document())
OPERATIONS = {
    operation["operationId"]: (method, path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}
STORY = [
    "get_health", "get_readiness",
    "put_configuration", "put_queue", "put_label", "list_configurations", "get_configuration", "get_queue",
    "list_configuration_revisions", "get_configuration_revision", "diff_configuration_revisions", "list_labels",
    "get_label", "export_configuration", "export_configuration_revision", "import_configuration",
    "decide", "decide_batch", "shares", "preemptibility", "effective_settings", "compare", "plan", "list_rules",
    "list_decisions", "count_decisions", "get_decision", "get_decision_request", "replay_decision", "explain_decision",
    "get_workload_history", "find", "put_snapshot", "list_snapshots", "get_snapshot", "get_snapshot_state",
    "list_snapshot_asks", "change_snapshot", "guard_preemption", "apply_decision", "delete_snapshot",
    "report_cluster", "list_clusters", "get_cluster", "report_evictions", "list_evictions",
    "report_use", "get_cluster_use", "delete_cluster",
    "report_preemption", "list_preemptions", "count_preemptions", "get_preemption", "get_preemption_request",
    "list_trace_formats", "put_trace", "list_traces", "get_trace", "get_trace_summary",
    "sweep", "list_sweeps", "get_sweep", "list_sweep_points", "delete_sweep",
    "simulate", "list_simulations", "get_simulation", "list_simulation_events", "list_simulation_rounds",
    "list_simulation_jobs", "get_simulation_series", "get_simulation_fragmentation", "get_simulation_plot",
    "get_simulation_plot_data", "get_simulation_round",
    "get_simulation_round_request", "follow_simulation", "delete_simulation", "delete_trace",
    "forecast", "list_forecasts", "get_forecast", "delete_forecast",
    "expose", "list_exposures", "get_exposure", "delete_exposure",
    "backtest", "list_backtests", "get_backtest", "list_backtest_differences", "delete_backtest",
    "create_token", "list_tokens", "revoke_token", "list_sessions", "revoke_session", "list_audit", "get_metrics",
    "delete_queue", "restore_configuration_revision", "delete_label", "delete_configuration",
]  # fmt: skip
"""In an order in which everything that an example names is there."""

FIRST = {"put_configuration", "put_label", "put_trace"}
IDS = {"decide", "report_preemption", "simulate", "forecast", "expose", "backtest", "sweep", "create_token"}


def whole(part: dict[str, Any]) -> dict[str, Any]:
    """``part``, or what it refers to."""
    for key in part.get("$ref", "#").split("/")[1:]:
        part = (DOCUMENT if key == "components" else part)[key]
    return part


def requests(operation: dict[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """Content type and body of each example; one without a body where there is none."""
    contents = operation.get("requestBody", {}).get("content", {})
    for media, content in contents.items():
        for one in content["examples"].values() if "examples" in content else [{"value": content["example"]}]:
            yield media, one["value"]
    if not contents:
        yield None, None


def address(path: str, operation: dict[str, Any], ids: dict[str, str]) -> str:
    """The path with the examples of its parameters, and those of the query that must be there."""
    query: list[str] = []
    for parameter in map(whole, operation.get("parameters", ())):
        if parameter["in"] == "path":
            made = parameter["name"] in ids and not parameter["schema"].get("examples")
            value = ids[parameter["name"]] if made else parameter["schema"]["examples"][0]
            path = path.replace(f"{{{parameter['name']}}}", str(value))
        elif parameter["in"] == "query" and parameter["required"]:
            query.append(f"{parameter['name']}={parameter['schema']['examples'][0]}")
    return f"{path}?{'&'.join(query)}" if query else path


def check_answer(operation: dict[str, Any], answer: Any) -> None:
    """Status, content type, headers and body are the documented ones."""
    documented = whole(operation["responses"][str(answer.status_code)])
    for header in documented.get("headers", ()):
        assert header in answer.headers, header
    media = answer.headers.get("content-type", "").partition(";")[0]
    assert media in documented.get("content", {"": {}}), media
    if media.endswith("json") and not media.endswith("x-ndjson"):
        schema = {**documented["content"][media]["schema"], "components": DOCUMENT["components"]}
        validator: Any = jsonschema.Draft202012Validator(schema)
        validator.validate(answer.json())


QUESTIONS = {
    "decide", "decide_batch", "shares", "preemptibility", "effective_settings", "compare", "plan", "replay_decision",
    "guard_preemption", "import_configuration",
    "restore_configuration_revision",  # here of what is there already
}  # fmt: skip
"""What changes nothing; decisions have a log of their own. All else that is no read leaves one line of the audit
log."""


def test_the_story_has_every_operation() -> None:
    assert sorted(STORY) == sorted(OPERATIONS), "a new operation needs its place in STORY, and examples that fit in"


def test_every_example_is_accepted_answered_as_documented_and_audited(guarded: TestClient, settings: Settings) -> None:
    ids: dict[str, str] = {}
    for name in STORY:
        method, path, operation = OPERATIONS[name]
        if name == "guard_preemption":  # a guard's snapshot has the name of its configuration
            kept = guarded.put("/v1/snapshots/production", json={"configuration": "production", "state": {}})
            assert kept.is_success
        if name == "revoke_session":
            app: Any = guarded.app
            app.state.services.of(Sessions).with_caller(Caller("oidc:ann", frozenset({"read"})))
            ids["id"] = guarded.get("/v1/sessions").json()["items"][0]["id"]
        lines = audited(guarded)
        for media, body in requests(operation):
            headers = {"Content-Type": media} if media is not None else {}
            if any(whole(parameter)["name"] == "if-match" for parameter in operation.get("parameters", ())):
                headers |= {"If-None-Match": "*"} if name in FIRST else {"If-Match": "*"} if method != "get" else {}
            content = body if isinstance(body, str) else json.dumps(body)
            answer = guarded.request(
                method, address(path, operation, ids), headers=headers, content=content if media is not None else None
            )
            assert answer.is_success, (name, answer.status_code, answer.text)
            before, lines = lines, audited(guarded)
            writes = method != "get" and name not in QUESTIONS
            assert len(lines) - len(before) == writes, (name, lines[: len(lines) - len(before)])
            if name in ("simulate", "forecast", "expose", "backtest", "sweep"):
                with working(settings) as worker:
                    assert worker.once()
            check_answer(operation, answer)
            if name in IDS:
                ids["id"] = answer.json()["id"]


def audited(guarded: TestClient) -> list[dict[str, Any]]:
    """The lines of the audit log, newest first."""
    return guarded.get("/v1/audit?limit=200").json()["items"]


def test_lines_of_a_batch_are_as_documented(service: TestClient) -> None:
    _, path, operation = OPERATIONS["decide_batch"]
    ((media, content),) = operation["requestBody"]["content"].items()
    answer = service.post(path, content=content["example"], headers={"Content-Type": media})
    schema = operation["responses"]["200"]["content"][media]["schema"]["contentSchema"]
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["status"] for line in lines] == [200, 200]
    validator: Any = jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    for line in lines:
        validator.validate(line)


def test_what_needs_a_scope_says_so_and_nothing_else_does(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"authentication": "required"}))
    with TestClient(app, raise_server_exceptions=False) as service:
        tokens: Tokens = app.state.services.of(Tokens)
        scopes: tuple[Scope, ...] = ("decide", "read", "admin", "follow")
        secrets = {scope: tokens.create(scope, [scope], None)[0] for scope in scopes}
        assert OPERATIONS
        for name, (method, path, operation) in OPERATIONS.items():
            target = address(path, operation, {"id": "01920000-0000-7000-8000-000000000000"})
            answered = service.request(method, target)
            if not operation["security"]:
                assert answered.status_code < 400, name
                continue
            assert answered.status_code == 401, name
            check_answer(operation, answered)
            needed = {scope for way in operation["security"] if way for scope in way["bearer"]}
            for scope, secret in secrets.items():
                answered = service.request(method, target, headers={"Authorization": f"Bearer {secret}"})
                allowed = scope in {*needed, "admin"}
                assert (answered.status_code not in (401, 403)) is allowed, (name, scope)
                if not allowed:
                    check_answer(operation, answered)


@pytest.mark.parametrize(
    "name", [name for name, (_, _, operation) in OPERATIONS.items() if operation.get("parameters")]
)
def test_a_timeout_that_is_none_is_refused_everywhere(homeless: TestClient, name: str) -> None:
    method, path, operation = OPERATIONS[name]
    target = address(path, operation, {"id": "01920000-0000-7000-8000-000000000000"})
    answer = homeless.request(method, target, headers={"Request-Timeout": "soon"})
    assert answer.status_code == 400
    check_answer(operation, answer)
