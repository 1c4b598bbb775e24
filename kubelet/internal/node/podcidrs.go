package node

import (
	"context"
	"strings"

	"go.uber.org/zap"

	"kctl/proto/core"
)

// updateRuntimePodCIDRs reports the node's pod CIDRs to the runtime if they have
// changed. If the call fails, the next status update tries again, and pods
// whose network does not depend on it keep working.
func (m *Manager) updateRuntimePodCIDRs(ctx context.Context, node *core.Node) {
	cidrs := strings.Join(node.Spec.PodCIDRs, ",")
	if cidrs == "" || cidrs == m.podCIDRs {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, runtimeWithin)
	defer cancel()
	if err := m.config.Runtime.UpdatePodCIDRs(ctx, cidrs); err != nil {
		m.config.Logger.Warn("could not pass the pod ranges to the runtime, will retry",
			zap.String("podCIDRs", cidrs), zap.Error(err))
		return
	}
	m.podCIDRs = cidrs
}
