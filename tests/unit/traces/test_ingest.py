"""A whole trace to what is stored of it: lines, chunks, work by queue, limits, the cluster, its files. By hand."""

import gzip
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from app.base.errors import BadInput, BadRequest, TooLarge
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.question import stoppable
from app.traces import ingest as ingesting
from app.traces import preparing
from app.traces.ingest import Ingested, Limits, Source, ingest, unpacked
from app.traces.jobs import Mapping, TraceSummary
from app.traces.preparing import (
    Prepared,
    Upload,
    body,
    configuration,
    jobs_and_changes,
    limits,
    load,
    mapping_of,
    prepare,
    source_of,
)
from app.traces.repository import StoredTrace
from tests.support.bounds import Bounded
from tests.support.formats import POD, line, rows
from tests.support.ingest import Json, change, job, lines, queue
from tests.support.instead import Machine

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NODE = {"sn": "n", "cpu_milli": 4000, "memory_mib": 1, "gpu": 1, "model": "A"}


def read(*entries: Json, most: Limits | None = None) -> Ingested:
    return ingest(Source("ndjson", lines(*entries)), most or Limits())


def swf(text: bytes, **mapping: Any) -> Ingested:
    given = {"queue": "user-{user}", "count": "processors", "resources": {"cpu": 1}} | mapping
    return ingest(Source("swf", text, mapping=msgspec.convert(given, Mapping)), Limits())


def said(of: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        of()
    return [one.detail for one in refused.value.problems]


def text_of(found: Ingested) -> bytes:
    return b"".join(unpacked(chunk.data) for chunk in found.chunks)


def test_what_is_known_of_a_trace_of_lines() -> None:
    """3 cores of 1.5 for 5 s twice, times 2 tasks: work in thousandths of a core and microseconds."""
    found = read(change(3), job("a", 3.5), job("b", 4, "other"), change(6), job("c", 5))
    text = text_of(found)
    assert (found.jobs, found.changes, found.size, found.digest) == (3, 2, len(text), sha256(text).hexdigest())
    assert (found.start, found.span, found.nodes, found.mapping) == (None, 3.0, [], None)
    assert {name: (work.group, work.jobs, dict(work.steps)) for name, work in found.queues.items()} == {
        "q": (None, 2, {"cpu": 2 * 2 * 1500 * 5_000_000, "memory": 2 * 2 * 3 * 5_000_000}),
        "other": (None, 1, {"cpu": 2 * 1500 * 5_000_000, "memory": 2 * 3 * 5_000_000}),
    }
    assert [(chunk.first, chunk.jobs) for chunk in found.chunks] == [(0, 3)]
    assert text.endswith(b"\n")
    kinds = ["at" if "at" in json.loads(one) else json.loads(one)["ask"]["id"] for one in text.splitlines()]
    assert kinds == ["at", "a", "b", "at", "c"]
    nothing = read()
    assert (nothing.jobs, nothing.size, nothing.span, nothing.chunks) == (0, 0, 0.0, [])
    dated = read(job("a", "2026-01-01T00:00:01Z"), job("b", "2026-01-01T00:00:03Z"))
    assert (dated.start, dated.span) == (datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC), 2.0)


def test_lines_are_packed_in_chunks(bounded: Bounded) -> None:
    one = len(text_of(read(job("0"))))
    bounded(ingesting, CHUNK=2 * one)
    found = read(*(job(str(i)) for i in range(5)))
    assert [(chunk.first, chunk.jobs, unpacked(chunk.data).count(b"\n")) for chunk in found.chunks] == [
        (0, 2, 2), (2, 2, 2), (4, 1, 1),
    ]  # fmt: skip
    assert text_of(found) == b"".join(jobs_and_changes(found))
    bounded(ingesting, CHUNK=2 * one + 1)
    assert [chunk.jobs for chunk in read(*(job(str(i)) for i in range(5))).chunks] == [3, 2]


