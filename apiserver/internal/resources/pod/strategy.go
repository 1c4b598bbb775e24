package pod

import (
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

const gatedMessage = "Scheduling is blocked due to non-empty scheduling gates"

// Strategy is the strategy of pods.
func Strategy(clock clock.PassiveClock) registry.Strategy[*core.Pod] {
	return registry.Strategy[*core.Pod]{
		Resource: core.Pods, Singular: "pod", ShortNames: []string{"po"}, Categories: []string{"all"},
		StoragePrefix: "pods",
		New:           func() *core.Pod { return new(core.Pod) },
		Default:       setAllDefaults,
		HasGeneration: true,
		Create: registry.CreateStrategy[*core.Pod]{
			Prepare:      func(ctx context.Context, pod *core.Pod) { prepareForCreate(ctx, pod, metav1.NewTime(clock.Now())) },
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, pod *core.Pod) field.ErrorList { return validateCreate(pod) },
			Warnings:     func(_ context.Context, pod *core.Pod) []string { return warnings(pod) },
		},
		Update: registry.UpdateStrategy[*core.Pod]{
			AllowUnconditional: true,
			Prepare:            prepareForUpdate,
			Validate:           func(_ context.Context, pod, old *core.Pod) field.ErrorList { return validateUpdate(pod, old) },
		},
		Status: &registry.UpdateStrategy[*core.Pod]{
			ResetFields: []string{"metadata.ownerReferences", "metadata.deletionTimestamp"},
			Prepare:     prepareStatus,
			Validate:    func(_ context.Context, pod, old *core.Pod) field.ErrorList { return validateStatus(pod, old) },
			Warnings:    func(_ context.Context, pod, _ *core.Pod) []string { return statusWarnings(&pod.Status) },
		},
		Subresources: map[string]registry.UpdateStrategy[*core.Pod]{
			// The Binding has already been validated when it comes to the change.
			"binding":             {Internal: true, KeepsGeneration: true},
			"ephemeralcontainers": {Prepare: prepareEphemeral, Validate: validateEphemeralUpdate},
			"resize":              {Prepare: prepareResize, Validate: validateResize},
		},
		Delete: registry.DeleteStrategy[*core.Pod]{
			GracePeriod:         gracePeriod,
			TerminatedElsewhere: awaitsKubelet,
			ReturnDeletedObject: true,
		},
		Read: registry.ReadStrategy[*core.Pod]{
			Fields:  selectable,
			Columns: columns(),
			Row:     func(pod *core.Pod) []any { return row(pod, clock.Now()) },
		},
	}
}

func setAllDefaults(pod *core.Pod) {
	setDefaults(pod)
	syncPodIPs(&pod.Status)
}

// syncPodIPs keeps podIP and the first of podIPs consistent; the older one
// wins if they differ.
func syncPodIPs(status *core.PodStatus) {
	switch {
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	}
}

func prepareForCreate(ctx context.Context, pod *core.Pod, now metav1.Time) {
	defaultPodResources(&pod.Spec)
	pod.Status = core.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&pod.Spec)}
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: now,
			Reason: corev1.PodReasonSchedulingGated, Message: gatedMessage,
		}}
	}
	mergeMatchKeys(pod)
	fillAppArmor(ctx, pod)
}

