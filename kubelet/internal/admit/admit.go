package admit

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"kctl/proto/core"
)

// Decision says whether a pod may run and, if not, why: as the reason and
// message of its status.
type Decision struct {
	Admitted        bool
	Reason, Message string
	// InsufficientResource is the resource that the node has too little of, if that is the only
	// objection to the pod.
	InsufficientResource corev1.ResourceName
}

// Refuse returns a decision against a pod.
func Refuse(reason, format string, args ...any) Decision {
	return Decision{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Reasons of refusals for what others than the kubelet decide about the node: of pods that
// need labels which it lacks, and of those that don't tolerate its taints.
const (
	ReasonNodeAffinity = "NodeAffinity"
	ReasonTaint        = "TaintToleration"
)

// Reasons of other refusals, upstream's where it has them.
const (
	reasonNodeName    = "NodeName"
	reasonNodePorts   = "NodePorts"
	reasonOS          = "PodOSNotSupported"
	reasonOSLabel     = "PodOSSelectorNodeLabelDoesNotMatch"
	reasonGroups      = "SupplementalGroupsPolicyNotSupported"
	reasonUnsupported = "UnsupportedPodFeature"
	reasonOutOf       = "OutOf"
	reasonSysctl      = "SysctlForbidden"
	reasonAppArmor    = "AppArmor"
)

// Check tells why a pod asks for something that can't be done.
type Check func(pod *core.Pod) error

// Pod decides about a pod, given the others that already run on the node.
// static says that it does not come from the API, so that no scheduler chose
// the node.
func Pod(pod *core.Pod, others []*core.Pod, node *core.Node, static bool, checks ...Check) Decision {
	for _, check := range checks {
		if err := check(pod); err != nil {
			return Refuse(reasonUnsupported, "%v", err)
		}
	}
	if os, labelled := pod.Labels[corev1.LabelOSStable]; labelled && os != string(corev1.Linux) {
		return Refuse(reasonOSLabel, "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")
	}
	if pod.Spec.OS != nil && pod.Spec.OS.Name != corev1.Linux {
		return Refuse(reasonOS, "Failed to admit pod as the OS field doesn't match node OS")
	}
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		return Refuse(reasonNodeName, "Predicate NodeName failed: pod is bound to node %s", pod.Spec.NodeName)
	}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !match {
		return Refuse(ReasonNodeAffinity, "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
	}
	if port, taken := conflictingPort(pod, others); taken {
		return Refuse(reasonNodePorts, "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports: %s is taken",
			port)
	}
	if taint, bad := untolerated(pod, node.Spec.Taints); bad && !static {
		return Refuse(ReasonTaint, "Predicate TaintToleration failed: node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)
	}
	return fits(pod, others, node.Status.Allocatable)
}

// untolerated finds a taint that evicts pods from the node. Other taints only
// keep schedulers from choosing it.
func untolerated(pod *core.Pod, taints []corev1.Taint) (corev1.Taint, bool) {
	for i := range taints {
		tolerated := taints[i].Effect != corev1.TaintEffectNoExecute
		for j := range pod.Spec.Tolerations {
			tolerated = tolerated || pod.Spec.Tolerations[j].ToleratesTaint(logr.Discard(), &taints[i], true)
		}
		if !tolerated {
			return taints[i], true
		}
	}
	return corev1.Taint{}, false
}

// fits compares what all pods request with what the node has for them.
func fits(pod *core.Pod, others []*core.Pod, allocatable corev1.ResourceList) Decision {
	if pods := allocatable.Pods().Value(); int64(len(others))+1 > pods {
		return insufficient(corev1.ResourcePods, "Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d",
			len(others), pods)
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	used := corev1.ResourceList{}
	for _, other := range others {
		for name, quantity := range resource.PodRequests(other, resource.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(quantity)
			used[name] = sum
		}
	}
	for _, name := range sortedNames(requests) {
		request, taken, has := requests[name], used[name], allocatable[name]
		if _, known := allocatable[name]; request.IsZero() || !known && extended(name) {
			continue // a resource that the node does not know is counted elsewhere in the cluster
		}
		taken.Add(request)
		if taken.Cmp(has) > 0 {
			before := used[name]
			return insufficient(name, "Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, scaled(name, request), scaled(name, before), scaled(name, has))
		}
	}
	return Decision{Admitted: true}
}

func insufficient(name corev1.ResourceName, format string, args ...any) Decision {
	d := Refuse(reasonOutOf+string(name), format, args...)
	d.InsufficientResource = name
	return d
}

// Features refuses what pods may ask for in the API and this kubelet can't do.
// Otherwise the pod would silently run without it.
func Features(pod *core.Pod) error {
	var missing []string
	if len(pod.Spec.ResourceClaims) > 0 {
		missing = append(missing, "spec.resourceClaims")
	}
	if pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.WindowsOptions != nil {
		missing = append(missing, "spec.securityContext.windowsOptions")
	}
	if len(missing) > 0 {
		return fmt.Errorf("not supported by this kubelet: %s", strings.Join(missing, ", "))
	}
	return nil
}

// extended says that a resource is not one of the node's own: an operator wrote
// it into the node's status, or a scheduler's extender counts it.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), corev1.ResourceDefaultNamespacePrefix)
}
