package main

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// placed is one pod of a gang on a node, as the preemption of groups asks for it.
type placed struct {
	info  *framework.PodInfo
	node  string
	state fwk.CycleState
}

func (p *placed) GetPod() *v1.Pod               { return p.info.Pod }
func (p *placed) GetPodInfo() fwk.PodInfo       { return p.info }
func (p *placed) GetNodeName() string           { return p.node }
func (p *placed) GetCycleState() fwk.CycleState { return p.state }

// gang schedules the pods of a group one after the other, as the released scheduler does, and asks the released
// preemption of groups where too few found a place.
func (w *world) gang(ctx context.Context, of *ask, pods []*v1.Pod) (answer, error) {
	made := answer{Ask: of.ID, Outcome: "wait"}
	needed := int32(len(pods))
	if of.MinAvailable != nil {
		needed = *of.MinAvailable
	}
	name := of.ID
	group := podGroup(name, of.Queue, of.Priority, &needed, false)
	for _, pod := range pods {
		if len(pod.Spec.SchedulingGates) > 0 {
			made.Message = "gated"
			return made, nil
		}
		if *pod.Spec.Priority != of.Priority {
			made.Message = "all pods of a gang have its priority"
			return made, nil
		}
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
	}
	s, err := w.scheduler(ctx, append(slices.Clone(w.groups), group))
	if err != nil {
		return made, err
	}
	enough := func(found []*placed) bool { return len(found) > 0 && len(found) >= int(needed) }
	found, err := s.placeAll(ctx, pods)
	if err != nil {
		return made, err
	}
	if enough(found) {
		made.Outcome, made.Placements = "admit", places(found)
		w.groups = append(w.groups, group)
		for _, one := range found {
			w.bind(one.info.Pod, one.node)
		}
		return made, nil
	}
	var victims []*v1.Pod
	s.witness.Executor.PreemptPod = func(
		_ context.Context, chosen preemption.Candidate, _ preemption.ExecutorPreemptor, _ *v1.Pod, _ string,
	) (bool, error) {
		victims = chosen.Victims().Pods
		made.Victims, made.Violations = told(victims), int(chosen.Victims().NumPDBViolations)
		return false, nil
	}
	info := &framework.PodGroupInfo{
		Namespace: of.Queue, Name: name, Type: fwk.PodGroupKeyType, PodGroup: group, UnscheduledPods: pods,
	}
	again := func(ctx context.Context) (*fwk.PodGroupAssignments, *fwk.Status) {
		if found, err = s.placeAll(ctx, pods); err != nil {
			return nil, fwk.AsStatus(err)
		}
		if !enough(found) {
			return nil, fwk.NewStatus(fwk.Unschedulable, "too few pods of the gang have room")
		}
		proposed := &fwk.PodGroupAssignments{}
		for _, one := range found {
			proposed.ProposedAssignments = append(proposed.ProposedAssignments, one)
		}
		return proposed, nil
	}
	found = nil
	_, status := s.RunPodGroupPostFilterPlugins(ctx, framework.NewCycleState(), info, again)
	made.Message = status.Message()
	if status.IsSuccess() && found != nil {
		made.Outcome, made.Placements = "preempt", places(found)
		w.groups = append(w.groups, group)
		for _, one := range found {
			w.preempted(one.info.Pod, one.node, victims, nil, &made)
		}
	}
	return made, nil
}

func places(found []*placed) map[string]string {
	made := map[string]string{}
	for _, one := range found {
		made[one.info.Pod.Name] = one.node
	}
	return made
}

// placeAll gives every pod that fits the best node, each seeing those before it; afterwards none of them stands there.
func (s *scheduler) placeAll(ctx context.Context, pods []*v1.Pod) ([]*placed, error) {
	var made []*placed
	defer func() {
		for _, one := range slices.Backward(made) {
			if err := s.snapshot.ForgetPod(klog.FromContext(ctx), one.info.Pod); err != nil {
				panic(err)
			}
		}
	}()
	for _, pod := range pods {
		found, err := s.filter(ctx, pod)
		if err != nil {
			return nil, err
		}
		if len(found.feasible) == 0 {
			continue
		}
		node, err := s.best(ctx, pod, found)
		if err != nil {
			return nil, err
		}
		bound := pod.DeepCopy()
		bound.Spec.NodeName = node
		info, err := framework.NewPodInfo(bound)
		if err != nil {
			return nil, err
		}
		if err := s.snapshot.AssumePod(info); err != nil {
			return nil, err
		}
		made = append(made, &placed{info, node, found.state})
	}
	return made, nil
}
