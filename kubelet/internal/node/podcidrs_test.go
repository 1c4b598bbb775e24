package node

import (
	"errors"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// The runtime gets the pod CIDRs when the node does, again if the call failed,
// and not again after it succeeded.
func TestTheRuntimeIsToldOfRanges(t *testing.T) {
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t, client, clocktesting.NewFakeClock(time.Now()))
	runtime := &fakeRuntime{deaf: errors.New("not now")}
	config.Runtime = runtime
	m := New(config)
	m.updateRuntimePodCIDRs(t.Context(), m.Node())
	if len(runtime.cidrs) > 0 {
		t.Errorf("a node without a range told the runtime %q", runtime.cidrs)
	}

	node := m.Node().DeepCopy()
	node.UID = "u"
	node.Spec.PodCIDRs = []string{"10.1.0.0/24", "fd00:1::/64"}
	m.setNode(node)
	select {
	case <-m.wake:
	default:
		t.Error("a new range waits for the next check of the status")
	}
	tell := func(node *core.Node, want ...string) {
		t.Helper()
		runtime.cidrs = nil
		m.updateRuntimePodCIDRs(t.Context(), node)
		if !slices.Equal(runtime.cidrs, want) {
			t.Errorf("the runtime was told %q, want %q", runtime.cidrs, want)
		}
	}
	const both = "10.1.0.0/24,fd00:1::/64"
	tell(node, both)
	runtime.deaf = nil
	tell(node, both)
	tell(node)
	lost := node.DeepCopy() // registered again, without a range yet
	lost.Spec.PodCIDRs = nil
	tell(lost)
	m.setNode(node)
	if len(m.wake) > 0 {
		t.Error("a range that is known makes the status be checked")
	}
}
