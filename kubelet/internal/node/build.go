package node

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/userns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/release"
)

// state is everything that the node's status is made from, besides its configuration.
type state struct {
	images   []corev1.ContainerImage
	runtime  string // name://version
	features RuntimeFeatures
	notReady []string
	now      time.Time
}

// newNode is the Node as it is registered.
func (m *Manager) newNode() *core.Node {
	labels := maps.Clone(m.config.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, m.ownLabels())
	node := &core.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        m.config.Name,
			Labels:      labels,
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{
			Taints:     slices.Clone(m.config.Taints),
			PodCIDR:    m.config.PodCIDR,
			PodCIDRs:   cidrs(m.config.PodCIDR),
			ProviderID: m.config.ProviderID,
		},
	}
	if m.config.CloudProviderExternal {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taintUninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
		if m.config.GivenIP != "" {
			node.Annotations[annotationGivenIP] = m.config.GivenIP
		}
	}
	return node
}

// The taint for a cloud's controller, which removes it when it has completed the
// node (Kubernetes docs, "Cloud Controller Manager Administration").
const (
	taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
	annotationGivenIP  = "alpha.kubernetes.io/provided-node-ip"
)

func cidrs(one string) []string {
	if one == "" {
		return nil
	}
	return strings.Split(one, ",")
}

// ownLabels are those that every kubelet gives its node.
func (m *Manager) ownLabels() map[string]string {
	return map[string]string{
		corev1.LabelHostname:      strings.ToLower(m.config.Hostname),
		corev1.LabelOSStable:      runtime.GOOS,
		corev1.LabelArchStable:    runtime.GOARCH,
		"beta.kubernetes.io/os":   runtime.GOOS,
		"beta.kubernetes.io/arch": runtime.GOARCH,
	}
}

// platformLabels are those of the labels for the machine's platform that are not as they should be. Pods are placed
// by these, and a wrong one brings pods whose programs can't run here.
func platformLabels(has map[string]string) map[string]string {
	var wrong map[string]string
	for name, value := range map[string]string{corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH} {
		if has[name] != value {
			if wrong == nil {
				wrong = map[string]string{}
			}
			wrong[name] = value
		}
	}
	return wrong
}

// capacity is what the machine has; of a disk whose size is not known, nothing.
func (machine Machine) capacity() corev1.ResourceList {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(machine.CPUs, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(machine.Memory, resource.BinarySI),
	}
	if machine.EphemeralStorage > 0 {
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(machine.EphemeralStorage, resource.BinarySI)
	}
	for name, size := range machine.HugePages {
		capacity[name] = *resource.NewQuantity(size, resource.BinarySI)
	}
	return capacity
}

// CheckReserved says what is to be kept from pods that the machine does not have: all pods together
// would have no bound, since what is left is none.
func (machine Machine) CheckReserved(reserved corev1.ResourceList) error {
	capacity := machine.capacity()
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		kept := reserved[name]
		if has, ok := capacity[name]; ok && has.Cmp(kept) < 0 {
			failed = append(failed, fmt.Errorf("%s: %s are reserved, and the machine has %s: "+
				"systemReserved, kubeReserved and the hard eviction thresholds together must not be more", name, &kept, &has))
		}
	}
	return errors.Join(failed...)
}

// capacity is what the machine has, and what others have advertised.
func (m *Manager) capacity(before *corev1.NodeStatus) corev1.ResourceList {
	capacity := m.config.Machine.capacity()
	capacity[corev1.ResourcePods] = *resource.NewQuantity(m.config.MaxPods, resource.DecimalSI)
	// Resources that an operator has advertised stay; all of them are for pods. Of those that an earlier kubelet
	// reported, nobody knows which its device plugins had: pods would run without their devices.
	gone := m.takenOver(before.NodeInfo)
	for name, quantity := range before.Capacity {
		switch {
		case !strings.Contains(string(name), "/") || strings.HasPrefix(string(name), corev1.ResourceDefaultNamespacePrefix):
		case gone:
			capacity[name] = resource.Quantity{Format: resource.DecimalSI}
		default:
			capacity[name] = quantity
		}
	}
	return capacity
}

// takenOver says that the last report of the node is of another kubelet than this project's, or of another machine.
func (m *Manager) takenOver(reported corev1.NodeSystemInfo) bool {
	if reported.KubeletVersion == "" { // nobody has reported yet
		return false
	}
	ours := reported.KubeletVersion == m.config.Version || release.IsOurs(reported.KubeletVersion)
	return !ours || reported.MachineID != m.config.Machine.MachineID
}

// withOwnSizes is the node with what this kubelet gives to pods: until its first report, the API has
// what an earlier kubelet gave, which may have been configured otherwise.
func (m *Manager) withOwnSizes(node *core.Node) *core.Node {
	capacity := m.capacity(&node.Status)
	free := allocatable(capacity, m.config.Reserved)
	if equality.Semantic.DeepEqual(node.Status.Allocatable, free) {
		return node
	}
	own := *node
	own.Status.Capacity, own.Status.Allocatable = capacity, free
	return &own
}

