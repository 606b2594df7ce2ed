"""Contains all the data models used in inputs/outputs"""

from .answer import Answer
from .answer_notes_type_0 import AnswerNotesType0
from .apply_request import ApplyRequest
from .ask import Ask
from .ask_preemption_policy import AskPreemptionPolicy
from .audit_line import AuditLine
from .audit_line_detail_type_0 import AuditLineDetailType0
from .audit_page import AuditPage
from .batch_answer import BatchAnswer
from .borrow_within_cohort import BorrowWithinCohort
from .borrow_within_cohort_policy import BorrowWithinCohortPolicy
from .candidate import Candidate
from .candidate_numbers import CandidateNumbers
from .candidate_verdict import CandidateVerdict
from .carried import Carried
from .catalogue import Catalogue
from .catalogued_rule import CataloguedRule
from .change import Change
from .changed_element import ChangedElement
from .child_template import ChildTemplate
from .child_template_properties import ChildTemplateProperties
from .comparison import Comparison
from .comparison_request import ComparisonRequest
from .comparison_stats import ComparisonStats
from .condition import Condition
from .condition_status import ConditionStatus
from .configuration import Configuration
from .configuration_diff import ConfigurationDiff
from .configuration_page import ConfigurationPage
from .configuration_summary import ConfigurationSummary
from .configuration_used import ConfigurationUsed
from .configuration_written import ConfigurationWritten
from .counts import Counts
from .decision import Decision
from .decision_answer import DecisionAnswer
from .decision_answer_notes_type_0 import DecisionAnswerNotesType0
from .decision_answer_stats import DecisionAnswerStats
from .decision_assignment_type_0 import DecisionAssignmentType0
from .decision_assignment_type_0_additional_property import DecisionAssignmentType0AdditionalProperty
from .decision_counts_type_0 import DecisionCountsType0
from .decision_page import DecisionPage
from .decision_placements_type_0 import DecisionPlacementsType0
from .decision_record import DecisionRecord
from .decision_record_stats import DecisionRecordStats
from .decision_request import DecisionRequest
from .decision_summary import DecisionSummary
from .decision_summary_stats import DecisionSummaryStats
from .delta import Delta
from .delta_queues import DeltaQueues
from .difference import Difference
from .difference_values import DifferenceValues
from .effective_settings import EffectiveSettings
from .effective_settings_queues import EffectiveSettingsQueues
from .effective_settings_queues_additional_property import EffectiveSettingsQueuesAdditionalProperty
from .effective_settings_request import EffectiveSettingsRequest
from .effective_settings_settings_type_0 import EffectiveSettingsSettingsType0
from .effective_settings_workloads_type_0 import EffectiveSettingsWorkloadsType0
from .effective_settings_workloads_type_0_additional_property import EffectiveSettingsWorkloadsType0AdditionalProperty
from .element import Element
from .element_changes import ElementChanges
from .element_value import ElementValue
from .engine_name import EngineName
from .eviction import Eviction
from .explain import Explain
from .explanation import Explanation
from .explanation_level import ExplanationLevel
from .exported_manifest import ExportedManifest
from .expression import Expression
from .expression_operator import ExpressionOperator
from .fault import Fault
from .finding import Finding
from .finding_severity import FindingSeverity
from .flavor import Flavor
from .flavor_fungibility import FlavorFungibility
from .flavor_fungibility_preference_type_0 import FlavorFungibilityPreferenceType0
from .flavor_node_labels import FlavorNodeLabels
from .flavor_quotas import FlavorQuotas
from .flavor_quotas_quota import FlavorQuotasQuota
from .get_readiness_for import GetReadinessFor
from .group import Group
from .group_verdict import GroupVerdict
from .health import Health
from .health_status import HealthStatus
from .import_configuration_format import ImportConfigurationFormat
from .import_configuration_json_body import ImportConfigurationJsonBody
from .imported_manifest import ImportedManifest
from .imported_manifest_format import ImportedManifestFormat
from .kai_action import KaiAction
from .kai_options import KaiOptions
from .kai_queue import KaiQueue
from .kai_settings import KaiSettings
from .kueue_ask import KueueAsk
from .kueue_fungibility import KueueFungibility
from .kueue_options import KueueOptions
from .kueue_queue import KueueQueue
from .kueue_queue_queueing_strategy import KueueQueueQueueingStrategy
from .kueue_queue_role_type_0 import KueueQueueRoleType0
from .kueue_settings import KueueSettings
from .kueue_sorting import KueueSorting
from .kueue_strategy import KueueStrategy
from .label import Label
from .label_list import LabelList
from .label_request import LabelRequest
from .long_runner_penalty import LongRunnerPenalty
from .milestone import Milestone
from .mode import Mode
from .node import Node
from .node_changes import NodeChanges
from .node_labels import NodeLabels
from .options import Options
from .outcome import Outcome
from .placement import Placement
from .plan import Plan
from .planned_eviction import PlannedEviction
from .pool_state import PoolState
from .preemptibility import Preemptibility
from .preemptibility_request import PreemptibilityRequest
from .preemptibility_request_action_type_0 import PreemptibilityRequestActionType0
from .preemptibility_workloads import PreemptibilityWorkloads
from .preemptibility_workloads_additional_property import PreemptibilityWorkloadsAdditionalProperty
from .preemption import Preemption
from .preemption_reclaim_within_cohort import PreemptionReclaimWithinCohort
from .preemption_within_cluster_queue import PreemptionWithinClusterQueue
from .problem_document import ProblemDocument
from .queue import Queue
from .queue_document import QueueDocument
from .queue_document_quota_type_0 import QueueDocumentQuotaType0
from .queue_quota_type_0 import QueueQuotaType0
from .queue_state import QueueState
from .quota import Quota
from .readiness import Readiness
from .readiness_configurations import ReadinessConfigurations
from .readiness_database import ReadinessDatabase
from .readiness_status import ReadinessStatus
from .remark import Remark
from .replay import Replay
from .reservation import Reservation
from .reservation_changes import ReservationChanges
from .reservation_name import ReservationName
from .resource_group import ResourceGroup
from .resources import Resources
from .revision_page import RevisionPage
from .rules import Rules
from .scope import Scope
from .settings import Settings
from .shares import Shares
from .shares_fair_share_type_0 import SharesFairShareType0
from .shares_queues import SharesQueues
from .shares_queues_additional_property import SharesQueuesAdditionalProperty
from .shares_request import SharesRequest
from .shares_total_type_0 import SharesTotalType0
from .shares_workloads_type_0 import SharesWorkloadsType0
from .shares_workloads_type_0_additional_property import SharesWorkloadsType0AdditionalProperty
from .shortage import Shortage
from .snapshot_list import SnapshotList
from .snapshot_request import SnapshotRequest
from .snapshot_status import SnapshotStatus
from .state import State
from .state_or_reference import StateOrReference
from .state_or_reference_queues import StateOrReferenceQueues
from .state_queues import StateQueues
from .state_used import StateUsed
from .step import Step
from .step_numbers import StepNumbers
from .stored_configuration import StoredConfiguration
from .stored_queue import StoredQueue
from .taint import Taint
from .taint_effect import TaintEffect
from .task import Task
from .task_changes import TaskChanges
from .task_flavors_type_0 import TaskFlavorsType0
from .task_name import TaskName
from .task_node_selector_type_0 import TaskNodeSelectorType0
from .task_of import TaskOf
from .task_state import TaskState
from .token_created import TokenCreated
from .token_info import TokenInfo
from .token_list import TokenList
from .token_request import TokenRequest
from .toleration import Toleration
from .toleration_operator import TolerationOperator
from .value_change import ValueChange
from .variant import Variant
from .variant_answer import VariantAnswer
from .victim import Victim
from .victim_freed import VictimFreed
from .victim_on_preemption_type_0 import VictimOnPreemptionType0
from .waiting_boost import WaitingBoost
from .workload import Workload
from .workload_changes import WorkloadChanges
from .workload_on_preemption_type_0 import WorkloadOnPreemptionType0
from .ytsaurus_mode import YtsaurusMode
from .ytsaurus_node import YtsaurusNode
from .ytsaurus_options import YtsaurusOptions
from .ytsaurus_preemption_mode import YtsaurusPreemptionMode
from .ytsaurus_priority_scope import YtsaurusPriorityScope
from .ytsaurus_queue import YtsaurusQueue
from .ytsaurus_settings import YtsaurusSettings
from .ytsaurus_starvation import YtsaurusStarvation
from .ytsaurus_status import YtsaurusStatus
from .ytsaurus_workload import YtsaurusWorkload
from .yuni_korn_ask import YuniKornAsk
from .yuni_korn_options import YuniKornOptions
from .yuni_korn_options_node_choice import YuniKornOptionsNodeChoice
from .yuni_korn_queue import YuniKornQueue
from .yuni_korn_queue_properties import YuniKornQueueProperties
from .yuni_korn_settings import YuniKornSettings

