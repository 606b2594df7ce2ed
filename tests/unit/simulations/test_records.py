"""What is kept of rounds: what is new in each, when the whole state is told again, and the requests made of it."""

import json
from typing import Any

from app.base.decoding import convert
from app.simulations.core import state as records
from app.simulations.core.state import Recorder, base_of, request_of
from app.solver import solve
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, Delta, State
from app.solver.question import Question
from tests.support.bounds import Bounded
from tests.support.placed_runs import NODES, configuration

CONFIGURED = solve.configure(convert(configuration("yunikorn"), Configuration))
Json = dict[str, Any]


def ask(name: str, cpu: int = 1) -> Ask:
    return convert({"id": name, "queue": "root.a", "tasks": [{"name": "x", "requests": {"cpu": cpu}}]}, Ask)


def held(node: str, name: str) -> Json:
    return {"node": node, "ask": {"id": name, "queue": "root.a", "tasks": [{"name": "x", "requests": {"cpu": 1}}]}}


def line(of: Recorder, n: int, *asks: Ask, state: State | None = None) -> bytes:
    return of.round(n, state or convert(NODES, State), Question(n, list(asks), "cycle"))


def news(of: bytes) -> list[str]:
    return [one["id"] for one in json.loads(of).get("asks", [])]


def test_an_ask_is_told_once_until_it_changes_or_the_state_is_told_whole() -> None:
    of = Recorder()
    a, b = ask("a"), ask("b")
    assert news(line(of, 1, a)) == ["a"]
    assert news(line(of, 2, a, b)) == ["b"]
    assert news(line(of, 3, b, ask("a"))) == [], "as it was"
    assert news(line(of, 4, b, ask("a", 2))) == ["a"]
    assert news(line(of, 5, a, b)) == ["a"]
    of.replaced()
    last = line(of, 6, a, b)
    assert (base_of(last), news(last), news(line(of, 7, a, b))) == (6, ["a", "b"], [])
    of.configured(3)
    again = json.loads(line(of, 8, a))
    assert (again["base"], again["configuration"], "state" in again) == (8, 3, True)


def test_the_state_is_told_whole_once_changes_are_longer_than_it_and_than_the_least(
    bounded: Bounded,
) -> None:
    """Lines of rounds 2 to 9 without changes are as long as one another."""

    def bases(least: int) -> list[int]:
        bounded(records, LEAST_BYTES=least)
        of = Recorder()
        return [base_of(line(of, n)) for n in range(1, 10)]

    of = Recorder()
    whole, short = (len(line(of, n)) for n in (1, 2))
    assert bases(3 * short) == [1] * 5 + [6] * 4, "three are as long as that, and a fourth is longer"
    assert bases(3 * short - 1) == [1] * 4 + [5] * 4 + [9], "and so is the third"
    assert bases(0) == bases(whole)


def test_a_request_is_made_of_everything_since_its_base() -> None:
    """Nodes and workloads come, change and go, and so do reservations; what queues carry over is replaced."""
    first = convert(NODES | {"reservations": [held("n0", "r"), held("n1", "s")]}, State)
    of = Recorder()
    lines = [line(of, 1, ask("a"), state=first)]
    of.changed(convert({
        "generation": 0, "nodes": {"change": [{"name": "n1", "capacity": {"cpu": 9}}]},
        "workloads": {"add": [{"id": name, "queue": "root.a", "tasks": []} for name in "wv"]},
        "reservations": {"remove": [{"node": "n0", "ask": "r"}], "add": [held("n0", "t")]},
    }, Delta))  # fmt: skip
    lines.append(line(of, 2, ask("a"), ask("b")))
    of.changed(convert({"generation": 0, "workloads": {
        "remove": ["w"], "change": [{"id": "v", "queue": "root.b", "tasks": []}]}}, Delta))  # fmt: skip
    of.changed(convert({"generation": 0, "reservations": {"remove": [{"node": "n1", "ask": "s"}]}}, Delta))
    lines.append(line(of, 3, ask("b", 2)))

    def told(n: int) -> Json:
        return json.loads(request_of(lines[:n], lambda number: CONFIGURED))

    requests = [told(n) for n in (1, 2, 3)]
    assert [[(r["node"], r["ask"]["id"]) for r in one["state"]["reservations"]] for one in requests] == [
        [("n0", "r"), ("n1", "s")], [("n1", "s"), ("n0", "t")], [("n0", "t")]
    ]  # fmt: skip
    assert [[(w["id"], w["queue"]) for w in one["state"].get("workloads", [])] for one in requests] == [
        [], [("w", "root.a"), ("v", "root.a")], [("v", "root.b")]
    ]  # fmt: skip
    assert [[n["capacity"]["cpu"] for n in one["state"]["nodes"]] for one in requests] == [[4, 4], [4, 9], [4, 9]]
    assert [[(a["id"], a["tasks"][0]["requests"]["cpu"]) for a in one["asks"]] for one in requests] == [
        [("a", 1)], [("a", 1), ("b", 1)], [("b", 2)]
    ]  # fmt: skip
    assert [one["now"][-10:] for one in requests] == ["00.000001Z", "00.000002Z", "00.000003Z"]
    assert {one["mode"] for one in requests} == {"cycle"}
