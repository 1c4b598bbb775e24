package kubelet

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

// Only a node with swap can have secrets there, and only if its kernel can't help it.
func TestWhereSecretsMaySwap(t *testing.T) {
	unknown := errors.New("unknown")
	for name, c := range map[string]struct {
		swap *int64
		kept bool
		err  error
		want bool
	}{
		"no swap":         {},
		"none of it":      {swap: new(int64(0))},
		"a new kernel":    {swap: new(int64(1)), kept: true},
		"an old kernel":   {swap: new(int64(1)), want: true},
		"nobody knows":    {swap: new(int64(1)), err: unknown},
		"and none needed": {err: unknown},
	} {
		node := &core.Node{}
		if c.swap != nil {
			node.Status.NodeInfo.Swap = &corev1.NodeSwapStatus{Capacity: c.swap}
		}
		got, err := secretsMaySwap(node, func() (bool, error) { return c.kept, c.err })
		if asks := c.swap != nil && *c.swap > 0; got != c.want || (err != nil) != (c.err != nil && asks) {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}
