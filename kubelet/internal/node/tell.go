package node

import (
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// recordChanges writes an event for each of our conditions that has changed, named after the
// condition's reason, like upstream's. It also reports that the machine was
// rebooted.
func (m *Manager) recordChanges(node *core.Node, before, now *corev1.NodeStatus) {
	if boot := before.NodeInfo.BootID; boot != "" && boot != now.NodeInfo.BootID {
		m.config.Events.Eventf(node, corev1.EventTypeWarning, "Rebooted", "Node %s has been rebooted, boot id: %s",
			node.Name, now.NodeInfo.BootID)
	}
	for _, c := range now.Conditions {
		reason, ours := strings.CutPrefix(c.Reason, "Kubelet")
		if !ours || statusOf(before, c.Type) == c.Status {
			continue
		}
		m.config.Logger.Info("node condition changed", zap.String("condition", string(c.Type)),
			zap.String("status", string(c.Status)), zap.String("message", c.Message))
		m.recordStatus(node, "Node"+reason)
	}
}

func (m *Manager) recordStatus(node *core.Node, reason string) {
	m.config.Events.Eventf(node, corev1.EventTypeNormal, reason, "Node %s status is now: %s", node.Name, reason)
}

// recordRegistered reports every pressure condition, whatever was known before, and
// readiness if it has changed.
func (m *Manager) recordRegistered(node *core.Node, now *corev1.NodeStatus, created bool) {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: statusOf(now, corev1.NodeReady)}
	if created {
		ready.Status = corev1.ConditionFalse
	}
	m.recordChanges(node, &corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}}, now)
}

// recordSchedulable reports that the node was cordoned, or may be used again. The
// caller holds m.mu.
func (m *Manager) recordSchedulable(node *core.Node) {
	if m.cordoned == node.Spec.Unschedulable {
		return
	}
	m.cordoned = node.Spec.Unschedulable
	if m.cordoned {
		m.recordStatus(node, "NodeNotSchedulable")
	} else {
		m.recordStatus(node, "NodeSchedulable")
	}
}

func statusOf(status *corev1.NodeStatus, condition corev1.NodeConditionType) corev1.ConditionStatus {
	for i := range status.Conditions {
		if status.Conditions[i].Type == condition {
			return status.Conditions[i].Status
		}
	}
	return corev1.ConditionUnknown
}