def test_a_trace_has_so_many_jobs_and_bytes() -> None:
    three = [job(str(i)) for i in range(3)]
    size = read(*three).size
    assert read(*three, most=Limits(3, size)).jobs == 3
    assert said(lambda: read(*three, most=Limits(2, size))) == ["line 3: more than 2 jobs (ARBITER_TRACE_JOBS)"]
    assert said(lambda: read(*three, {"x": 1}, most=Limits(3, size - 1))) == [
        f"line 3: more than {size - 1} bytes as newline-delimited JSON (ARBITER_TRACE_BYTES)"
    ]


def test_everything_that_is_wrong_is_named_up_to_two_hundred() -> None:
    wrong = job("x")
    wrong["ask"]["tasks"][0]["requests"] = {"cpu": "many", "memory": -1}
    found = said(lambda: read(wrong))
    assert [one.partition(":")[0] for one in found] == ["line 1", "line 1"]
    assert "cpu: " in found[0]
    many = [said(lambda n=n: ingest(Source("ndjson", b"nonsense\n" * n), Limits())) for n in (200, 202)]
    assert [(len(one), one[-1].partition(":")[0]) for one in many] == [(200, "line 200"), (201, "and 2 more")]


def test_nodes_of_a_mapping_are_as_many_as_it_or_the_header_says() -> None:
    capacity = {"cpu": 2}

    def names(text: bytes, **nodes: Any) -> list[str]:
        return [node.name for node in swf(text, nodes={"capacity": capacity, **nodes}).nodes]

    two = ["node-1", "node-2"]
    assert names(b"; MaxNodes: 2\n; MaxProcs: 9\n" + line()) == two
    assert names(b"; MaxProcs: 2\n" + line()) == two
    assert names(b"; MaxNodes: 7\n" + line(), count=2) == two
    assert names(b"; MaxNodes: 2\n") == two
    detail = "line 1: the header has no MaxNodes, and `nodes.count` of the mapping does not say how many"
    assert said(lambda: names(line())) == [detail]
    many = "line 1: 100001 nodes of 1 resources: at most 100000 nodes and 1000000 capacities are made"
    assert said(lambda: names(b"; MaxNodes: 100001\n" + line())) == [many]
    wide = {"capacity": {f"r{i}": 1 for i in range(101)}, "count": 10_000}
    assert said(lambda: swf(line(), nodes=wide))[0].startswith("line 1: 10000 nodes of 101 resources")
    found = swf(b"; MaxNodes: 2\n; UnixStartTime: 60\n" + line(submit=3), nodes={"capacity": capacity})
    first, second = (json.loads(one) for one in text_of(found).splitlines())
    assert (first["at"], [node["name"] for node in first["nodes"]["add"]], second["submitted_at"]) == (0, two, 3)
    assert (found.changes, found.jobs, found.span, found.start) == (1, 1, 3.0, datetime(1970, 1, 1, 0, 1, tzinfo=UTC))
    assert swf(line()).nodes == []
    assert swf(b"; MaxNodes: 2\n" + line()).nodes == []


def test_jobs_that_follow_others() -> None:
    text = b"\n".join((line(), line(job=2, preceding_job=1), line(job=3, preceding_job=9)))
    found = swf(text, dependencies=True)
    assert [json.loads(one).get("after", []) for one in text_of(found).splitlines()] == [[], ["1"], []]
    assert [tuple(note) for note in found.notes.listed] == [(3, "job 9, which precedes it, is not in the trace")]


