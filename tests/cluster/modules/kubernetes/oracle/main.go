// What the released kube-scheduler answers to requests in wire form, a line each on standard input: the plugins of its
// default profile in its own framework, on a snapshot. Nodes, pods and budgets stand in the order of the request.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	scheduling "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	gates "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type answer struct {
	Ask        string            `json:"ask"`
	Outcome    string            `json:"outcome"`
	Node       string            `json:"node,omitempty"`
	Placements map[string]string `json:"placements,omitempty"`
	Victims    []identity        `json:"victims"`
	Violations int               `json:"violations"`
	Ties       []string          `json:"ties,omitempty"`
	Message    string            `json:"message,omitempty"`
	Cleared    []string          `json:"cleared,omitempty"`
	Statuses   map[string]string `json:"statuses,omitempty"`
	DryRun     map[string]any    `json:"dry_run,omitempty"`
	LookedAt   int               `json:"looked_at,omitempty"`
	Seconds    float64           `json:"seconds,omitempty"`
	// Turn is that of its last pod among all that were tried, TiedIn the first whose node was taken by chance.
	Turn   int  `json:"turn"`
	TiedIn *int `json:"tied_in,omitempty"`
}

// turn is what is tried at once: a pod of an ask, or a gang.
type turn struct {
	of   *ask
	pods []*v1.Pod
}

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	metrics.Register()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<30)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var wanted request
		answers := []answer{}
		err := json.Unmarshal(lines.Bytes(), &wanted)
		if err == nil {
			answers, err = decide(&wanted)
		}
		told := map[string]any{"decisions": answers}
		if err != nil {
			told = map[string]any{"error": err.Error()}
		}
		if err := out.Encode(told); err != nil {
			panic(err)
		}
	}
}

// world is what one pod after the other finds.
type world struct {
	request   *request
	nodes     []*v1.Node
	pods      []*v1.Pod
	groups    []*scheduling.PodGroup
	budgets   []*policy.PodDisruptionBudget
	nominated map[string][]*v1.Pod
	where     map[*v1.Pod]identity
}

func decide(wanted *request) ([]answer, error) {
	aware := wanted.Configuration.Settings.KubeScheduler.WorkloadAware
	if err := gates.DefaultMutableFeatureGate.Set(fmt.Sprintf("GenericWorkload=%v", aware)); err != nil {
		return nil, err
	}
	cycle := wanted.Mode == "cycle"
	var turns []turn
	for i := range wanted.Asks {
		of := &wanted.Asks[i]
		first := len(turns)
		for j := range of.Tasks {
			pod, err := of.asking(&of.Tasks[j])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of.ID, err)
			}
			if aware && j > 0 {
				turns[first].pods = append(turns[first].pods, pod)
			} else {
				turns = append(turns, turn{of, []*v1.Pod{pod}})
			}
		}
		sortTurns(turns[first:])
	}
	if cycle {
		sortTurns(turns)
	}
	answers := []answer{}
	places := map[*ask]int{}
	var found *world
	for i, one := range turns {
		at, met := places[one.of]
		if found == nil || (!cycle && !met) {
			var err error
			if found, err = build(wanted); err != nil {
				return nil, err
			}
		}
		made, err := found.attempt(one.of, one.pods)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.of.ID, err)
		}
		made.Turn = i
		if len(made.Ties) > 0 {
			made.TiedIn = &made.Turn
		}
		if met {
			answers[at].join(one.pods[0], made)
			continue
		}
		places[one.of] = len(answers)
		if len(one.of.Tasks) > len(one.pods) {
			made.placed(one.pods[0], made.Node)
		}
		answers = append(answers, made)
	}
	return answers, nil
}

// sortTurns puts them as the scheduling queue does: by the priority of each pod, then by age.
func sortTurns(turns []turn) {
	sort.SliceStable(turns, func(i, j int) bool {
		a, b := turns[i], turns[j]
		if mine, other := *a.pods[0].Spec.Priority, *b.pods[0].Spec.Priority; mine != other {
			return mine > other
		}
		return created(a.of).Before(created(b.of))
	})
}

