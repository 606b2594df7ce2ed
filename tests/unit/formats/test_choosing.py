"""Which reader a source is given to, with which configurations it goes, and what is left of one that keeps too much."""

import json
from typing import Any

import pytest

import app.formats as formats
from app.formats import FORMATS, Unreadable, import_configuration
from app.solver.model.configuration import Configuration, Queue
from tests.support.bounds import Bounded

Json = dict[str, Any]
CLUSTER_QUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}}
KAI_QUEUE = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}}
BUDGET = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "q"}}
QUEUES_YAML = {"partitions": [{"name": "default", "queues": [{"name": "a"}]}]}
DUMP: Json = {"queues": {"queuename": "root"}, "applications": [], "nodes": []}
TREE: Json = {"pools": {"a": {}}}
ORCHID: Json = {
    "operations": {},
    "scheduling_info_per_pool_tree": {"t": {"fair_share_info": {"pools": {"a": {"parent": "<Root>"}}}}},
}


def imported(document: Any, form: str, known: Configuration | None = None) -> Any:
    return import_configuration(json.dumps(document).encode(), form, known)


@pytest.mark.parametrize(
    ("document", "engine", "queues"),
    [
        (CLUSTER_QUEUE, "kueue", ["q"]), (KAI_QUEUE, "kai", ["q"]), (QUEUES_YAML, "yunikorn", ["root", "root.a"]),
        (DUMP, "yunikorn", ["root"]), ([DUMP], "yunikorn", ["root"]), (ORCHID, "ytsaurus", ["a"]),
        ([{"queuename": "root"}], "yunikorn", ["root"]), (BUDGET, "kube-scheduler", ["q"]),
    ],
)  # fmt: skip
def test_a_source_of_any_system_is_told_by_what_is_in_it(document: Any, engine: str, queues: list[str]) -> None:
    for form in ("kubernetes", engine):
        found = imported(document, form).configuration
        assert (found.engine, [queue.name for queue in found.queues]) == (engine, queues)


ENGINES = ("kueue", "yunikorn", "kai", "ytsaurus", "kube-scheduler")


@pytest.mark.parametrize(
    ("document", "form", "goes"),
    [
        (CLUSTER_QUEUE, "kueue", ["kueue"]), (KAI_QUEUE, "kai", ["kai"]), (QUEUES_YAML, "yunikorn", ["yunikorn"]),
        (DUMP, "yunikorn", ["yunikorn"]), (DUMP, "kubernetes", ["yunikorn"]), (ORCHID, "kubernetes", ["ytsaurus"]),
        (ORCHID, "ytsaurus", ["ytsaurus"]),
        ([CLUSTER_QUEUE], "kubernetes", ["kueue", "kai", "yunikorn", "kube-scheduler"]),
        (BUDGET, "kubernetes", ["kueue", "kai", "yunikorn", "kube-scheduler"]),
        (BUDGET, "kube-scheduler", ["kube-scheduler"]),
    ],
)  # fmt: skip
def test_a_given_configuration_is_of_a_system_that_the_source_can_be_of(
    document: Any, form: str, goes: list[str]
) -> None:
    words = " or ".join(goes)
    for engine in ENGINES:
        known: Any = Configuration(engine=engine, queues=[Queue(name="root")])
        if engine in goes:
            imported(document, form, known)
            continue
        with pytest.raises(Unreadable) as refused:
            imported(document, form, known)
        (problem,) = refused.value.problems
        assert (problem.pointer, problem.detail) == (
            "/engine", f"a configuration of {engine} does not go with a source of {words}",
        )  # fmt: skip
    imported(document, form, Configuration(queues=[Queue(name="root")]))


@pytest.mark.parametrize(
    "text", [b"[]", b"[]\n---\n[]", b'{"kind": "List", "items": []}', b"kind: PodList\nitems: null"]
)
def test_a_source_with_nothing_in_it_is_said_to_be_empty(text: bytes) -> None:
    for form in ("kueue", "ytsaurus", "kubernetes"):
        with pytest.raises(Unreadable, match="it is empty: there is no document in it"):
            import_configuration(text, form)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "it is empty"),
        (b"---\n", "it is empty"),
        (b"<!DOCTYPE html>\n<html></html>", "page for a browser"),
        (b"<html><body>a: b</body></html>", "page for a browser"),
        (b"# Title\n\nHello: there\n", "nothing in it is a document of"),
        (b"[]\n---\n{a: 1}", "nothing in it is a document of"),
        (b"some words", "nothing in it is a document of"),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_text_that_is_no_document_of_any_system_is_refused(text: bytes, why: str, form: str) -> None:
    with pytest.raises(Unreadable, match=why):
        import_configuration(text, form)


def test_a_pool_tree_is_a_mapping() -> None:
    found = imported([3, TREE], "ytsaurus")
    assert [queue.name for queue in found.configuration.queues] == ["a"]
    assert [(one.rule, one.severity, one.pointer, one.detail) for one in found.findings] == [
        ("wrong-type", "error", "/0", "a mapping is expected: a pool tree"),
    ]


def test_no_more_is_kept_than_there_may_be(bounded: Bounded) -> None:
    kept = CLUSTER_QUEUE | {"spec": {"namespaceSelector": {"x": "y" * 1000}}}
    whole = imported(kept, "kueue")
    size = formats.size_of(whole.configuration)
    assert size > 1000
    bounded(formats, MAX_BYTES=size)
    assert imported(kept, "kueue") == whole
    bounded(formats, MAX_BYTES=size - 1)
    found = imported(kept, "kueue")
    assert [queue.name for queue in found.configuration.queues] == ["q"]
    assert formats.size_of(found.configuration) < 100
    last = found.findings[-1]
    assert found.findings[:-1] == whole.findings
    assert (last.rule, last.severity, last.pointer, last.detail) == (
        "not-carried", "error", "",
        f"{size} bytes that Arbiter would only keep: {size - 1} may be; all of that is left out",
    )  # fmt: skip
