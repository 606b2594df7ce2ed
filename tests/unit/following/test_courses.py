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
from app.solver.model.configuration import Configuration
from tests.support.courses import Course

COURSES = gzip.decompress(Path(__file__).with_name("courses.jsonl.gz").read_bytes()).splitlines()


@pytest.mark.parametrize(
    "how", [{}, {"seed": 3}, {"seed": 5, "late": 0.8, "apart": 0.1}], ids=["at once", "late", "late and apart"]
)
@pytest.mark.parametrize("fair", [False, True], ids=["classic", "fair"])
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
