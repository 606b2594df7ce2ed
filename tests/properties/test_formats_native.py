"""Native documents with known and unknown fields: what was imported is exported again, or a finding names it; and what
is only kept changes no decision."""

import json
from typing import Any

import msgspec
from hypothesis import Phase, assume, given
from hypothesis import strategies as st

from app.formats import export, import_configuration
from app.formats.reader import Imported
from app.solver import solve
from app.solver.check import without_native
from app.solver.model.configuration import Configuration
from app.solver.model.state import Ask, Node, State, Task
from app.solver.question import Question
from tests.support.profiles import examples
from tests.support.roundtrip import differences

FAST = examples(60, phases=(Phase.generate,))
NAMES = st.text("abcdefgh", min_size=1, max_size=4)
WORDS = st.sampled_from(["a", "null", "true", "x: y", "10m", "1Gi", "-1", "ü", "# c", "a\nb", "", " "])
SCALARS = WORDS | st.integers(-(2**40), 2**40) | st.booleans() | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=5
)
LABELS = st.dictionaries(NAMES, WORDS, min_size=1, max_size=2)


def unknown(*known: str) -> st.SearchStrategy[dict[str, Any]]:
    """Fields that no system has, and of ``known`` ones any value."""
    strange = st.dictionaries(NAMES.map(lambda name: f"x{name}"), VALUES, max_size=2)
    return st.tuples(strange, st.fixed_dictionaries({}, optional=dict.fromkeys(known, VALUES))).map(
        lambda both: {**both[0], **both[1]}
    )


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def objects(draw: st.DrawFn, api: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, **draw(some(labels=LABELS, annotations=LABELS))}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, **draw(unknown())}


