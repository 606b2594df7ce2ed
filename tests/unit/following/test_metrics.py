"""What a follower says of itself to Prometheus, and where it looks for YuniKorn."""

import re
from collections import Counter
from pathlib import Path

import urllib3

from app.following.follower import Pulse, Watch, serve
from app.following.mirror import Mirror
from app.following.objects import Event, Listed, followed, manifests
from tests.cluster import kueue


def test_a_follower_says_how_it_is_at_a_port_of_its_own() -> None:
    kinds = followed("kueue")
    mirror = Mirror(kinds)
    workloads = next(kind for kind in kinds if kind.name == "Workload")
    mirror.listed(workloads, "v", Listed([kueue.workload("one", "l", 1)], "1"), "start")
    mirror.apply(workloads, Event(False, kueue.workload("two", "l", 1), "2"))
    mirror.broken(workloads, "gone", whole=False)
    findings = Counter({"warning": 3})
    port = serve("prod", lambda: Pulse(0.25, 2.0, mirror.kinds(), mirror.lists, findings, True, 7.0), 0)
    text = urllib3.request("GET", f"http://127.0.0.1:{port}/metrics").data.decode()
    for line in (
        'arbiter_follower_lag_seconds{cluster="prod"} 0.25',
        'arbiter_follower_age_seconds{cluster="prod"} 2.0',
        'arbiter_follower_writer{cluster="prod"} 1.0',
        'arbiter_follower_configuration_held_seconds{cluster="prod"} 7.0',
        'arbiter_follower_lists_total{cluster="prod",reason="start"} 1.0',
        'arbiter_follower_changes_total{cluster="prod",kind="Workload"} 1.0',
        'arbiter_follower_breaks_total{cluster="prod",kind="Workload"} 1.0',
        'arbiter_follower_broken{cluster="prod",kind="Workload"} 1.0',
        'arbiter_follower_broken{cluster="prod",kind="Cohort"} 0.0',
        'arbiter_follower_objects{cluster="prod",kind="Workload"} 2.0',
        'arbiter_follower_findings{cluster="prod",severity="warning"} 3.0',
    ):
        assert line in text.splitlines(), text
    page = (Path(__file__).parents[3] / "docs" / "kubernetes.md").read_text()
    served = set(re.findall(r"^# TYPE (arbiter_follower_\w+)", text, re.MULTILINE))
    assert set(re.findall(r"`(arbiter_follower_\w+)", page)) == served


def test_yunikorn_may_be_installed_anywhere() -> None:
    usual, elsewhere = followed("yunikorn")[0], followed("yunikorn", namespace="sched")[0]
    assert usual.path("v1") == "/api/v1/namespaces/yunikorn/configmaps"
    assert elsewhere.path("v1") == "/api/v1/namespaces/sched/configmaps"
    roles = [made for made in manifests("yunikorn", "default", "reader", within="sched") if made["kind"] == "Role"]
    assert [role["metadata"]["namespace"] for role in roles] == ["sched"]
    assert followed("kube-scheduler", namespace="sched") == followed("kube-scheduler")


def test_reasons_come_by_name() -> None:
    pulse = Pulse(0, None, [], Counter({"start": 1, "gone": 2}), Counter(), False)
    found = {metric.name: metric.samples for metric in Watch("c", lambda: pulse).collect()}
    lists = [(sample.labels["reason"], sample.value) for sample in found["arbiter_follower_lists"]]
    assert lists == [("gone", 2.0), ("start", 1.0)]
    assert "arbiter_follower_age_seconds" not in found