func (a *answer) placed(pod *v1.Pod, node string) {
	if a.Placements == nil {
		a.Placements = map[string]string{}
	}
	if node != "" {
		a.Placements[pod.Name] = node
	}
}

// join adds what became of another pod of the ask. Violations are those of the first.
func (a *answer) join(pod *v1.Pod, next answer) {
	a.placed(pod, next.Node)
	for _, one := range next.Victims {
		if !slices.Contains(a.Victims, one) {
			a.Victims = append(a.Victims, one)
		}
	}
	a.Ties = append(a.Ties, next.Ties...)
	a.Cleared = append(a.Cleared, next.Cleared...)
	if a.Outcome == "wait" || next.Outcome == "preempt" {
		a.Outcome = next.Outcome
	}
	a.Turn = next.Turn
	if a.TiedIn == nil {
		a.TiedIn = next.TiedIn
	}
}

func created(of *ask) time.Time {
	if of.CreatedAt == nil {
		return time.Time{}
	}
	return *of.CreatedAt
}

func build(wanted *request) (*world, error) {
	made := &world{request: wanted, nominated: map[string][]*v1.Pod{}}
	aware := wanted.Configuration.Settings.KubeScheduler.WorkloadAware
	for i := range wanted.State.Nodes {
		one, err := wanted.State.Nodes[i].object()
		if err != nil {
			return nil, err
		}
		made.nodes = append(made.nodes, one)
	}
	for i := range wanted.State.Workloads {
		of := &wanted.State.Workloads[i]
		if aware && of.group() {
			whole := of.DisruptionMode != nil && *of.DisruptionMode == "all"
			made.groups = append(made.groups, podGroup(of.ID, of.Queue, of.Priority, of.MinAvailable, whole))
		}
		for j := range of.Tasks {
			if of.Tasks[j].Node == "" || of.Tasks[j].State == "released" {
				continue
			}
			pod, err := of.running(&of.Tasks[j], aware)
			if err != nil {
				return nil, err
			}
			made.pods = append(made.pods, pod)
		}
	}
	for i := range wanted.State.Reservations {
		held := &wanted.State.Reservations[i]
		for j := range held.Ask.Tasks {
			pod, err := held.Ask.asking(&held.Ask.Tasks[j])
			if err != nil {
				return nil, err
			}
			made.nominated[held.Node] = append(made.nominated[held.Node], pod)
		}
	}
	for i := range wanted.State.Budgets {
		made.budgets = append(made.budgets, wanted.State.Budgets[i].object())
	}
	return made, nil
}

// scheduler is the released framework on one snapshot.
type scheduler struct {
	framework.Framework
	snapshot  *snapshot
	nominated *nominated
	witness   *witness
	groups    *preemption.PodGroupEvaluator
}