@st.composite
def kueue(draw: st.DrawFn) -> list[dict[str, Any]]:
    api, made = "kueue.x-k8s.io/v1beta2", list[dict[str, Any]]()
    for i in range(draw(st.integers(1, 3))):
        resource = {"name": "cpu", "nominalQuota": draw(st.sampled_from([3, "4", "1500m"])), **draw(unknown())}
        groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f0", "resources": [resource]}]}]
        spec = {"cohortName": "top", "resourceGroups": groups, "queueingStrategy": "StrictFIFO"}
        spec |= draw(unknown("namespaceSelector", "admissionChecksStrategy", "admissionScope"))
        spec |= draw(some(stopPolicy=st.sampled_from(["None", "Hold", "HoldAndDrain"])))
        made.append(draw(objects(api, "ClusterQueue", f"q{i}", spec)))
        made.append(draw(objects(api, "LocalQueue", f"l{i}", {"clusterQueue": f"q{i}", **draw(unknown())})))
    made.append(draw(objects(api, "Cohort", "top", {"parentName": "root", **draw(unknown())})))
    flavor = {"nodeLabels": draw(LABELS), **draw(unknown("topologyName"))}
    made.append(draw(objects(api, "ResourceFlavor", "f0", flavor)))
    made.append(draw(objects(api, draw(st.sampled_from(["Topology", "AdmissionCheck", "New"])), "x", draw(unknown()))))
    manager = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **draw(unknown("integrations"))}
    made.append(manager | {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare"], **draw(unknown())}})
    return draw(st.permutations(made))


LIMITS = [{"limit": "all", "users": ["*"], "maxresources": {"vcore": 2}}, {"limit": "dev", "groups": ["dev"]}]
RULES = [{"name": "user", "create": True, "filter": {"users": ["a.*"]}, "parent": {"name": "fixed", "value": "a"}}]


@st.composite
def yunikorn(draw: st.DrawFn) -> dict[str, Any]:
    def queue(name: str, below: list[dict[str, Any]]) -> dict[str, Any]:
        made = {"name": name, **draw(unknown("submitacl", "adminacl"))}
        made |= draw(some(limits=st.just(LIMITS) | st.just([]), maxapplications=st.sampled_from([0, 5])))
        if name != "root":
            made |= draw(some(resources=st.just({"guaranteed": {"vcore": 2}, "max": {"memory": "1Gi"}})))
            made |= draw(some(properties=LABELS))
        template = draw(some(properties=LABELS, resources=st.just({"max": {"vcore": 1}}), maxapplications=st.just(3)))
        return made | ({"childtemplate": template} if template else {}) | ({"queues": below} if below else {})

    below = [queue(name, [queue("z", [])] if draw(st.booleans()) else []) for name in ("a", "b")]
    preemption = {"quotapreemptionenabled": True, **draw(some(enabled=st.booleans())), **draw(unknown())}
    partition = {"name": draw(st.sampled_from(["default", "gpu"])), "queues": [queue("root", below)]}
    partition |= {"preemption": preemption, **draw(unknown("nodesortpolicy"))}
    partition |= draw(some(placementrules=st.just(RULES)))
    return {"partitions": [partition, {"name": "other", "queues": [], **draw(unknown())}]}


@st.composite
def kai(draw: st.DrawFn) -> list[dict[str, Any]]:
    def amounts() -> dict[str, Any]:
        return {"quota": 3, "limit": draw(st.sampled_from([-1, 5])), "overQuotaWeight": 1, **draw(unknown())}

    made: list[dict[str, Any]] = []
    for name in ("a", "b"):
        resources = {"cpu": amounts(), "memory": amounts(), "gpu": amounts(), **draw(unknown())}
        spec = {"priority": 100, "resources": resources, **draw(unknown("displayName"))}
        made.append(draw(objects("scheduling.run.ai/v2", "Queue", name, spec)))
    spec = draw(unknown("placementStrategy", "kValue", "partitionLabelValue", "queueDepthPerAction"))
    spec |= draw(some(args=unknown(), plugins=st.dictionaries(NAMES, unknown(), max_size=2)))
    spec |= draw(some(actions=st.just({"reclaim": {"enabled": False}, "preempt": {"priority": 450}})))
    made.append(draw(objects("kai.scheduler/v1", "SchedulingShard", draw(st.sampled_from(["default", "s"])), spec)))
    made.append(draw(objects("kai.scheduler/v1alpha1", "Topology", "t", draw(unknown()))))
    return made


@st.composite
def ytsaurus(draw: st.DrawFn) -> dict[str, Any]:
    def pool(below: dict[str, Any]) -> dict[str, Any]:
        made = {"weight": 2, **draw(unknown("acl", "max_operation_count", "ephemeral_subpool_config", "abc"))}
        made |= draw(some(mode=st.just("fifo"), strong_guarantee_resources=st.just({"cpu": 1.5})))
        return made | ({"pools": below} if below else {})

    config = {"main_resource": "cpu", "fair_share_starvation_timeout": 30000, **draw(unknown("default_parent_pool"))}
    return {"config": config, "pools": {"a": pool({"b": pool({})}), "c": pool({})}, **draw(unknown("nodes_filter"))}


@st.composite
def kube_scheduler(draw: st.DrawFn) -> list[dict[str, Any]]:
    plugins = [{"name": name} for name in ("NodePorts", "ImageLocality", "NodeResourcesFit", "*", "Mine")]
    points = st.lists(st.sampled_from(plugins), max_size=2)

    def profile() -> dict[str, Any]:
        arguments = draw(some(minCandidateNodesPercentage=st.sampled_from([5, 10]), **dict.fromkeys("ab", VALUES)))
        config = [{"name": "DefaultPreemption", "args": arguments, **draw(unknown())}]
        config += [{"name": "NodeAffinity", "args": draw(unknown("addedAffinity"))}] if draw(st.booleans()) else []
        point = draw(
            st.dictionaries(st.sampled_from(["filter", "score", "multiPoint"]), some(disabled=points), max_size=2)
        )
        return {"schedulerName": draw(NAMES), "pluginConfig": config, "plugins": point, **draw(unknown())}

    manager = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    manager |= draw(unknown("percentageOfNodesToScore", "extenders", "parallelism", "podMaxBackoffSeconds"))
    manager |= {"profiles": [profile() for _ in range(draw(st.integers(1, 2)))]}
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("a", "b")]
    return [manager, *spaces]


SYSTEMS = {"kueue": kueue, "yunikorn": yunikorn, "kai": kai, "ytsaurus": ytsaurus, "kube-scheduler": kube_scheduler}
ANY = st.one_of(*(st.tuples(st.just(system), made()) for system, made in SYSTEMS.items()))


@FAST
@given(ANY)
def test_it_comes_out_as_it_went_in_or_a_finding_names_it(source: tuple[str, Any]) -> None:
    system, document = source
    assert differences(json.dumps(document).encode(), system) == []


@FAST
@given(ANY)
def test_what_is_only_kept_changes_no_answer(source: tuple[str, Any]) -> None:
    system, document = source
    found = import_configuration(json.dumps(document).encode(), system).configuration
    kept = msgspec.json.decode(msgspec.json.encode(found), type=Configuration)
    assert kept == found
    inner = {queue.parent for queue in found.queues} | {"top"}
    leaf = next((queue.name for queue in found.queues if queue.name not in inner), None)
    assume(leaf is not None)  # where no queue is a leaf there is nothing to ask for
    assert leaf is not None
    ask = Ask(id="ask", queue=leaf, tasks=[Task(name="t", requests={"cpu": 1, "vcore": 1})])
    state = State(nodes=[Node(name="n", capacity={"cpu": 4, "vcore": 4, "memory": 2**30, "gpu": 2, "pods": 9})])

    def answered(configuration: Configuration) -> Any:
        loaded = solve.load(solve.configure(configuration), state)
        return solve.decide(loaded, Question(asks=[ask], now=0)).decisions, solve.shares(loaded, [ask], 0)["queues"]

    assert answered(kept) == answered(without_native(kept))


def decides(found: Imported) -> set[tuple[str, str]]:
    """Rule and detail of what bears on decisions; where an export writes it is another place."""
    return {(one.rule, one.detail) for one in found.findings if one.severity != "info"}


@FAST
@given(ANY)
def test_what_is_not_decided_goes_with_the_document_and_is_said_by_every_answer(source: tuple[str, Any]) -> None:
    system, document = source
    found = import_configuration(json.dumps(document).encode(), system)
    stored = msgspec.json.decode(msgspec.json.encode(found.configuration), type=Configuration)
    loaded = solve.load(solve.configure(stored), State())
    said = solve.decide(loaded, Question(asks=[], now=0)).findings or []
    assert decides(found) <= {(one.rule, one.detail) for one in said}
    assert all(one.severity != "info" for one in said)
    text = export(stored, system).text
    again = import_configuration(text.encode(), system)
    kept = {one for one in decides(found) if one[0] == "not-decided"}
    assert kept <= decides(again)