__all__ = (
    "Answer",
    "AnswerNotesType0",
    "ApplyRequest",
    "Ask",
    "AskPreemptionPolicy",
    "AuditLine",
    "AuditLineDetailType0",
    "AuditPage",
    "BatchAnswer",
    "BorrowWithinCohort",
    "BorrowWithinCohortPolicy",
    "Candidate",
    "CandidateNumbers",
    "CandidateVerdict",
    "Carried",
    "Catalogue",
    "CataloguedRule",
    "Change",
    "ChangedElement",
    "ChildTemplate",
    "ChildTemplateProperties",
    "Comparison",
    "ComparisonRequest",
    "ComparisonStats",
    "Condition",
    "ConditionStatus",
    "Configuration",
    "ConfigurationDiff",
    "ConfigurationPage",
    "ConfigurationSummary",
    "ConfigurationUsed",
    "ConfigurationWritten",
    "Counts",
    "Decision",
    "DecisionAnswer",
    "DecisionAnswerNotesType0",
    "DecisionAnswerStats",
    "DecisionAssignmentType0",
    "DecisionAssignmentType0AdditionalProperty",
    "DecisionCountsType0",
    "DecisionPage",
    "DecisionPlacementsType0",
    "DecisionRecord",
    "DecisionRecordStats",
    "DecisionRequest",
    "DecisionSummary",
    "DecisionSummaryStats",
    "Delta",
    "DeltaQueues",
    "Difference",
    "DifferenceValues",
    "EffectiveSettings",
    "EffectiveSettingsQueues",
    "EffectiveSettingsQueuesAdditionalProperty",
    "EffectiveSettingsRequest",
    "EffectiveSettingsSettingsType0",
    "EffectiveSettingsWorkloadsType0",
    "EffectiveSettingsWorkloadsType0AdditionalProperty",
    "Element",
    "ElementChanges",
    "ElementValue",
    "EngineName",
    "Eviction",
    "Explain",
    "Explanation",
    "ExplanationLevel",
    "ExportedManifest",
    "Expression",
    "ExpressionOperator",
    "Fault",
    "Finding",
    "FindingSeverity",
    "Flavor",
    "FlavorFungibility",
    "FlavorFungibilityPreferenceType0",
    "FlavorNodeLabels",
    "FlavorQuotas",
    "FlavorQuotasQuota",
    "GetReadinessFor",
    "Group",
    "GroupVerdict",
    "Health",
    "HealthStatus",
    "ImportConfigurationFormat",
    "ImportConfigurationJsonBody",
    "ImportedManifest",
    "ImportedManifestFormat",
    "KaiAction",
    "KaiOptions",
    "KaiQueue",
    "KaiSettings",
    "KueueAsk",
    "KueueFungibility",
    "KueueOptions",
    "KueueQueue",
    "KueueQueueQueueingStrategy",
    "KueueQueueRoleType0",
    "KueueSettings",
    "KueueSorting",
    "KueueStrategy",
    "Label",
    "LabelList",
    "LabelRequest",
    "LongRunnerPenalty",
    "Milestone",
    "Mode",
    "Node",
    "NodeChanges",
    "NodeLabels",
    "Options",
    "Outcome",
    "Placement",
    "Plan",
    "PlannedEviction",
    "PoolState",
    "Preemptibility",
    "PreemptibilityRequest",
    "PreemptibilityRequestActionType0",
    "PreemptibilityWorkloads",
    "PreemptibilityWorkloadsAdditionalProperty",
    "Preemption",
    "PreemptionReclaimWithinCohort",
    "PreemptionWithinClusterQueue",
    "ProblemDocument",
    "Queue",
    "QueueDocument",
    "QueueDocumentQuotaType0",
    "QueueQuotaType0",
    "QueueState",
    "Quota",
    "Readiness",
    "ReadinessConfigurations",
    "ReadinessDatabase",
    "ReadinessStatus",
    "Remark",
    "Replay",
    "Reservation",
    "ReservationChanges",
    "ReservationName",
    "ResourceGroup",
    "Resources",
    "RevisionPage",
    "Rules",
    "Scope",
    "Settings",
    "Shares",
    "SharesFairShareType0",
    "SharesQueues",
    "SharesQueuesAdditionalProperty",
    "SharesRequest",
    "SharesTotalType0",
    "SharesWorkloadsType0",
    "SharesWorkloadsType0AdditionalProperty",
    "Shortage",
    "SnapshotList",
    "SnapshotRequest",
    "SnapshotStatus",
    "State",
    "StateOrReference",
    "StateOrReferenceQueues",
    "StateQueues",
    "StateUsed",
    "Step",
    "StepNumbers",
    "StoredConfiguration",
    "StoredQueue",
    "Taint",
    "TaintEffect",
    "Task",
    "TaskChanges",
    "TaskFlavorsType0",
    "TaskName",
    "TaskNodeSelectorType0",
    "TaskOf",
    "TaskState",
    "TokenCreated",
    "TokenInfo",
    "TokenList",
    "TokenRequest",
    "Toleration",
    "TolerationOperator",
    "ValueChange",
    "Variant",
    "VariantAnswer",
    "Victim",
    "VictimFreed",
    "VictimOnPreemptionType0",
    "WaitingBoost",
    "Workload",
    "WorkloadChanges",
    "WorkloadOnPreemptionType0",
    "YtsaurusMode",
    "YtsaurusNode",
    "YtsaurusOptions",
    "YtsaurusPreemptionMode",
    "YtsaurusPriorityScope",
    "YtsaurusQueue",
    "YtsaurusSettings",
    "YtsaurusStarvation",
    "YtsaurusStatus",
    "YtsaurusWorkload",
    "YuniKornAsk",
    "YuniKornOptions",
    "YuniKornOptionsNodeChoice",
    "YuniKornQueue",
    "YuniKornQueueProperties",
    "YuniKornSettings",
)
