"""Manifests that mean harm: refused with a reason, in bounded time and memory, or read with findings."""

import gc
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.base import documents
from app.base.decoding import whole
from app.base.documents import MAX_BYTES, read
from app.formats import FORMATS, Unreadable, import_configuration, objects
from tests.support.bounds import Bounded


def laughs(levels: int = 12) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines).encode()


REFUSED: dict[str, tuple[bytes, str]] = {
    "aliases that multiply": (laughs(), "counting what aliases stand for"),
    "an alias of itself": (b"a: &a [*a]", "has no anchor before it"),
    "a key twice in YAML": (b"kind: List\nitems: []\nitems: []", "'items' occurs twice"),
    "a key twice in JSON": (b'{"kind": "List", "kind": "Pod"}', "'kind' occurs twice"),
    "deep YAML": (b"- " * 100_000 + b"a", "nested deeper"),
    "deep flow": (b"[" * 1_000_000, "nested"),
    "deep JSON": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    "an object of Python": (b"!!python/object/apply:os.system [ls]", "is not supported"),
    "a tag of its own": (b"a: !include secrets.yaml", "is not supported"),
    "keys that are lists": (b"? [a]\n: b", "a key must be a scalar"),
    "not UTF-8": (b"a: \xff\xfe", "not UTF-8 at byte 3"),
    "a control character": (b"a: \x00", "does not allow"),
    "neither JSON nor YAML": (b"{a: b", "at line 2"),
    "NaN": (b'{"weight": NaN}', "is not JSON"),
    "half a surrogate": (b'{"kind": "\\ud800"}', "surrogate"),
    "a number of thousands of digits": (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
    "merging what is no mapping": (b"a: 1\n<<: 1", "merges mappings only"),
    "too many values": (b"- a\n" * 2_100_000, "more than 2000000 values"),
    "too many bytes": (b"#" * (MAX_BYTES + 1), "a manifest may have"),
}


# Values are counted while they are read, whatever is made of them: seconds each.
@pytest.mark.parametrize(
    ("name", "format"),
    [
        (name, to)
        for name in REFUSED
        for to in ("kubernetes", "ytsaurus")
        if (name, to) != ("too many values", "ytsaurus")
    ],
)
def test_refused_with_a_reason_and_soon(name: str, format: str) -> None:  # noqa: A002
    body, reason = REFUSED[name]
    begun = time.process_time()
    with pytest.raises(Unreadable, match=reason) as caught:
        import_configuration(body, format)
    assert time.process_time() - begun < 60
    assert len(caught.value.problems[0].detail) < 500


STRANGE: list[Any] = [
    None, 1, "text", [], {}, [1, None, "x", [], {}], {"kind": None}, {"kind": 7}, {"kind": "Pod"}, {"apiVersion": 3},
    {"kind": "List", "items": {}}, {"kind": "List", "items": [None, 3, {"kind": "Pod", "metadata": 5}]},
    {"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "p"}}]},
    {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": []},
    {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q"},
     "spec": {"cohort": 5, "resourceGroups": [3, {"flavors": [{"resources": [{"nominalQuota": True}]}]}],
              "preemption": {"withinClusterQueue": "Sometimes", "workloadSorting": ["x"]},
              "fairSharing": {"weight": "-1"}, "flavorFungibility": 1}},
    {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"},
     "spec": {"podSets": [{"count": -3, "template": {"spec": {"containers": "x"}}}]}, "status": {"conditions": [4]}},
    {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"}, "spec": {},
     "status": {"admission": {"clusterQueue": "q",
                              "podSetAssignments": [{"count": -1, "resourceUsage": {"cpu": "x"}}]}}},
    {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q", "creationTimestamp": "yesterday"},
     "spec": {"priority": 1.5, "resources": {"gpu": {"quota": "1", "limit": 1e300}}, "preemptMinRuntime": 5.5}},
    {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {},
     "spec": {"args": {"max-consolidation-preemptees": "many", "use-scheduling-signatures": 5}, "plugins": {"x": 1},
              "actions": {"dance": {}}}},
    {"actions": "allocate,,dance"}, {"tiers": 5}, {"partitions": [1, {"queues": [{"name": ""}, {"name": "a.b"}]}]},
    {"partitions": [{"name": "default", "queues": [{"name": "root", "resources": {"max": {"cpu": "-1"}},
                                                    "properties": {"a": [], "b": 1.5}}]}]},
    {"pools": {"a": {"weight": [], "pools": {"a": 1}}}, "config": {"fair_share_starvation_timeout": {}}},
    {"$attributes": 1, "$value": {"p": {"$value": {"q": None}}}},
    {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {"queues.yaml": "a: [", "x": "y"}},
    {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1.1.1"}}},
    {"kind": "Pod", "apiVersion": "v1",
     "metadata": {"name": "p", "labels": {"applicationId": "a", "queue": "x" * 9000}}},
]  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("index", range(len(STRANGE)))
def test_strange_documents_give_findings_or_a_refusal_and_no_crash(index: int, format: str) -> None:  # noqa: A002
    def read() -> list[object]:
        try:
            return list(import_configuration(json.dumps(STRANGE[index]).encode(), format).findings)
        except Unreadable as refused:
            return [problem.detail for problem in refused.problems]

    assert all(read())


OUTSIDE = "0001-01-01T00:00:00+14:00"
_HEAD = {"name": "x", "namespace": "d", "creationTimestamp": OUTSIDE}
TIMED: dict[str, list[Any]] = {
    "kai": [
        {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {**_HEAD, "name": "q"}, "spec": {}},
        {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "spec": {"queue": "q", "minMember": 1},
         "metadata": {**_HEAD, "annotations": {"kai.scheduler/last-start-timestamp": OUTSIDE,
                                               "kai.scheduler/stale-podgroup-timestamp": OUTSIDE}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**_HEAD, "annotations": {"pod-group-name": "x"}},
         "spec": {"schedulerName": "kai-scheduler", "nodeName": "n", "containers": [{"name": "c"}]},
         "status": {"phase": "Running", "startTime": OUTSIDE}}],
    "kueue": [
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": _HEAD, "spec": {}},
        {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": _HEAD,
         "spec": {"podSets": [{"name": "m", "count": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}]},
         "status": {"admission": {"clusterQueue": "x"},
                    "conditions": [{"type": "QuotaReserved", "status": "True", "lastTransitionTime": OUTSIDE}]}}],
    "kube-scheduler": [
        {"apiVersion": "v1", "kind": "Node", "metadata": {**_HEAD, "name": "n"}, "status": {}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": _HEAD, "status": {"startTime": OUTSIDE},
         "spec": {"nodeName": "n", "containers": [{"name": "c"}]}}],
}  # fmt: skip


@pytest.mark.parametrize("format", TIMED)
def test_what_leaves_the_calendar_is_a_finding_and_in_no_state(format: str) -> None:  # noqa: A002
    found = import_configuration(json.dumps(TIMED[format]).encode(), format)
    assert OUTSIDE.encode() not in msgspec.json.encode((found.configuration, found.state, found.asks))
    assert any("instant in RFC 3339" in finding.detail for finding in found.findings)
    assert objects.instant(OUTSIDE) is None


@pytest.mark.parametrize("text", ["--5", "\u00b2", "-", "9" * 5000, "\u0665", "1_0", " 1"])
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    assert whole(text) is None
    ask = {"allocationKey": "k", "resource": {"vcore": 1}, "priority": text}
    application = {"applicationID": "a", "queueName": "root.a", "partition": "default", "requests": [ask]}
    found = import_configuration(json.dumps([application]).encode(), "yunikorn")
    assert any("a whole number of 32 bits" in finding.detail for finding in found.findings)


def test_whole_numbers_are_numbers() -> None:
    assert [whole(text) for text in ("0", "-5", "007", "9" * 18)] == [0, -5, 7, 10**18 - 1]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "body",
    [b"", b"---", b"# nothing\n", b"null", b"---\n---\n", b"[]", b"[[], []]", b'{"kind": "PodList", "items": []}'],
)
def test_nothing_is_refused_in_those_words(body: bytes, format: str) -> None:  # noqa: A002
    with pytest.raises(Unreadable, match=r"there is no document in it|nothing in it is a document of"):
        import_configuration(body, format)


def test_a_list_of_nothing_is_nothing_beside_others() -> None:
    tree = {"pools": {"a": {}}}
    found = import_configuration(json.dumps([tree, []]).encode(), "ytsaurus")
    assert [queue.name for queue in found.configuration.queues] == ["a"]


def test_findings_alike_are_counted_past_twenty() -> None:
    pools = {f"p{i}": {"fancy_guarantees": {"x": 1}} for i in range(1000)}
    found = import_configuration(json.dumps({"pools": pools}).encode(), "ytsaurus")
    assert len(found.findings) == 21
    assert found.findings[-1].detail == "980 more like the 20 listed about 'fancy_guarantees'"


LINEAR = 24.0


def growth(body: Callable[[int], bytes], length: Callable[[bytes], int], count: int) -> float:
    """How many times as long ``8 * count`` documents take as ``count`` do: about 8, or 64 where the time is quadratic.
    Time of the processor, so that it hardly matters who else wants it."""
    took: list[float] = []
    for many in (count, 8 * count):
        written = body(many)
        gc.collect()
        began = time.process_time()
        assert length(written) == many
        took.append(time.process_time() - began)
    return took[1] / took[0]


def test_a_long_list_takes_as_much_longer_as_it_has_items() -> None:
    pod = b"""- apiVersion: v1
  kind: Pod
  metadata: {name: pod-%d, namespace: ns, labels: {applicationId: app-%d, queue: root.default}}
  spec: {schedulerName: yunikorn, containers: [{name: c, resources: {requests: {cpu: 100m, memory: 1Gi}}}]}
"""

    def body(count: int) -> bytes:
        return b"apiVersion: v1\nkind: List\nitems:\n" + b"".join(pod % (i, i % 50) for i in range(count))

    assert growth(body, lambda written: len(import_configuration(written, "kubernetes").asks), 1000) < LINEAR


def test_a_wide_pool_tree_and_a_deep_queue_tree_need_no_stack() -> None:
    pools: dict[str, Any] = {"leaf": {}}
    for i in range(190):
        pools = {f"p{i}": {"pools": pools}}
    assert len(import_configuration(json.dumps({"pools": pools}).encode(), "ytsaurus").configuration.queues) == 191
    queues: list[Any] = []
    for _ in range(300):
        queues = [{"name": "q", "queues": queues}]
    body = json.dumps({"partitions": [{"name": "default", "queues": queues}]}).encode()
    assert len(import_configuration(body, "yunikorn").configuration.queues) == 301


def test_a_long_stream_takes_as_much_longer_as_it_has_documents() -> None:
    queue = b"""---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q%d}
spec:
  cohortName: all
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 8}]}]}]
"""

    def body(count: int) -> bytes:
        return b"".join(queue % number for number in range(count))

    assert growth(body, lambda written: len(import_configuration(written, "kueue").configuration.queues), 1000) < LINEAR


def test_values_of_all_documents_are_counted_once(bounded: Bounded) -> None:
    bounded(documents, MAX_VALUES=25_000)
    found = read(b"".join(b"---\na: [1, 2, 3]\n" for _ in range(5000)))
    assert len(found) == 5000
    with pytest.raises(Unreadable, match="more than"):
        read(b"".join(b"---\n[" + b"1," * 3000 + b"1]\n" for _ in range(9)))


def test_documents_of_a_stream_are_numbered_and_empty_ones_are_not() -> None:
    assert [at for at, _ in read(b"---\n# comment\n---\na: 1\n---\nb: 2\n")] == [(0,), (1,)]
    assert [at for at, _ in read(b"---\n# comment\n---\na: 1\n")] == [()]