func (w *world) scheduler(ctx context.Context, groups []*scheduling.PodGroup) (*scheduler, error) {
	made := &scheduler{nominated: &nominated{byNode: map[string][]fwk.PodInfo{}}}
	made.snapshot = ordered(cache.NewTestSnapshotWithPodGroups(w.pods, w.nodes, groups), w.nodes)
	for name, pods := range w.nominated {
		for _, pod := range pods {
			info, err := framework.NewPodInfo(pod)
			if err != nil {
				return nil, err
			}
			made.nominated.byNode[name] = append(made.nominated.byNode[name], info)
		}
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := defaults.Profiles[0].DeepCopy()
	// Devices are not on the wire, and the plugin asks the API for them.
	enabled := &profile.Plugins.MultiPoint.Enabled
	*enabled = slices.DeleteFunc(*enabled, func(one config.Plugin) bool { return one.Name == dynamicresources.Name })
	settings := w.request.Configuration.Settings.KubeScheduler
	for _, one := range profile.PluginConfig {
		if args, ok := one.Args.(*config.DefaultPreemptionArgs); ok {
			if settings.Percentage != nil {
				args.MinCandidateNodesPercentage = *settings.Percentage
			}
			if settings.Absolute != nil {
				args.MinCandidateNodesAbsolute = *settings.Absolute
			}
		}
	}
	features := feature.NewSchedulerFeaturesFromGates(gates.DefaultFeatureGate)
	features.EnableAsyncPreemption = false
	registry := plugins.NewInTreeRegistry()
	registry[defaultpreemption.Name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := defaultpreemption.New(ctx, args, handle, features)
		if err != nil {
			return nil, err
		}
		plugin.Executor.PreemptPod = func(
			context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string,
		) (bool, error) {
			return false, nil
		}
		made.witness = &witness{
			DefaultPreemption: plugin, offset: w.request.Options.KubeScheduler.Offset, seen: map[string]dry{},
		}
		plugin.Evaluator.Interface = made.witness
		return plugin, nil
	}
	factory := informersOf{informers.NewSharedInformerFactory(nil, 0), budgets(w.budgets)}
	namespaces := factory.Core().V1().Namespaces().Informer().GetStore()
	for _, queue := range w.request.Configuration.Queues {
		if err := namespaces.Add(namespace(queue.Name)); err != nil {
			return nil, err
		}
	}
	manager := cache.New(ctx, nil, features.EnableGenericWorkload, false)
	for _, group := range groups {
		manager.AddPodGroup(group)
	}
	made.Framework, err = frameworkruntime.NewFramework(ctx, registry, profile,
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithPodNominator(made.nominated),
		frameworkruntime.WithSnapshotSharedLister(made.snapshot),
		frameworkruntime.WithMutableSnapshotLister(made.snapshot),
		frameworkruntime.WithPodGroupManager(manager),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithParallelism(1),
	)
	if err != nil {
		return nil, err
	}
	made.SetAPICacher(made.nominated)
	return made, nil
}

// filtered is what the filters say of every node for one pod.
type filtered struct {
	state    fwk.CycleState
	statuses *statuses
	feasible []fwk.NodeInfo
}

func (s *scheduler) filter(ctx context.Context, pod *v1.Pod) (*filtered, error) {
	found := &filtered{state: framework.NewCycleState(), statuses: &statuses{framework.NewDefaultNodeToStatus(), s.snapshot}}
	nodes, err := s.snapshot.List()
	if err != nil {
		return nil, err
	}
	only, status, _ := s.RunPreFilterPlugins(ctx, found.state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, status.AsError()
		}
		found.statuses.SetAbsentNodesStatus(status)
		return found, nil
	}
	for _, one := range nodes {
		name := one.Node().Name
		if !only.AllNodes() && !only.NodeNames.Has(name) {
			continue
		}
		status := s.RunFilterPluginsWithNominatedPods(ctx, found.state, pod, one)
		if status.Code() == fwk.Error {
			return nil, status.AsError()
		}
		if status.IsSuccess() {
			found.feasible = append(found.feasible, one)
		} else {
			found.statuses.Set(name, status)
		}
	}
	if hinted := pod.Status.NominatedNodeName; hinted != "" {
		for _, one := range found.feasible {
			if one.Node().Name == hinted {
				found.feasible = []fwk.NodeInfo{one}
				break
			}
		}
	}
	return found, nil
}

// best is the node that the released scheduler takes of those that fit.
func (s *scheduler) best(ctx context.Context, pod *v1.Pod, found *filtered) (string, error) {
	if len(found.feasible) == 1 {
		return found.feasible[0].Node().Name, nil
	}
	if status := s.RunPreScorePlugins(ctx, found.state, pod, found.feasible); !status.IsSuccess() {
		return "", status.AsError()
	}
	scores, status := s.RunScorePlugins(ctx, found.state, pod, found.feasible)
	if !status.IsSuccess() {
		return "", status.AsError()
	}
	return framework.NewSortedScoredNodes(scores).Pop().Name, nil
}

func (w *world) attempt(of *ask, pods []*v1.Pod) (answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	aware := w.request.Configuration.Settings.KubeScheduler.WorkloadAware
	if aware && (len(pods) > 1 || of.MinAvailable != nil) {
		return w.gang(ctx, of, pods)
	}
	return w.single(ctx, of, pods[0])
}

