"""Whole answers, word for word and number for number (``clusters``): decisions, explanations, what protects whom, and
shares."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.solver.engines.kueue.cluster import decide, preemptibility, shares
from tests.unit.solver.engines.kueue.report.clusters import CLUSTERS

ANSWERS: dict[str, Any] = json.loads((Path(__file__).parent / "answers.json").read_text())


def answered(name: str) -> dict[str, Any]:
    """What Arbiter says of a cluster, without what has to do with digests."""
    cluster = CLUSTERS[name]
    of, running, pending = cluster["configuration"], cluster["workloads"], cluster["asks"]
    answer = decide(of, running, pending, explain="full", mode=cluster.get("mode", "independent"))
    return {
        "decisions": answer["decisions"],
        "order": answer.get("order"),
        "plan": answer["plan"],
        "preemptibility": {ask["id"]: preemptibility(of, running, ask=ask)["workloads"] for ask in pending},
        "anybody": preemptibility(of, running)["workloads"],
        "shares": shares(of, running),
    }


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_is_answered_as_worked_out(name: str) -> None:
    found = json.loads(json.dumps(answered(name)))
    for part, expected in ANSWERS[name].items():
        assert found[part] == expected, part
