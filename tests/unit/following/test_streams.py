"""Recorded courses of Kueue, written down in other ways that change nothing of what Kueue decides on, and with work
beside them that it does not consider: shadow agrees all the same. Where a list hides evictions it says that it can't
know."""

import copy
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.following.replaying import Replay
from app.solver.model.configuration import Configuration
from tests.cluster import kueue
from tests.support.courses import Course

Json = dict[str, Any]
Lines = list[Json]
COURSES = gzip.decompress(Path(__file__).with_name("courses.jsonl.gz").read_bytes()).splitlines()[::3]
LONG_AGO = "2020-01-01T00:00:00Z"


def workloads(lines: Lines) -> list[Json]:
    return [line["object"] for line in lines if line["kind"] == "Workload" and line["type"] != "BOOKMARK"]


def requests(item: Json) -> list[Json]:
    return [of["template"]["spec"]["containers"][0]["resources"]["requests"] for of in item["spec"]["podSets"]]


def millis(amount: Any) -> int:
    text = str(amount)
    return int(text[:-1]) if text.endswith("m") else 1000 * int(text)


def finished_pods(lines: Lines, draw: random.Random) -> Lines:
    """Every workload has more pods, which are done since before it was admitted, or since (`reclaimablePods`). Not one
    of several pod sets that may start smaller: Kueue counts down from the spec, so that other sizes come out."""
    more: dict[tuple[str, str], tuple[int, bool]] = {}
    for item in workloads(lines):
        uid = item["metadata"]["uid"]
        pod_sets = item["spec"]["podSets"]
        fixed = len(pod_sets) > 1 and any("minCount" in of for of in pod_sets)
        for of in pod_sets:
            drawn = draw.choice((0, 1, 3)), draw.random() < 0.5
            done, _ = more.setdefault((uid, of["name"]), (0, False) if fixed else drawn)
            of["count"] = of.get("count", 1) + done
        status = item.setdefault("status", {})
        status["reclaimablePods"] = [
            {"name": name, "count": done} for (of, name), (done, _) in more.items() if of == uid and done
        ]
        for of in status.get("admission", {}).get("podSetAssignments", []):
            done, since = more[uid, of["name"]]
            if done and since:
                usage = {
                    name: millis(amount) * (of["count"] + done) // of["count"]
                    for name, amount in of["resourceUsage"].items()
                }
                of["count"] += done
                of["resourceUsage"] = {
                    name: f"{amount}m" if amount % 1000 else str(amount // 1000) for name, amount in usage.items()
                }
    return lines


def waiting(name: str, queue: str, version: str, at: str, status: Json | None = None, **spec: Any) -> Json:
    """A workload that would go before all others."""
    made = kueue.workload(name, queue, 1, 10_000)
    made["metadata"] |= {"uid": f"zz-{name}", "creationTimestamp": LONG_AGO, "resourceVersion": version}
    made["spec"] |= spec
    made["status"] = status or {}
    return {"at": at, "kind": "Workload", "type": "ADDED", "object": made}


def condition(kind: str, reason: str, status: str = "True") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": LONG_AGO}


def held_work(lines: Lines, draw: random.Random) -> Lines:
    """In every queue: on hold, inactive, stepping back, refused by a check, done."""
    out: Lines = []
    for line in lines:
        out.append(line)
        if line["kind"] != "LocalQueue" or line["type"] != "ADDED":
            continue
        name, version, at = (
            line["object"]["metadata"]["name"],
            line["object"]["metadata"]["resourceVersion"],
            line["at"],
        )
        held = copy.deepcopy(line)
        held["object"]["metadata"] |= {"name": f"held-{name}", "uid": f"held-{name}"}
        held["object"]["spec"]["stopPolicy"] = draw.choice(("Hold", "HoldAndDrain"))
        late = {"requeueState": {"count": 1, "requeueAt": "2099-01-01T00:00:00Z"}}
        back = [condition("Requeued", "PodsReadyTimeout", "False"), condition("Evicted", "PodsReadyTimeout")]
        check = {"name": "c", "state": "Rejected", "message": "no", "lastTransitionTime": LONG_AGO}
        out += [
            held,
            waiting(f"inactive-{name}", name, version, at, active=False),
            waiting(f"held-{name}", f"held-{name}", version, at),
            waiting(f"back-{name}", name, version, at, {**late, "conditions": back}),
            waiting(f"check-{name}", name, version, at,
                    {"admissionChecks": [check], "conditions": [condition("Evicted", "AdmissionCheck")]}, active=False),
            waiting(f"nowhere-{name}", "nowhere", version, at),
            waiting(f"done-{name}", name, version, at, {"conditions": [condition("Finished", "Succeeded")]}),
        ]  # fmt: skip
    return out


def stopped_queues(lines: Lines, _: random.Random) -> Lines:
    """Beside every ClusterQueue others in its cohort with nothing of their own, which are stopped, not active, or admit
    from no namespace that there is."""
    ways: list[Json] = [
        {"stopPolicy": "Hold"}, {"stopPolicy": "HoldAndDrain"}, {"admissionChecks": ["missing"]},
        {"namespaceSelector": {"matchLabels": {"a": "b"}}}, {"namespaceSelector": None},
    ]  # fmt: skip
    space: Json = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": kueue.SPACE, "labels": {}, "uid": "ns"},
    }
    out: Lines = [{"at": lines[0]["at"], "kind": "Namespace", "type": "ADDED", "object": space}]
    for line in lines:
        out.append(line)
        if line["kind"] != "ClusterQueue" or line["type"] != "ADDED":
            continue
        of = line["object"]["metadata"]["name"]
        for i, way in enumerate(ways):
            name, made = f"{of}-{i}", copy.deepcopy(line)
            made["object"]["metadata"] |= {"name": name, "uid": name}
            spec = made["object"]["spec"]
            for flavor in (one for group in spec.get("resourceGroups", []) for one in group["flavors"]):
                flavor["resources"] = [{"name": one["name"], "nominalQuota": "0"} for one in flavor["resources"]]
            spec |= {"preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}, **way}
            local = {"at": line["at"], "kind": "LocalQueue", "type": "ADDED", "object": kueue.local_queue(name, name)}
            version = made["object"]["metadata"]["resourceVersion"]
            out += [made, local, waiting(f"w-{name}", name, version, line["at"])]
    return out


def overheads(lines: Lines, _: random.Random) -> Lines:
    """Half a cpu of what a pod asks for is its RuntimeClass's overhead."""
    runtime = {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata", "uid": "kata"},
        "handler": "kata", "overhead": {"podFixed": {"cpu": "500m"}},
    }  # fmt: skip
    for item in workloads(lines):
        for of, asked in zip(item["spec"]["podSets"], requests(item), strict=True):
            if "cpu" in asked and (left := millis(asked["cpu"]) - 500) > 0:
                asked["cpu"] = f"{left}m"
                of["template"]["spec"]["runtimeClassName"] = "kata"
    return [{"at": lines[0]["at"], "kind": "RuntimeClass", "type": "ADDED", "object": runtime}, *lines]


def default_requests(lines: Lines, _: random.Random) -> Lines:
    """What most pods ask for is what a LimitRange or their limit says."""
    asked = Counter(str(of["cpu"]) for item in workloads(lines) for of in requests(item) if "cpu" in of)
    usual = asked.most_common(1)[0][0]
    for item in workloads(lines):
        for of in item["spec"]["podSets"]:
            resources = of["template"]["spec"]["containers"][0]["resources"]
            if str(resources["requests"].get("cpu")) == usual:
                del resources["requests"]["cpu"]
                if item["metadata"]["uid"] < "5":
                    resources["limits"] = {"cpu": usual}
    limits = [{"type": "Container", "defaultRequest": {"cpu": usual}, "default": {"cpu": "1000"}}]
    made = {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": kueue.SPACE, "uid": "l"},
        "spec": {"limits": limits},
    }  # fmt: skip
    return [{"at": lines[0]["at"], "kind": "LimitRange", "type": "ADDED", "object": made}, *lines]


def other_orders(lines: Lines, draw: random.Random) -> Lines:
    """Webhooks and controllers write keys, conditions and assignments in whichever order."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys: list[str] = list(value)  # pyright: ignore[reportUnknownArgumentType]
            return {key: shuffled(value[key]) for key in draw.sample(keys, len(keys))}
        return [shuffled(one) for one in value] if isinstance(value, list) else value  # pyright: ignore

    for line in lines:
        line["object"] = shuffled(line["object"])
    for item in workloads(lines):
        status = item.get("status", {})
        for listed in (status.get("conditions"), status.get("admission", {}).get("podSetAssignments")):
            if listed:
                draw.shuffle(listed)
    return lines


def told_again(lines: Lines, draw: random.Random) -> Lines:
    """A server that goes on from an older version says the last things once more."""
    out: Lines = []
    for i, line in enumerate(lines):
        out.append(line)
        if i > 20 and draw.random() < 0.05:
            out += [{**copy.deepcopy(one), "at": line["at"]} for one in lines[i - 3 : i + 1]]
    return out


def gaps(lines: Lines, draw: random.Random, *, over_evictions: bool = False) -> Lines:
    """Now and then nothing is heard of Workloads for a while, and all are listed."""
    out: Lines = []
    there: dict[str, Json] = {}
    blind = 0
    for i, line in enumerate(lines):
        if line["kind"] != "Workload" or line["type"] == "BOOKMARK":
            out.append(line)
            continue
        name = line["object"]["metadata"]["name"]
        before, there[name] = there.get(name), line["object"]
        evicts = is_preempted(line["object"]) and not is_preempted(before) and not over_evictions
        if blind == 1 or (blind and evicts):
            shown = {**there, name: before} if evicts else there
            items = [item for item in shown.values() if item is not None]
            out += [{**line, "type": "ITEM", "object": copy.deepcopy(item)} for item in items]
            version = max(int(item["metadata"]["resourceVersion"]) for item in items)
            told = {"count": len(items), "resource_version": str(version), "api_version": kueue.GROUP, "reason": "gone"}
            out += [{"at": line["at"], "kind": "Workload", "type": "LISTED", **told}, *([line] if evicts else [])]
            blind = 0
        elif blind:
            blind -= 1
        else:
            out.append(line)
            blind = draw.randint(2, 6) if i > 10 and draw.random() < 0.15 else 0
    return out


def is_preempted(item: Json | None) -> bool:
    said: list[Json] = [] if item is None else item.get("status", {}).get("conditions", [])
    return any(one["type"] == "Preempted" and one["status"] == "True" for one in said)


def everything(lines: Lines, draw: random.Random) -> Lines:
    for change in (finished_pods, held_work, stopped_queues, overheads, other_orders):
        lines = change(lines, draw)
    return lines


def judged(change: Callable[[Lines, random.Random], Lines]) -> tuple[Counter[str], Counter[str | None], int]:
    """Outcomes, causes of what is not judged, and how many evictions are told more or less often than they were."""
    outcomes, causes, wrong = Counter[str](), Counter[str | None](), 0
    for number, vector in enumerate(map(json.loads, COURSES)):
        settings = msgspec.convert(vector["request"]["configuration"], Configuration).settings
        course = Course(vector, seed=number, late=1.0, apart=0.05)
        lines = change(copy.deepcopy(course.stream.lines), random.Random(number))
        found = list(Replay("kueue").judge(lambda lines=lines: iter(copy.deepcopy(lines)), settings))
        outcomes.update(one.outcome for one in found)
        causes.update(one.report.cause for one in found if one.outcome == "unjudged")
        wrong += abs(course.evicted - sum(len(one.report.victims) for one in found))
    return outcomes, causes, wrong


WAYS = (
    finished_pods, held_work, stopped_queues, overheads, default_requests, other_orders, told_again, gaps, everything,
)  # fmt: skip
QUICK = (gaps, everything)
"""What `make test` tries as well."""


@pytest.mark.parametrize(
    "change",
    [pytest.param(way, id=way.__name__, marks=() if way in QUICK else pytest.mark.slow) for way in WAYS],
)
def test_shadow_agrees_however_it_is_written_down(change: Callable[[Lines, random.Random], Lines]) -> None:
    outcomes, _, wrong = judged(change)
    assert outcomes["agreed"] + outcomes["agreed_earlier"] == outcomes.total() > 10, outcomes
    assert wrong == 0


@pytest.mark.slow
def test_evictions_that_only_a_list_shows_agree_or_are_not_judged() -> None:
    outcomes, causes, wrong = judged(lambda lines, draw: gaps(lines, draw, over_evictions=True))
    assert outcomes["differs"] == 0
    assert causes.keys() == {"too_long_ago"}
    assert outcomes["agreed"] > outcomes["unjudged"] > 0
    assert wrong == 0
