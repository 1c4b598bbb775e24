package noderestriction

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// TestRangesOfNodes: a node can't choose its pod ranges if the server allocates
// them, and may keep those that it got.
func TestRangesOfNodes(t *testing.T) {
	n := func(cidrs ...string) *core.Node {
		return &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{PodCIDRs: cidrs}}
	}
	for name, test := range map[string]struct {
		old, now *core.Node
		given    bool // by the server
		allowed  bool
	}{
		"new without a range":                {nil, n(), true, true},
		"new with one":                       {nil, n("0.0.0.0/0"), true, false},
		"new, and nobody gives it any":       {nil, n("10.1.0.0/24"), false, true},
		"an update that chooses":             {n(), n("0.0.0.0/0"), true, false},
		"an update of what it was given":     {n("10.1.0.0/24"), n("10.1.0.0/16"), true, false},
		"an update that keeps it":            {n("10.1.0.0/24"), n("10.1.0.0/24"), true, true},
		"an update, and nobody gives ranges": {n(), n("10.1.0.0/24"), false, true},
	} {
		p := &Plugin{RangesGiven: test.given}
		a := &admission.Attributes{Operation: admission.Create, Resource: core.Nodes, Name: "n1", User: &request.User{Username: "system:node:n1", Groups: []string{core.GroupNodes}}, Object: test.now}
		if test.old != nil {
			a.Operation, a.OldObject = admission.Update, test.old
		}
		if err := p.Admit(t.Context(), a); (err == nil) != test.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
