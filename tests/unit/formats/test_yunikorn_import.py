import json
from typing import Any

import msgspec
import pytest

from app.formats import import_configuration


def read(*queues: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """The queues, and the findings."""
    body = json.dumps({"partitions": [{"name": "default", "queues": list(queues)}]}).encode()
    found = import_configuration(body, "yunikorn")
    shown = json.loads(msgspec.json.encode(found.configuration))["queues"]
    return shown, [f"{f.severity} {f.rule} {f.pointer}" for f in found.findings]


@pytest.mark.parametrize("resources", [{"guaranteed": {"vcore": 1}}, {"max": {"vcore": 0}}])
def test_resources_on_the_root_are_an_error_and_left_out(resources: dict[str, Any]) -> None:
    leaf = {"name": "a", "resources": {"guaranteed": {"vcore": 1}}}
    queues, findings = read({"name": "Root", "resources": resources, "queues": [leaf]})
    below = {"name": "root.a", "parent": "root", "quota": {"vcore": {"guaranteed": 1}}}
    assert queues == [{"name": "root"}, below]
    assert findings == ["error bad-value /partitions/0/queues/0/resources"]


def test_resources_of_a_top_queue_below_the_root_are_kept() -> None:
    queues, findings = read({"name": "a", "resources": {"max": {"vcore": 2}}})
    assert queues == [{"name": "root"}, {"name": "root.a", "parent": "root", "quota": {"vcore": {"limit": 2}}}]
    assert findings == []
