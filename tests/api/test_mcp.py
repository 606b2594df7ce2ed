"""``arbiter mcp`` with the protocol's own client, over stdio and HTTP, against a service that runs."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import UUID

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent, Tool

from app.cli import run
from app.studies.exposure_schemas import EXPOSURE
from app.studies.sweep_jobs import SWEEP
from app.traces.router import TRACE
from tests.support.instead import Instead
from tests.support.live import ROOT, environment_of, serving
from tests.support.mortal import mortal

pytestmark = pytest.mark.slow

ARBITER = Path(sys.executable).with_name("arbiter")
READING = {"find", "why", "what_if", "who_is_next", "plan", "compare", "sweep"}
WRITING = {"change_configuration", "carry_out"}
GUARANTEED = "queues.research.quota.gpu.guaranteed"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: eval, labels: {kueue.x-k8s.io/queue-name: serving}}
spec:
  parallelism: 1
  template: {spec: {containers: [{name: c, image: i, resources: {requests: {gpu: "1"}}}]}}
"""

Json = dict[str, Any]


@pytest.fixture(scope="module")
def address(migrated_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with the snapshot ``now``: four units of `sweep` run in research, `chat` waits in serving."""
    folder = tmp_path_factory.mktemp("data")
    with serving(migrated_database(), folder, ARBITER_SIMULATION_WORKER="beside") as (found, _):
        sent("PUT", f"{found}/v1/configurations/prod", EXPOSURE["configuration"])
        at = {"configuration": "prod", "state": EXPOSURE["state"], "asks": EXPOSURE["asks"]}
        sent("PUT", f"{found}/v1/snapshots/now", at)
        yield found


@pytest.fixture(scope="module")
def http(address: str) -> Iterator[str]:
    with listening("--url", address, "--pages", "https://console.example/") as found:
        yield found


@contextmanager
def listening(*words: str) -> Iterator[str]:
    """``arbiter mcp`` at a free port: where."""
    process = mortal(
        [sys.executable, ARBITER, "mcp", "--port", "0", *words], signal.SIGTERM,
        env=environment_of({}), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


def sent(method: str, url: str, body: Any) -> Json:
    headers = {"Content-Type": "application/json", "If-None-Match": "*"}
    with urlopen(Request(url, json.dumps(body).encode(), headers, method=method)) as reply:
        return json.load(reply)


def stdio(address: str, *words: str) -> StdioServerParameters:
    env = environment_of({"ARBITER_URL": address})
    return StdioServerParameters(command=str(ARBITER), args=["mcp", *words], env=env)


def offered(server: Any) -> list[Tool]:
    async def ask() -> list[Tool]:
        async with Client(server) as client:
            return (await client.list_tools()).tools

    return anyio.run(ask)


def called(server: Any, tool: str, **arguments: Any) -> CallToolResult:
    async def ask() -> CallToolResult:
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return anyio.run(ask)


def told(server: Any, tool: str, **arguments: Any) -> str:
    result = called(server, tool, **arguments)
    assert not result.is_error, result.content
    return text(result)


def refused(server: Any, tool: str, **arguments: Any) -> str:
    result = called(server, tool, **arguments)
    assert result.is_error
    return text(result)


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_over_both_transports_the_questions_are_offered_and_alike(address: str, http: str) -> None:
    over_http = offered(http)
    assert {tool.name for tool in over_http} == READING
    assert offered(stdio(address)) == over_http
    for tool in over_http:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.input_schema["additionalProperties"] is False
        for field in tool.input_schema["properties"].values():
            assert field["description"]
    asked = {"snapshot": "now", "queue": "serving", "requests": {"gpu": 1}, "priority": 5}
    ours, theirs = told(stdio(address), "what_if", **asked), told(http, "what_if", **asked)
    assert ours.splitlines()[:-1] == theirs.splitlines()[:-1]
    assert ours.startswith("my-job: preempt, stops 1: sweep\n")


def test_a_client_is_configured_as_the_page_says(address: str) -> None:
    (block,) = re.findall(r"^```json\n(.*?)^```", (ROOT / "docs" / "mcp.md").read_text(), re.DOTALL | re.MULTILINE)
    given = json.loads(block)["mcpServers"]["arbiter"]
    path = f"{ARBITER.parent}:{os.environ['PATH']}"
    env = environment_of(given["env"]) | {"PATH": path, "ARBITER_URL": address}
    server = StdioServerParameters(command=given["command"], args=given["args"], env=env)
    assert "workload sweep, configuration prod, snapshot now" in told(server, "find", text="sweep").splitlines()


def test_an_answer_ends_with_a_page_that_is_there(address: str, http: str) -> None:
    decision = page(told(http, "what_if", snapshot="now", queue="serving", requests={"gpu": 1}))
    assert re.fullmatch(r"/decisions/[0-9a-f-]{36}", decision)
    pages = [
        decision,
        page(told(http, "why", name=decision.rpartition("/")[2])),
        page(told(http, "find", text="swee")),
        page(told(http, "who_is_next", snapshot="now")),
        page(told(http, "plan", manifest=JOB, snapshot="now")),
        page(told(http, "compare", snapshot="now", variants=[{"name": "v", "set": {GUARANTEED: 4}}])),
    ]
    for path in pages:
        with urlopen(address + path) as reply:
            assert reply.status == 200, path


def page(answer: str) -> str:
    """The path that the last line links to."""
    last = answer.splitlines()[-1]
    assert last.startswith("https://console.example/"), answer
    return last.removeprefix("https://console.example")


def test_why_of_a_decision_and_of_what_the_log_knows(address: str, http: str) -> None:
    decided = told(http, "what_if", snapshot="now", queue="serving", requests={"gpu": 1})
    why = told(http, "why", name=page(decided).rpartition("/")[2])
    assert why == decided
    with urlopen(f"{address}/v1{page(decided)}") as reply:
        assert json.load(reply)["purpose"] == "what-if"
    lines = told(http, "why", name="sweep").splitlines()
    assert re.fullmatch(r"sweep: \d+ decisions stop it, 0 are about an ask of it", lines[0])
    assert any("decided to stop it for my-job: " in line for line in lines)
    assert refused(http, "why", name="swep") == "/name: nothing is known of 'swep'; nearest: sweep"


def test_what_if_a_configuration_were_otherwise(http: str) -> None:
    asked = {"snapshot": "now", "queue": "serving", "requests": {"gpu": 1}}
    changed = told(http, "what_if", **asked, set={"queues.serving.quota.gpu.guaranteed": 0, GUARANTEED: 4})
    assert "my-job, outcome: as it is: preempt; changed: wait" in changed.splitlines()
    decision = page(told(http, "what_if", **asked)).rpartition("/")[2]
    recorded = told(http, "what_if", decision=decision, set={GUARANTEED: 4})
    assert "as it is: 1 preempt; 1 evictions" in recorded.splitlines()
    assert "my-job, outcome: as it is: preempt; changed: admit" in recorded.splitlines()


def test_who_is_next_names_the_exposed_and_tells_how_far_it_is(http: str) -> None:
    heard: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    async def ask() -> CallToolResult:
        async with Client(http) as client:
            return await client.call_tool("who_is_next", {"snapshot": "now"}, progress_callback=progress)

    lines = text(anyio.run(ask)).splitlines()
    assert lines[0].startswith("1 run: 1 are stopped by what waits, 0 would be")
    assert lines[1] == "now: sweep in research, priority 0: chat, in round 1 (InCohortReclamation)"
    assert "chat in serving: round 2, stops 1: sweep" in lines
    assert heard


def test_a_plan_says_who_goes_before_it(http: str) -> None:
    lines = told(http, "plan", manifest=JOB, snapshot="now").splitlines()
    before = "admit; 1 that wait already go before it"
    assert lines[0] == f"batch/Job default/eval in serving, priority 0, 1 pods, gpu 1: {before}"
    refusals = refused(http, "plan", manifest=JOB, snapshot="now", queue="nowhere")
    assert "nowhere" in refusals


def test_rule_books_are_compared(http: str) -> None:
    variants = [{"name": "fits", "set": {GUARANTEED: 8}}, {"name": "other", "engine": "ytsaurus"}]
    lines = told(http, "compare", snapshot="now", variants=variants).splitlines()
    assert lines[0] == "as it is: 1 preempt; 1 evictions"
    assert lines[1] == "fits: 1 admit; 0 evictions"
    assert any(line.startswith("chat, outcome: as it is: preempt; fits: admit") for line in lines)


def test_a_sweep_says_what_each_point_came_to(http: str, address: str) -> None:
    lines = "\n".join(map(json.dumps, TRACE)).encode()
    headers = {"Content-Type": "application/x-ndjson"}
    with urlopen(Request(f"{address}/v1/traces/january", lines, headers, method="PUT")):
        pass
    begun = sent("POST", f"{address}/v1/sweeps", SWEEP)["id"]
    until = time.monotonic() + 300
    while "2 of 2 points played" not in (said := told(http, "sweep", sweep=begun)):
        assert time.monotonic() < until, said
        time.sleep(0.2)
    lines_told = said.splitlines()
    assert lines_told[0].startswith("trace january: ")
    assert all(
        re.match(r"two teams, seed \d+, /configuration/settings/kueue/fair_sharing (false|true): \d+ of \d+ jobs", line)
        for line in lines_told[1:3]
    )
    assert lines_told[-1] == f"https://console.example/sweeps/{begun}"
    assert f"sweep {begun}" in told(http, "find", text=begun[:18])
    nobody = str(UUID(int=0))
    assert refused(http, "sweep", sweep=nobody).startswith("404")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("find", {}, "/text"),
        ("find", {"text": 7}, "/text: "),
        ("find", {"text": "a", "more": 1}, "/more"),
        ("what_if", {"snapshot": "now"}, "/queue: which queue would the job go to?\n/requests: "),
        ("what_if", {"snapshot": "now", "queue": "q", "requests": {"gpu": 1}, "count": -1}, "/count: "),
        ("what_if", {"snapshot": "now", "queue": "nowhere", "requests": {"gpu": 1}}, "/asks/0/queue: "),
        ("what_if", {"snapshot": "now", "queue": "serving", "requests": {"gpu": "many"}}, "/asks/0/tasks/0/"),
        ("what_if", {"decision": "no-id", "set": {}}, "/decision: "),
        ("what_if", {"cluster": "c", "snapshot": "now", "queue": "q", "requests": {"gpu": 1}}, "/cluster: "),
        ("who_is_next", {"snapshot": "ghost"}, "404 "),
        ("who_is_next", {}, "which cluster? say --cluster; followed: none"),
        ("plan", {"manifest": "a: [", "snapshot": "now"}, "/manifest"),
        ("compare", {"snapshot": "now", "variants": []}, "/variants: "),
        ("compare", {"snapshot": "now", "variants": [{"name": "v", "engine": "slurm"}]}, "/variants/0/engine: "),
        ("compare", {"snapshot": "now", "variants": [{"name": "v", "set": {"a.b": 1}}]}, "v: refused: "),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(http: str, tool: str, arguments: Json, said: str) -> None:
    result = called(http, tool, **arguments)
    assert said in text(result)


def test_without_leave_nothing_is_written(address: str, http: str) -> None:
    change = {"name": "prod", "revision": 1, "set": {GUARANTEED: 3}, "comment": "more"}
    assert refused(http, "change_configuration", **change).endswith("it writes: start with --allow-writes")
    assert refused(http, "delete").startswith("no tool 'delete': there are find, why, ")
    with urlopen(f"{address}/v1/configurations/prod") as reply:
        assert json.load(reply)["revision"] == 1


def test_with_leave_a_configuration_is_changed_and_a_decision_carried_out(address: str) -> None:
    sent("PUT", f"{address}/v1/configurations/mine", EXPOSURE["configuration"])
    at = {"configuration": "mine", "state": EXPOSURE["state"], "asks": EXPOSURE["asks"]}
    sent("PUT", f"{address}/v1/snapshots/mine", at)
    with listening("--url", address, "--allow-writes") as server:
        written(server, address)


def written(server: str, address: str) -> None:
    tools = {tool.name: tool for tool in offered(server)}
    assert tools.keys() == READING | WRITING
    assert {name for name, tool in tools.items() if tool.annotations and not tool.annotations.read_only_hint} == WRITING
    change = {"name": "mine", "set": {GUARANTEED: 3}, "comment": "more for research"}
    assert "nothing was changed" in refused(server, "change_configuration", **change, revision=7)
    said = told(server, "change_configuration", **change, revision=1)
    assert said.splitlines()[0] == "mine: revision 2"
    with urlopen(f"{address}/v1/configurations/mine/revisions?limit=1") as reply:
        assert json.load(reply)["items"][0]["comment"] == "more for research"
    decision = told(server, "what_if", snapshot="mine", queue="serving", requests={"gpu": 1}).rpartition("/")[2]
    carried = told(server, "carry_out", snapshot="mine", decision=decision)
    assert re.match(r"snapshot mine is at generation \d+: \d+ run there", carried)
    assert "409" in refused(server, "carry_out", snapshot="mine", decision=decision)


def test_a_page_in_a_browser_cannot_reach_it_by_a_name_that_leads_here(http: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for header, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
        with pytest.raises(HTTPError) as found:
            urlopen(Request(http, body, accepted | header))
        with found.value as error:
            assert error.code == status


def test_a_service_that_is_away_is_said() -> None:
    said = refused(stdio("http://127.0.0.1:1"), "find", text="a")
    assert said.startswith("http://127.0.0.1:1: ")


def test_without_the_extra_it_is_named(instead: Instead, capsys: pytest.CaptureFixture[str]) -> None:
    known = util.find_spec
    instead("app.cli.mcp", find_spec=lambda name: None if name == "mcp" else known(name))
    assert run(["mcp"]) == 3
    assert "arbiter-preemption[mcp]" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(http: str, capsys: pytest.CaptureFixture[str]) -> None:
    port = http.rpartition(":")[2].partition("/")[0]
    assert run(["mcp", "--port", port]) == 3
    assert f"127.0.0.1:{port}: " in capsys.readouterr().err
    assert run(["mcp", "--url", "ftp://nowhere"]) == 3
