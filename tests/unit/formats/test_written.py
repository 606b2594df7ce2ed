"""What an export can't say, and what it was given to keep and can't write: each with its place in the configuration."""

from typing import Any

import msgspec
import pytest
import yaml

from app.formats import export
from app.solver.model.configuration import Configuration

Json = dict[str, Any]
BIG = "gpu.example.com/gpu"


def exported(system: str, **fields: Any) -> tuple[list[tuple[str, str]], str]:
    """Pointers and words of what was lost, and the text."""
    found = export(msgspec.convert(fields, Configuration), system)
    assert all(one.severity in ("warning", "info") for one in found.findings)
    return [(one.pointer, one.detail) for one in found.findings], found.text


def queue(name: str = "root", **rest: Any) -> Json:
    return {"name": name, **rest}


CHILD = queue("root.a", parent="root")
GROUPS = [
    {"resources": ["gpu", BIG], "flavors": [{"name": "d", "quota": {"gpu": {"limit": 1}, BIG: {"limit": 2}}}]},
]  # fmt: skip
CASES: list[tuple[str, Json, tuple[str, str]]] = [
    ("yunikorn", {"queues": [queue("top")]},
     ("/queues/0/name", "YuniKorn has one root, called root: this queue ends up below it")),
    ("yunikorn", {"queues": [queue(native={"yunikorn": {"queues": [], "x": 1}})]},
     ("/queues/0/native/yunikorn/queues", "the configuration has the queues: these are left out")),
    ("yunikorn", {"queues": [queue()], "native": {"yunikorn": {"queues": [{"name": "z"}]}}},
     ("/native/yunikorn/queues", "the configuration has the queues: these are left out")),
    ("yunikorn", {"queues": [queue()], "native": {"yunikorn": {"partitions": 3}}},
     ("/native/yunikorn/partitions", "no list of partitions: left out")),
    ("yunikorn", {"queues": [queue(), {**CHILD, "quota": {"n/gpu": {"limit": "1500m"}}}]},
     ("/queues/1/quota/n~1gpu/limit", "YuniKorn counts whole units of n/gpu: rounded up")),
    ("yunikorn", {"queues": [queue()], "native": {"yunikorn": {"configMap": 3}}},
     ("/native/yunikorn/configMap", "no ConfigMap: it has a key, metadata and data")),
    ("yunikorn", {"queues": [queue(), CHILD | {"quota": {"memory": {"guaranteed": "unlimited"}}}]},
     ("/queues/1/quota/memory/guaranteed", "YuniKorn has no unlimited guarantee: left out")),
    ("ytsaurus", {"settings": {"ytsaurus": {"rules": "documented"}}, "queues": [queue("a")]},
     ("/settings/ytsaurus/rules", "which rules decide is a choice of Arbiter, not of YTsaurus")),
    ("ytsaurus", {"queues": [queue("a", native={"ytsaurus": {"pools": {}, "x": 1}})]},
     ("/queues/0/native/ytsaurus/pools", "the configuration has the pools: these are left out")),
    ("kai", {"queues": [queue("a", quota={"gpu": {"limit": 1}, BIG: {"limit": 2}})]},
     (f"/queues/0/quota/{BIG.replace('/', '~1')}", f"kai counts GPUs of every vendor: {BIG} is written as gpu")),
    ("kai", {"queues": [queue("a", resource_groups=GROUPS)]},
     (f"/queues/0/resource_groups/0/flavors/0/quota/{BIG.replace('/', '~1')}",
      f"a second amount of gpu: {BIG} is left out")),
    ("kai", {"settings": {"kai": {"actions": ["reclaim", "reclaim"]}}, "queues": [queue("a")]},
     ("/settings/kai/actions/1", "a SchedulingShard runs an action once")),
    ("kueue", {"settings": {"kueue": {"preemption_strategies": ["LessThanInitialShare"]}}, "queues": [queue("a")]},
     ("/settings/kueue/preemption_strategies", "Kueue reads strategies with fair sharing only")),
]  # fmt: skip


@pytest.mark.parametrize(("system", "fields", "expected"), CASES, ids=[f"{c[0]}{c[2][0]}" for c in CASES])
def test_what_is_lost_is_said(system: str, fields: Json, expected: tuple[str, str]) -> None:
    found, text = exported(system, **fields)
    assert expected in found
    assert text.startswith("# ") or system == "ytsaurus"  # YSON has no comments


def test_what_was_kept_is_written_without_what_the_configuration_says_itself() -> None:
    native = {"yunikorn": {"queues": [1], "partitions": [{"name": "gpu"}], "name": "mine", "more": {"a": 1}}}
    _, text = exported("yunikorn", queues=[queue(native={"yunikorn": {"queues": [], "x": 1}}), CHILD], native=native)
    (document,) = yaml.safe_load_all(text)
    assert document == {
        "partitions": [
            {"name": "mine", "more": {"a": 1}, "queues": [{"name": "root", "x": 1, "queues": [{"name": "a"}]}]},
            {"name": "gpu"},
        ]
    }
    _, text = exported("ytsaurus", queues=[queue("a", native={"ytsaurus": {"pools": {"b": {}}, "owner": "me"}})])
    assert 'owner = "me"' in text
    assert "b = " not in text


def test_amounts_of_yunikorn_are_whole_or_thousandths_of_a_core() -> None:
    limits = {"vcore": "1500m", "memory": "1.5Gi", "n/gpu": "2500m", "y": "2", "z": 2.0}
    quota = {name: {"limit": amount} for name, amount in limits.items()}
    _, text = exported("yunikorn", engine="yunikorn", queues=[queue(), {**CHILD, "quota": quota}])
    (document,) = yaml.safe_load_all(text)
    assert document["partitions"][0]["queues"][0]["queues"][0]["resources"] == {
        "max": {"vcore": "1500m", "memory": 1610612736, "n/gpu": 3, "y": "2", "z": 2}
    }


def test_the_actions_that_were_kept_are_written_where_they_mean_the_same() -> None:
    def spec(actions: list[str] | None, kept: Any) -> Any:
        settings = {"kai": {"actions": actions, "default_reclaim_min_runtime": 60}}
        native = {"kai": {"spec": {"actions": kept, "other": 1}}}
        _, text = exported("kai", settings=settings, queues=[queue("a")], native=native)
        shard = next(one for one in yaml.safe_load_all(text) if one["kind"] == "SchedulingShard")
        assert shard["spec"]["other"] == 1
        return shard["spec"]["actions"]

    as_written = {"preempt": {"enabled": False}, "consolidation": {"enabled": False}}
    as_written["stalegangeviction"] = {"enabled": False}
    assert spec(["allocate", "reclaim"], as_written) == as_written
    other = spec(["allocate"], as_written)
    assert other != as_written
    assert spec(["allocate"], {"reclaim": 3}) == other


def weighted(i: int) -> Json:
    return {"name": f"root.a{i}", "parent": "root", "weight": 2}


def test_a_hundred_losses_are_listed_and_the_others_counted() -> None:
    _, hundred = exported("yunikorn", queues=[queue(), *(weighted(i) for i in range(100))])
    _, more = exported("yunikorn", queues=[queue(), *(weighted(i) for i in range(103))])
    lines = [[line for line in text.splitlines() if line.startswith("#")] for text in (hundred, more)]
    assert [len(found) for found in lines] == [100, 101]
    assert lines[1][-1] == "# and 3 more"
