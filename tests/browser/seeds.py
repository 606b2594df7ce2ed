"""What the tests' service holds: decisions of every engine, hostile names, a large tree, many candidates."""

import json
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from app.clusters.router import EXAMPLE as REPORT
from app.clusters.shadow import EXAMPLE as PREEMPTION
from app.simulations.router import SIMULATION
from app.studies.forecasting import FORECAST
from app.studies.sweep_jobs import SWEEP
from app.traces.router import TRACE
from tests.support.live import ROOT

if TYPE_CHECKING:
    from tests.browser.conftest import Site

EXAMPLES = ROOT / "examples"
MARKUP = "<img src=x onerror=alert(1)>&amp;\"'{{7*7}}"
LONG = "w" * 500
RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd-\u0645\u0631\u062d\u0628\u0627-\u202eevil"
EMOJI = "job-\U0001f9ea\U0001f468\u200d\U0001f469\u200d\U0001f467"
HOSTILE = (MARKUP, LONG, RIGHT_TO_LEFT, EMOJI)


def example(name: str, **changes: Any) -> dict[str, Any]:
    return {**json.loads((EXAMPLES / f"{name}.json").read_text()), **changes}


def seed(site: "Site") -> None:
    for name in ("kueue-classic", "kai-reclaim", "yunikorn-guarantee", "ytsaurus-starvation"):
        site.decisions[name] = site.call("POST", "/v1/decisions", example(name))["id"]
    site.decisions["kube-scheduler"] = site.call("POST", "/v1/decisions", tied())["id"]
    site.decisions["hostile"] = site.call("POST", "/v1/decisions", hostile())["id"]
    site.decisions["waiting"] = site.call("POST", "/v1/decisions", waiting())["id"]
    site.decisions["many"] = site.call("POST", "/v1/decisions", many(10_000))["id"]
    site.call("PUT", "/v1/configurations/large", large_tree(2000))
    site.call("PUT", "/v1/configurations/empty-handed", {"engine": "kueue", "queues": [{"name": "only"}]})
    state = {"engine": "kueue", "configuration": "example", "state": example("kueue-classic")["state"]}
    state["asks"] = example("kueue-classic")["asks"]
    site.call("PUT", "/v1/snapshots/now", state)
    asked = {name: value for name, value in example("kueue-classic").items() if name in ("asks", "now", "engine")}
    kept = {**asked, "configuration": "example", "state": {"snapshot": "now"}}
    site.decisions["snapshot"] = site.call("POST", "/v1/decisions", kept)["id"]
    pending = {"configuration": "example", "state": {"snapshot": "now"}, "asks": "pending", "now": asked["now"]}
    site.decisions["pending"] = site.call("POST", "/v1/decisions", pending)["id"]
    site.call("PUT", "/v1/configurations/zoned", flavored())
    state = {"engine": "kueue", "configuration": "zoned", "state": {"workloads": borrowing(3000)}}
    task = {"name": "t", "count": 1500, "requests": {"cpu": 1}}
    ask = {"id": "wants", "queue": "vision", "priority": 9, "tasks": [task]}
    site.call("PUT", "/v1/snapshots/zoned", {**state, "asks": [{**ask, "id": f"wants{i}"} for i in range(250)]})
    borrowed = {"configuration": "zoned", "state": {"snapshot": "zoned"}, "asks": [ask]}
    site.decisions["flavored"] = site.call("POST", "/v1/decisions", borrowed)["id"]
    site.call("PUT", "/v1/clusters/production", REPORT)
    site.call("POST", "/v1/shadow", PREEMPTION)
    site.decisions["simulation"] = site.call("POST", "/v1/simulations", SIMULATION)["id"]
    loop = json.loads((EXAMPLES / "loops" / "kueue-fair-sharing.json").read_text())
    site.decisions["loop"] = site.call("POST", "/v1/simulations", loop)["id"]
    site.decisions["exposures"] = site.call("POST", "/v1/exposures", {"state": {"snapshot": "now"}, "asks": "pending"})[
        "id"
    ]
    put_trace(site, "january", "\n".join(map(json.dumps, TRACE)))
    site.call("PUT", "/v1/configurations/teams", SIMULATION["configuration"])
    site.decisions["forecast"] = site.call("POST", "/v1/forecasts", FORECAST)["id"]
    other = {"variants": [{"name": "other", "configuration": "empty-handed"}]}
    site.decisions["backtest"] = site.call("POST", "/v1/backtests", {**other, "configuration": "example"})["id"]
    site.decisions["sweep"] = site.call("POST", "/v1/sweeps", {**SWEEP, "configurations": {"teams": "teams"}})["id"]
    while site.worker.once():
        pass


