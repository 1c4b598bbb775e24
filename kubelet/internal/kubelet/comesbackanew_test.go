package kubelet

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/kubelet/internal/config"
)

// A static pod that is restarted through its manifest has its time from then on: its mirror,
// which may take its time to go, and its containers, which it restarts, are those of the one before.
func TestAManifestThatComesBackStartsAnew(t *testing.T) {
	stopped := make(chan struct{})
	var path string
	b, _ := newHollowBed(t, func(c *config.Config) {
		c.Sources.StaticPodPath = t.TempDir()
		path = filepath.Join(c.Sources.StaticPodPath, "static.json")
	}, stopWaitsFor(stopped))
	manifest := strings.Replace(staticManifest, `"name":"static"`, `"name":"static","uid":"its-own"`, 1)
	manifest = strings.Replace(manifest, `"dnsPolicy"`, `"restartPolicy":"Always","dnsPolicy"`, 1)
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	before := b.waitPhase("static-node-1", "Running")
	static, _ := b.kubelet.pods.ByUID("its-own")
	b.eventually("all to be told", func() bool { return !b.kubelet.statuses.Sending() })

	// It runs for long.
	long := metav1.NewTime(before.Status.StartTime.Add(-time.Hour))
	b.api.mu.Lock()
	b.api.refuses = func(r *http.Request, _ []byte) bool {
		return r.Method == http.MethodDelete || strings.HasSuffix(r.URL.Path, "/status")
	}
	b.api.mu.Unlock()
	before = b.api.pod("static-node-1")
	before.Status.StartTime = &long
	b.api.add(before)
	b.eventually("that to be seen", func() bool { return b.kubelet.pods.APIPod(static).Status.StartTime.Equal(&long) })

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.eventually("the pod's end to be asked for", func() bool { return b.kubelet.workers.TerminationRequested("its-own") })
	b.kubelet.cleaner.CleanUp(t.Context())
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	b.eventually("the manifest to be read", func() bool { _, known := b.kubelet.pods.ByUID("its-own"); return known })
	close(stopped)
	b.eventually("it to run again", func() bool {
		status, _ := b.kubelet.statuses.Get("its-own")
		return status.Phase == "Running" && len(status.ContainerStatuses) == 1 && status.ContainerStatuses[0].RestartCount == 1
	})
	if status, _ := b.kubelet.statuses.Get("its-own"); !status.StartTime.After(long.Time) {
		t.Errorf("it started at %v, as the one before", status.StartTime)
	}
	b.api.mu.Lock()
	b.api.refuses = nil
	b.api.mu.Unlock()
}
