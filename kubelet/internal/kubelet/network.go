package kubelet

import (
	"context"

	"kctl/kubelet/internal/nodenetwork"
)

// runNetwork connects the node's pods with those of other nodes, if configured.
func (k *Kubelet) runNetwork(run func(name string, f func(context.Context) error)) {
	if k.config.NodeNetwork == nodenetwork.None {
		return
	}
	network := nodenetwork.New(nodenetwork.Options{
		Mode: k.config.NodeNetwork, Node: k.nodeName, ConfigDir: k.config.CNIConfDir,
		Client: k.client, Clock: k.clock, Logger: k.logger,
	})
	run("node network", network.Run)
}
