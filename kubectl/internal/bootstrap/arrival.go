package bootstrap

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// Admitted says why the kubelet has not been let in yet: nil once it has written the
// kubeconfig with its certificate.
func (n Node) Admitted(context.Context) error {
	_, err := os.Stat(n.Kubeconfig())
	return err
}

// Registered says why the kubelet has not registered its node yet: nil once the API
// server has the Node object. It asks with the kubelet's own certificate, which may be
// new since the last time.
func (n Node) Registered(ctx context.Context, name string) error {
	config, err := rest.LoadKubeconfig(n.Kubeconfig())
	if err != nil {
		return fmt.Errorf("asking for the node: %w", err)
	}
	client, err := rest.New(config)
	if err != nil {
		return fmt.Errorf("asking for the node: %w", err)
	}
	defer client.HTTP().CloseIdleConnections()
	return client.Resource(core.Nodes, "").Get(ctx, name, &metav1.PartialObjectMetadata{})
}

// Registers says whether the kubelet registers its node, as its configuration says.
func (n Node) Registers() bool {
	registers := n.written().RegisterNode
	return registers == nil || *registers
}