// status is the node's status as it is now; what others wrote stays.
func (m *Manager) status(before *corev1.NodeStatus, s state) corev1.NodeStatus {
	status := *before.DeepCopy()
	machine := m.config.Machine
	status.Capacity = m.capacity(before)
	status.Allocatable = allocatable(status.Capacity, m.config.Reserved)
	if !m.config.CloudProviderExternal || len(before.Addresses) == 0 { // otherwise the cloud sets them
		status.Addresses = m.addresses()
	}
	status.DaemonEndpoints.KubeletEndpoint.Port = m.config.Port()
	status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: machine.MachineID, SystemUUID: machine.SystemUUID, BootID: machine.BootID,
		OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, OSImage: machine.OSImage, KernelVersion: machine.Kernel,
		KubeletVersion: m.config.Version, ContainerRuntimeVersion: s.runtime, RunningInUserNamespace: new(userns.RunningInUserNS()),
	}
	if machine.Swap > 0 { // kube-apiserver refuses a node with none of it
		status.NodeInfo.Swap = &corev1.NodeSwapStatus{Capacity: &machine.Swap}
	}
	status.Images = s.images
	status.VolumesInUse = m.volumesInUse(before.VolumesInUse)
	status.DeclaredFeatures = m.config.DeclaredFeatures
	status.RuntimeHandlers, status.Features = s.features.Handlers, s.features.Node
	status.Conditions = m.conditions(before.Conditions, s)
	return status
}

func (m *Manager) addresses() (all []corev1.NodeAddress) {
	for _, ip := range m.config.Addresses() {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return append(all, corev1.NodeAddress{Type: corev1.NodeHostName, Address: m.config.Hostname})
}

// allocatable is what is left for pods. Huge pages are memory that nothing
// else can have.
func allocatable(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	left := capacity.DeepCopy()
	take := func(name corev1.ResourceName, quantity resource.Quantity) {
		has, ok := left[name]
		if !ok {
			return
		}
		if has.Sub(quantity); has.Sign() < 0 { // which the API would refuse
			has = resource.Quantity{Format: has.Format}
		}
		left[name] = has
	}
	for name, quantity := range reserved {
		take(name, quantity)
	}
	for name, quantity := range capacity {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			take(corev1.ResourceMemory, quantity)
		}
	}
	return left
}

// conditions are upstream's, with its reasons and messages, each with its
// current state and since when.
func (m *Manager) conditions(before []corev1.NodeCondition, s state) []corev1.NodeCondition {
	ready := corev1.NodeCondition{
		Type:    corev1.NodeReady,
		Status:  corev1.ConditionTrue,
		Reason:  "KubeletReady",
		Message: "kubelet is posting ready status",
	}
	if len(s.notReady) > 0 {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", "["+strings.Join(s.notReady, ", ")+"]"
		if len(s.notReady) == 1 {
			ready.Message = s.notReady[0]
		}
	}
	ours := []corev1.NodeCondition{
		memoryPressure.condition(m.config.UnderPressure),
		diskPressure.condition(m.config.UnderPressure),
		pidPressure.condition(m.config.UnderPressure),
		ready,
	}
	now := metav1.NewTime(s.now).Rfc3339Copy()
	conditions := slices.Clone(before)
	for _, c := range ours {
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		at := slices.IndexFunc(conditions, func(old corev1.NodeCondition) bool { return old.Type == c.Type })
		if at < 0 {
			conditions = append(conditions, c)
			continue
		}
		if conditions[at].Status == c.Status {
			c.LastTransitionTime = conditions[at].LastTransitionTime
		}
		conditions[at] = c
	}
	return conditions
}

// message is a condition's reason and message, in upstream's words.
type message struct{ reason, message string }

// pressure is a node condition that says whether the node is short of something.
type pressure struct {
	of            corev1.NodeConditionType
	short, enough message
}

var (
	memoryPressure = pressure{
		corev1.NodeMemoryPressure,
		message{"KubeletHasInsufficientMemory", "kubelet has insufficient memory available"},
		message{"KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
	}
	diskPressure = pressure{
		corev1.NodeDiskPressure,
		message{"KubeletHasDiskPressure", "kubelet has disk pressure"},
		message{"KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
	}
	pidPressure = pressure{
		corev1.NodePIDPressure,
		message{"KubeletHasInsufficientPID", "kubelet has insufficient PID available"},
		message{"KubeletHasSufficientPID", "kubelet has sufficient PID available"},
	}
)

func (p pressure) condition(under func(corev1.NodeConditionType) bool) corev1.NodeCondition {
	status, says := corev1.ConditionFalse, p.enough
	if under(p.of) {
		status, says = corev1.ConditionTrue, p.short
	}
	return corev1.NodeCondition{Type: p.of, Status: status, Reason: says.reason, Message: says.message}
}

// sameButHeartbeat says that only the heartbeat times differ.
func sameButHeartbeat(a, b corev1.NodeStatus) bool {
	still := func(s corev1.NodeStatus) corev1.NodeStatus {
		s.Conditions = slices.Clone(s.Conditions)
		for i := range s.Conditions {
			s.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
		return s
	}
	return equalStatus(still(a), still(b))
}
