package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	scheduling "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The wire form of a decision, as far as kube-scheduler reads it.
type request struct {
	Mode          string
	Configuration struct {
		Queues   []struct{ Name string }
		Settings struct {
			KubeScheduler settings `json:"kube_scheduler"`
		}
	}
	State state
	Asks  []ask
	// Beside the decision: how often the dry run is repeated, to be timed.
	Repeat int
	// Whether statuses and the dry run of every node are told.
	Explain string
	Options struct {
		KubeScheduler struct {
			Offset *int32
		} `json:"kube_scheduler"`
	}
}

type settings struct {
	Percentage    *int32 `json:"min_candidate_nodes_percentage"`
	Absolute      *int32 `json:"min_candidate_nodes_absolute"`
	WorkloadAware bool   `json:"workload_aware"`
}

type state struct {
	Nodes        []node
	Workloads    []workload
	Reservations []struct {
		Node string
		Ask  ask
	}
	Budgets []budget `json:"disruption_budgets"`
}

type node struct {
	Name        string
	Capacity    map[string]json.RawMessage
	Labels      map[string]string
	Taints      []v1.Taint
	Schedulable *bool
}

type workload struct {
	ID             string
	Queue          string
	Priority       int32
	StartedAt      *time.Time `json:"started_at"`
	MinAvailable   *int32     `json:"min_available"`
	DisruptionMode *string    `json:"disruption_mode"`
	Tasks          []task
}

type ask struct {
	ID               string
	Queue            string
	Priority         int32
	CreatedAt        *time.Time `json:"created_at"`
	MinAvailable     *int32     `json:"min_available"`
	PreemptionPolicy string     `json:"preemption_policy"`
	NominatedNode    string     `json:"nominated_node"`
	RequiredNode     string     `json:"required_node"`
	Tasks            []task
}

type task struct {
	Name            string
	Requests        map[string]json.RawMessage
	Node            string
	Priority        *int32
	StartedAt       *time.Time `json:"started_at"`
	State           string
	RequiredNode    string             `json:"required_node"`
	NominatedNode   string             `json:"nominated_node"`
	NodeSelector    map[string]string  `json:"node_selector"`
	NodeAffinity    [][]nodeExpression `json:"node_affinity"`
	Tolerations     []v1.Toleration    `json:"tolerations"`
	Labels          map[string]string  `json:"labels"`
	HostPorts       []hostPort         `json:"host_ports"`
	PodAffinity     []affinityTerm     `json:"pod_affinity"`
	PodAntiAffinity []affinityTerm     `json:"pod_anti_affinity"`
	TopologySpread  []spreadConstraint `json:"topology_spread"`
	SchedulingGates []string           `json:"scheduling_gates"`
}

type nodeExpression struct {
	Key      string
	Operator v1.NodeSelectorOperator
	Values   []string
}

type hostPort struct {
	Port     int32
	Protocol v1.Protocol
	IP       string
}

type labelSelector struct {
	MatchLabels      map[string]string `json:"match_labels"`
	MatchExpressions []struct {
		Key      string
		Operator metav1.LabelSelectorOperator
		Values   []string
	} `json:"match_expressions"`
}

type affinityTerm struct {
	TopologyKey       string         `json:"topology_key"`
	LabelSelector     *labelSelector `json:"label_selector"`
	Namespaces        []string
	NamespaceSelector *labelSelector `json:"namespace_selector"`
}

type spreadConstraint struct {
	MaxSkew            int32                   `json:"max_skew"`
	TopologyKey        string                  `json:"topology_key"`
	LabelSelector      *labelSelector          `json:"label_selector"`
	MinDomains         *int32                  `json:"min_domains"`
	NodeAffinityPolicy *v1.NodeInclusionPolicy `json:"node_affinity_policy"`
	NodeTaintsPolicy   *v1.NodeInclusionPolicy `json:"node_taints_policy"`
	MatchLabelKeys     []string                `json:"match_label_keys"`
}

type budget struct {
	Name      string
	Queue     string
	Selector  *labelSelector
	Allowed   int32 `json:"disruptions_allowed"`
	Disrupted []string
}

func (s *labelSelector) selector() *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	made := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, one := range s.MatchExpressions {
		made.MatchExpressions = append(made.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: one.Key, Operator: one.Operator, Values: one.Values,
		})
	}
	return made
}

func resourceName(name string) v1.ResourceName {
	if name == "gpu" {
		return "nvidia.com/gpu"
	}
	return v1.ResourceName(name)
}

func resources(given map[string]json.RawMessage) (v1.ResourceList, error) {
	made := v1.ResourceList{}
	for name, amount := range given {
		quantity, err := resource.ParseQuantity(strings.Trim(string(amount), `"`))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		made[resourceName(name)] = quantity
	}
	return made, nil
}

func (n *node) object() (*v1.Node, error) {
	capacity, err := resources(n.Capacity)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	if _, ok := capacity[v1.ResourcePods]; !ok {
		capacity[v1.ResourcePods] = *resource.NewQuantity(math.MaxInt32, resource.DecimalSI)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID(n.Name), Labels: n.Labels},
		Spec:       v1.NodeSpec{Taints: n.Taints, Unschedulable: n.Schedulable != nil && !*n.Schedulable},
		Status:     v1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}, nil
}

// identity is what a pod is called on the wire, and where the pod can be found by its UID.
type identity struct {
	Workload string `json:"workload"`
	Task     string `json:"task"`
	Node     string `json:"node"`
}

func (i identity) uid() types.UID { return types.UID(i.Workload + "\x00" + i.Task) }

