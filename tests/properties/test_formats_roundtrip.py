"""Export then import gives an equal configuration, for whatever the systems can say."""

import json
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from app.formats import export, import_configuration
from app.formats.kai.configuration import BY_DEFAULT
from app.formats.ytsaurus.documents import read_yson, write_yson
from app.solver.delta import digest
from app.solver.model.base import parse_quantity, scale_of
from app.solver.model.configuration import Configuration
from tests.support.profiles import examples

FAST = examples(60)
WORDS = st.sampled_from(
    ["a", "b", "null", "true", "on", "1", "1e3", "0x1f", "-", "x: y", "# c", "a'b", 'q"', "ü", "~", "[z]", "2026-01-01",
     "{}", "*a", "&b", "!t", "%d", "@at", "`tick", "<<", "a b", "back\\slash", "tab\there", ".inf", "0o7", "1_000"]
)  # fmt: skip
NAMES = st.text("abcdefgh-0123456789", min_size=1, max_size=8)
AMOUNTS = st.one_of(
    st.integers(0, 10**6), st.sampled_from(["500m", "1Gi", "2.5Gi", "100M", "1e3", "0", "3k"]), st.just(1.5)
)
WHOLE = st.one_of(st.integers(0, 10**6), st.sampled_from(["1Gi", "100M", "1e3", "3k"]))
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def amount(resource: str) -> st.SearchStrategy[Any]:
    return AMOUNTS if resource in ("cpu", "gpu", "vcore") else WHOLE


