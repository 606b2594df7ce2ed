"""The short form of quotas and resource groups say the same, and every pointer leads to where something stands."""

import random
from typing import Any

import msgspec
import pytest

from app.solver import solve
from app.solver.model.configuration import Configuration
from tests.properties.ytsaurus_trees import heartbeat, tree
from tests.support.yunikorn_world import grouped
from tests.unit.solver.engines.ytsaurus.cluster import decide, effective, preemptibility, refused, shares

Json = dict[str, Any]
QUOTA, GROUP = "/quota/", "/resource_groups/0/flavors/0/quota/"


def in_groups(body: Json) -> Json:
    configuration = body["configuration"]
    flavors = {"flavors": [{"name": "only"}]}
    queues = {"queues": [grouped(queue) for queue in configuration["queues"]]}
    return body | {"configuration": configuration | flavors | queues}


def findings(body: Json) -> list[tuple[str, str]]:
    """Rule and pointer, but for the remark on flavors themselves."""
    found = solve.findings(msgspec.convert({"engine": "ytsaurus"} | body["configuration"], Configuration))
    return [(one.rule, one.pointer) for one in found if one.pointer != "/flavors"]


def standing_at(document: Any, pointer: str) -> Any:
    """What a JSON pointer leads to. Raises KeyError or IndexError."""
    for part in pointer.split("/")[1:]:
        document = document[int(part) if isinstance(document, list) else part.replace("~1", "/").replace("~0", "~")]
    return document


@pytest.mark.parametrize("seed", range(40))
def test_both_forms_are_answered_alike(seed: int) -> None:
    body = heartbeat(seed)
    for question in (lambda of: decide(of, None), shares, preemptibility, effective):
        plain, groups = question(body), question(in_groups(body))
        digests = [answer.pop("configuration", None) for answer in (plain, groups)]  # of documents that do differ
        assert groups == plain
        assert digests[0] is None or digests[0] != digests[1]


def remarkable(seed: int) -> Json:
    """A tree with much to remark: guarantees over limits, or of what no node has, and fields of other systems."""
    rng = random.Random(seed)
    body = tree(rng, depth=3)
    for queue in body["configuration"]["queues"]:
        quota = queue.setdefault("quota", {})
        quota.setdefault(rng.choice(("cpu", "memory")), {})["guaranteed"] = rng.randint(0, 30)
        if rng.random() < 0.5:
            quota["gpu"] = {"guaranteed": rng.randint(0, 1), "limit": rng.randint(0, 3), "lending_limit": 1}
    return body


def test_findings_and_warnings_lead_to_the_quota_in_either_form() -> None:
    rules: set[str] = set()
    for seed in range(60):
        body = remarkable(seed)
        plain, groups = findings(body), findings(in_groups(body))
        assert [(rule, at.replace(GROUP, QUOTA).replace("resource_groups", "quota")) for rule, at in groups] == plain
        for document, found in ((body, plain), (in_groups(body), groups)):
            for rule, at in found:
                standing_at(document["configuration"], at)
                rules.add(rule)
            for warning in shares(document).get("warnings", []):
                assert standing_at(document, warning["pointer"]) == 1
                assert warning["pointer"].endswith("gpu/guaranteed")
                rules.add(warning["rule"])
    assert rules >= {
        "ytsaurus-unread", "ytsaurus-guarantee-over-limit", "ytsaurus-no-main-guarantee",
        "ytsaurus-guarantee-without-nodes", "queues.oversubscribed-children",
    }  # fmt: skip


def test_a_second_flavor_and_bad_amounts_are_refused_where_they_stand() -> None:
    body = in_groups(remarkable(0))
    group = body["configuration"]["queues"][0]["resource_groups"][0]
    name = group["resources"][0]
    group["flavors"][0]["quota"][name] = {"guaranteed": "unlimited"}
    at = f"/configuration/queues/0/resource_groups/0/flavors/0/quota/{name}/guaranteed"
    assert list(refused(body)) == [at]
    body["configuration"]["flavors"].append({"name": "other"})
    group["flavors"].append({"name": "other", "quota": {r: {"guaranteed": 1} for r in group["resources"]}})
    assert sorted(refused(body)) == [at, "/configuration/queues/0/resource_groups/0/flavors/1"]