def tied() -> dict[str, Any]:
    """Two nodes that kube-scheduler draws from, where whoever goes violates a budget."""
    said = example("kube-scheduler", explain="full")
    said["state"]["workloads"][1]["priority"] = 2000
    return said


def put_trace(site: "Site", name: str, lines: str) -> None:
    """Store a trace, or the same again."""
    headers = {"Authorization": f"Bearer {site.secrets['admin']}", "Content-Type": "application/x-ndjson"}
    with urlopen(Request(f"{site.address}/v1/traces/{name}", lines.encode(), headers, method="PUT")) as reply:
        assert reply.status in (200, 201)


def hostile() -> dict[str, Any]:
    """Names that would break a page that trusts them."""
    quota = {"cpu": {"guaranteed": 4}}
    preemption = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
    return {
        "engine": "kueue", "now": "2026-03-02T09:30:00Z", "explain": "full",
        "configuration": {"queues": [{"name": MARKUP, "quota": quota, "kueue": preemption}]},
        "state": {"workloads": [
            {
                "id": name, "queue": MARKUP, "priority": 1,
                "tasks": [{"name": name[:40], "requests": {"cpu": 1}, "flavors": {"cpu": "default"}}],
            }
            for name in HOSTILE
        ]},
        "asks": [
            {"id": f"ask {MARKUP}", "queue": MARKUP, "priority": 9, "tasks": [{"name": "t", "requests": {"cpu": 3}}]}
        ],
    }  # fmt: skip


def waiting() -> dict[str, Any]:
    """An ask that has to wait, and a quota that would let it in."""
    said = example("kueue-classic", explain="full")
    said["asks"][0]["tasks"][0]["count"] = 12
    return said


def many(candidates: int) -> dict[str, Any]:
    """As many candidates, a few nodes."""
    preemption = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
    quota = {"cpu": {"guaranteed": candidates}}
    below = [{"name": name, "parent": "all", "quota": quota, "kueue": preemption} for name in ("a", "b")]
    queues = [{"name": "all"}, *below]
    workloads = [
        {
            "id": f"w{i:05}", "queue": "a", "priority": i % 7, "created_at": f"2026-03-01T{i % 24:02}:{i % 60:02}:00Z",
            "tasks": [{"name": "t", "requests": {"cpu": 2}, "flavors": {"cpu": "default"}}],
        }
        for i in range(candidates)
    ]  # fmt: skip
    ask = {"id": "big", "queue": "b", "priority": 100, "tasks": [{"name": "t", "count": 300, "requests": {"cpu": 10}}]}
    return {
        "engine": "kueue", "now": "2026-03-02T09:30:00Z", "configuration": {"queues": queues},
        "state": {"workloads": workloads}, "asks": [ask],
    }  # fmt: skip


