"""What a manifest says wrongly, twice, or past what Arbiter decides: every finding of small documents, by hand."""

import json
from typing import Any

import pytest

from app.base import documents
from app.base.documents import read
from app.formats import Unreadable, import_configuration
from app.formats.pods import read_nodes, steps
from app.formats.reader import Findings, Reader
from app.solver.model.configuration import Quota
from app.solver.model.problems import Finding
from tests.support.bounds import Bounded


def said(document: Any, system: str) -> list[str]:
    found = import_configuration(json.dumps(document).encode(), system).findings
    return [f"{one.severity} {one.rule} {one.pointer}" for one in found]


def test_of_findings_of_a_kind_twenty_are_listed_and_the_others_counted() -> None:
    findings = Findings()
    for i in range(22):
        findings.add("bad-value", "error", ("items", i, "x"), "no")
        findings.add("bad-value" if i else "not-carried", "info", ("items", i, "y"), "no")
    found = findings.all()
    assert [sum(one.pointer.endswith(name) for one in found) for name in ("/x", "/y")] == [20, 21]
    assert found[41:] == [
        Finding(
            rule="bad-value", severity=severity, pointer="", detail=f"{more} more like the 20 listed about {name!r}"
        )
        for severity, more, name in (("error", 2, "x"), ("info", 1, "y"))
    ]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("a: 1\nb: {a: 1, a: 2}", "line 2: key 'a' occurs twice in one mapping"),
        ("a: 1\n<<: {b: 1}\n<<: {c: 1}\nb: 2\nb: 3", "line 5: key 'b' occurs twice in one mapping"),
        ("a: *x", "line 1: alias \\*x has no anchor before it"),
        ("a: !!python/name:os.system x", "line 1: tag .* is not supported"),
        ("a: !!set {x}", "line 1: tag .* is not supported"),
        ("\n? [1]\n: 2", "line 2: a key must be a scalar"),
        ("<<: 3", "line 1: << merges mappings only"),
        ('{"a": [{"b": 1, "b": 2}]}', "key 'b' occurs twice in one object"),
        ('{"a": NaN}', "NaN is not JSON"),
        (f'{{"a": {"1" * 5000}}}', "a number of 5000 digits; at most 31 are read"),
        ("[" * 100_000, "nested too deeply"),
        ('["\\ud800"]', "half of a surrogate pair is no character"),
        ("a: " + "[" * 201 + "]" * 201, "line 1: nested deeper than 200 levels"),
        ("a: \x07", "neither JSON nor YAML"),
    ],
)
def test_what_a_source_may_not_have(text: str, detail: str) -> None:
    with pytest.raises(Unreadable, match=detail):
        read(text.encode())


def test_how_much_a_source_may_have(monkeypatch: pytest.MonkeyPatch, bounded: Bounded) -> None:
    bounded(documents, MAX_BYTES=8)
    assert read(b"[1, 2]  ") == [((), [1, 2])]
    with pytest.raises(Unreadable, match="9 bytes: a manifest may have 8"):
        read(b"[1, 2]   ")
    monkeypatch.undo()
    bounded(documents, MAX_VALUES=7)
    shared = b"a: &x [1, 2]\nb: *x"
    assert read(shared) == [((), {"a": [1, 2], "b": [1, 2]})]
    for more in (b"\nc: 1", b"\n---\n1"):
        with pytest.raises(Unreadable, match=r"more than 7 values, counting what aliases stand for"):
            read(shared + more)


def test_an_alias_may_stand_for_a_single_word() -> None:
    assert read(b"a: &x 5\nb: [*x, *x]") == [((), {"a": 5, "b": [5, 5]})]


def test_what_yaml_means() -> None:
    text = """
    base: &base {a: 1, b: [yes, 010, 0x1f, .5, -3, ~]}
    one: {<<: *base, a: 2}
    '<<': plain
    text: !!str 12
    number: !!float "1.5"
    again: *base
    """
    base = {"a": 1, "b": ["yes", "010", 31, 0.5, -3, None]}
    expected = {"base": base, "one": {**base, "a": 2}, "<<": "plain", "text": "12", "number": 1.5, "again": base}
    assert read(text.encode()) == [((), expected)]
    assert read(b"a: 1\n---\n---\nb: 2") == [((0,), {"a": 1}), ((1,), {"b": 2})]


def test_the_file_of_kais_scheduler() -> None:
    spread = {"name": "nodeplacement", "arguments": {"gpu": "spread", "cpu": "binpack"}}
    tier = {"name": "x", "plugins": [{"name": "gpupack", "what": 1, "arguments": {"how": 2}}, spread]}
    assert said({"actions": "allocate, dance, stalegangeviction", "more": 3, "tiers": [tier]}, "kai") == [
        "warning not-carried /tiers/0/plugins/0/arguments/how",
        "warning not-carried /tiers/0/plugins/0/what",
        "warning not-carried /tiers/0/plugins/1/arguments/gpu",
        "warning not-carried /tiers/0/name",
        "info rewritten /tiers",
        "warning not-carried /more",
        "error bad-value /actions",
        "info release ",
    ]


