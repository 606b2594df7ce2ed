"""A grid and its points, by hand: which there are, what each asks, what tells one from another, and what is wrong."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.base.decoding import convert
from app.base.errors import BadInput
from app.simulations.router import SIMULATION
from app.solver.model.configuration import Configuration
from app.solver.model.problems import InvalidInput
from app.studies import sweep_executors as module
from app.studies.sweep_executors import Grid, Point, points, size
from app.studies.sweeps import engines, read
from tests.support.bounds import Bounded

CONFIGURATION = convert(SIMULATION["configuration"], Configuration)
FAIR = "/configuration/settings/kueue/fair_sharing"


def grid(**more: Any) -> Grid:
    return convert({"configurations": {"c": "c.json"}, "traces": {"t": "t.ndjson"}, **more}, Grid)


def of(given: Grid, digests: str = "d") -> list[Point]:
    made = {(name, trace): CONFIGURATION for name in given.configurations for trace in given.traces}
    return points(given, made, {trace: digests + trace for trace in given.traces})


def test_every_combination_is_a_point_in_the_order_of_the_document() -> None:
    given = grid(
        configurations={"y": "y.json", "x": "x.json"}, traces={"t": "t", "s": {"file": "s", "sample": 0.5}},
        seeds=[3, 1], settings={"/grace": [1, 2], FAIR: [False, True]}, request={"round_every": 5},
    )  # fmt: skip
    found = of(given)
    assert size(given) == len(found) == 2 * 2 * 2 * 2 * 2
    assert [(p.configuration, p.trace, p.seed, *p.values.values()) for p in found[:6]] == [
        ("y", "t", 3, 1, False), ("y", "t", 3, 1, True), ("y", "t", 3, 2, False), ("y", "t", 3, 2, True),
        ("y", "t", 1, 1, False), ("y", "t", 1, 1, True),
    ]  # fmt: skip
    for point in found:
        asked = msgspec.json.decode(point.request)
        assert (asked["trace"], asked["round_every"]) == (point.trace, 5)
        assert asked.get("grace", 0) == point.values["/grace"]
        kueue = asked["configuration"].get("settings", {}).get("kueue", {})
        assert kueue.get("fair_sharing", False) == point.values[FAIR]
        assert asked.get("seed", 0) == point.seed
    assert size(grid()) == len(of(grid())) == 1
    assert of(grid())[0].seed == 0


def test_a_key_hangs_on_all_that_a_run_depends_on_and_on_nothing_else() -> None:
    (one,) = of(grid())
    assert len(one.key) == 16
    assert of(grid())[0].key == one.key
    others = [of(grid(), "other")[0], of(grid(settings={"/grace": [1]}))[0],
              of(grid(traces={"t": {"file": "t.ndjson", "sample": 0.5}}))[0]]  # fmt: skip
    assert len({one.key, *(other.key for other in others)}) == 4
    assert of(grid(traces={"t": {"file": "elsewhere"}}))[0].key == one.key
    sampled = {p.key for p in of(grid(traces={"t": {"file": "t", "sample": 0.5}}, seeds=[1, 2]))}
    assert len(sampled) == 2


def test_no_point_changes_what_another_is_made_of() -> None:
    request = {"state": {"nodes": [{"name": "n", "capacity": {"cpu": 1}}]}}
    given = grid(request=request, settings={"/state/nodes/0/capacity/cpu": [2, 3], "/until": [7]})
    asked = [msgspec.json.decode(point.request) for point in of(given)]
    assert [one["state"]["nodes"][0]["capacity"] for one in asked] == [{"cpu": 2}, {"cpu": 3}]
    assert request["state"]["nodes"][0]["capacity"] == {"cpu": 1}
    assert {one["until"] for one in asked} == {7}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("grace", "no pointer into the request"), ("/trace", "no pointer into the request"),
        ("/trace/jobs", "no pointer into the request"), ("/seed", "no pointer into the request"),
        ("/variants/0", "no pointer into the request"), ("/state/nodes/1/name", "nothing there at '1'"),
        ("/state/nodes/x", "nothing there at 'x'"), ("/state/nodes/0/name/x", "nothing there at 'x'"),
    ],
)  # fmt: skip
def test_a_pointer_that_leads_nowhere_is_named(path: str, said: str) -> None:
    request = {"state": {"nodes": [{"name": "n", "capacity": {"cpu": 1}}]}}
    with pytest.raises(BadInput) as refused:
        of(grid(request=request, settings={path: [1]}))
    (problem,) = refused.value.problems
    assert (problem.pointer, problem.detail) == ("/settings/" + path.replace("/", "~1"), said)


def test_a_pointer_may_make_what_it_leads_through_and_escapes_slashes() -> None:
    request = {"state": {"nodes": [{"name": "n", "capacity": {"cpu": 1}}]}}
    found = of(grid(request=request, settings={"/state/nodes/0/capacity/nvidia.com~1gpu": [4], "/remaining/a~0b": [2]}))
    with_gpu = msgspec.json.decode(found[0].request)
    assert with_gpu["state"]["nodes"][0]["capacity"] == {"cpu": 1, "nvidia.com/gpu": 4}
    assert with_gpu["remaining"] == {"a~b": 2}


def test_a_value_that_does_not_fit_is_named_with_its_configuration_and_trace() -> None:
    with pytest.raises(InvalidInput) as refused:
        of(grid(settings={"/on_loop": ["never"]}))
    (problem,) = refused.value.problems
    assert problem.pointer == "/on_loop"
    assert problem.detail.startswith("c, t: ")


@pytest.mark.parametrize("place", ["\u00b2", "9" * 5000, "-1", "9"])
def test_what_is_no_place_of_a_list_is_nowhere(place: str) -> None:
    with pytest.raises(BadInput, match="nothing there at"):
        of(grid(settings={f"/configuration/queues/{place}/weight": [1]}))


def test_so_many_points_and_no_more(bounded: Bounded) -> None:
    bounded(module, MOST_POINTS=2)
    assert len(of(grid(seeds=[1, 2]))) == 2
    for seeds, count in (([1, 2, 3], 3), ([], 0)):
        with pytest.raises(BadInput) as refused:
            of(grid(seeds=seeds))
        assert [problem.detail for problem in refused.value.problems] == [f"{count} points; 1 to 2 are allowed"]


def test_a_grid_of_more_points_than_a_number_has_digits_is_refused_in_a_line() -> None:
    settings: dict[str, list[Any]] = {f"/options/o{i}": [0] * 10 for i in range(5000)}
    with pytest.raises(BadInput) as refused:
        of(grid(settings=settings))
    assert [problem.detail for problem in refused.value.problems] == [
        f"{module.UNCOUNTED} points; 1 to {module.MOST_POINTS} are allowed"
    ]
    assert size(grid(settings=settings | {"/grace": []})) == 0


def test_what_is_no_grid_is_refused() -> None:
    assert read(b"configurations: {c: c.json}\ntraces: {t: t.ndjson}\n") == grid()
    for wrong in (b"{", b"\xff\xfe\x00", b"a: &a [*b]"):
        with pytest.raises(InvalidInput) as refused:
            read(wrong)
        assert refused.value.problems[0].detail.startswith("the grid: ")
    with pytest.raises(InvalidInput):
        read(b"configurations: 7")


def test_engines_are_those_that_its_documents_name(tmp_path: Path) -> None:
    (tmp_path / "kai.json").write_text('{"engine": "kai", "queues": [{"name": "q"}]}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "m.yaml").write_text("resources: {cpu: 1}\ncluster: {engine: yunikorn, each: {queue: {name: q}}}\n")
    given = grid(configurations={"a": "kai.json", "b": "broken.json", "c": "missing.json"})
    assert engines(given, tmp_path) == {"kai"}
    assert engines(grid(request={"engine": "kueue"}), tmp_path) == {"kueue"}
    assert engines(grid(request={"engine": "slurm"}, configurations={"a": SIMULATION["configuration"]}), tmp_path) == {
        "kueue"
    }
    mapped = {"t": {"file": "t", "mapping": "m.yaml"}, "s": {"file": "s", "mapping": "gone.yaml"}, "u": "u"}
    assert engines(grid(configurations={"a": "trace"}, traces=mapped), tmp_path) == {"yunikorn"}
    assert engines(grid(configurations={"a": "kai.json"}, traces=mapped), tmp_path) == {"kai"}
