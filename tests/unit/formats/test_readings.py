"""Details of reading and writing manifests, each by hand."""

import json
from typing import Any

import msgspec
import pytest

from app.formats import Unreadable, export, import_configuration
from app.formats.exported import go_duration, number
from app.solver.model.configuration import Configuration
from tests.support.kubernetes import read


@pytest.mark.parametrize(
    ("value", "shown"),
    [(3.0, "3"), (-3.0, "-3"), (0.5, "0.5"), (2.0**53 - 1, "9007199254740991"), (2.0**53, "9007199254740992.0")],
)
def test_a_number_is_whole_while_doubles_hold_every_whole_one(value: float, shown: str) -> None:
    assert str(number(value)) == shown


@pytest.mark.parametrize(("value", "text"), [(15, "15s"), (1.5, "1500000us"), (0.000001, "1us"), ("90m", "90m")])
def test_a_duration_keeps_its_microseconds(value: Any, text: str) -> None:
    assert go_duration(value) == text


def test_half_of_a_surrogate_pair_is_no_character() -> None:
    with pytest.raises(Unreadable, match="surrogate"):
        import_configuration(b'{"kind": "\\ud83d"}', "kai")
    whole = import_configuration(b'{"kind": "\\ud83d\\ude00"}', "kai")
    assert "surrogate" not in str(whole.findings)


def test_every_flavor_but_the_first_is_lost_where_there_are_none() -> None:
    flavors = [{"name": name, "quota": {"cpu": {"guaranteed": i + 1}}} for i, name in enumerate("abc")]
    memory = [{"name": "a", "quota": {"memory": {"guaranteed": "1Gi"}}}]
    groups = [{"resources": ["cpu"], "flavors": flavors}, {"resources": ["memory"], "flavors": memory}]
    document = {"engine": "kueue", "queues": [{"name": "q", "resource_groups": groups}]}
    found = export(msgspec.convert(document, Configuration), "kai")
    lost = [f.pointer for f in found.findings if "flavor" in f.detail]
    assert [p for p in lost if p.startswith("/queues/0/resource_groups/0/flavors")] == [
        f"/queues/0/resource_groups/0/flavors/{i}" for i in (1, 2)
    ]
    assert "memory" in found.text


def test_partitions_of_which_none_is_the_default_one() -> None:
    def partition(name: str, queue: str) -> dict[str, Any]:
        return {"name": name, "queues": [{"name": "root", "queues": [{"name": queue}]}]}

    def names(*partitions: dict[str, Any]) -> list[str]:
        found = import_configuration(json.dumps({"partitions": partitions}).encode(), "yunikorn")
        named = [] if partitions[0]["name"] == "default" else ["/partitions/0/name"]
        assert [f.pointer for f in found.findings] == [*named, *["/partitions/1"] * (len(partitions) - 1)]
        return [queue.name for queue in found.configuration.queues]

    assert names(partition("x", "a"), partition("y", "b")) == ["root", "root.a"]
    assert names(partition("default", "a"), partition("y", "b")) == ["root", "root.a"]


@pytest.mark.parametrize(("value", "read"), [(None, 1), (0, 0), ("0", 0), ("0.0", 0), (1, 1), ("0.5", 0.5)])
def test_the_factor_of_past_usage_arrives_as_it_is_written(value: Any, read: float) -> None:
    plugin = {"name": "proportion", "arguments": {} if value is None else {"kValue": value}}
    text = json.dumps({"actions": "allocate", "tiers": [{"plugins": [plugin]}]})
    found = import_configuration(text.encode(), "kai")
    assert [f for f in found.findings if f.pointer.endswith("kValue")] == []
    settings = found.configuration.settings.kai
    assert settings is not None
    assert settings.k_value == read


def test_what_a_priority_class_reference_has_more_is_reported() -> None:
    spec = {"queueName": "q", "priorityClassRef": {"kind": "PriorityClass", "name": "high", "huh": 1}}
    work = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"}, "spec": spec}
    pointers = [f.pointer for f in read(work).findings]
    assert [p for p in pointers if "priorityClassRef/" in p] == ["/items/0/spec/priorityClassRef/huh"]


def test_the_head_of_a_scheduler_file_says_nothing_that_is_lost() -> None:
    head = {"apiVersion": "v1", "metadata": {"name": "config"}, "actions": "allocate, preempt"}
    found = import_configuration(json.dumps(head).encode(), "kai")
    assert [f.pointer for f in found.findings if f.pointer in ("/apiVersion", "/metadata")] == []
    more = import_configuration(json.dumps(head | {"huh": 1}).encode(), "kai")
    assert "/huh" in [f.pointer for f in more.findings]