func (w *world) single(ctx context.Context, of *ask, pod *v1.Pod) (answer, error) {
	made := answer{Ask: of.ID, Outcome: "wait"}
	if len(pod.Spec.SchedulingGates) > 0 {
		made.Message = "gated"
		return made, nil
	}
	s, err := w.scheduler(ctx, w.groups)
	if err != nil {
		return made, err
	}
	found, err := s.filter(ctx, pod)
	if err != nil {
		return made, err
	}
	if w.request.Explain == "full" {
		made.Statuses = map[string]string{}
		for _, one := range w.nodes {
			if status := found.statuses.Get(one.Name); !slices.ContainsFunc(found.feasible, func(n fwk.NodeInfo) bool { return n.Node().Name == one.Name }) {
				made.Statuses[one.Name] = status.Code().String()
			}
		}
	}
	if len(found.feasible) > 0 {
		if made.Node, err = s.best(ctx, pod, found); err != nil {
			return made, err
		}
		made.Outcome = "admit"
		w.bind(pod, made.Node)
		return made, nil
	}
	s.witness.Evaluator.PodLister = asked{pod}
	var result *fwk.PostFilterResult
	var status *fwk.Status
	for range max(1, w.request.Repeat) {
		started := time.Now()
		result, status = s.RunPostFilterPlugins(ctx, found.state, pod, found.statuses)
		made.Seconds = time.Since(started).Seconds()
	}
	made.Message = status.Message()
	made.LookedAt = len(s.witness.seen)
	if w.request.Explain == "full" {
		made.DryRun = map[string]any{}
		for name, one := range s.witness.seen {
			if one.status.IsSuccess() {
				made.DryRun[name] = map[string]any{"victims": told(one.pods), "violations": one.violations}
			} else {
				made.DryRun[name] = one.status.Message()
			}
		}
	}
	if !status.IsSuccess() {
		if status.Code() == fwk.Error {
			return made, status.AsError()
		}
		return made, nil
	}
	made.Outcome, made.Node = "preempt", result.NominatedNodeName
	chosen := s.witness.seen[made.Node]
	made.Victims, made.Violations = told(chosen.pods), chosen.violations
	made.Ties = s.ties(ctx, made.Node)
	w.preempted(pod, made.Node, chosen.pods, s.nominated.cleared, &made)
	return made, nil
}

// ties are the nodes that the released code takes as well: a map of two begins with either at random.
func (s *scheduler) ties(ctx context.Context, chosen string) []string {
	candidates := s.witness.candidates
	at := slices.IndexFunc(candidates, func(one preemption.Candidate) bool { return one.Name() == chosen })
	if at < 0 {
		return nil
	}
	var tied []string
	for _, other := range candidates {
		if other.Name() == chosen {
			continue
		}
		for range 64 {
			if s.witness.Evaluator.SelectCandidate(ctx, []preemption.Candidate{candidates[at], other}).Name() != chosen {
				tied = append(tied, other.Name())
				break
			}
		}
	}
	return tied
}

func (w *world) bind(pod *v1.Pod, node string) {
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	bound.Status.NominatedNodeName = ""
	w.pods = append(w.pods, bound)
	w.withdraw(pod)
}

// withdraw takes back what the pod was nominated to.
func (w *world) withdraw(pod *v1.Pod) {
	for name, pods := range w.nominated {
		w.nominated[name] = slices.DeleteFunc(pods, func(one *v1.Pod) bool { return one.UID == pod.UID })
	}
}

func (w *world) preempted(pod *v1.Pod, node string, victims, cleared []*v1.Pod, made *answer) {
	for _, one := range cleared {
		made.Cleared = append(made.Cleared, strings.Split(string(one.UID), "\x00")[0])
		w.withdraw(one)
	}
	w.withdraw(pod)
	pod = pod.DeepCopy()
	pod.Spec.NodeName, pod.Status.NominatedNodeName = "", node
	w.nominated[node] = append(w.nominated[node], pod)
	gone := map[string]bool{}
	for _, one := range victims {
		gone[string(one.UID)] = true
	}
	for i, one := range w.pods {
		if gone[string(one.UID)] {
			w.pods[i] = one.DeepCopy()
			terminates(w.pods[i], true)
		}
	}
}

func told(pods []*v1.Pod) []identity {
	made := []identity{}
	for _, pod := range pods {
		parts := strings.Split(string(pod.UID), "\x00")
		made = append(made, identity{Workload: parts[0], Task: parts[1], Node: pod.Spec.NodeName})
	}
	return made
}