def kai(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "default"}, "spec": spec}


SHARD = {
    "args": {"max-consolidation-preemptees": "few", "use-scheduling-signatures": "no", "verbosity": 4},
    "minRuntime": {"reclaimMinRuntime": "5s", "huh": 1},
    "plugins": {"proportion": {"enabled": False, "arguments": {"x": 1}, "y": 2}},
    "actions": {
        "reclaim": {"priority": 501, "z": 1}, "preempt": {"enabled": False}, "consolidation": {"priority": 500},
        "stalegangeviction": {"enabled": False, "w": 1},
    },
    "kValue": 1, "what": 1,
}  # fmt: skip


def test_a_shard_of_kai() -> None:
    shard = kai("SchedulingShard", SHARD) | {"apiVersion": "kai.scheduler/v1"}
    assert said(shard, "kai") == [
        "warning not-decided /spec/minRuntime/huh",
        "warning not-decided /spec/plugins/proportion/arguments/x",
        "warning not-decided /spec/plugins/proportion/enabled",
        "warning not-decided /spec/plugins/proportion/y",
        "warning not-carried /spec/actions/reclaim/z",
        "warning not-carried /spec/actions/stalegangeviction/w",
        "error bad-value /spec/args/use-scheduling-signatures",
        "error bad-value /spec/args/max-consolidation-preemptees",
        "info not-decided /spec/args/verbosity",
        "warning not-decided /spec/what",
        "info release ",
    ]
    settings = import_configuration(json.dumps(shard).encode(), "kai").configuration.settings.kai
    assert settings is not None
    assert settings.actions == ["reclaim", "allocate", "consolidation"]
    assert (settings.use_scheduling_signatures, settings.max_consolidation_preemptees) == (True, 16)
    assert settings.default_reclaim_min_runtime == "5s"


def test_amounts_of_a_queue_of_kai() -> None:
    """Memory is in megabytes, thousandths of a GPU are the finest, and -1 is unlimited."""
    resources = {
        "cpu": {"quota": -2, "limit": 2**53 + 1, "overQuotaWeight": 1},
        "memory": {"quota": 0.5, "limit": -1, "lendingLimit": 3},
        "gpu": {"quota": 0.0004, "limit": 2, "huh": 1},
    }
    queue = kai("Queue", {"huh": 1, "resources": resources}) | {"apiVersion": "scheduling.run.ai/v2"}
    assert said(queue, "kai") == [
        "error bad-value /spec/resources/cpu/quota",
        "error bad-value /spec/resources/cpu/limit",
        "warning not-decided /spec/resources/memory/lendingLimit",
        "warning rounded /spec/resources/gpu/quota",
        "warning not-decided /spec/resources/gpu/huh",
        "warning not-decided /spec/huh",
        "info defaults ",
        "info release ",
    ]
    (read_queue,) = import_configuration(json.dumps(queue).encode(), "kai").configuration.queues
    assert read_queue.quota == {
        "cpu": Quota(guaranteed=0, limit=0, weight=1),
        "memory": Quota(guaranteed=500_000, limit=None, weight=0),
        "gpu": Quota(guaranteed=0, limit=2, weight=0),
    }


def test_a_local_queue() -> None:
    spec = {"clusterQueue": "q", "fairSharing": {"weight": 2}, "stopPolicy": "Hold", "huh": 1}
    made = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "l"}, "spec": spec}
    assert [one for one in said(made, "kueue") if "/spec" in one] == ["warning not-decided /spec/huh"]


@pytest.mark.parametrize("amount", [True, [1], {"a": 1}, "1 Gi", "1kg", -1])
def test_what_is_no_amount(amount: Any) -> None:
    findings = Findings()
    assert steps(Reader({"requests": {"cpu": amount, "memory": "1Ki"}}, (), findings), "requests") == {"memory": 1024}
    assert [(one.severity, one.pointer) for one in findings.all()] == [("error", "/requests/cpu")]


def test_of_fields_of_a_node_only_its_name_is_understood() -> None:
    fields = [
        {"key": "metadata.name", "operator": "In", "values": ["n1"]},
        {"key": "metadata.name", "operator": "NotIn", "values": ["n2"]},
        {"key": "metadata.uid", "operator": "In", "values": ["n3"]},
    ]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    findings = Findings()
    found = read_nodes(Reader({"affinity": affinity}, (), findings))
    assert (found["pinned_node"], found["node_affinity"]) == ("n1", None)
    assert [(one.severity, one.pointer.rpartition("/")[2]) for one in findings.all()] == [
        ("warning", "1"),
        ("warning", "2"),
    ]
