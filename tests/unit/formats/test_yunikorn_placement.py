"""Which queue an application goes to by the placement rules of its partition, and limits on their way in and out."""

import json
from typing import Any

import pytest

from app.formats import export, import_configuration
from app.formats.reader import Imported

Json = dict[str, Any]
QUEUES: list[Json] = [
    {"name": "prod"}, {"name": "default"}, {"name": "people", "parent": True, "childtemplate": {
        "maxapplications": 3, "resources": {"guaranteed": {"vcore": 1}, "max": {"vcore": 4}},
        "properties": {"preemption.delay": "5s"}}},
]  # fmt: skip
PROVIDED, TAG = {"name": "provided", "create": True}, {"name": "tag", "value": "namespace", "create": True}
USER = {"name": "user", "create": True, "parent": {"name": "fixed", "value": "people"}}


def pod(queue: str | None = None, user: str | None = None, groups: list[str] | None = None, **more: Any) -> Json:
    labels = {"applicationId": "app"} | ({} if queue is None else {"queue": queue})
    info = json.dumps({"user": user, "groups": groups or []})
    annotations = {} if user is None else {"yunikorn.apache.org/user.info": info}
    container = {"name": "c", "resources": {"requests": {"cpu": 1}}}
    metadata = {"name": "p", "namespace": "ns", "labels": labels, "annotations": annotations}
    spec = {"schedulerName": "yunikorn", "containers": [container], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def read(rules: list[Json] | None, *documents: Json, **partition: Any) -> Imported:
    of = {"name": "default", "queues": QUEUES, **partition} | ({} if rules is None else {"placementrules": rules})
    source = [{"partitions": [of]}, *documents]
    return import_configuration("\n---\n".join(map(json.dumps, source)).encode(), "yunikorn")


def placed(rules: list[Json] | None, *documents: Json) -> str | None:
    """The queue of the one ask; None: rejected, which is an error."""
    found = read(rules, *documents)
    errors = [one for one in found.findings if one.severity == "error"]
    assert bool(errors) != bool(found.asks)
    return found.asks[0].queue if found.asks else None


@pytest.mark.parametrize(
    ("rules", "named", "queue"),
    [
        (None, "root.prod", "root.prod"), (None, "prod", "root.prod"), (None, None, "root.default"),
        (None, "root.new", "root.default"), (None, "root.people", "root.default"),
        ([PROVIDED], "root.new", "root.new"), ([PROVIDED], "new.x", "root.new_dot_x"),
        ([PROVIDED], None, "root.default"),
        ([PROVIDED], "root.prod.new", None), ([PROVIDED], "root.a b", None),
        ([TAG], None, "root.ns"), ([TAG], "root.prod", "root.ns"), ([PROVIDED, TAG], "root.prod", "root.prod"),
        ([{"name": "tag", "value": "namespace"}, PROVIDED], "root.prod", "root.prod"),
        ([USER], None, "root.people.nobody"), ([{"name": "fixed", "value": "root.prod"}], None, "root.prod"),
        ([{"name": "fixed", "value": "prod"}], "root.default", "root.prod"),
        ([{"name": "fixed", "value": "new"}], None, "root.default"),
        ([{"name": "user", "create": True, "parent": {"name": "fixed", "value": "prod"}}], None, None),
        ([{"name": "tag", "value": "namespace", "create": True, "parent": USER}], None, "root.people.nobody.ns"),
    ],
)  # fmt: skip
def test_rules_find_the_queue_in_their_order(rules: list[Json] | None, named: str | None, queue: str | None) -> None:
    assert placed(rules, pod(named)) == queue


@pytest.mark.parametrize(
    ("chosen", "user", "groups", "matches"),
    [
        ({"users": ["ann"]}, "ann", [], True), ({"users": ["ann"]}, "bob", [], False),
        ({"type": "deny", "users": ["ann"]}, "ann", [], False), ({"type": "deny", "users": ["ann"]}, "bob", [], True),
        ({"groups": ["dev"]}, "bob", ["ops", "dev"], True), ({"users": ["a.*n"]}, "xaxnx", [], True),
        ({"users": ["ann", "a.*"]}, "axn", [], False), ({"type": "deny"}, "bob", [], False), ({}, "bob", [], True),
    ],
)  # fmt: skip
def test_a_filter_lets_a_rule_match(chosen: Json, user: str, groups: list[str], matches: bool) -> None:
    rule = {"name": "fixed", "value": "root.prod", "filter": chosen}
    assert placed([rule], pod(user=user, groups=groups)) == ("root.prod" if matches else "root.default")


def test_a_namespace_says_its_parent_queue() -> None:
    space = {
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "ns", "annotations": {"yunikorn.apache.org/parentqueue": "root.people"}},
    }  # fmt: skip
    rule = TAG | {"parent": {"name": "tag", "value": "namespace.parentqueue"}}
    assert placed([rule], space, pod()) == "root.people.ns"
    assert placed([rule], pod()) == "root.default"


def test_a_queue_that_is_made_begins_as_the_template_says() -> None:
    found = read([USER], pod(user="ann"))
    made = found.configuration.queues[-1]
    assert made.name == "root.people.ann"
    assert made.quota is not None
    assert made.yunikorn is not None
    assert (made.quota["vcore"].guaranteed, made.quota["vcore"].limit) == (1, 4)
    assert (made.yunikorn.dynamic, made.yunikorn.max_applications) == (True, 3)


def test_what_runs_is_where_it_says_whatever_rules_say_by_now() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 4}}}
    found = read([{"name": "fixed", "value": "gone"}], node, pod("root.old", nodeName="n"), queues=[{"name": "prod"}])
    assert [workload.queue for workload in found.state.workloads] == ["root.old"]


@pytest.mark.parametrize(
    "rule",
    [
        {"name": "group"}, {"name": "recovery"}, {"name": "tag"}, {"name": "fixed"}, {},
        {"name": "fixed", "value": "root.a", "parent": {"name": "user"}},
        {"name": "user", "parent": {"name": "x"}}, {"name": "user", "filter": {"users": ["a["]}},
        {"name": "user", "filter": {"type": "some"}},
    ],
)  # fmt: skip
def test_a_rule_that_yunikorn_refuses_is_an_error_that_names_it(rule: Json) -> None:
    found = [one for one in read([rule]).findings if one.severity == "error"]
    assert len(found) == 1
    assert found[0].pointer.startswith("/partitions/0/placementrules/0")


def test_limits_are_read_and_written() -> None:
    limits: list[Json] = [
        {"limit": "all", "users": ["*"], "groups": ["dev"], "maxresources": {"vcore": "2"}, "maxapplications": 4}
    ]
    source: Json = {"partitions": [{"name": "default", "limits": limits, "preemption": {"enabled": False}, "queues": [
        {"name": "root", "queues": [{"name": "a", "maxapplications": 9, "limits": limits}]}]}]}  # fmt: skip
    found = import_configuration(json.dumps(source).encode(), "yunikorn")
    assert found.findings == []
    root, leaf = (queue.yunikorn for queue in found.configuration.queues)
    assert root is not None
    assert leaf is not None
    assert root.limits == leaf.limits
    assert (leaf.max_applications, leaf.limits[0].max_resources) == (9, {"vcore": "2"})
    again = import_configuration(export(found.configuration, "yunikorn").text.encode(), "yunikorn")
    assert again.configuration == found.configuration
    source["partitions"][0]["queues"][0]["limits"] = [{"users": ["ann"], "maxapplications": 1}]
    assert [one.pointer for one in import_configuration(json.dumps(source).encode(), "yunikorn").findings] == [
        "/partitions/0/limits"
    ]
