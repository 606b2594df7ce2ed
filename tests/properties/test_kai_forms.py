"""Both forms of a quota say the same, and every pointer leads to something that is there."""

from random import Random
from typing import Any, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.solver.model.request import SharesRequest
from app.solver.model.state import State
from tests.support.kai_world import Json, Shape, cluster, decide, in_groups
from tests.support.profiles import Met, examples

FAST = examples(100)
SEEDS = st.integers(0, 2**32)


@FAST
@given(SEEDS)
def test_groups_decide_and_report_as_quotas_do(seed: int) -> None:
    body = cluster(seed, Shape(asks=2)) | {"explain": "summary"}
    grouped = in_groups(body)
    plain, other = decide(body), decide(grouped)
    assert (plain["decisions"], plain["plan"]) == (other["decisions"], other["plan"])
    assert reports(body) == reports(grouped)


@FAST
@given(SEEDS, st.sampled_from(["documented", "shipped"]))
def test_one_sub_group_decides_as_a_gang_without_any(seed: int, rules: str) -> None:
    body = cluster(seed, Shape(workloads=12, rules=rules))
    plain, other = decide(body), decide(in_one_sub_group(body))
    assert (plain["order"], plain["plan"]) == (other["order"], other["plan"])
    assert [d["outcome"] for d in plain["decisions"]] == [d["outcome"] for d in other["decisions"]]


def in_one_sub_group(body: Json) -> Json:
    """The same request with every gang written as one sub group below another."""

    def grouped(job: Json) -> Json:
        rest = {k: v for k, v in job.items() if k != "min_available"}
        groups = [{"name": "pods", "parent": "all", "min_available": job["min_available"]}, {"name": "all"}]
        return rest | {"sub_groups": groups, "tasks": [task | {"sub_group": "pods"} for task in job["tasks"]]}

    state = body["state"] | {"workloads": [grouped(w) for w in body["state"]["workloads"]]}
    return body | {"state": state, "asks": [grouped(a) for a in body["asks"]]}


def reports(body: Json) -> list[Json]:
    asked = {"configuration": body["configuration"], "state": body["state"], "asks": body["asks"]}
    request = msgspec.convert(asked, SharesRequest)
    assert isinstance(request.configuration, Configuration)
    assert isinstance(request.state, State)
    configured = solve.configure(request.configuration, "kai")
    shares = solve.shares(solve.load(configured, request.state), request.asks, 0)
    return [shares, solve.effective_settings(configured, None)]


@FAST
@given(SEEDS, st.booleans())
def test_findings_and_problems_point_at_what_the_document_has(met: Met, seed: int, grouped: bool) -> None:
    random, body = Random(seed), cluster(seed, Shape(queues=3))
    for queue in body["configuration"]["queues"]:
        quota: Json = queue["quota"]
        for name, more in (
            ("cpu", {"limit": 1}), ("memory", {"borrowing_limit": 1}), ("nvidia.com/gpu", {}), ("x/y", {"limit": 3}),
        ):  # fmt: skip
            if random.random() < 0.4:
                quota[name] = quota.get(name, {}) | more
    document = (in_groups(body) if grouped else body)["configuration"] | {"engine": "kai"}
    configuration = msgspec.convert(document, Configuration)
    found = [finding.pointer for finding in solve.findings(configuration)]
    try:
        solve.configure(configuration)
    except InvalidInput as refused:
        found += [problem.pointer.removeprefix("/configuration") for problem in refused.problems]
    for pointer in met(found):
        assert leads_somewhere(document, pointer), pointer


def leads_somewhere(document: Any, pointer: str) -> bool:
    here = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list):
            here = cast("list[Any]", here)[int(key)]
        elif key in here:
            here = here[key]
        else:
            return False
    return True
