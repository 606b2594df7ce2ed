"""``python -m benchmarks.attacks``: what a stranger could send, over HTTP, to a service whose event loop is watched.

Of every request: whether the answer is one that the OpenAPI document names, how long the event loop ran without a turn
(milliseconds of processor time), and what the service's processes hold after it. Exits with 1 when the service is
gone, an answer is not documented, a stall is past its bound or memory is not given back."""

import http.client
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import inputs
from benchmarks.service import memory_mb, memory_of, service, wait_for_rest
from tests.support.hostile import HOSTILE

MOST_STALL_MS = 50.0
MOST_KEPT_MB = 200
REST_SECONDS = 60.0
"""Within which memory is given back once nothing is asked."""
_JSON = {"Content-Type": "application/json"}
_YAML = {"Content-Type": "application/yaml"}
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_PARTS = {"Content-Type": "multipart/form-data; boundary=b"}
_SWF = b"; UnixStartTime: 1\n 1 0 5 100 2 -1 -1 4 200 -1 1 7 1 -1 0 -1 -1 -1\n"
_FORMATS = ("kueue", "kai", "yunikorn", "ytsaurus", "slurm")


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: _JSON)


def _part(name: str, body: bytes) -> bytes:
    return b'--b\r\nContent-Disposition: form-data; name="%b"; filename="f"\r\n\r\n%b\r\n' % (name.encode(), body)