def test_queues_are_told_apart_with_their_groups(bounded: Bounded) -> None:
    cluster = {"each": {"queue": {"name": "*"}, "groups": "group-{group}"}}
    text = b"\n".join((line(), line(job=2, user=8, group=2), line(job=3)))
    found = swf(text, cluster=cluster)
    assert {name: (work.group, work.jobs) for name, work in found.queues.items()} == {
        "user-7": ("group-1", 2), "user-8": ("group-2", 1),
    }  # fmt: skip
    assert found.queues["user-7"].steps == {"cpu": 2 * 4 * 1000 * 100_000_000}
    bounded(ingesting, MOST_QUEUES=2)
    assert swf(text, cluster=cluster).jobs == 3
    more = text + b"\n" + line(job=4, user=9) + b"\n" + line(job=5, user=10)
    assert said(lambda: swf(more)) == ["line 4: more than 2 queues"]
    # Lines of our own name queues that are there without any bound: of those past it no work is counted.
    known = read(job("a"), job("b", queue="r"), job("c", queue="s"), job("d"))
    assert {name: work.jobs for name, work in known.queues.items()} == {"q": 2, "r": 1}


def test_a_configuration_has_no_more_quotas_than_are_made(bounded: Bounded) -> None:
    text = b"\n".join((line(), line(job=2, user=8), line(job=3)))
    flavors = [{"name": name} for name in "xyz"]
    given = {"cluster": {"each": {"queue": {"name": "*"}}, "flavors": flavors}, "resources": {"cpu": 1, "gpu": 1}}
    bounded(preparing, MOST_QUOTAS=2 * 3 * 2)
    made = configuration(swf(text, **given))
    assert made is not None
    assert len(made.queues) == 2
    bounded(preparing, MOST_QUOTAS=2 * 3 * 2 - 1)
    with pytest.raises(BadInput) as refused:
        configuration(swf(text, **given))
    detail = "2 queues of 3 flavors and 2 resources: at most 11 quotas are made"
    assert [(problem.pointer, problem.detail) for problem in refused.value.problems] == [("/mapping/cluster", detail)]


def test_a_line_that_no_job_can_be_made_of_is_named_and_the_next_is_read() -> None:
    text = b"\n".join((line(requested_processors=-1, allocated_processors=-1), line(job=2, user="x"), line(job=3)))
    found = said(lambda: swf(text))
    assert [one.partition(":")[0] for one in found] == ["line 1", "line 2"]
    wrong = {"resources": {"cpu": 1}, "queue": "{nobody}"}
    with pytest.raises(InvalidInput) as refused:
        swf(text, **wrong)
    assert [one.pointer for one in refused.value.problems] == ["/mapping/queue"]


def test_pods_and_their_nodes() -> None:
    source = Source("alibaba-gpu-2023", rows(POD), rows(NODE))
    found = ingest(source, Limits())
    assert ([node.name for node in found.nodes], found.changes, found.jobs) == (["n"], 1, 1)
    alone = ingest(Source("alibaba-gpu-2023", rows(POD)), Limits())
    assert (alone.nodes, alone.changes, alone.jobs) == ([], 0, 1)


EACH: Json = {"queue": {"name": "*", "parent": "all", "quota": {"cpu": {"limit": 9}}}}
JOBS = b"; MaxNodes: 1\n" + b"\n".join((line(), line(job=2, user=8), line(job=3, user=9, run_time=300)))


def played(each: Json, capacity: Any = 10, **cluster: Any) -> Configuration:
    found = configuration(swf(JOBS, nodes={"capacity": {"cpu": capacity}}, cluster={"each": EACH | each, **cluster}))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("share", "capacity", "expected"),
    [
        ("equal", 10, ["3333m", "3333m", "3334m"]), ("work", 10, [2, 2, 6]), ("none", 10, [0, 0, 0]),
        ("equal", 9, [3, 3, 3]), ("work", "10001m", ["2000m", "2000m", "6001m"]),
    ],
)  # fmt: skip
def test_what_the_cluster_has_is_shared_to_the_last_step(share: str, capacity: Any, expected: list[Any]) -> None:
    made = played({"share": share}, capacity)
    names = ["user-7", "user-8", "user-9"]
    found = [queue(made, name) for name in names]
    scaled = [2 if one == "2000m" else one for one in expected]
    assert [one["quota"] for one in found] == [{"cpu": {"guaranteed": amount, "limit": 9}} for amount in scaled]
    assert [one["parent"] for one in found] == ["all"] * 3
    assert [one.name for one in made.queues] == names


