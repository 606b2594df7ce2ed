"""Variants of a comparison: a field changed, another engine, one that is refused."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.answering.comparison import compare
from app.answering.sources import nothing_stored
from app.cli import run
from app.solver.model.problems import InvalidInput

EXAMPLES = Path(__file__).parents[4] / "examples"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def example(name: str) -> dict[str, Any]:
    return json.loads((EXAMPLES / f"{name}.json").read_bytes())


def compared(name: str, *variants: dict[str, Any], **changes: Any) -> Any:
    body = json.dumps({**example(name), **changes, "variants": list(variants)}).encode()
    return json.loads(compare(body, NOON, nothing_stored()))


def outcomes(found: Any) -> dict[str, Any]:
    return {
        one["name"]: [d["outcome"] for d in one["answer"]["decisions"]] if "answer" in one else one["problems"]
        for one in found["variants"]
    }


SET = "queues.research.quota.nvidia.com/gpu.guaranteed"


def test_what_if_a_queue_had_more() -> None:
    found = compared("kueue-classic", {"name": "now"}, {"name": "more", "set": {SET: 12}})
    assert outcomes(found) == {"now": ["preempt"], "more": ["admit"]}
    short = {"name": "short", "set": {"queues.research.quota.gpu.guaranteed": "12"}}
    assert outcomes(compared("kueue-classic", short)) == {"short": ["admit"]}
    kai = compared("kai-reclaim", {"name": "gone", "set": {"queues.speech.quota.gpu.limit": 1}})
    assert outcomes(kai) == {"gone": ["infeasible"]}
    deep = {"name": "set", "set": {"queues.root.online.yunikorn.properties.preemption.delay": "30m"}}
    assert outcomes(compared("yunikorn-guarantee", deep)) == {"set": ["wait"]}


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (
            "queues.reserch.weight",
            "queues has no 'reserch': there are 'gpu-cohort', 'research', 'serving'; did you mean 'research'?",
        ),
        (
            "queues.research.quota.cpu.guaranteed",
            "queues.research has quotas by flavor, and no flavor has 'cpu': 'a100'",
        ),
        (
            "queue.research.weight",
            "the configuration has no 'queue': there are 'flavors', 'queues'; did you mean 'queues'?",
        ),
        ("queues.research.parent.x.y", "queues.research.parent is a value: there is nothing below it"),
        ("queues..x", "'queues..x' is no path: names with dots between them are expected"),
        ("", "'' is no path: names with dots between them are expected"),
    ],
)  # fmt: skip
def test_a_wrong_path_is_named_with_what_is_there(path: str, detail: str) -> None:
    found = compared("kueue-classic", {"name": "now"}, {"name": "set", "set": {path: 1}})
    (problem,) = outcomes(found)["set"]
    assert problem["detail"] == detail
    assert problem["pointer"].startswith("/variants/1/set/")


def test_a_field_that_no_document_has_is_refused_by_its_variant_alone() -> None:
    found = compared("kueue-classic", {"name": "now"}, {"name": "set", "set": {"queues.research.wieght": 2}})
    (problem,) = outcomes(found)["set"]
    assert "wieght" in problem["pointer"]
    assert outcomes(found)["now"] == ["preempt"]


def test_a_variant_that_its_engine_refuses_is_that_variants_answer() -> None:
    broken = {"engine": "kueue", "queues": [{"name": "a", "parent": "nobody"}]}
    found = compared("kueue-classic", {"name": "now"}, {"name": "broken", "configuration": broken})
    assert outcomes(found)["now"] == ["preempt"]
    assert all(p["pointer"].startswith("/variants/1/configuration") or p["pointer"] for p in outcomes(found)["broken"])
    (outcome, *_) = found["differences"]
    assert outcome["values"] == {"now": "preempt", "broken": "refused"}
    with pytest.raises(InvalidInput):
        compared("kueue-classic", {"name": "broken", "configuration": broken})


def test_a_tree_of_kueue_is_told_to_the_others() -> None:
    names = ("yunikorn", "kai", "ytsaurus")
    found = compared("kueue-classic", *({"name": name, "engine": name} for name in names))
    assert [one["answer"]["engine"] for one in found["variants"]] == list(names)
    rules = {one["name"]: {finding["rule"] for finding in one["findings"]} for one in found["variants"]}
    assert rules == {
        "yunikorn": {"no-word", "flavors", "no-nodes"},
        "kai": {"no-word", "flavors", "no-nodes", "pods"},
        "ytsaurus": {"no-word", "flavors", "no-nodes"},
    }
    assert found["variants"][1]["answer"]["decisions"][0]["outcome"] == "preempt"


def test_queues_of_yunikorn_are_paths_under_one_root_and_cpu_is_vcore() -> None:
    leaf = {"name": "Team.A", "parent": "all", "quota": {"cpu": {"guaranteed": 4, "borrowing_limit": 2}}}
    situation: dict[str, Any] = {
        "configuration": {"engine": "kueue", "queues": [{"name": "all"}, leaf]},
        "state": {"nodes": [{"name": "n", "capacity": {"cpu": 64}}], "workloads": []},
        "asks": [{"id": "a", "queue": "Team.A", "tasks": [{"name": "t", "count": 7, "requests": {"cpu": 1}}]}],
    }
    body = json.dumps({**situation, "variants": [{"name": "y", "engine": "yunikorn"}, {"name": "k"}]}).encode()
    found = json.loads(compare(body, NOON, nothing_stored()))
    (decision,) = found["variants"][0]["answer"]["decisions"]
    assert decision["outcome"] == "wait"  # guaranteed 4 and 2 more to borrow are a limit of 6 there
    assert "root.all.team-a" in json.dumps(decision)
    situation["asks"][0]["tasks"][0]["count"] = 6
    body = json.dumps({**situation, "variants": [{"name": "y", "engine": "yunikorn"}]}).encode()
    found = json.loads(compare(body, NOON, nothing_stored()))
    assert found["variants"][0]["answer"]["decisions"][0]["outcome"] == "admit"


def test_a_limit_is_told_to_kueue_as_a_borrowing_limit_and_running_work_gets_flavors() -> None:
    found = compared("kai-reclaim", {"name": "kueue", "engine": "kueue"})
    details = [finding["detail"] for finding in found["variants"][0]["findings"]]
    assert any(detail.startswith("running work is taken to have the first flavor") for detail in details)


def test_compare_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    classic = str(EXAMPLES / "kueue-classic.json")
    assert run(["compare", classic, "--set", "queues.research.quota.gpu.guaranteed=12"]) == 1
    assert "queues.research.quota.gpu.guaranteed=12  kueue   1 admit    0" in capsys.readouterr().out
    assert run(["compare", classic, "--set", "queues.reserch.weight=2"]) == 3
    assert "did you mean 'research'?" in capsys.readouterr().out
    assert run(["compare", classic, "--set", "weight"]) == 3
    assert "a path, = and a value are expected" in capsys.readouterr().err
    manifests = str(EXAMPLES / "kueue-cluster.yaml")
    other = str(EXAMPLES / "configuration.json")
    assert run(["compare", manifests, "--configuration", other, "--engine", "kai"]) in (1, 3)
    assert "configuration.json" in capsys.readouterr().out
