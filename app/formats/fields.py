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


def _each(effect: Effect, names: str, below: str = "") -> dict[str, Effect]:
    """``effect`` for each of the words ``names``, with the path ``below`` which they are."""
    return dict.fromkeys((f"{below}{name}" for name in names.split()), effect)


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
            "spec.preemptibility": "decided", "spec.subGroups": "decided", "spec.minSubGroup": "decided",
            "spec.preemptionDelay": "decided", "spec.stalenessGracePeriod": "decided",
            "spec.topologyConstraint": "warning", "spec.topologyConstraint.requiredTopologyLevel": "error",
            "spec.subGroups[].topologyConstraint": "warning",
            "spec.subGroups[].topologyConstraint.requiredTopologyLevel": "error",
            "spec.backoffLimit": "none", "spec.markUnschedulable": "none", "spec.schedulingBackoff": "none",
            "spec.completions": "warning", "spec.parallelism": "warning",
        },
        "Pod": {
            "metadata.annotations.gpu-fraction": "decided", "metadata.annotations.gpu-memory": "decided",
            "metadata.annotations.gpu-fraction-num-devices": "decided", "metadata.labels.runai-gpu-group": "decided",
            "metadata.deletionTimestamp": "decided",
        },
        "SchedulingShard": {
            "spec.actions": "decided", "spec.args": "decided", "spec.minRuntime": "decided",
            "spec.plugins": "warning", "spec.kValue": "decided", "spec.partitionLabelValue": "decided",
            "spec.placementStrategy": "warning", "spec.queueDepthPerAction": "warning", "spec.usageDBConfig": "warning",
        },
    },
    "ytsaurus": {
        "PoolTree": {
            **_each("decided", """
                fair_share_starvation_tolerance fair_share_starvation_timeout fair_share_aggressive_starvation_timeout
                enable_aggressive_starvation enable_pool_starvation enable_absolute_fair_share_starvation_tolerance
                preemption_satisfaction_threshold aggressive_preemption_satisfaction_threshold
                non_preemptible_resource_usage_threshold max_unpreemptible_running_job_count
                consider_allocation_on_fair_share_bound_preemptible preemptive_scheduling_backoff
                scheduling_preemption_priority_scope allow_preemption_from_starving_operations
                allow_aggressive_preemption_for_gang_operations allocation_count_preemption_timeout_coefficient
                allocation_preemption_timeout job_interrupt_timeout allocation_graceful_preemption_timeout
                allowed_node_resources_overcommit_duration min_spare_allocation_resources
                min_spare_allocation_resources_on_node infer_weight_from_guarantees_share_multiplier
                enable_best_allocation_share main_resource enable_step_function_for_gang_operations
                enable_improved_fair_share_by_fit_factor_computation
                enable_improved_fair_share_by_fit_factor_computation_distribution_gap
                enable_fifo_children_reordering_for_guarantee_utilization should_distribute_free_volume_among_children
                integral_guarantees pool_config_presets""", "config."),
            **_each("warning", """
                enable_fair_share_truncation_in_fifo_pool packing scheduling_segments ssd_priority_preemption
                default_gpu_full_host_preemption gpu_scheduling_policy batch_operation_scheduling
                max_schedulable_element_count_in_fifo_pool preemption_check_starvation preemption_check_satisfaction
                enable_conditional_preemption min_job_resource_limits max_job_resource_limits guaranteed_job_resources
                min_node_resource_limits allow_gang_operations_only_in_fifo_pools enable_guarantee_priority_scheduling
                consider_single_allocation_vanilla_operations_as_gang testing_options
                max_running_operation_count max_running_operation_count_per_pool""", "config."),
            **_each("info", """
                node_tag_filter default_parent_pool forbid_immediate_operations_in_root max_ephemeral_pools_per_user
                max_operation_count max_operation_count_per_pool use_user_default_parent_pool_map
                non_tentative_operation_types tentative_tree_saturation_deactivation_period
                allow_single_job_large_gpu_operations_in_multiple_trees use_precommit_for_preemption""", "config."),
            "nodes_filter": "info",
            **_each("none", """
                enable_unrecognized_alert heartbeat_tree_scheduling_info_log_backoff enable_operations_profiling
                update_preemptible_list_duration_logging_threshold custom_profiling_tag_filter node_reconnection_timeout
                best_allocation_share_update_period enable_by_user_profiling enable_pools_vector_profiling
                enable_resource_tree_structure_lock_profiling enable_resource_tree_usage_lock_profiling
                enable_operations_vector_profiling sparsify_fair_share_profiling enable_limiting_ancestor_check
                profiled_pool_resources profiled_operation_resources waiting_for_resources_on_node_timeout
                min_child_heap_size metering_tags allowed_resource_usage_staleness
                cached_allocation_preemption_statuses_update_period max_event_log_pool_batch_size
                max_event_log_operation_batch_size accumulated_resource_distribution_update_period
                enable_scheduled_and_preempted_resources_profiling check_operation_for_liveness_in_preschedule
                running_allocation_statistics_update_period per_pool_satisfaction_digest
                per_pool_satisfaction_profiling_quantiles min_node_resource_limits_check_period
                enable_detailed_logs_for_starving_operations
                enable_detailed_logs_for_single_allocation_vanilla_operations enable_preliminary_resource_limits_check
                enable_resource_tree_random_sleeps""", "config."),
        },
        "Pool": {
            **_each("decided", """
                weight strong_guarantee_resources resource_limits mode config_preset fifo_sort_parameters
                fair_share_starvation_tolerance fair_share_starvation_timeout enable_aggressive_starvation
                allow_aggressive_preemption allow_normal_preemption non_preemptible_resource_usage_threshold
                max_unpreemptible_running_job_count resource_limits_overcommit_tolerance forbid_immediate_operations
                scheduling_tag_filter integral_guarantees enable_step_function_for_gang_operations
                enable_fifo_children_reordering_for_guarantee_utilization enable_fair_share_truncation_in_fifo_pool
                compute_promised_guarantee_fair_share enable_priority_strong_guarantee_adjustment
                enable_priority_strong_guarantee_adjustment_donorship"""),
            **_each("warning", """
                max_share_ratio allow_regular_allocations_on_ssd_nodes enable_lightweight_operations
                fifo_pool_scheduling_order historic_usage_aggregation_period infer_children_weights_from_historic_usage
                use_pool_satisfaction_for_scheduling enable_priority_scheduling_segment_module_assignment
                max_running_operation_count"""),
            **_each("info", """
                max_operation_count create_ephemeral_subpools ephemeral_subpool_config allowed_profiling_tags
                offloading_settings allow_idle_cpu_policy"""),
            **_each("none", "enable_by_user_profiling abc enable_detailed_logs metering_tags"),
        },
        "Operation": {
            **_each("decided", """
                pool weight resource_limits is_gang preemption_mode fair_share_starvation_tolerance
                fair_share_starvation_timeout non_preemptible_resource_usage_threshold
                max_unpreemptible_running_job_count allocation_preemption_timeout job_interrupt_timeout
                allocation_graceful_preemption_timeout scheduling_options_per_pool_tree"""),
            **_each("error", """
                scheduling_tag_filter max_share_ratio scheduling_options_per_pool_tree.physical.scheduling_tag_filter
                scheduling_options_per_pool_tree.physical.max_share_ratio"""),
            **_each("warning", """
                pool_trees schedule_in_single_tree tentative_pool_trees probing_pool_tree
                use_default_tentative_pool_trees scheduling_segment scheduling_segment_modules
                apply_specified_resource_limits_to_demand"""),
            **_each("none", """
                strong_guarantee_resources enable_aggressive_starvation
                max_concurrent_controller_schedule_allocation_calls
                consider_guarantees_for_single_tree tentative_tree_eligibility custom_profiling_tag
                update_preemptible_allocations_list_logging_period try_avoid_duplicating_jobs
                max_speculative_job_count_per_task max_probing_job_count_per_task probing_ratio
                enable_limiting_ancestor_check testing_operation_options erase_trees_with_pool_limit_violations
                allow_idle_cpu_policy"""),
        },
        "OrchidNode": {
            **_each("decided", "resource_limits tags state"),
            **_each("none", """
                scheduler_state scheduling_heartbeat_complexity master_state resource_usage data_center
                infiniband_cluster last_non_preemptive_heartbeat_statistics last_preemptive_heartbeat_statistics"""),
        },
        "OrchidOperation": {
            **_each("decided", "start_time running_jobs running_allocations pool suspended spec"),
            **_each("warning", "state"),
            **_each("none", """
                operation_id operation_type authenticated_user mutation_id user_transaction_id unrecognized_spec
                full_spec task_names events slot_index_per_pool_tree"""),
        },
        "OrchidPool": {
            **_each("decided", """
                mode parent strong_guarantee_resources specified_resource_limits forbid_immediate_operations
                effective_aggressive_starvation_enabled specified_resource_limits_overcommit_tolerance
                priority_strong_guarantee_adjustment_enabled priority_strong_guarantee_adjustment_donorship_enabled
                integral_guarantee_type specified_resource_flow specified_burst_guarantee_resources
                accumulated_resource_volume fair_share_starvation_tolerance fair_share_starvation_timeout
                starvation_status weight"""),
            **_each("warning", "fifo_sort_parameters"),
            **_each("none", """
                resource_usage resource_demand scheduling_status effective_fair_share_starvation_tolerance
                effective_fair_share_starvation_timeout effective_non_preemptible_resource_usage_threshold
                effective_waiting_for_resources_on_node_timeout lowest_aggressively_starving_ancestor
                lowest_starving_ancestor max_share_ratio dominant_resource usage_share usage_ratio
                dominant_usage_share demand_share demand_ratio dominant_demand_share resource_limits limits_share
                scheduling_tag_filter_resource_limits limited_resource_demand limited_demand_share
                dominant_limited_demand_share min_share strong_guarantee_share strong_guarantee_share_by_tier
                min_share_resources effective_min_share_resources effective_strong_guarantee_resources
                inferred_strong_guarantee_resources min_share_ratio fair_share_ratio detailed_fair_share
                detailed_dominant_fair_share fair_resources detailed_promised_guarantee_fair_share
                detailed_dominant_promised_guarantee_fair_share promised_fair_share promised_dominant_fair_share
                promised_fair_share_resources estimated_guarantee_share dominant_estimated_guarantee_share
                estimated_guarantee_resources proposed_integral_share best_allocation_share
                fair_share_functions_statistics satisfaction_ratio local_satisfaction_ratio schedulable
                running_operation_count lightweight_running_operation_count schedulable_operation_count
                pool_operation_count operation_count max_running_operation_count max_operation_count
                total_resource_flow_ratio total_burst_ratio aggressive_starvation_enabled
                lightweight_operations_enabled effective_lightweight_operations_enabled gang_operations_allowed
                is_ephemeral integral_pool_capacity specified_burst_ratio specified_resource_flow_ratio
                accumulated_resource_ratio_volume estimated_burst_usage_duration_seconds abc full_path
                child_pool_count redirect_to_cluster"""),
        },
        "OrchidShares": {
            **_each("decided", """
                pool is_gang allocation_preemption_timeout allocation_graceful_preemption_timeout
                fair_share_starvation_tolerance fair_share_starvation_timeout resource_usage resource_demand
                starvation_status weight"""),
            **_each("none", """
                scheduling_status effective_fair_share_starvation_tolerance effective_fair_share_starvation_timeout
                effective_non_preemptible_resource_usage_threshold effective_waiting_for_resources_on_node_timeout
                lowest_aggressively_starving_ancestor lowest_starving_ancestor max_share_ratio dominant_resource
                usage_share usage_ratio dominant_usage_share demand_share demand_ratio dominant_demand_share
                resource_limits limits_share scheduling_tag_filter_resource_limits limited_resource_demand
                limited_demand_share dominant_limited_demand_share min_share strong_guarantee_share
                strong_guarantee_share_by_tier min_share_resources effective_min_share_resources
                effective_strong_guarantee_resources inferred_strong_guarantee_resources min_share_ratio
                fair_share_ratio detailed_fair_share detailed_dominant_fair_share fair_resources
                detailed_promised_guarantee_fair_share detailed_dominant_promised_guarantee_fair_share
                promised_fair_share promised_dominant_fair_share promised_fair_share_resources
                estimated_guarantee_share dominant_estimated_guarantee_share estimated_guarantee_resources
                proposed_integral_share best_allocation_share fair_share_functions_statistics satisfaction_ratio
                local_satisfaction_ratio schedulable strong_guarantee_resources specified_resource_limits
                specified_resource_limits_overcommit_tolerance effective_aggressive_starvation_enabled slot_index
                start_time fifo_index grouped_needed_resources detailed_min_needed_job_resources
                aggregated_min_needed_job_resources tentative probing offloading starving_since lightweight
                disk_request_media unschedulable_reason user type title"""),
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
    above = [
        candidate for candidate in known if path == candidate or path.startswith((f"{candidate}.", f"{candidate}[]"))
    ]
    return known[max(above, key=len)] if above else None


_BEGIN, _END = "## Every field\n", "\n## "


def written(page: str) -> str:
    """``page``, docs/formats.md, with the table as it is here under its heading."""
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    meanings = "; ".join(f"`{effect}`: {meaning}" for effect, meaning in MEANING.items())
    text = f"Of what is below a path, unless a longer one says otherwise. {meanings}.\n\n{_table()}\n"
    return f"{before}{_BEGIN}\n{text}{_END}{after}"


def _table() -> str:
    lines = ["| system | kind | field | |", "| --- | --- | --- | --- |"]
    for system, kinds in FIELDS.items():
        for kind, fields in kinds.items():
            for effect in MEANING:
                listed = ", ".join(f"`{path}`" for path, of in fields.items() if of == effect)
                if listed:
                    lines.append(f"| {system} | {kind} | {listed} | {effect} |")
    return "\n".join(lines)
