package describe

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

// roleLabel is the prefix of the labels that say what a node is for.
const roleLabel = "node-role.kubernetes.io/"

// NodeFacts are what there is to say about a node; Lease may be nil.
type NodeFacts struct {
	Node   *core.Node
	Lease  *core.Lease
	Pods   []core.Pod
	Events []core.Event
}

// Node describes a node, its lease and the pods on it.
func Node(w io.Writer, facts NodeFacts, now time.Time) error {
	node, pods := facts.Node, facts.Pods
	p := newPage(w, now)
	p.line("Name", "%s", node.Name)
	p.line("Roles", "%s", roles(node))
	p.pairs("Labels", node.Labels)
	p.annotations(node.Annotations)
	p.line("CreationTimestamp", "%s", node.CreationTimestamp.Format(timeFormat))
	p.taints(node.Spec.Taints)
	p.line("Unschedulable", "%t", node.Spec.Unschedulable)
	p.lease(facts.Lease)
	p.nodeConditions(node)
	p.head("Addresses")
	for _, address := range node.Status.Addresses {
		p.under(func() { p.line(string(address.Type), "%s", address.Address) })
	}
	p.amounts("Capacity", node.Status.Capacity)
	p.amounts("Allocatable", node.Status.Allocatable)
	p.nodeInfo(&node.Status.NodeInfo)
	if node.Spec.PodCIDR != "" {
		p.line("PodCIDR", "%s", node.Spec.PodCIDR)
		p.line("PodCIDRs", "%s", strings.Join(node.Spec.PodCIDRs, ","))
	}
	p.nodePods(node, pods)
	p.events(facts.Events)
	return p.done()
}

func roles(node *core.Node) string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		if role, ok := strings.CutPrefix(key, roleLabel); ok && role != "" {
			found = append(found, role)
		}
	}
	return cmp.Or(strings.Join(found, ","), "<none>")
}

func (p *page) taints(taints []corev1.Taint) {
	if len(taints) == 0 {
		p.line("Taints", "<none>")
	}
	for i, taint := range taints {
		head := "Taints:"
		if i > 0 {
			head = ""
		}
		p.text("%s\t%s", head, taint.ToString())
	}
}

func (p *page) lease(lease *core.Lease) {
	if lease == nil {
		p.line("Lease", "Failed to get lease: there is none, or you may not see it")
		return
	}
	p.head("Lease")
	p.under(func() {
		at := func(t *metav1.MicroTime) string {
			if t == nil {
				return "<unset>"
			}
			return t.Format(timeFormat)
		}
		p.line("HolderIdentity", "%s", ptr.Deref(lease.Spec.HolderIdentity, "<unset>"))
		p.line("AcquireTime", "%s", at(lease.Spec.AcquireTime))
		p.line("RenewTime", "%s", at(lease.Spec.RenewTime))
	})
}

func (p *page) nodeConditions(node *core.Node) {
	conditions(p, node.Status.Conditions, []string{"Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage",
		"----\t------\t-----------------\t------------------\t------\t-------"}, func(c corev1.NodeCondition) string {
		return fmt.Sprintf("%s \t%s \t%s \t%s \t%s \t%s",
			c.Type, c.Status, c.LastHeartbeatTime.Format(timeFormat), c.LastTransitionTime.Format(timeFormat), c.Reason, c.Message)
	})
}

func (p *page) nodeInfo(info *corev1.NodeSystemInfo) {
	p.head("System Info")
	p.under(func() {
		p.line("Machine ID", "%s", info.MachineID)
		p.line("System UUID", "%s", info.SystemUUID)
		p.line("Boot ID", "%s", info.BootID)
		p.line("Kernel Version", "%s", info.KernelVersion)
		p.line("OS Image", "%s", info.OSImage)
		p.line("Operating System", "%s", info.OperatingSystem)
		p.line("Architecture", "%s", info.Architecture)
		p.line("Container Runtime Version", "%s", info.ContainerRuntimeVersion)
		p.line("Kubelet Version", "%s", info.KubeletVersion)
	})
}

// nodePods lists the pods that hold resources of the node, and what they ask
// for.
func (p *page) nodePods(node *core.Node, pods []core.Pod) {
	running := slices.DeleteFunc(slices.Clone(pods), func(pod core.Pod) bool { return core.Ended(pod.Status.Phase) })
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	// As kubectl: a pod's line has what it holds while a change in place is under way,
	// the sums what it asks for.
	now, asSpecified := resourcehelper.PodResourcesOptions{UseStatusResources: true}, resourcehelper.PodResourcesOptions{}
	p.line("Non-terminated Pods", "(%d in total)", len(running))
	p.under(func() {
		p.text("Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge")
		p.text("---------\t----\t\t------------\t----------\t---------------\t-------------\t---")
		for i := range running {
			asked, most := resourcehelper.PodRequests(&running[i], now), resourcehelper.PodLimits(&running[i], now)
			p.text("%s\t%s\t\t%s\t%s\t%s\t%s\t%s", running[i].Namespace, running[i].Name,
				share(asked, node, corev1.ResourceCPU), share(most, node, corev1.ResourceCPU),
				share(asked, node, corev1.ResourceMemory), share(most, node, corev1.ResourceMemory),
				formatAge(running[i].CreationTimestamp.Time, p.now))
			add(requests, resourcehelper.PodRequests(&running[i], asSpecified))
			add(limits, resourcehelper.PodLimits(&running[i], asSpecified))
		}
	})
	p.text("Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)")
	p.under(func() {
		p.text("Resource\tRequests\tLimits")
		p.text("--------\t--------\t------")
		for _, name := range countable(node) {
			p.text("%s\t%s\t%s", name, share(requests, node, name), share(limits, node, name))
		}
	})
}

// countable are the node's resources that containers ask for, the common ones
// first.
func countable(node *core.Node) []corev1.ResourceName {
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	for _, name := range slices.Sorted(maps.Keys(node.Status.Allocatable)) {
		if name != corev1.ResourcePods && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func add(to, more corev1.ResourceList) {
	for name, amount := range more {
		sum := to[name]
		sum.Add(amount)
		to[name] = sum
	}
}

func share(amounts corev1.ResourceList, node *core.Node, name corev1.ResourceName) string {
	amount, whole := amounts[name], node.Status.Allocatable[name]
	percent := int64(0)
	if whole.MilliValue() > 0 {
		percent = amount.MilliValue() * 100 / whole.MilliValue()
	}
	return fmt.Sprintf("%s (%d%%)", amount.String(), percent)
}
