"""Recorded courses of Kueue, written down as its API server would have sent them: shadow agrees with what Kueue did."""

import copy
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.following.replaying import Replay
from app.solver.model import kueue as model
from app.solver.model.configuration import Configuration, Settings
from tests.cluster import kueue
from tests.support.courses import Course
from tests.support.streams import Stream

BOTH = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
COURSES = gzip.decompress(Path(__file__).with_name("courses.jsonl.gz").read_bytes()).splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{}, {"seed": 3}, {"seed": 5, "late": 3.0, "apart": 0.1}], ids=["at once", "late", "late and apart"]
)
@pytest.mark.parametrize(
    "fair", [pytest.param(False, id="classic", marks=pytest.mark.slow), pytest.param(True, id="fair")]
)
def test_shadow_agrees_with_what_kueue_did(fair: bool, how: dict[str, Any]) -> None:
    """In both modes, also where admissions are written down late, and evictions of one cycle one after the other."""
    outcomes: Counter[str] = Counter()
    for vector in map(json.loads, COURSES):
        settings = msgspec.convert(vector["request"]["configuration"], Configuration).settings
        if (settings.kueue is not None and settings.kueue.fair_sharing) is not fair:
            continue
        course = Course(vector, **how)
        found = list(Replay("kueue").judge(lambda course=course: iter(copy.deepcopy(course.stream.lines)), settings))
        assert sum(len(one.report.victims) for one in found) == course.evicted, vector["id"]
        outcomes.update(one.outcome for one in found)
    assert outcomes.total() > 20
    assert outcomes["agreed"] + outcomes["agreed_earlier"] == outcomes.total(), outcomes


@pytest.mark.slow
def test_without_settings_the_mode_is_that_of_which_fewer_cycles_differ() -> None:
    told: Counter[tuple[bool, bool]] = Counter()
    for vector in map(json.loads, COURSES):
        settings = msgspec.convert(vector["request"]["configuration"], Configuration).settings
        known = settings.kueue
        if known is not None and known.preemption_strategies not in (None, BOTH):
            continue
        fair, course = known is not None and known.fair_sharing, Course(vector)
        found = list(Replay("kueue").judge(lambda course=course: iter(copy.deepcopy(course.stream.lines))))
        assert all(one.outcome in ("agreed", "agreed_earlier") for one in found), vector["id"]
        for one in found:
            of = one.report.requests[0].configuration
            assert isinstance(of, Configuration)
            told[fair, of.settings.kueue is not None and of.settings.kueue.fair_sharing] += 1
    assert told[False, False]
    assert told[True, True]


def _queue(name: str, cpu: int, cohort: str, **preemption: str) -> dict[str, Any]:
    made = kueue.cluster_queue(name, cpu, cohort, **preemption)
    made["spec"]["namespaceSelector"] = {}
    return made


@pytest.mark.parametrize(("weight", "tied"), [("1", True), ("2", False)])
def test_cohorts_of_equal_share_are_a_tie(weight: str, tied: bool) -> None:
    stream = Stream()
    stream.put(kueue.flavor())
    for name, of, share in (("l", "left", "1"), ("r", "right", weight)):
        spec = {"parentName": "root", "fairSharing": {"weight": share}}
        stream.put({"apiVersion": kueue.GROUP, "kind": "Cohort", "metadata": {"name": of}, "spec": spec})
        for one in (
            _queue(name, 0, of),
            kueue.local_queue(f"l-{name}", name),
            kueue.workload(f"in-{name}", f"l-{name}", 2),
        ):
            stream.put(one)
        stream.admit_alone(f"in-{name}", name, {"cpu": "2"})
    for one in (_queue("own", 4, "root", reclaimWithinCohort="Any"), kueue.local_queue("l-own", "own")):
        stream.put(one)
    stream.put(kueue.workload("p", "l-own", 2))
    stream.wait(2)
    stream.evict("in-r", "p", "InCohortReclamation")
    (one,) = Replay("kueue").judge(lambda: iter(stream.lines), Settings(kueue=model.Settings(fair_sharing=True)))
    assert (one.outcome, one.tied) == ("differs", tied), one.detail
