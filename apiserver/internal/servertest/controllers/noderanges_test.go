package controllers

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/proto/core"
)

// The nodes themselves record their ranges: a server that restarts gives none
// of them out twice.
func TestNodeRangesSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := func() *cluster {
		return startIn(t, dir, func(o *config.Options) {
			o.NodeRanges = config.NodeRanges{Allocate: true, Clusters: []string{"10.244.0.0/22", "fd00:10::/62"}}
		})
	}
	owner := map[string]string{}
	join := func(c *cluster, name string) {
		t.Helper()
		nodes := c.Root().Resource(core.Nodes, "")
		c.Must(nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil))
		var node core.Node
		c.Until(name+" has its ranges", func(ctx context.Context) bool {
			return nodes.Get(ctx, name, &node) == nil && len(node.Spec.PodCIDRs) == 2 && node.Spec.PodCIDR == node.Spec.PodCIDRs[0]
		})
		for _, cidr := range node.Spec.PodCIDRs {
			if owner[cidr] != "" {
				t.Errorf("%s and %s both have %s", owner[cidr], name, cidr)
			}
			owner[cidr] = name
		}
	}
	c := begin()
	join(c, "n1")
	join(c, "n2")
	c.Must(c.Stop())
	c = begin()
	join(c, "n3")
	c.Must(c.Root().Resource(core.Nodes, "").Delete(t.Context(), "n1", nil, nil))
	for cidr, name := range owner {
		if name == "n1" {
			delete(owner, cidr)
		}
	}
	join(c, "n4")
	join(c, "n5") // gets what n1 had
}
