"""Pods of one template are read once, and what is wrong with one is told of each."""

from collections.abc import Callable
from typing import Any

import pytest

from app.following import pods as specs
from app.following.pods import Pods, Touched
from app.formats.pods import PodSpec, read_pod_spec
from app.formats.reader import Findings, Reader
from tests.cluster import pods
from tests.support.instead import Instead


@pytest.fixture
def read(instead: Instead) -> list[Reader]:
    found: list[Reader] = []

    def counted(spec: Reader, real: Callable[[Reader], PodSpec] = read_pod_spec) -> PodSpec:
        found.append(spec)
        return real(spec)

    instead(specs, read_pod_spec=counted)
    return found


def _change(known: Pods, name: str, **spec: Any) -> None:
    made = pods.yunikorn_pod(name, "app", "root.prod", 2)
    made["spec"] |= spec
    known.change(("default", name), made, Touched())


def test_specs_that_differ_in_their_node_alone_are_read_once(read: list[Reader]) -> None:
    known = Pods("yunikorn")
    _change(known, "a", nodeName="one")
    _change(known, "b", nodeName="two")
    _change(known, "c")
    _change(known, "d", priority=7)
    found = {pod.manifest.name: pod for pod in known.read([("default", name) for name in "abcd"], Findings())}
    assert {name: pod.spec.node_name for name, pod in found.items()} == {"a": "one", "b": "two", "c": None, "d": None}
    assert {name: pod.phase for name, pod in found.items()} == dict.fromkeys("ab", "running") | dict.fromkeys(
        "cd", "pending"
    )
    assert [found[name].spec.priority for name in "abcd"] == [None, None, None, 7]
    assert len(read) == 2


def test_what_is_wrong_with_a_spec_is_told_of_every_pod(read: list[Reader]) -> None:
    known, findings = Pods("yunikorn"), Findings()
    for name in "ab":
        _change(known, name, resourceClaims=[{"name": "gpu"}])
    _change(known, "c", nodeName=5)
    known.read([("default", name) for name in "abc"], findings)
    assert [finding.pointer for finding in findings.all()] == [
        "/Pod/default/a/spec/resourceClaims", "/Pod/default/b/spec/resourceClaims", "/Pod/default/c/spec/nodeName",
    ]  # fmt: skip
    assert len(read) == 3
