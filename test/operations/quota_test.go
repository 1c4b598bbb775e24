package operations_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// TestEtcdHasNoRoom uses up etcd's quota, as nobody deletes or compacts, and makes
// room as docs/troubleshooting.md says.
func TestEtcdHasNoRoom(t *testing.T) {
	t.Setenv("ETCD_QUOTA_BACKEND_BYTES", fmt.Sprint(16<<20))
	m := newMembers(t, 1)
	m.start()
	s := harness.StartServer(t, "--etcd-servers="+m.endpoints())
	maps := s.Client().CoreV1().ConfigMaps("default")
	blob := strings.Repeat("x", 900<<10)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("big-%d", i)}, Data: map[string]string{"x": blob}},
			metav1.CreateOptions{})
	}
	if err == nil || !strings.Contains(err.Error(), "database space exceeded") {
		t.Fatalf("etcd takes everything, or else: %v", err)
	}
	if said := s.MustShell("kctl create configmap small 2>&1 || true"); !strings.Contains(said, "docs/troubleshooting.md says how to make room") {
		t.Errorf("kctl does not say what to do: %s", said)
	}
	s.MustShell("kctl delete configmap $(kctl get configmaps -o name | sed -n 's#.*/big-#big-#p')")
	if said := s.MustShell("kctl create configmap small 2>&1 || true"); !strings.Contains(said, "database space exceeded") {
		t.Errorf("deletions alone have helped: %s", said)
	}
	s.MustShell(harness.OpenPage(t, "docs/troubleshooting.md").Take(t, "The API server does not get ready, or refuses writes"), "ETCDCTL_ENDPOINTS="+m.endpoints())
	s.MustShell("kctl create configmap small")
}
