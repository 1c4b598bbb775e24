package doctor

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// A machine that joined a cluster of `kctl up` has a kubelet that "kctl up" knows nothing of.
func TestWhereANodesKubeletIs(t *testing.T) {
	for _, test := range []struct{ up, upNode, node, advice string }{
		{"", "", "a", "systemctl status kctl-kubelet"},
		{"/srv/c", "a", "a", "kctl up --dir /srv/c"},
		{"/srv/c", "a", "b", "systemctl status kctl-kubelet"},
		{"/srv/c", "", "a", "kctl up --dir /srv/c"},
	} {
		s := &Server{Now: time.Now, Up: test.up, UpNode: test.upNode}
		got := s.judgeNode(&core.Node{ObjectMeta: metav1.ObjectMeta{Name: test.node}}, nil, "v1.37.0")
		if len(got) != 1 || !strings.Contains(got[0].Advice, test.advice) {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

// Only the kubelet's log says what --node-network waits for.
func TestANodeWithoutANetwork(t *testing.T) {
	node := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
		Status: corev1.ConditionFalse, Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"}}}}
	for _, ranges := range [][]string{nil, {"10.244.0.0/24"}} {
		node.Spec.PodCIDRs = ranges
		got := (&Server{Now: time.Now}).judgeNode(node, nil, "v1.37.0")
		if len(got) != 1 || !strings.Contains(got[0].Advice, "/etc/cni/net.d") || strings.Contains(got[0].Advice, "--allocate-node-cidrs") != (ranges == nil) {
			t.Errorf("with %v: %+v", ranges, got)
		}
	}
}
