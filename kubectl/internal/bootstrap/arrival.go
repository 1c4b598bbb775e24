package bootstrap

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// Admitted says why the kubelet has not been let in yet: nil once the kubeconfig that it
// writes has a certificate which is good. One of an earlier join may be there, and be too old.
func (n Node) Admitted(now time.Time) error {
	has, err := n.hasJoined(now)
	if err == nil && !has {
		return fmt.Errorf("%s has no valid certificate yet", n.Kubeconfig())
	}
	return err
}

// Registered says why the kubelet that was started at a time has not registered its node
// yet: nil once the API server has the Node object, and its lease, which only a kubelet
// that runs renews, is newer. Both may be there from an earlier join. It asks with the
// kubelet's own certificate, which may be new since the last time.
func (n Node) Registered(ctx context.Context, name string, started time.Time) error {
	config, err := rest.LoadKubeconfig(n.Kubeconfig())
	if err != nil {
		return fmt.Errorf("asking for the node: %w", err)
	}
	client, err := rest.New(config)
	if err != nil {
		return fmt.Errorf("asking for the node: %w", err)
	}
	defer client.HTTP().CloseIdleConnections()
	if err := client.Resource(core.Nodes, "").Get(ctx, name, &metav1.PartialObjectMetadata{}); err != nil {
		return err
	}
	lease := &core.Lease{}
	if err := client.Resource(core.Leases, core.NamespaceNodeLease).Get(ctx, name, lease); err != nil {
		return err
	}
	if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Time.Before(started) {
		return fmt.Errorf("node %s already existed, and no kubelet has renewed its lease since", name)
	}
	return nil
}

// Registers says whether the kubelet registers its node, as its configuration says.
func (n Node) Registers() bool {
	registers := n.written().RegisterNode
	return registers == nil || *registers
}