def test_queues_may_have_cohorts_and_the_upper_part_of_the_tree() -> None:
    made = played({"groups": "g-{group}"}, queues=[{"name": "all"}], engine="kai")
    assert [(one.name, one.parent) for one in made.queues] == [
        ("all", None), ("g-1", "all"), ("user-7", "g-1"), ("user-8", "g-1"), ("user-9", "g-1"),
    ]  # fmt: skip
    assert made.engine == "kai"
    assert configuration(swf(JOBS)) is None


def test_flavors_have_what_the_nodes_with_their_labels_have() -> None:
    """A node belongs to the first flavor whose labels it has; one without those labels to none."""
    mapping = {
        "resources": {"cpu": 1}, "queue": "{qos}",
        "cluster": {"each": {"queue": {"name": "*"}}, "flavors": [
            {"name": "a", "node_labels": {"gpu-model": "A"}}, {"name": "also", "node_labels": {"gpu-model": "A"}},
            {"name": "b", "node_labels": {"gpu-model": "B"}},
        ]},
    }  # fmt: skip
    nodes = rows(
        NODE, NODE | {"sn": "m"}, NODE | {"sn": "o", "model": "B", "cpu_milli": 1500},
        NODE | {"sn": "p", "model": ""},
    )  # fmt: skip
    found = ingest(Source("alibaba-gpu-2023", rows(POD), nodes, msgspec.convert(mapping, Mapping)), Limits())
    made = configuration(found)
    assert made is not None
    (group,) = queue(made, "LS")["resource_groups"]
    assert group["resources"] == ["cpu"]
    assert [(one["name"], one["quota"]["cpu"]["guaranteed"]) for one in group["flavors"]] == [
        ("a", 8), ("also", 0), ("b", "1500m"),
    ]  # fmt: skip
    assert "quota" not in queue(made, "LS")


@pytest.mark.parametrize("names", [["spot"], ["default", "spot"]])
def test_quotas_are_by_flavor_where_there_is_more_to_say_than_the_default(names: list[str]) -> None:
    made = queue(played({}, flavors=[{"name": name} for name in names]), "user-7")
    (group,) = made["resource_groups"]
    assert ([one["name"] for one in group["flavors"]], "quota" in made) == (names, False)
    assert "resource_groups" not in queue(played({}, flavors=[{"name": "default"}]), "user-7")


def prepared(files: dict[str, bytes], form: Any = "swf") -> Prepared:
    return prepare(Upload("t", form, NOON, Limits()), files)


def test_what_is_stored_of_a_trace() -> None:
    mapping = {"resources": {"cpu": 1, "memory": 2}, "nodes": {"capacity": {"cpu": 3}, "count": 1}}
    found = prepared({"trace": line(), "mapping": json.dumps(mapping).encode()})
    summary = msgspec.json.decode(unpacked(found.summary), type=TraceSummary)
    size = sum(len(unpacked(chunk.data)) for chunk in found.chunks)
    assert msgspec.to_builtins(summary) == msgspec.to_builtins(TraceSummary(
        name="t", digest=found.digest, format="swf", jobs=1, changes=1, nodes=1, bytes=size, start=None, seconds=3.0,
        queues=summary.queues, created_at=NOON,
    ))  # fmt: skip
    work = summary.queues["default"]
    assert (work.jobs, work.work) == (1, {"cpu": 100.0, "memory": 200.0})
    assert (found.configuration, json.loads(found.answer)) == (None, json.loads(unpacked(found.summary)))
    clustered = mapping | {"cluster": {"each": {"queue": {"name": "*"}}}}
    found = prepared({"": line() + b"\n" + line(job=2, status=2), "mapping": json.dumps(clustered).encode()})
    assert found.configuration is not None
    assert json.loads(found.answer)["configuration"] == json.loads(unpacked(found.configuration))
    told = json.loads(unpacked(found.summary))
    assert ("configuration" in told, told["notes"], [note["line"] for note in told["first_notes"]]) == (False, 1, [2])


