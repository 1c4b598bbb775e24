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
		a := &admission.Attributes{
			Operation: admission.Create, Resource: core.Nodes, Name: "n1", User: &request.User{Username: "system:node:n1", Groups: []string{core.GroupNodes}},
			Object: test.now,
		}
		if test.old != nil {
			a.Operation, a.OldObject = admission.Update, test.old
		}
		if err := p.Admit(t.Context(), a); (err == nil) != test.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNodesOfNodes: what the kubelet of n1 may write of Nodes, in kube-apiserver's words.
func TestNodesOfNodes(t *testing.T) {
	node := func(name string, change func(*core.Node)) *core.Node {
		n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"placed.kubernetes.io/by": "admin", "color": "red"}}}
		n.Spec.ConfigSource = &corev1.NodeConfigSource{}
		if change != nil {
			change(n)
		}
		return n
	}
	fresh := func(labels map[string]string) *core.Node {
		return &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}}
	}
	label := func(key, value string) func(*core.Node) { return func(n *core.Node) { n.Labels[key] = value } }
	for name, c := range map[string]struct {
		old, now *core.Node
		want     string
	}{
		"itself":                    {nil, fresh(nil), ""},
		"another":                   {nil, node("n2", nil), `node "n1" is not allowed to modify node "n2"`},
		"another's update":          {node("n2", nil), node("n2", nil), `node "n1" is not allowed to modify node "n2"`},
		"a source of configuration": {nil, node("n1", nil), `node "n1" is not allowed to create pods with a non-nil configSource`},
		"no change":                 {node("n1", nil), node("n1", nil), ""},
		"another source": {node("n1", nil),
			node("n1", func(n *core.Node) { n.Spec.ConfigSource.ConfigMap = &corev1.ConfigMapNodeConfigSource{Name: "c"} }),
			`node "n1" is not allowed to update configSource to a new non-nil configSource`},
		"no source any more": {node("n1", nil), node("n1", func(n *core.Node) { n.Spec.ConfigSource = nil }), ""},
		"taints": {node("n1", nil), node("n1", func(n *core.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }),
			`node "n1" is not allowed to modify taints`},
		"owners": {node("n1", nil), node("n1", func(n *core.Node) { n.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }),
			`node "n1" is not allowed to modify ownerReferences`},
		"a label of its own":         {node("n1", nil), node("n1", label("color", "blue")), ""},
		"a label of kubelets":        {node("n1", nil), node("n1", label("kubernetes.io/hostname", "h")), ""},
		"one below kubelets' domain": {node("n1", nil), node("n1", label("a.kubelet.kubernetes.io/x", "y")), ""},
		"one of nodes' domain":       {node("n1", nil), node("n1", label("node.kubernetes.io/x", "y")), ""},
		"one that places pods": {node("n1", nil), node("n1", label("node-restriction.kubernetes.io/x", "y")),
			"is not allowed to modify labels: node-restriction.kubernetes.io/x"},
		"one of k8s.io":            {node("n1", nil), node("n1", label("k8s.io/x", "y")), "is not allowed to modify labels: k8s.io/x"},
		"a domain that ends alike": {node("n1", nil), node("n1", label("notkubernetes.io/x", "y")), ""},
		"another value":            {node("n1", nil), node("n1", label("placed.kubernetes.io/by", "me")), "is not allowed to modify labels: placed.kubernetes.io/by"},
		"without an admin's label": {node("n1", nil), node("n1", func(n *core.Node) { delete(n.Labels, "placed.kubernetes.io/by") }),
			"is not allowed to modify labels: placed.kubernetes.io/by"},
		"two, as it registers": {nil, fresh(map[string]string{"b.k8s.io/x": "", "a.k8s.io/x": ""}),
			`node "n1" is not allowed to set the following labels: a.k8s.io/x, b.k8s.io/x`},
	} {
		a := kubeletOf(&admission.Attributes{Operation: admission.Create, Resource: core.Nodes, Object: c.now})
		if c.old != nil {
			a.Operation, a.OldObject, a.Name = admission.Update, c.old, c.now.Name
		}
		got := ""
		if err := (&Plugin{}).Admit(t.Context(), a); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWhoIsANode: others than nodes pass, and a node without a name does not.
func TestWhoIsANode(t *testing.T) {
	for name, c := range map[string]struct {
		user    *request.User
		allowed bool
	}{
		"nobody":                    {nil, true},
		"a user":                    {&request.User{Username: "jane"}, true},
		"the name, not the group":   {&request.User{Username: "system:node:n2"}, true},
		"the group, not the name":   {&request.User{Username: "n2", Groups: []string{core.GroupNodes}}, true},
		"another node":              {&request.User{Username: "system:node:n2", Groups: []string{core.GroupNodes}}, false},
		"a node without a name":     {&request.User{Username: "system:node:", Groups: []string{core.GroupNodes}}, false},
		"the node with more groups": {&request.User{Username: "system:node:n1", Groups: []string{"a", core.GroupNodes}}, true},
	} {
		a := &admission.Attributes{Operation: admission.Delete, Resource: core.Nodes, Name: "n1", User: c.user}
		if err := (&Plugin{}).Admit(t.Context(), a); (err == nil) != c.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
