package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/resources/cell"
	"kctl/proto/core"
)

const (
	rolePrefix  = "node-role.kubernetes.io/"
	roleLabel   = "kubernetes.io/role"
	notReported = "<unknown>"
)

func columns() []metav1.TableColumnDefinition {
	info := corev1.NodeSystemInfo{}.SwaggerDoc()
	addresses := corev1.NodeStatus{}.SwaggerDoc()["addresses"]
	return []metav1.TableColumnDefinition{
		cell.Name(),
		cell.Text("Status", "The status of the node"),
		cell.Text("Roles", "The roles of the node"),
		cell.AgeColumn(),
		cell.Text("Version", info["kubeletVersion"]),
		cell.Wide("Internal-IP", addresses),
		cell.Wide("External-IP", addresses),
		cell.Wide("OS-Image", info["osImage"]),
		cell.Wide("Kernel-Version", info["kernelVersion"]),
		cell.Wide("Container-Runtime", info["containerRuntimeVersion"]),
	}
}

func row(n *core.Node, now time.Time) []any {
	info := n.Status.NodeInfo
	return []any{
		n.Name, status(n), cell.OrNone(strings.Join(roles(n), ",")), cell.Age(now, n.CreationTimestamp), info.KubeletVersion,
		address(n, corev1.NodeInternalIP), address(n, corev1.NodeExternalIP),
		known(info.OSImage), kernel(&info), known(info.ContainerRuntimeVersion),
	}
}

// status is Ready, NotReady or Unknown, and whether scheduling is disabled.
func status(n *core.Node) string {
	text := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		text = "NotReady"
		if c.Status == corev1.ConditionTrue {
			text = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		text += ",SchedulingDisabled"
	}
	return text
}

func roles(n *core.Node) []string {
	found := map[string]bool{}
	for label, value := range n.Labels {
		switch role, ok := strings.CutPrefix(label, rolePrefix); {
		case ok && role != "":
			found[role] = true
		case label == roleLabel && value != "":
			found[value] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func address(n *core.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return cell.None
}

func known(s string) string {
	if s == "" {
		return notReported
	}
	return s
}

// kernel also shows the kernel's architecture.
func kernel(info *corev1.NodeSystemInfo) string {
	if info.KernelVersion == "" || info.Architecture == "" {
		return known(info.KernelVersion)
	}
	return fmt.Sprintf("%s (%s)", info.KernelVersion, info.Architecture)
}