func (t *task) object(owner, namespace string, priority int32, required string) (*v1.Pod, error) {
	requests, err := resources(t.Requests)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Name, err)
	}
	if t.Priority != nil {
		priority = *t.Priority
	}
	if t.RequiredNode != "" {
		required = t.RequiredNode
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: t.Name, Namespace: namespace, Labels: t.Labels, UID: identity{Workload: owner, Task: t.Name}.uid(),
		},
		Spec: v1.PodSpec{
			SchedulerName: v1.DefaultSchedulerName, Priority: &priority, NodeSelector: t.NodeSelector,
			Tolerations: t.Tolerations,
			Containers:  []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: requests}}},
		},
	}
	for _, port := range t.HostPorts {
		protocol := port.Protocol
		if protocol == "" {
			protocol = v1.ProtocolTCP
		}
		container := &pod.Spec.Containers[0]
		container.Ports = append(container.Ports, v1.ContainerPort{HostPort: port.Port, Protocol: protocol, HostIP: port.IP})
	}
	affinity := &v1.Affinity{NodeAffinity: t.nodeAffinity(required)}
	if terms := affinityTerms(t.PodAffinity); terms != nil {
		affinity.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
	if terms := affinityTerms(t.PodAntiAffinity); terms != nil {
		affinity.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
	pod.Spec.Affinity = affinity
	for _, one := range t.TopologySpread {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: one.MaxSkew, TopologyKey: one.TopologyKey, WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: one.LabelSelector.selector(), MinDomains: one.MinDomains,
			NodeAffinityPolicy: one.NodeAffinityPolicy, NodeTaintsPolicy: one.NodeTaintsPolicy,
			MatchLabelKeys: one.MatchLabelKeys,
		})
	}
	for _, gate := range t.SchedulingGates {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, v1.PodSchedulingGate{Name: gate})
	}
	return pod, nil
}

func (t *task) nodeAffinity(required string) *v1.NodeAffinity {
	if t.NodeAffinity == nil && required == "" {
		return nil
	}
	var terms []v1.NodeSelectorTerm
	for _, expressions := range t.NodeAffinity {
		term := v1.NodeSelectorTerm{}
		for _, one := range expressions {
			term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{
				Key: one.Key, Operator: one.Operator, Values: one.Values,
			})
		}
		terms = append(terms, term)
	}
	if required != "" {
		if terms == nil {
			terms = make([]v1.NodeSelectorTerm, 1)
		}
		for i := range terms {
			terms[i].MatchFields = []v1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{required}},
			}
		}
	}
	return &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms},
	}
}

func affinityTerms(given []affinityTerm) []v1.PodAffinityTerm {
	var made []v1.PodAffinityTerm
	for _, one := range given {
		made = append(made, v1.PodAffinityTerm{
			TopologyKey: one.TopologyKey, LabelSelector: one.LabelSelector.selector(), Namespaces: one.Namespaces,
			NamespaceSelector: one.NamespaceSelector.selector(),
		})
	}
	return made
}

// running is the pod of a task that is bound to its node.
func (w *workload) running(t *task, aware bool) (*v1.Pod, error) {
	pod, err := t.object(w.ID, w.Queue, w.Priority, "")
	if err != nil {
		return nil, err
	}
	pod.Spec.NodeName = t.Node
	started := t.StartedAt
	if started == nil {
		started = w.StartedAt
	}
	if started != nil {
		pod.Status.StartTime = &metav1.Time{Time: *started}
	}
	if t.State == "preempted" || t.State == "releasing" {
		terminates(pod, t.State == "preempted")
	}
	if aware && w.group() {
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &w.ID}
	}
	return pod, nil
}

// terminates marks a pod as on its way out, by the scheduler's preemption or for any other reason.
func terminates(pod *v1.Pod, preempted bool) {
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if preempted {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
		})
	}
}

func (w *workload) group() bool { return w.MinAvailable != nil || w.DisruptionMode != nil }

func podGroup(name, namespace string, priority int32, members *int32, whole bool) *scheduling.PodGroup {
	made := &scheduling.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID("group/" + name)},
		Spec:       scheduling.PodGroupSpec{Priority: &priority},
	}
	if members != nil {
		made.Spec.SchedulingPolicy.Gang = &scheduling.GangSchedulingPolicy{MinCount: *members}
	} else {
		made.Spec.SchedulingPolicy.Basic = &scheduling.BasicSchedulingPolicy{}
	}
	if whole {
		made.Spec.DisruptionMode = &scheduling.DisruptionMode{All: &scheduling.AllDisruptionMode{}}
	} else {
		made.Spec.DisruptionMode = &scheduling.DisruptionMode{Single: &scheduling.SingleDisruptionMode{}}
	}
	return made
}

// asking is the pod of a task that wants a node.
func (a *ask) asking(t *task) (*v1.Pod, error) {
	pod, err := t.object(a.ID, a.Queue, a.Priority, a.RequiredNode)
	if err != nil {
		return nil, err
	}
	if a.PreemptionPolicy == "Never" {
		never := v1.PreemptNever
		pod.Spec.PreemptionPolicy = &never
	}
	pod.Status.NominatedNodeName = t.NominatedNode
	if pod.Status.NominatedNodeName == "" {
		pod.Status.NominatedNodeName = a.NominatedNode
	}
	return pod, nil
}

func namespace(name string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelMetadataName: name}}}
}

func (b *budget) object() *policy.PodDisruptionBudget {
	made := &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: b.Name, Namespace: b.Queue},
		Spec:       policy.PodDisruptionBudgetSpec{Selector: b.Selector.selector()},
		Status: policy.PodDisruptionBudgetStatus{
			DisruptionsAllowed: b.Allowed, DisruptedPods: map[string]metav1.Time{},
		},
	}
	for _, name := range b.Disrupted {
		made.Status.DisruptedPods[name] = metav1.Time{Time: time.Now()}
	}
	return made
}
