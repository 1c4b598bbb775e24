package doctor

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// oneNode serves a node that is ready, and leases that were renewed so long ago.
func oneNode(t *testing.T, renewed time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer := any(nil)
		switch {
		case strings.HasSuffix(r.URL.Path, "/nodes"):
			node := core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			node.Status.NodeInfo.KubeletVersion = "v1.37.0"
			answer = corev1.NodeList{Items: []core.Node{node}}
		case strings.HasSuffix(r.URL.Path, "/leases"):
			at := metav1.NewMicroTime(time.Now().Add(-renewed))
			answer = coordinationv1.LeaseList{Items: []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}}}
		default:
			healthy(w, r)
			return
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}
}

// Leases go by the clocks of those who renew them: of a cluster that is well, a machine
// whose clock is a minute ahead must not say that nothing is written.
func TestLeasesBesideAClockThatIsAhead(t *testing.T) {
	p := newPatient(t)
	p.handler = oneNode(t, 0)
	s := p.server(t)
	s.Now = func() time.Time { return time.Now().Add(time.Minute) }
	for _, check := range s.Checks(t.Context()) {
		if check.Result == Fail || check.Name == "clock" && check.Result != Warn {
			t.Errorf("%+v", check)
		}
	}
}

// Who may see the nodes, and not the control plane's leases, is told about the nodes.
func TestNodesWithoutTheControlPlanesLeases(t *testing.T) {
	p := newPatient(t)
	nodes := oneNode(t, 2*time.Minute)
	p.handler = func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/kube-system/leases") {
			forbidden(w, r)
			return
		}
		nodes(w, r)
	}
	checks := p.server(t).Checks(t.Context())
	if got := find(t, checks, "node/n"); got.Result != Fail || !strings.Contains(got.Detail, "has not renewed its lease") {
		t.Errorf("%+v", checks)
	}
}
