package kubelet

import (
	"context"

	"kctl/kubelet/internal/nodenetwork"
	"kctl/proto/rest"
)

// runNetwork connects the node's pods with those of other nodes, if configured.
func (g *given) runNetwork(client *rest.Client, run func(name string, f func(context.Context) error)) {
	if g.config.NodeNetwork == nodenetwork.None {
		return
	}
	network := nodenetwork.New(nodenetwork.Options{
		Mode: g.config.NodeNetwork, Node: g.identity.NodeName, ConfigDir: g.config.CNIConfDir,
		Client: client, Clock: g.clock, Logger: g.logger,
	})
	run("node network", network.Run)
}