def _doors(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Method, path and media type of every operation that reads a body: what was added since yesterday too."""
    for template, operations in document["paths"].items():
        for method, operation in operations.items():
            for media in operation.get("requestBody", {}).get("content", {}):
                yield method.upper(), re.sub(r"{\w+}", "x", template), media


def _small(document: dict[str, Any]) -> Iterator[Attack]:
    """Texts that are small and would cost much, at every door that reads any."""
    wrapped: dict[str, Any] = {"engine": "kueue", "configuration": {}, "state": {}, "asks": []}
    for name, text in HOSTILE.items():
        files = _part("trace", _SWF) + _part("mapping", text) + b"--b--\r\n"
        yield Attack(f"trace's mapping: {name}", "PUT", "/v1/traces/x?format=swf", files, _PARTS)
        yield Attack(f"trace: {name}", "PUT", "/v1/traces/x", text, {"Content-Type": "application/x-ndjson"})
        for form in _FORMATS:
            yield Attack(f"{form} import: {name}", "POST", f"/v1/configurations:import?format={form}", text, _YAML)
        yield Attack(f"plan: {name}", "POST", "/v1/plans", _part("cluster", text) + b"--b--\r\n", _PARTS)
        plan = json.dumps({"cluster": text.decode(errors="replace"), "manifests": "a: 1"}).encode()
        yield Attack(f"plan of JSON: {name}", "POST", "/v1/plans", plan)
        for method, path, media in _doors(document):
            yield Attack(f"{method} {path}: {name}", method, path, text, {"Content-Type": media})
            yield Attack(f"{method} {path}, as YAML: {name}", method, path, text, _YAML)
        yield Attack(f"batch: {name}", "POST", "/v1/decisions:batch", json.dumps(wrapped).encode() + b"\n" + text)
    nodes = b"resources: {cpu: 1}\nnodes: {count: 1000000, capacity: {cpu: 1}}"
    files = _part("trace", _SWF) + _part("mapping", nodes) + b"--b--\r\n"
    yield Attack("a million nodes", "PUT", "/v1/traces/x?format=swf", files, _PARTS)


def _large() -> Iterator[Attack]:
    """Bodies at the limit of what is read, and answers as large as can be had."""
    yield Attack("empty parts", "PUT", "/v1/traces/x?format=swf", b"--b\r\n\r\n\r\n" * 5_800_000 + b"--b--", _PARTS)
    named = _part("a", b"") * 500_000 + b"--b--\r\n"
    yield Attack("named parts", "PUT", "/v1/traces/x?format=swf", named, _PARTS)
    yield Attack("a form's fields", "POST", "/sign-in", b"a=b&" * 2_000_000, _FORM)
    yield Attack("a form's escapes", "POST", "/ask", b"a=" + b"%41" * 2_000_000, _FORM)
    yield Attack("numbers", "POST", "/v1/decisions", b'{"asks": [' + b"1," * 25_000_000 + b"1]}")
    yield Attack("nested", "PUT", "/v1/snapshots/x", b'{"state": ' + b'[{"a":' * 5_000_000)
    yield Attack("lines", "PUT", "/v1/traces/x", b"{}\n" * 15_000_000, {"Content-Type": "application/x-ndjson"})
    yield Attack("lines of a batch", "POST", "/v1/decisions:batch", b"{}\n" * 1_000_000)
    queues = [{"name": f"q{i}", "kueue": {"quotas": [{"resource": "cpu", "flavor": "f", "nominal": 1}]}}
              for i in range(50_000)]  # fmt: skip
    large = json.dumps({"configuration": {"queues": queues, "flavors": [{"name": "f"}]}}).encode()
    for number in (1, 2):
        yield Attack(f"a large configuration {number}", "PUT", "/v1/configurations/large", large)
        yield Attack("it, shown", "GET", "/v1/configurations/large")
        yield Attack("one queue of it", "GET", "/v1/configurations/large/queues/q7")
        yield Attack("it, exported", "GET", "/v1/configurations/large:export?format=kueue")
        large = large.replace(b'"nominal": 1}', b'"nominal": 2}')
    yield Attack("its difference", "GET", "/v1/configurations/large/revisions/2/diff?against=1")
    manifests = "\n---\n".join(
        f"apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {{name: q{i}}}\nspec: {{cohort: c}}"
        for i in range(20_000)
    ).encode()
    yield Attack("many manifests", "POST", "/v1/configurations:import?format=kueue", manifests, _YAML)
    yield Attack("many manifests to plan", "POST", "/v1/plans", _part("cluster", manifests) + b"--b--\r\n", _PARTS)
    jobs = b"".join(
        b'{"job":{"ask":{"id":"j%d","queue":"q","tasks":[{"name":"m","count":1,"requests":{"cpu":1}}]},'
        b'"submitted_at":%d,"duration":5}}\n' % (i, i) for i in range(200_000)
    )  # fmt: skip
    yield Attack("many jobs", "PUT", "/v1/traces/many", jobs, {"Content-Type": "application/x-ndjson"})
    yield Attack("they, shown", "GET", "/v1/traces/many")
    for name in ("kueue-classic-flat-n50000-q1000", "yunikorn-node-5000n-50000a-500q"):
        if (found := inputs.recorded(name)) is None:
            continue
        body = found.body
        kept = json.dumps({key: value for key, value in found.request.items() if key != "options"}).encode()
        yield Attack(f"{name}: snapshot", "PUT", "/v1/snapshots/large", kept)
        yield Attack("its state", "GET", "/v1/snapshots/large/state")
        yield Attack("its work", "GET", "/v1/snapshots/large/asks")
        for path in ("decisions", "shares", "preemptibility", "effective-settings"):
            yield Attack(f"{name}: {path}", "POST", f"/v1/{path}", body)
        variants = {**found.request, "variants": [{"name": "a"}, {"name": "b"}]}
        yield Attack(f"{name}: comparison", "POST", "/v1/comparisons", json.dumps(variants).encode())
        yield Attack("the log", "GET", "/v1/decisions?limit=1000")


def _documented(document: dict[str, Any], attack: Attack, status: int) -> bool:
    path = attack.path.partition("?")[0]
    for template, operations in document["paths"].items():
        pattern = re.escape(template).replace(r"\{", "{").replace(r"\}", "}")
        if re.fullmatch(re.sub(r"{\w+}", "[^/]+?", pattern), path) and attack.method.lower() in operations:
            return str(status) in operations[attack.method.lower()]["responses"]
    return status in (200, 303, 400, 403, 404, 405, 413, 415, 422)  # a page for people


def _ask(port: int, attack: Attack) -> tuple[int, float]:
    """Status and seconds; 0: it was not answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    begun = time.perf_counter()
    try:
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # refused before it was read to its end: the answer is there
            connection.request(attack.method, attack.path, attack.body, attack.headers)
        response = connection.getresponse()
        response.read()
        return response.status, time.perf_counter() - begun
    except (OSError, http.client.HTTPException):
        return 0, time.perf_counter() - begun
    finally:
        connection.close()


def main() -> int:
    """Send everything, print what is out of bounds and the worst; the exit status."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "stalls"
        written.touch()
        with service(2, ("benchmarks.watched", str(written))) as (port, process):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/openapi.json")
            document = json.loads(connection.getresponse().read())
            _ask(port, Attack("pictures and pages are imported", "GET", "/"))
            wait_for_rest(process)
            before, worst, count, seen = memory_mb(process), (0.0, ""), 0, written.stat().st_size
            for attack in (*_small(document), *_large()):
                status, seconds = _ask(port, attack)
                time.sleep(0.005)
                lines = written.read_text()[seen:].splitlines()
                seen += sum(len(line) + 1 for line in lines)
                stall = max((float(line.split()[1]) for line in lines), default=0.0)
                count += 1
                worst = max(worst, (stall, attack.name))
                fine = stall <= MOST_STALL_MS and _documented(document, attack, status)
                bad += not fine
                if not fine or stall > MOST_STALL_MS / 2 or seconds > 10:
                    verdict = "ok  " if fine else "BAD "
                    print(f"{verdict} {status} {seconds:7.2f} s, stall {stall:7.1f} ms  {attack.name}", flush=True)
                if process.poll() is not None:
                    print(f"BAD  the service ended with {process.returncode}")
                    return 1
            for path in (
                "snapshots/large",
                "snapshots/x",
                "configurations/large",
                "configurations/x",
                "traces/many",
                "traces/x",
            ):
                _ask(port, Attack("what was stored is taken away", "DELETE", f"/v1/{path}", b"", {"If-Match": "*"}))
            end = time.monotonic() + REST_SECONDS
            while time.monotonic() < end and memory_mb(process) > before + MOST_KEPT_MB:
                time.sleep(1)
            by_process = memory_of(process)
            after = round(sum(by_process.values()), 1)
            alive = _ask(port, Attack("alive", "GET", "/readyz"))[0] == 200
    kept = after - before
    bad += (not alive) + (kept > MOST_KEPT_MB)
    print(f"{count} requests; the longest stall {worst[0]:.1f} ms ({worst[1]}; at most {MOST_STALL_MS:g})")
    print(f"memory {before} MB before, {after} MB after (at most {MOST_KEPT_MB} more): {by_process}; ready: {alive}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
