package kubelet

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/config"
	"kctl/proto/core"
)

// A restart of the kubelet does not make the containers of a static pod unready, though its file is
// there before the API has told of its mirror, and so of what the probes answered.
func TestAStaticPodStaysReadyOverARestart(t *testing.T) {
	b, runtime := newHollowBed(t, func(c *config.Config) {
		c.Sources.StaticPodPath = t.TempDir()
		// Their next probe is hours away: nothing but the mirror's status says what they answered.
		probe := `{"tcpSocket":{"port":1},"periodSeconds":86400}`
		manifest := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"static"},"spec":{"containers":[{"name":"main","image":"img","startupProbe":` + probe +
			`,"readinessProbe":` + probe + `}]}}`
		if err := os.WriteFile(filepath.Join(c.Sources.StaticPodPath, "static.json"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	ready := func(status *core.PodStatus) bool {
		c := status.ContainerStatuses
		return len(c) == 1 && c[0].Ready && ptr.Deref(c[0].Started, false)
	}
	b.api.wait("the static pod to be ready", func() bool {
		pod := b.api.pod("static-node-1")
		return pod != nil && ready(&pod.Status)
	})
	static, _ := b.kubelet.pods.ByName("default", "static-node-1")
	id := b.api.pod("static-node-1").Status.ContainerStatuses[0].ContainerID
	b.stop()

	// It has been so for long.
	before := b.api.pod("static-node-1")
	long := metav1.NewTime(before.Status.StartTime.Add(-time.Hour))
	before.Status.StartTime = &long
	for i := range before.Status.Conditions {
		before.Status.Conditions[i].LastTransitionTime = long
	}
	b.api.add(before)

	// The mirror becomes known when the pod was synced without it.
	synced := make(chan struct{})
	b.api.around = func(r *http.Request, serve func()) {
		if r.Method == http.MethodGet && r.URL.Path == core.Pods.Path("", "") {
			select {
			case <-synced:
			case <-r.Context().Done():
				return
			}
		}
		serve()
	}
	b.api.refuses = func(r *http.Request, body []byte) bool {
		if strings.HasSuffix(r.URL.Path, "/status") && (bytes.Contains(body, []byte(`"ready":false`)) || bytes.Contains(body, []byte(`"started":false`))) {
			t.Errorf("sent to the API: %s", body)
		}
		return false
	}
	b.startHollow(runtime, clock.RealClock{})
	b.api.wait("the pod to be synced", func() bool {
		status, known := b.kubelet.statuses.Get(static.UID)
		return known && len(status.ContainerStatuses) == 1
	})
	close(synced)
	b.api.wait("the pod to be ready again", func() bool {
		status, _ := b.kubelet.statuses.Get(static.UID)
		return ready(&status) && !b.kubelet.statuses.Sending()
	})
	got := b.api.pod("static-node-1")
	if !got.Status.StartTime.Equal(&long) {
		t.Errorf("it started at %v, and not at %v", got.Status.StartTime, long)
	}
	for _, c := range got.Status.Conditions {
		if !c.LastTransitionTime.Equal(&long) {
			t.Errorf("condition %s has changed: %v", c.Type, c)
		}
	}
	if got.Status.ContainerStatuses[0].ContainerID != id || !ready(&got.Status) || got.Status.Phase != corev1.PodRunning {
		t.Errorf("the status is %+v", got.Status)
	}
}
