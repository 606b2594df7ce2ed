"""Which jobs of a trace a point plays: a sample by id alone, changes, the trace's start, and faults by line."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
import zstandard

from app.simulations.schemas import Summary
from app.solver.model.problems import InvalidInput
from app.studies.sweep_executors import Played, play
from tests.support.kueue_run import two_queues
from tests.unit.simulations.running import AT_ONCE, job

JOBS = [job(f"j{i:03}", "ab"[i % 2], 1, i, 1) for i in range(200)]


def traced(lines: list[Any], sample: float | None = None, start: str | None = None) -> Played:
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    half = text.index(b"\n", len(text) // 2) + 1
    chunks = [zstandard.ZstdCompressor().compress(part) for part in (text[:half], text[half:])]
    return Played(chunks, msgspec.json.encode({} if start is None else {"start": start}), sample)


def played(trace: Played, seed: int | None = None, **more: Any) -> Summary:
    body = {
        "configuration": two_queues(),
        "trace": "t",
        "options": AT_ONCE,
        **({} if seed is None else {"seed": seed}),
        **more,
    }
    return msgspec.json.decode(play(msgspec.json.encode(body), trace), type=Summary)


def test_a_larger_sample_has_all_of_a_smaller_one_and_another_seed_other_jobs() -> None:
    def count(sample: float | None, seed: int | None = None) -> int:
        return played(traced(JOBS, sample), seed).total.jobs

    found = [count(sample) for sample in (0.0, 0.25, 0.5, 1.0)]
    assert found == sorted(found)
    assert (found[0], found[3], count(None)) == (0, 200, 200)
    assert 30 < found[1] < 70 < found[2] < 130
    none, *drawn = (played(traced(JOBS, 0.5), seed) for seed in (None, 0, 1, 2))
    assert none == drawn[0], "no seed is 0"
    assert all(one != other for one, other in pairwise([*drawn, none]))


def test_whom_a_job_waits_for_is_forgotten_in_a_sample_and_kept_in_the_whole() -> None:
    chain = [job("first", "a", 1, 0, 100), *(job(f"n{i}", "b", 1, 1, 1, after=["first"]) for i in range(40))]
    whole, part = played(traced(chain)), played(traced(chain, 0.999999))
    assert (whole.makespan, whole.total.jobs) == (100 + 10, 41), "four at a time"
    assert part.queues["b"].wait is not None
    assert part.makespan == 100


def test_changes_and_the_start_are_those_of_the_trace() -> None:
    lines = [{"at": 5, "queues": {"a": {"quota": {"cpu": {"guaranteed": 9}}}}}, job("wide", "a", 9, 0, 3)]
    found = played(traced(lines, start="2001-02-03T00:00:00Z"))
    assert (found.start.year, found.total.finished, found.total.wait and found.total.wait.max) == (2001, 1, 5)


def test_what_can_never_run_is_named_by_its_line() -> None:
    change = {"at": 5, "queues": {"a": {"weight": 2}}}
    with pytest.raises(InvalidInput) as refused:
        played(traced([change, *JOBS[:3], job("huge", "a", 9, 50, 3)]))
    assert [problem.pointer for problem in refused.value.problems] == ["/trace/lines/5/ask"]