def some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Any subset of ``fields``."""
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def trees(draw: st.DrawFn, most: int = 7) -> list[tuple[str, str | None]]:
    """Names and parents; parents may come after their children."""
    names = draw(st.lists(NAMES, min_size=1, max_size=most, unique=True))
    parents = [None, *(draw(st.none() | st.sampled_from(names[:i])) for i in range(1, len(names)))]
    return draw(st.permutations(list(zip(names, parents, strict=True))))


def converted(document: dict[str, Any]) -> Configuration:
    return msgspec.json.decode(msgspec.json.encode(document), type=Configuration)


def stays(configuration: Configuration, system: str) -> Configuration:
    """Export, import, and hold the result against the original; returns what came back."""
    out = export(configuration, system)
    assert [f for f in out.findings if f.severity != "info"] == []
    back = import_configuration(out.text.encode(), system)
    assert [f for f in back.findings if f.severity != "info"] == []
    assert by_amount(back.configuration) == by_amount(configuration), out.text
    return back.configuration


def by_amount(configuration: Configuration) -> dict[str, Any]:
    """The document with every amount as a number: how it is spelled is for the system to say. A queue that no manifest
    of Kueue opens to namespaces is exported open to none, and a comment says it."""
    document: dict[str, Any] = msgspec.to_builtins(configuration)
    for queue in cast(list[dict[str, Any]], document.get("queues", [])):
        if queue.get("native") == {"kueue": {"spec": {"namespaceSelector": None}}}:
            del queue["native"]
    of_kai: dict[str, Any] = document.get("settings", {}).get("kai") or {}
    if of_kai.get("actions") == list(BY_DEFAULT):  # a cluster that lists none runs one more: they are written out
        del of_kai["actions"]
    if document.get("settings") == {"kai": {}}:  # the same as none
        document["settings"] = {}
    for queue in cast(list[dict[str, Any]], document.get("queues", [])):
        groups = cast(list[dict[str, Any]], queue.get("resource_groups") or [])
        flavors = cast(list[dict[str, Any]], [flavor for group in groups for flavor in group["flavors"]])
        for quotas in cast(list[dict[str, dict[str, Any]]], [queue.get("quota") or {}, *(f["quota"] for f in flavors)]):
            for resource, quota in quotas.items():
                for field, value in quota.items():
                    if field != "weight" and value != "unlimited":
                        quota[field] = parse_quantity(value, scale_of(resource))
    return document


PREEMPTION = some(
    {
        "within_cluster_queue": st.sampled_from(["LowerPriority", "LowerOrNewerEqualPriority"]),
        "reclaim_within_cohort": st.sampled_from(["LowerPriority", "Any"]),
        "borrow_within_cohort": st.fixed_dictionaries(
            {"policy": st.just("LowerPriority")}, optional={"max_priority_threshold": st.integers(-(2**31), 2**31 - 1)}
        ),
    }
).filter(bool)
FUNGIBILITY = some(
    {
        "when_can_borrow": st.just("TryNextFlavor"),
        "when_can_preempt": st.just("MayStopSearch"),
        "preference": st.sampled_from(["BorrowingOverPreemption", "PreemptionOverBorrowing"]),
    }
).filter(bool)
POLICIES = some(
    {"preemption": PREEMPTION, "flavor_fungibility": FUNGIBILITY, "queueing_strategy": st.just("StrictFIFO")}
).filter(bool)
TAINTS: st.SearchStrategy[list[dict[str, str]]] = st.lists(
    st.fixed_dictionaries(
        {"key": WORDS, "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])},
        optional={"value": WORDS},
    ),
    max_size=2,
)


@st.composite
def groups(draw: st.DrawFn, flavors: list[str]) -> dict[str, Any]:
    resources = draw(st.lists(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), min_size=1, unique=True))

    def quota(resource: str) -> dict[str, Any]:
        limits = draw(some({"borrowing_limit": amount(resource), "lending_limit": amount(resource)}))
        return {"guaranteed": draw(amount(resource)), **limits}

    return {
        "resources": resources,
        "flavors": [{"name": flavor, "quota": {r: quota(r) for r in resources}} for flavor in flavors],
    }


FLAVOR = some({"node_labels": st.dictionaries(WORDS, WORDS, min_size=1, max_size=2), "node_taints": TAINTS})


@st.composite
def kueue_configurations(draw: st.DrawFn) -> Configuration:
    flavors = draw(st.lists(NAMES, max_size=3, unique=True))
    tree = draw(trees())
    inner = {parent for _, parent in tree}
    queues: list[dict[str, Any]] = []
    for name, parent in tree:
        queue: dict[str, Any] = {"name": name, **({} if parent is None else {"parent": parent})}
        if flavors and draw(st.booleans()):
            queue["resource_groups"] = [draw(groups(flavors))]
        queue |= draw(some({"weight": st.sampled_from([0, 1, 0.5, 2.25, 1e-9, 10]), "created_at": INSTANTS}))
        if name not in inner:
            role = draw(st.sampled_from([None, None, "cohort"]))
            block = {"role": "cohort"} if role else draw(st.none() | POLICIES)
            queue |= {"kueue": block} if block else {}
        queues.append(queue)
    kueue = draw(
        st.sampled_from(
            [None, {"fair_sharing": True}, {"fair_sharing": True, "preemption_strategies": ["LessThanInitialShare"]}]
        )
    )
    return converted(
        {
            "engine": "kueue",
            "settings": {"kueue": kueue} if kueue else {},
            "flavors": [{"name": flavor, **draw(FLAVOR)} for flavor in flavors],
            "queues": queues,
        }
    )  # fmt: skip


@FAST
@given(kueue_configurations())
def test_kueue(configuration: Configuration) -> None:
    stays(configuration, "kueue")


PROPERTIES = st.dictionaries(WORDS, WORDS, min_size=1, max_size=3)


@st.composite
def yunikorn_configurations(draw: st.DrawFn) -> Configuration:
    paths: dict[str, str] = {}
    queues: list[dict[str, Any]] = []
    tree: list[tuple[str, str | None]] = [("root", None), *((n, p or "root") for n, p in draw(trees()) if n != "root")]
    for name, parent in _nested(tree):
        path = name if parent is None else f"{paths[parent]}.{name}"
        paths[name] = path
        queue: dict[str, Any] = {"name": path}
        if parent is not None:
            queue["parent"] = paths[parent]
            quota = {
                r: draw(some({"guaranteed": amount(r), "limit": amount(r)}).filter(bool))
                for r in draw(st.lists(st.sampled_from(["vcore", "memory", "nvidia.com/gpu"]), unique=True))
            }
            # Sorted as the two maps of queues.yaml give them back: guaranteed ones first.
            ordered = sorted(quota.items(), key=lambda item: "guaranteed" not in item[1])
            queue |= {"quota": dict(ordered)} if quota else {}
        block = draw(
            some({"properties": PROPERTIES, "child_template": st.fixed_dictionaries({"properties": PROPERTIES})})
        )
        if all(p != name for _, p in tree) and draw(st.booleans()):
            block["parent"] = True
        queues.append({**queue, **({"yunikorn": block} if block else {})})
    settings = {"yunikorn": {"rules": "shipped"}}  # queues.yaml has no word for other rules
    return converted({"engine": "yunikorn", "settings": settings, "queues": queues})


def _nested(tree: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """The order that a nested document has: each queue before those below it, depth first."""
    out: list[tuple[str, str | None]] = []
    pending = [item for item in reversed(tree) if item[1] is None]
    while pending:
        name, parent = pending.pop()
        out.append((name, parent))
        pending += [item for item in reversed(tree) if item[1] == name]
    return out


@st.composite
def kube_scheduler_configurations(draw: st.DrawFn) -> Configuration:
    """Namespaces, and arguments of DefaultPreemption."""
    arguments = some({
        "min_candidate_nodes_percentage": st.integers(0, 100), "min_candidate_nodes_absolute": st.integers(0, 10**6),
    })  # fmt: skip
    queues = [
        {"name": name, **draw(some({"created_at": INSTANTS}))}
        for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    ]
    settings = {"kube_scheduler": draw(arguments)}
    return converted({"engine": "kube-scheduler", "settings": settings, "queues": queues})


@FAST
@given(kube_scheduler_configurations())
def test_kube_scheduler(configuration: Configuration) -> None:
    stays(configuration, "kube-scheduler")


@FAST
@given(yunikorn_configurations())
def test_yunikorn(configuration: Configuration) -> None:
    stays(configuration, "yunikorn")


RUNTIMES = st.sampled_from(["0s", "90s", "3600s", "1500000us"])


@st.composite
def kai_configurations(draw: st.DrawFn) -> Configuration:
    queues: list[dict[str, Any]] = []
    weights = st.sampled_from([0, 1, 2.5, 0.1])
    for name, parent in draw(trees()):
        quota = {
            r: {
                "guaranteed": draw(st.just("unlimited") | canonical),
                **draw(some({"limit": canonical})),
                "weight": draw(weights),
            }
            for r, canonical in (
                ("cpu", st.sampled_from([0, 3, "1500m"])),
                ("memory", st.integers(0, 2**50)),
                ("gpu", st.sampled_from([0, 8, "500m"])),
            )
        }
        queue = {"name": name, "quota": quota, "priority": draw(st.integers(-5, 200))}
        queue |= {} if parent is None else {"parent": parent}
        block = draw(some({"reclaim_min_runtime": RUNTIMES, "preempt_min_runtime": RUNTIMES}))
        queue |= draw(some({"created_at": INSTANTS})) | ({"kai": block} if block else {})
        queues.append(queue)
    shard = draw(
        st.none()
        | some(
            {
                "rules": st.sampled_from(["shipped", "documented"]),
                "default_reclaim_min_runtime": st.sampled_from(["10m", "2d", "soon"]),
                "default_preempt_min_runtime": st.sampled_from(["0s", "1w"]),
                "reclaim_resolve_method": st.sampled_from(["queue", "leaf"]),
                "actions": st.lists(
                    st.sampled_from(["allocate", "consolidation", "reclaim", "preempt"]), unique=True
                ).filter(lambda a: a != ["allocate", "consolidation", "reclaim", "preempt"]),
                "use_scheduling_signatures": st.just(False),
                "k_value": st.sampled_from([0, 0.5, 3]),
                "max_consolidation_preemptees": st.integers(0, 100),
                "allow_consolidating_reclaim": st.just(False),
            }
        )
    )
    return converted({"engine": "kai", "settings": {} if shard is None else {"kai": shard}, "queues": queues})


@FAST
@given(kai_configurations())
def test_kai(configuration: Configuration) -> None:
    stays(configuration, "kai")


TIMEOUTS = st.sampled_from([0, 30, 0.25, 3600, 1.001])
SHARES = st.sampled_from([0.25, 0.8, 1, 1.5])
MAPS = st.dictionaries(st.sampled_from(["user_slots", "cpu", "memory"]), st.integers(0, 100), min_size=1)


@st.composite
def ytsaurus_configurations(draw: st.DrawFn) -> Configuration:
    tree_fields = some(
        {
            "fair_share_starvation_tolerance": SHARES,
            "fair_share_starvation_timeout": TIMEOUTS,
            "enable_aggressive_starvation": st.booleans(),
            "preemption_satisfaction_threshold": SHARES,
            "non_preemptible_resource_usage_threshold": MAPS,
            "preemptive_scheduling_backoff": TIMEOUTS,
            "scheduling_preemption_priority_scope": st.sampled_from(["operation_only", "operation_and_ancestors"]),
            "main_resource": WORDS,
            "enable_step_function_for_gang_operations": st.booleans(),
            "integral_guarantees": some({"smooth_period": TIMEOUTS, "relaxed_share_multiplier_limit": SHARES}).filter(
                bool
            ),
        }
    ).filter(bool)
    pool_fields = some(
        {
            "mode": st.just("fifo"),
            "fair_share_starvation_timeout": TIMEOUTS,
            "allow_aggressive_preemption": st.booleans(),
            "non_preemptible_resource_usage_threshold": MAPS,
            "scheduling_tag_filter": st.just("internal & !slow"),
            "compute_promised_guarantee_fair_share": st.booleans(),
            "integral_guarantees": some(
                {
                    "guarantee_type": st.sampled_from(["burst", "relaxed"]),
                    "resource_flow": MAPS,
                    "can_accept_free_volume": st.just(value=False),
                }
            ).filter(bool),
        }
    ).filter(bool)
    queues: list[dict[str, Any]] = []
    for name, parent in _nested(draw(trees())):
        queue: dict[str, Any] = {"name": name, **({} if parent is None else {"parent": parent})}
        guaranteed, limits = draw(st.tuples(MAPS | st.none(), MAPS | st.none()))
        quota: dict[str, dict[str, Any]] = {r: {"guaranteed": v} for r, v in (guaranteed or {}).items()}
        for r, v in (limits or {}).items():
            quota.setdefault(r, {})["limit"] = v
        queue |= {"quota": quota} if quota else {}
        queue |= draw(some({"weight": st.sampled_from([0.5, 2, 3.75]), "ytsaurus": pool_fields}))
        queues.append(queue)
    settings_block = draw(st.none() | tree_fields)
    return converted(
        {"engine": "ytsaurus", "settings": {"ytsaurus": settings_block} if settings_block else {}, "queues": queues}
    )


@FAST
@given(ytsaurus_configurations())
def test_ytsaurus(configuration: Configuration) -> None:
    stays(configuration, "ytsaurus")


STRINGS = WORDS | st.text(max_size=5)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
NODES: st.SearchStrategy[Any] = st.recursive(
    STRINGS | st.none() | st.booleans() | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3) | st.fixed_dictionaries({
        "$attributes": st.dictionaries(STRINGS, inner, min_size=1, max_size=2), "$value": inner,
    }),
    max_leaves=8,
)  # fmt: skip


@FAST
@given(NODES)
def test_yson_that_is_written_is_what_ytsaurus_reads(node: Any) -> None:
    read = read_yson(write_yson(node).encode())[0][1]
    assert json.dumps(read, sort_keys=True) == json.dumps(node, sort_keys=True)


@FAST
@given(kueue_configurations() | yunikorn_configurations() | kai_configurations() | ytsaurus_configurations()
       | kube_scheduler_configurations(),
       st.sampled_from(["kueue", "yunikorn", "kai", "ytsaurus", "kube-scheduler"]))  # fmt: skip
def test_a_second_round_changes_nothing_and_a_foreign_system_says_what_it_loses(
    configuration: Configuration, system: str
) -> None:
    solve_name = configuration.engine
    once = import_configuration(export(configuration, system).text.encode(), system).configuration
    twice = import_configuration(export(once, system).text.encode(), system).configuration
    assert once == twice
    if solve_name != system and any(getattr(q, str(solve_name), None) for q in configuration.queues):
        assert export(configuration, system).findings
    assert once.engine == system
    assert digest(once) == digest(twice)
