"""What becomes of every field of the native documents: the one table, shown in docs/formats.md and held by tests.

A path stands for all that is below it, unless a longer one says otherwise. Fields of pods are in ``docs/formats.md``'s
words, for they are Kubernetes' own.
"""

from typing import Literal

Effect = Literal["decided", "warning", "error", "info", "none"]
MEANING: dict[Effect, str] = {
    "decided": "a decision depends on it",
    "warning": "a decision may differ for it, which a finding says",
    "error": "a decision would be wrong for it, which a finding says: exit code 3",
    "info": "no decision depends on it, which a finding says",
    "none": "no decision depends on it",
}
_QUOTAS: dict[str, Effect] = {"spec.resourceGroups": "decided", "spec.fairSharing.weight": "decided"}

FIELDS: dict[str, dict[str, dict[str, Effect]]] = {
    "kueue": {
        "ClusterQueue": {
            **_QUOTAS, "spec.cohortName": "decided", "spec.queueingStrategy": "decided", "spec.preemption": "decided",
            "spec.flavorFungibility": "decided", "spec.namespaceSelector": "decided", "spec.stopPolicy": "decided",
            "spec.admissionChecksStrategy": "decided", "spec.admissionScope": "decided",
            "spec.admissionChecksStrategy.admissionChecks[].onFlavors": "none",
            "spec.concurrentAdmissionPolicy": "warning",
        },
        "Cohort": {**_QUOTAS, "spec.parentName": "decided"},
        "LocalQueue": {
            "spec.clusterQueue": "decided", "spec.stopPolicy": "decided", "spec.fairSharing.weight": "decided",
        },
        "ResourceFlavor": {
            "spec.nodeLabels": "decided", "spec.nodeTaints": "decided", "spec.nodeTaints[].timeAdded": "none",
            "spec.tolerations": "decided", "spec.tolerations[].tolerationSeconds": "none",
            "spec.topologyName": "decided",
        },
        "Topology": {"spec.levels": "decided"},
        "Workload": {
            "spec.active": "decided", "spec.podSets": "decided", "spec.priority": "decided",
            "spec.priorityClassRef": "decided", "spec.priorityClassRef.kind": "none", "spec.queueName": "decided",
            "spec.maximumExecutionTimeSeconds": "info", "spec.preemptionGates": "info",
            "spec.podSets[].topologyRequest.podIndexLabel": "none",
            "spec.podSets[].topologyRequest.subGroupIndexLabel": "none",
            "spec.podSets[].topologyRequest.subGroupCount": "none",
            "status.admission": "decided", "status.conditions": "decided",
            "status.conditions[].observedGeneration": "none", "status.reclaimablePods": "decided",
            "status.requeueState.requeueAt": "decided", "status.requeueState.count": "none",
            "status.admissionChecks": "none", "status.admissionChecks[].name": "decided",
            "status.admissionChecks[].state": "decided",
            "status.admission.podSetAssignments[].delayedTopologyRequest": "warning",
            "status.unhealthyNodes": "warning", "status.accumulatedPastExecutionTimeSeconds": "none",
            "status.clusterName": "none", "status.nominatedClusterNames": "none", "status.preemptionGates": "none",
            "status.resourceRequests": "none", "status.schedulingStats": "none",
        },
        "Configuration": {
            "fairSharing.preemptionStrategies": "decided", "resources": "decided",
            "resources.deviceClassMappings": "warning", "admissionFairSharing": "decided",
            "waitForPodsReady": "warning", "featureGates": "warning", "integrations": "info",
            "manageJobsWithoutQueueName": "info", "managedJobsNamespaceSelector": "info", "multiKueue": "info",
            "objectRetentionPolicies": "info", "namespace": "none", "clientConnection": "none",
            "internalCertManagement": "none", "visibilityServer": "none",
        },
    },
    "yunikorn": {
        "queues.yaml": {
            "partitions[].name": "decided", "partitions[].queues": "decided", "partitions[].placementrules": "decided",
            "partitions[].limits": "decided", "partitions[].limits[].limit": "none",
            "partitions[].preemption.enabled": "decided", "partitions[].preemption.quotapreemptionenabled": "none",
            "partitions[].nodesortpolicy": "warning", "partitions[].usergroupresolver": "info",
            "partitions[].queues[].submitacl": "warning", "partitions[].queues[].adminacl": "info",
        },
        "state-dump": {
            "timestamp": "decided", "config": "decided", "appHistory": "none", "clusterInfo": "none",
            "containerHistory": "none", "eventStreams": "none", "logLevel": "none", "placementRules": "none",
            "rmDiagnostics": "none", "partitions": "none", "partitions[].name": "decided",
            "partitions[].preemptionEnabled": "decided", "queues": "none", "queues[].queuename": "decided",
            "queues[].partition": "decided", "queues[].children": "decided", "queues[].guaranteedResource": "decided",
            "queues[].maxResource": "decided", "queues[].maxRunningApps": "decided", "queues[].isLeaf": "decided",
            "queues[].isManaged": "decided", "queues[].properties": "decided", "queues[].template": "decided",
            "applications": "none", "applications[].applicationID": "decided",
            "applications[].applicationState": "decided", "applications[].partition": "decided",
            "applications[].queueName": "decided", "applications[].submissionTime": "decided",
            "applications[].user": "decided", "applications[].groups": "decided",
            "applications[].backoffDeadline": "warning",
            **{
                f"applications[].{of}[].{field}": "decided"
                for of in ("allocations", "requests")
                for field in ("allocationKey", "allocationTags", "requestTime", "resource", "priority", "originator",
                              "placeholder")
            },
            "applications[].allocations[].nodeId": "decided", "applications[].allocations[].preempted": "decided",
            "applications[].requests[].requiredNodeId": "decided",
            "applications[].requests[].triggeredPreemption": "decided",
            "nodes": "none", "nodes[].partitionName": "decided", "nodes[].nodesInfo[].nodeID": "decided",
            "nodes[].nodesInfo[].attributes": "decided", "nodes[].nodesInfo[].capacity": "decided",
            "nodes[].nodesInfo[].occupied": "decided", "nodes[].nodesInfo[].schedulable": "decided",
            "nodes[].nodesInfo[].reservations": "decided",
        },
    },
    "kai": {
        "Queue": {
            "spec.parentQueue": "decided", "spec.priority": "decided", "spec.preemptMinRuntime": "decided",
            "spec.reclaimMinRuntime": "decided", "spec.resources": "decided", "spec.displayName": "none",
        },
        "PodGroup": {
            "spec.queue": "decided", "spec.minMember": "decided", "spec.priorityClassName": "decided",
            "spec.preemptibility": "decided", "spec.subGroups": "warning", "spec.topologyConstraint": "warning",
            "spec.backoffLimit": "none", "spec.markUnschedulable": "none", "spec.schedulingBackoff": "none",
            "spec.completions": "warning", "spec.parallelism": "warning",
        },
        "SchedulingShard": {
            "spec.actions": "decided", "spec.args": "decided", "spec.minRuntime": "decided",
            "spec.plugins": "warning", "spec.kValue": "warning", "spec.partitionLabelValue": "decided",
            "spec.placementStrategy": "warning", "spec.queueDepthPerAction": "warning", "spec.usageDBConfig": "warning",
        },
    },
    "kube-scheduler": {
        "KubeSchedulerConfiguration": {
            "profiles[].schedulerName": "decided", "profiles[].percentageOfNodesToScore": "warning",
            "profiles[].pluginConfig": "decided", "profiles[].plugins": "warning",
            "profiles[].plugins.multiPoint": "error", "profiles[].plugins.preFilter": "error",
            "profiles[].plugins.filter": "error", "profiles[].plugins.postFilter": "error",
            "percentageOfNodesToScore": "warning", "extenders": "error", "parallelism": "info",
            "podInitialBackoffSeconds": "info", "podMaxBackoffSeconds": "info", "delayCacheUntilActive": "info",
            "clientConnection": "none", "leaderElection": "none", "enableProfiling": "none",
            "enableContentionProfiling": "none",
        },
        "DefaultPreemptionArgs": {"minCandidateNodesPercentage": "decided", "minCandidateNodesAbsolute": "decided"},
        "InterPodAffinityArgs": {
            "hardPodAffinityWeight": "warning", "ignorePreferredTermsOfExistingPods": "warning",
        },
        "NodeAffinityArgs": {"addedAffinity": "error"},
        "NodeResourcesBalancedAllocationArgs": {"resources": "warning"},
        "NodeResourcesFitArgs": {
            "ignoredResources": "error", "ignoredResourceGroups": "error", "scoringStrategy": "warning",
        },
        "PodTopologySpreadArgs": {"defaultConstraints": "error", "defaultingType": "warning"},
        "VolumeBindingArgs": {"bindTimeoutSeconds": "warning", "shape": "warning"},
        "PodDisruptionBudget": {
            "spec.selector": "decided", "spec.minAvailable": "none", "spec.maxUnavailable": "none",
            "spec.unhealthyPodEvictionPolicy": "none", "status.disruptionsAllowed": "decided",
            "status.disruptedPods": "decided", "status.conditions": "none", "status.currentHealthy": "none",
            "status.desiredHealthy": "none", "status.expectedPods": "none", "status.observedGeneration": "none",
        },
    },
}  # fmt: skip
"""By system, kind and path."""


def effect_of(system: str, kind: str, path: str) -> Effect | None:
    """That of the longest path of the table which leads to ``path`` or above it; None: nobody thought of it."""
    known = FIELDS[system].get(kind, {})
    above = [one for one in known if path == one or path.startswith((f"{one}.", f"{one}[]"))]
    return known[max(above, key=len)] if above else None


_BEGIN, _END = "## Every field\n", "\n## "


def written(page: str) -> str:
    """``page``, docs/formats.md, with the table as it is here under its heading."""
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    meanings = "; ".join(f"`{effect}`: {meaning}" for effect, meaning in MEANING.items())
    told = f"Of what is below a path, unless a longer one says otherwise. {meanings}.\n\n{_table()}\n"
    return f"{before}{_BEGIN}\n{told}{_END}{after}"


def _table() -> str:
    lines = ["| system | kind | field | |", "| --- | --- | --- | --- |"]
    for system, kinds in FIELDS.items():
        for kind, fields in kinds.items():
            for effect in MEANING:
                listed = ", ".join(f"`{path}`" for path, of in fields.items() if of == effect)
                if listed:
                    lines.append(f"| {system} | {kind} | {listed} | {effect} |")
    return "\n".join(lines)
