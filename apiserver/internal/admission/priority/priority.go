// Package priority turns a pod's priority class into its priority. The two
// classes of the system are all there are.
package priority

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "Priority"

var classes = map[string]int32{
	"":                        0,
	"system-cluster-critical": 2000000000,
	"system-node-critical":    2000001000,
}

// Plugin is the plugin.
type Plugin struct{}

// New returns the plugin.
func New() Plugin { return Plugin{} }

// Name is upstream's name.
func (Plugin) Name() string { return Name }

// Handles creates and updates.
func (Plugin) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Admit sets the priority of new pods, and keeps it where an update leaves it
// out.
func (Plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*core.Pod)
	if !ok || a.Subresource != "" {
		return nil
	}
	if old, ok := a.OldObject.(*core.Pod); ok && a.Operation == admission.Update {
		if pod.Spec.Priority == nil {
			pod.Spec.Priority = old.Spec.Priority
		}
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
		}
		return nil
	}
	value, ok := classes[pod.Spec.PriorityClassName]
	if !ok {
		return fmt.Errorf("no PriorityClass with name %v was found", pod.Spec.PriorityClassName)
	}
	if given := pod.Spec.Priority; given != nil && *given != value {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *given, value)
	}
	pod.Spec.Priority = &value
	policy := corev1.PreemptLowerPriority
	if given := pod.Spec.PreemptionPolicy; given != nil && *given != policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *given, policy)
	}
	pod.Spec.PreemptionPolicy = ptr.To(policy)
	return nil
}