def flavored() -> dict[str, Any]:
    """Two teams, each promised something of two flavors, with bounds on what they borrow and lend."""

    def team(name: str, spot: int, own: int) -> dict[str, Any]:
        quotas: list[dict[str, Any]] = [
            {"name": "spot", "quota": {"cpu": {"guaranteed": spot, "borrowing_limit": 2000}}},
            {
                "name": "own",
                "quota": {"cpu": {"guaranteed": own, "lending_limit": 10}, "memory": {"guaranteed": "64Gi"}},
            },
        ]
        quotas[0]["quota"]["memory"] = {"guaranteed": "512Mi"}
        preemption = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
        group = {"resources": ["cpu", "memory"], "flavors": quotas}
        return {"name": name, "parent": "all", "resource_groups": [group], "kueue": preemption}

    queues = [{"name": "all"}, team("vision", 3000, 40), team("batch", 1000, 40)]
    return {"engine": "kueue", "flavors": [{"name": "spot"}, {"name": "own"}], "queues": queues}


def borrowing(workloads: int) -> list[dict[str, Any]]:
    """Work of one team on one flavor, beyond what it is promised."""
    flavors = {"flavors": {"cpu": "spot", "memory": "spot"}}
    return [
        {
            "id": f"run{i:05}", "queue": "batch", "priority": i % 5,
            "created_at": f"2026-03-01T{i % 24:02}:{i % 60:02}:00Z",
            "tasks": [{"name": "t", "requests": {"cpu": 1 if i else "0.5"}, **flavors}],
        }
        for i in range(workloads)
    ]  # fmt: skip


def large_tree(queues: int) -> dict[str, Any]:
    """A tree of four levels."""
    found: list[dict[str, Any]] = [{"name": "root"}]
    for i in range(1, queues):
        parent = "root" if i <= 10 else f"q{(i - 11) // 12 + 1}"
        found.append({"name": f"q{i}", "parent": parent, "quota": {"cpu": {"guaranteed": i % 9}}})
    return {"engine": "kai", "queues": found}


def crowd(nodes: int, workloads: int, queues: int) -> dict[str, Any]:
    """A full cluster of racks: work of a GPU in queues that borrow from one another, and asks that wait for a rack."""
    host = "kubernetes.io/hostname"
    quota = {"cpu": {"guaranteed": 8 * workloads // queues}, "gpu": {"guaranteed": workloads // queues}}
    group = {"resources": ["cpu", "gpu"], "flavors": [{"name": "racked", "quota": quota}]}
    preemption = {"preemption": {"within_cluster_queue": "LowerPriority", "reclaim_within_cohort": "Any"}}
    team = {"parent": "everybody", "resource_groups": [group], "kueue": preemption}
    runs = {"requests": {"cpu": 8, "gpu": 1}, "flavors": {"cpu": "racked", "gpu": "racked"}}
    wanted = {"name": "main", "count": 4, "requests": {"cpu": 8, "gpu": 1}, "topology_request": {"required": "rack"}}
    return {
        "configuration": {
            "engine": "kueue",
            "flavors": [{"name": "racked", "topology": "racks"}],
            "topologies": [{"name": "racks", "levels": ["rack", host]}],
            "queues": [{"name": "everybody"}, *({"name": f"team-{i:02}", **team} for i in range(queues))],
        },
        "state": {
            "nodes": [
                {
                    "name": f"node-{i:04}", "labels": {"rack": f"r{i // 25}", host: f"node-{i:04}"},
                    "capacity": {"cpu": 8 * workloads // nodes, "gpu": workloads // nodes, "pods": 110},
                }
                for i in range(nodes)
            ],
            "workloads": [
                {
                    "id": f"training-{i:05}", "queue": f"team-{i % queues:02}", "priority": i // queues % 4,
                    "created_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:00:00Z",
                    "tasks": [{"name": "main", **runs, "topology_assignment": {
                        "levels": [host], "domains": [{"values": [f"node-{i % nodes:04}"], "count": 1}],
                    }}],
                }
                for i in range(workloads)
            ],
        },
        "asks": [
            {
                "id": f"urgent-{i}", "queue": f"team-{i:02}", "priority": 9 - i, "created_at": "2026-01-01T00:00:00Z",
                "tasks": [wanted],
            }
            for i in range(3)
        ],
    }  # fmt: skip