// mergeMatchKeys adds matchLabelKeys and mismatchLabelKeys, with the pod's own
// label values, to the selectors that schedulers read.
func mergeMatchKeys(pod *core.Pod) {
	require := func(selector *metav1.LabelSelector, keys []string, operator metav1.LabelSelectorOperator) {
		if selector == nil {
			return
		}
		for _, key := range keys {
			if value, ok := pod.Labels[key]; ok {
				selector.MatchExpressions = append(selector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		require(c.LabelSelector, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	merge := func(term *corev1.PodAffinityTerm) {
		require(term.LabelSelector, term.MatchLabelKeys, metav1.LabelSelectorOpIn)
		require(term.LabelSelector, term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	mergeAll := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			merge(&required[i])
		}
		for i := range preferred {
			merge(&preferred[i].PodAffinityTerm)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		mergeAll(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		mergeAll(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func prepareStatus(_ context.Context, pod, old *core.Pod) {
	pod.Spec = old.Spec
	keepIdentity(&pod.ObjectMeta, &old.ObjectMeta)
	if pod.Status.QOSClass == "" {
		pod.Status.QOSClass = old.Status.QOSClass
	}
	keepUnknown(&pod.Status, &old.Status)
	dropAlpha(&pod.Status, &old.Status)
}

// dropAlpha drops what belongs to alpha features, unless the pod has some of it already.
func dropAlpha(status, old *core.PodStatus) {
	if len(old.VolumeHealth) == 0 {
		status.VolumeHealth = nil
	}
	if len(old.NodeAllocatableResourceClaimStatuses) == 0 {
		status.NodeAllocatableResourceClaimStatuses = nil
	}
	if tellsOfImages(old) {
		return
	}
	for c := range core.AllContainerStatuses(status) {
		for i := range c.VolumeMounts {
			c.VolumeMounts[i].VolumeStatus = nil
		}
	}
}

// tellsOfImages tells whether a container's status names the image of a volume.
func tellsOfImages(status *core.PodStatus) bool {
	for c := range core.AllContainerStatuses(status) {
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMountStatus) bool { return m.VolumeStatus != nil }) {
			return true
		}
	}
	return false
}

// prepareForUpdate keeps what users may not change, and what older clients may not know.
func prepareForUpdate(_ context.Context, pod, old *core.Pod) {
	pod.Status = old.Status
	if pod.Spec.Resources == nil {
		pod.Spec.Resources = old.Spec.Resources.DeepCopy()
	}
}

// keepUnknown keeps status fields that an older writer may not know and so
// omits. The claims' status can be cleared by an empty list.
func keepUnknown(status, old *core.PodStatus) {
	if status.ResourceClaimStatuses == nil {
		status.ResourceClaimStatuses = old.ResourceClaimStatuses
	}
	if status.ExtendedResourceClaimStatus == nil {
		status.ExtendedResourceClaimStatus = old.ExtendedResourceClaimStatus
	}
	if status.NodeAllocatableResourceClaimStatuses == nil {
		status.NodeAllocatableResourceClaimStatuses = old.NodeAllocatableResourceClaimStatuses
	}
	if status.ObservedGeneration == 0 {
		status.ObservedGeneration = old.ObservedGeneration
	}
	seen := map[corev1.PodConditionType][]int64{} // a type may occur more than once
	for _, c := range old.Conditions {
		seen[c.Type] = append(seen[c.Type], c.ObservedGeneration)
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		before := seen[c.Type]
		if len(before) == 0 {
			continue
		}
		seen[c.Type] = before[1:]
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = before[0]
		}
	}
}

// prepareEphemeral keeps everything of a pod except its ephemeral containers.
func prepareEphemeral(_ context.Context, pod, old *core.Pod) {
	added := pod.Spec.EphemeralContainers
	pod.Spec = *old.Spec.DeepCopy()
	pod.Spec.EphemeralContainers = added
	pod.Status = old.Status
	keepMetadata(pod, old)
}

// keepMetadata undoes changes of metadata through a subresource: the right to
// add containers must not include choosing the pod's services, owners or
// deletion.
func keepMetadata(pod, old *core.Pod) {
	pod.Labels, pod.Annotations = old.Labels, old.Annotations
	pod.Finalizers, pod.OwnerReferences = old.Finalizers, old.OwnerReferences
}

// gracePeriod gives a kubelet time to terminate the pod: as much as the request
// says, otherwise the pod. A pod without a node needs none. Once the deletion
// has begun, only a request that names a period changes it.
func gracePeriod(pod *core.Pod, asked *int64) (int64, bool) {
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && asked == nil {
		return *pod.DeletionGracePeriodSeconds, true
	}
	grace := int64(0)
	switch {
	case asked != nil:
		grace = *asked
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if grace < 0 {
		grace = 1
	}
	if pod.DeletionTimestamp == nil && (pod.Spec.NodeName == "" || core.Ended(pod.Status.Phase)) {
		grace = 0
	}
	return grace, grace > 0
}

// awaitsKubelet reports whether a kubelet may still have to end containers of
// the pod. A kubelet that deletes a terminated pod has reported its final phase
// before, so no second transaction is needed.
func awaitsKubelet(pod *core.Pod) bool {
	return pod.Spec.NodeName != "" && !core.Ended(pod.Status.Phase)
}

func selectable(pod *core.Pod) fields.Set {
	return fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.podIPs":            "", // upstream accepts it, and selects no pod by it
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}