def test_of_many_queues_a_thousand_are_shown() -> None:
    found = prepare(
        Upload("t", "ndjson", NOON, Limits()), {"": lines(*(job(str(i), queue=f"q{i:04}") for i in range(1001)))}
    )
    shown = msgspec.json.decode(unpacked(found.summary), type=TraceSummary).queues
    assert (len(shown), "q0999" in shown, "q1000" in shown) == (1000, True, False)


@pytest.mark.parametrize(
    ("form", "files", "detail"),
    [
        ("swf", {"trace": b"", "pods": b""}, "format swf has no file 'pods'; there are mapping, trace"),
        ("ndjson", {"": b"", "mapping": b""}, "format ndjson has no file 'mapping'; there are trace"),
        ("alibaba-gpu-2023", {"trace": b""}, "format alibaba-gpu-2023 has no file 'trace'; there are mapping, nodes,"
         " pods"),
    ],
)  # fmt: skip
def test_files_that_are_not_meant(form: Any, files: dict[str, bytes], detail: str) -> None:
    with pytest.raises(BadRequest) as refused:
        source_of(form, files)
    assert refused.value.detail.startswith(detail)


@pytest.mark.parametrize(
    ("mapping", "detail"),
    [
        (b"{", "the mapping: neither JSON nor YAML"),
        (b"#" * ((1 << 20) + 1), "the mapping has 1048577 bytes; it may have 1048576"),
        (b"# nothing", "the mapping is empty"),
        (b"a: 1\n---\na: 2", "the mapping has 2 documents, not one"),
    ],
)
def test_a_mapping_that_is_none(mapping: bytes, detail: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        source_of("swf", {"": b"", "mapping": mapping})
    assert refused.value.problems[0].detail.startswith(detail)


def test_which_file_is_which() -> None:
    mapping = b"resources: {cpu: 1}"
    assert mapping_of(None) is None
    assert mapping_of(mapping + b"\n" + b"#" * ((1 << 20) - len(mapping) - 1)) == Mapping(resources={"cpu": 1})
    pods = {"pods": b"p", "nodes": b"n", "mapping": mapping}
    assert source_of("alibaba-gpu-2023", pods) == Source("alibaba-gpu-2023", b"p", b"n", Mapping(resources={"cpu": 1}))
    assert source_of("ndjson", {"": b"whole", "trace": b"t"}) == Source("ndjson", b"whole")
    for form, missing in (("swf", "trace"), ("alibaba-gpu-2023", "pods")):
        with pytest.raises(BadInput) as refused:
            source_of(form, {"mapping": mapping})
        assert [one.detail for one in refused.value.problems] == [f"file {missing!r} is missing"]


def test_a_trace_as_the_body_of_a_simulation(bounded: Bounded) -> None:
    bounded(ingesting, CHUNK=1)
    text = b"; UnixStartTime: 60\n" + JOBS
    found = swf(text, nodes={"capacity": {"cpu": 1}}, cluster={"each": EACH})
    document = json.loads(b"".join(body(found)))
    assert list(document) == ["configuration", "trace"]
    assert document["trace"]["start"] == "1970-01-01T00:01:00Z"
    assert [len(document["trace"][name]) for name in ("changes", "jobs")] == [1, 3]
    dateless = json.loads(b"".join(body(swf(JOBS, cluster={"each": EACH}))))
    assert (list(dateless["trace"]), dateless["trace"]["changes"]) == (["changes", "jobs"], [])
    with pytest.raises(BadInput) as refused:
        next(body(swf(JOBS)))
    assert [one.pointer for one in refused.value.problems] == ["/mapping/cluster"]


def stored(found: Ingested, pieces: list[bytes] | None = None) -> StoredTrace:
    summary = TraceSummary(
        name="t", digest="", format="ndjson", jobs=found.jobs, changes=found.changes, bytes=0, start=found.start,
        created_at=NOON,
    )  # fmt: skip
    return StoredTrace(summary, lambda: iter(pieces or list(jobs_and_changes(found))))


def test_a_stored_trace_is_read_as_it_was_sent(bounded: Bounded) -> None:
    bounded(ingesting, CHUNK=1)
    trace = stored(read(change(3), job("a", 3), job("b", 4), change(6), job("c", 6)))
    assert (trace.start, trace.total, [one.at for one in trace.changes()]) == (None, 3, [3, 6])
    assert [(number, one.ask.id) for number, one in trace.numbered()] == [(2, "a"), (3, "b"), (5, "c")]
    assert [one.ask.id for one in trace.jobs()] == ["a", "b", "c"]
    untouched = StoredTrace(stored(read(job("a")))._summary, _nobody)  # pyright: ignore[reportPrivateUsage]
    assert untouched.changes() == [], "where there are none nothing is read"
    asked: list[int] = []
    with stoppable(lambda: asked.append(1)):
        assert len(list(trace.jobs())) == 3
    assert len(asked) == 5, "before each piece"


def _nobody() -> Iterator[bytes]:
    raise AssertionError


SMALL = lines(job("a"))


def test_files_are_what_they_begin_as_and_never_larger_than_allowed(tmp_path: Path, machine: Machine) -> None:
    def of(name: str, content: bytes, most: int = len(SMALL)) -> bytes:
        path = tmp_path / name
        path.write_bytes(content)
        return preparing.bounded(str(path), most)

    twice = zstandard.compress(SMALL[:9]) + zstandard.compress(SMALL[9:])
    for content in (SMALL, gzip.compress(SMALL), zstandard.compress(SMALL), twice):
        assert of("t", content, max(len(content), len(SMALL))) == SMALL
    room = max(len(gzip.compress(SMALL * 2)), len(SMALL))
    for content in (SMALL + b"x", gzip.compress(SMALL * 9), zstandard.compress(SMALL * 9)):
        with pytest.raises(TooLarge, match=rf"^{tmp_path}/t: more than \d+ bytes \(ARBITER_TRACE_BYTES\)$"):
            of("t", content, room if content[:1] != b"{" else len(SMALL))
    for content in (gzip.compress(SMALL)[:-9], b"\x1f\x8bnothing", b"\x28\xb5\x2f\xfdnothing"):
        with pytest.raises(BadRequest, match=rf"^{tmp_path}/t: "):
            of("t", content)
    stdin = type("Stdin", (), {"buffer": io.BytesIO(SMALL)})
    machine.reads(stdin)
    assert preparing.bounded("-", len(SMALL)) == SMALL


def test_a_format_is_told_by_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in (("t.ndjson.gz", gzip.compress(SMALL)), ("log.swf.gz", line()), ("pods.csv", rows(POD))):
        (tmp_path / name).write_bytes(content)
        assert load(str(tmp_path / name), None, None, None).jobs == 1
    (tmp_path / "m").write_text("resources: {cpu: 5}")
    found = load(str(tmp_path / "log.swf.gz"), "swf", str(tmp_path / "m"), None)
    assert found.mapping == Mapping(resources={"cpu": 5})
    (tmp_path / "n").write_bytes(rows(NODE))
    assert len(load(str(tmp_path / "pods.csv"), None, None, str(tmp_path / "n")).nodes) == 1
    with pytest.raises(BadRequest, match=r"^no format 'xml'; there are ndjson, swf, alibaba-gpu-2023$"):
        load("nowhere", "xml", None, None)
    monkeypatch.setenv("ARBITER_TRACE_JOBS", "3")
    monkeypatch.setenv("ARBITER_TRACE_BYTES", "5000")
    assert limits() == Limits(3, 5000)
    monkeypatch.setenv("ARBITER_TRACE_JOBS", "none")
    with pytest.raises(BadRequest):
        preparing.limits()
