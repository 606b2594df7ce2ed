package main

import (
	"context"
	"errors"
	"sort"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	policyinformers "k8s.io/client-go/informers/policy"
	policyv1informers "k8s.io/client-go/informers/policy/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	extender "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"k8s.io/klog/v2"
)

// snapshot lists nodes in the order of the request, where the released one goes through a map.
type snapshot struct {
	*cache.Snapshot
	order   map[string]int
	listed  []fwk.NodeInfo
	mutated bool
}

func ordered(made *cache.Snapshot, nodes []*v1.Node) *snapshot {
	found := &snapshot{Snapshot: made, order: make(map[string]int, len(nodes))}
	for i, one := range nodes {
		found.order[one.Name] = i
	}
	found.listed, _ = found.sorted(made.List())
	return found
}

func (s *snapshot) sorted(nodes []fwk.NodeInfo, err error) ([]fwk.NodeInfo, error) {
	made := append([]fwk.NodeInfo{}, nodes...)
	sort.SliceStable(made, func(i, j int) bool { return s.order[made[i].Node().Name] < s.order[made[j].Node().Name] })
	return made, err
}

func (s *snapshot) NodeInfos() fwk.NodeInfoLister { return s }

func (s *snapshot) StartMutations() error {
	s.mutated = true
	return s.Snapshot.StartMutations()
}

func (s *snapshot) EndMutations() error {
	err := s.Snapshot.EndMutations()
	s.listed, _ = s.sorted(s.Snapshot.List())
	s.mutated = false
	return err
}

func (s *snapshot) List() ([]fwk.NodeInfo, error) {
	if s.mutated {
		return s.sorted(s.Snapshot.List())
	}
	return s.listed, nil
}

// statuses gives nodes in the order of the request, where the released one goes through a map.
type statuses struct {
	*framework.NodeToStatus
	snapshot *snapshot
}

func (s *statuses) NodesForStatusCode(lister fwk.NodeInfoLister, code fwk.Code) ([]fwk.NodeInfo, error) {
	return s.snapshot.sorted(s.NodeToStatus.NodesForStatusCode(lister, code))
}

// informersOf gives the budgets of the request to whoever asks for a lister of them.
type informersOf struct {
	informers.SharedInformerFactory
	budgets budgets
}

type policyOf struct {
	policyinformers.Interface
	budgets budgets
}

type policyV1Of struct {
	policyv1informers.Interface
	budgets budgets
}

type budgetInformer struct {
	policyv1informers.TypedPodDisruptionBudgetInformer
	budgets budgets
}

func (i informersOf) Policy() policyinformers.Interface {
	return policyOf{i.SharedInformerFactory.Policy(), i.budgets}
}

func (p policyOf) V1() policyv1informers.Interface { return policyV1Of{p.Interface.V1(), p.budgets} }

func (p policyV1Of) PodDisruptionBudgets() policyv1informers.TypedPodDisruptionBudgetInformer {
	return budgetInformer{p.Interface.PodDisruptionBudgets(), p.budgets}
}

func (b budgetInformer) Lister() policylisters.PodDisruptionBudgetLister { return b.budgets }

// budgets lists them in the order of the request.
type budgets []*policy.PodDisruptionBudget

func (b budgets) List(labels.Selector) ([]*policy.PodDisruptionBudget, error) { return b, nil }

func (b budgets) PodDisruptionBudgets(string) policylisters.PodDisruptionBudgetNamespaceLister {
	return nil
}

func (b budgets) GetPodPodDisruptionBudgets(*v1.Pod) ([]*policy.PodDisruptionBudget, error) {
	return nil, errors.New("not asked for")
}

// asked finds the pod that asks, and nobody else.
type asked struct{ pod *v1.Pod }

func (a asked) List(labels.Selector) ([]*v1.Pod, error)    { return []*v1.Pod{a.pod}, nil }
func (a asked) Pods(string) corelisters.PodNamespaceLister { return a }
func (a asked) Get(string) (*v1.Pod, error)                { return a.pod, nil }

// nominated has the pods that are nominated to a node, and notes which of them lose that.
type nominated struct {
	byNode  map[string][]fwk.PodInfo
	cleared []*v1.Pod
}

func (n *nominated) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (n *nominated) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (n *nominated) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n *nominated) NominatedPodsForNode(name string) []fwk.PodInfo                { return n.byNode[name] }

func (n *nominated) PatchPodStatus(pod *v1.Pod, _ []*v1.PodCondition, _ *fwk.NominatingInfo) (<-chan error, error) {
	n.cleared = append(n.cleared, pod)
	return nil, nil
}

func (n *nominated) BindPod(*v1.Binding) (<-chan error, error) {
	return nil, errors.New("nobody binds here")
}

func (n *nominated) WaitOnFinish(context.Context, <-chan error) error { return nil }

// dry is what the dry run says of one node.
type dry struct {
	pods       []*v1.Pod
	violations int
	status     *fwk.Status
}

// witness is the released plugin with the offset given instead of drawn; it notes what the dry run says of every node.
type witness struct {
	*defaultpreemption.DefaultPreemption
	offset     *int32
	seen       map[string]dry
	candidates []preemption.Candidate
}

func (w *witness) GetOffsetAndNumCandidates(nodes int32) (int32, int32) {
	drawn, number := w.DefaultPreemption.GetOffsetAndNumCandidates(nodes)
	if w.offset != nil {
		drawn = *w.offset
	}
	return drawn, number
}

func (w *witness) CandidatesToVictimsMap(candidates []preemption.Candidate) map[string]*extender.Victims {
	w.candidates = candidates
	return w.DefaultPreemption.CandidatesToVictimsMap(candidates)
}

func (w *witness) SelectVictimsOnNode(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo,
	possible []*preemption.DomainVictim, budgets []*policy.PodDisruptionBudget,
) ([]*v1.Pod, int, *fwk.Status) {
	pods, violations, status := w.DefaultPreemption.SelectVictimsOnNode(ctx, state, pod, node, possible, budgets)
	w.seen[node.Node().Name] = dry{pods, violations, status}
	return pods, violations, status
}
