"""What is followed of each system, where it is read, and the rights that this needs."""

from app.following.objects import FOLLOWED, followed, manifests
from app.formats.objects import Kind

WORKLOAD = Kind("Workload", "kueue.x-k8s.io", "workloads", ("v1beta2", "v1beta1"))
RBAC = "rbac.authorization.k8s.io"


def test_a_kind_has_its_path() -> None:
    assert WORKLOAD.base("v1beta1") == "/apis/kueue.x-k8s.io/v1beta1"
    assert WORKLOAD.path("v1beta1") == "/apis/kueue.x-k8s.io/v1beta1/workloads"
    assert WORKLOAD.api_version("v1beta1") == "kueue.x-k8s.io/v1beta1"
    pod = Kind("ConfigMap", "", "configmaps", ("v1",), within="yunikorn")
    assert pod.path("v1") == "/api/v1/namespaces/yunikorn/configmaps"
    assert (pod.base("v1"), pod.api_version("v1")) == ("/api/v1", "v1")


def test_only_what_may_be_missing_is_not_needed() -> None:
    optional = {kind.name for kinds in FOLLOWED.values() for kind in kinds if not kind.needed}
    assert optional == {
        "Cohort", "WorkloadPriorityClass", "PriorityClass", "AdmissionCheck", "Namespace", "LimitRange", "RuntimeClass",
        "ConfigMap", "Topology", "Node", "Pod", "PodDisruptionBudget", "Config", "Deployment",
    }  # fmt: skip
    assert [kind.name for engine in ("kai", "yunikorn") for kind in FOLLOWED[engine] if not kind.needed] == [
        "Config", "Deployment",
    ], "what tells of the release"  # fmt: skip
    assert all(kind.state for kinds in FOLLOWED.values() for kind in kinds)
    assert WORKLOAD in FOLLOWED["kueue"], "the newer version is tried first"
    (*state, event) = followed("kai", shadow=True)
    assert tuple(state) == FOLLOWED["kai"]
    assert (event.name, event.needed, event.state, event.selector) == ("Event", False, False, "reason=Evict")
    assert followed("kueue", shadow=True) == FOLLOWED["kueue"], "Workloads say it themselves"


def test_rights_are_those_of_the_table_and_no_others() -> None:
    account, role, binding, *more = manifests("kueue", "arbiter", "follower")
    assert account == {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "follower", "namespace": "arbiter"},
    }  # fmt: skip
    assert role == {
        "apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "follower-kueue"},
        "rules": [
            {
                "apiGroups": ["kueue.x-k8s.io"],
                "resources": [
                    "clusterqueues", "cohorts", "localqueues", "resourceflavors", "workloads",
                    "workloadpriorityclasses", "admissionchecks", "topologies",
                ],
                "verbs": ["list", "watch"],
            },
            {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]},
            {
                "apiGroups": [""], "resources": ["namespaces", "limitranges", "nodes", "pods"],
                "verbs": ["list", "watch"],
            },
            {"apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"], "verbs": ["list", "watch"]},
        ],
    }  # fmt: skip
    assert binding == {
        "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "follower-kueue"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "follower-kueue"},
        "subjects": [{"kind": "ServiceAccount", "name": "follower", "namespace": "arbiter"}],
    }  # fmt: skip
    manager, bound = more
    assert (manager["kind"], manager["metadata"]["namespace"]) == ("Role", "kueue-system")
    assert manager["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
    assert bound["roleRef"]["kind"] == "Role"


def test_the_release_of_kai_is_read_where_it_is_installed() -> None:
    _, everywhere, _, role, _ = manifests("kai", "arbiter", "follower")
    assert {"apiGroups": ["kai.scheduler"], "resources": ["configs"], "verbs": ["list", "watch"]} in everywhere["rules"]
    assert role["metadata"]["namespace"] == "kai-scheduler"
    assert role["rules"] == [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list", "watch"]}]


def test_settings_of_yunikorn_are_read_in_its_namespace_alone() -> None:
    _, everywhere, _, role, binding = manifests("yunikorn", "arbiter", "follower", shadow=True, within="sched")
    assert everywhere["rules"] == [
        {"apiGroups": [""], "resources": ["pods", "nodes", "events"], "verbs": ["list", "watch"]},
        {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]},
    ]
    named = {"name": "follower-yunikorn", "namespace": "sched"}
    assert role == {
        "apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": named,
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}],
    }  # fmt: skip
    assert (binding["kind"], binding["metadata"]) == ("RoleBinding", named)
    assert binding["roleRef"] == {"apiGroup": RBAC, "kind": "Role", "name": "follower-yunikorn"}
