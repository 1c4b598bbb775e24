package kubelet

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/podworker"
	"kctl/kubelet/internal/simulated"
	"kctl/proto/core"
)

// A static pod whose manifest is moved away and put back, which is how people
// restart one, starts over once the old one has ended, however soon the file
// comes back: under the same UID, with nothing left of the old one. So does a
// pod with another name and the same UID. The API may be told of the old one's
// end in time, or not. What always restarts counts this as a restart, as upstream's
// kubelet does.
func TestAManifestThatComesBack(t *testing.T) {
	t.Run("ended", func(t *testing.T) { manifestComesBack(t, corev1.RestartPolicyNever, nil) })
	t.Run("restarted", func(t *testing.T) { manifestComesBack(t, corev1.RestartPolicyAlways, nil) })
	t.Run("with a container that does not restart", func(t *testing.T) {
		manifestComesBack(t, corev1.RestartPolicyAlways, nil, `{"name":"once","image":"img","restartPolicy":"Never"}`)
	})
	t.Run("not told", func(t *testing.T) {
		manifestComesBack(t, corev1.RestartPolicyNever, func(r *http.Request, body []byte) bool {
			return strings.HasSuffix(r.URL.Path, "/status") && (bytes.Contains(body, []byte(`"phase":"Failed"`)) || bytes.Contains(body, []byte(`"phase":"Succeeded"`)))
		})
	})
}

// stopWaitsFor has no container stopped until the channel is closed.
func stopWaitsFor(stopped <-chan struct{}) func(*simulated.Options) {
	return func(o *simulated.Options) {
		o.Fault = func(ctx context.Context, method string, call func() error) error {
			if method == "StopContainer" {
				select {
				case <-stopped:
				case <-ctx.Done():
				}
			}
			return call()
		}
	}
}

func manifestComesBack(t *testing.T, policy corev1.RestartPolicy, refuses func(*http.Request, []byte) bool, others ...string) {
	stopped := make(chan struct{})
	var path string
	b, _ := newHollowBed(t, func(c *config.Config) {
		c.Sources.StaticPodPath = t.TempDir()
		path = filepath.Join(c.Sources.StaticPodPath, "static.json")
	}, stopWaitsFor(stopped))
	b.api.mu.Lock()
	b.api.refuses = refuses
	b.api.mu.Unlock()
	manifest := strings.Replace(staticManifest, `"name":"static"`, `"name":"static","uid":"its-own"`, 1)
	manifest = strings.Replace(manifest, `"dnsPolicy"`, `"restartPolicy":"`+string(policy)+`","dnsPolicy"`, 1)
	for _, other := range others {
		manifest = strings.Replace(manifest, `"containers":[`, `"containers":[`+other+",", 1)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(manifest)
	before := b.waitPhase("static-node-1", corev1.PodRunning)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.eventually("the pod's end to be asked for", func() bool { return b.kubelet.workers.TerminationRequested("its-own") })
	b.kubelet.cleaner.CleanUp(t.Context())
	if mirror := b.api.pod("static-node-1"); mirror == nil || mirror.UID != before.UID {
		t.Error("the mirror of a pod that still ends is gone")
	}
	write(manifest)
	b.eventually("the manifest to be read", func() bool { _, known := b.kubelet.pods.ByUID("its-own"); return known })
	close(stopped)
	runs := func(name string, before *core.Pod, restarts int32) *core.Pod {
		t.Helper()
		b.api.wait(name+" to run anew", func() bool {
			pod := b.api.pod(name)
			return pod != nil && pod.UID != before.UID && pod.Status.Phase == corev1.PodRunning &&
				!slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running == nil })
		})
		pod := b.api.pod(name)
		for i, s := range pod.Status.ContainerStatuses {
			if s.RestartCount != restarts || (s.LastTerminationState.Terminated != nil) != (restarts > 0) ||
				s.ContainerID == before.Status.ContainerStatuses[i].ContainerID {
				t.Errorf("%s: %+v, was %+v", name, s, before.Status.ContainerStatuses[i])
			}
		}
		return pod
	}
	restarts := int32(0)
	if policy == corev1.RestartPolicyAlways && len(others) == 0 {
		restarts = 1
	}
	again := runs("static-node-1", before, restarts)

	write(strings.Replace(manifest, `"name":"static"`, `"name":"renamed"`, 1))
	runs("renamed-node-1", again, 0)
	b.api.wait("the mirror of the old name to go", func() bool { return b.api.pod("static-node-1") == nil })
}

// The pod of a manifest that changed starts when the old one has ended. Until then the API
// shows the old one.
func TestAManifestThatChanges(t *testing.T) {
	stopped := make(chan struct{})
	var path string
	b, _ := newHollowBed(t, func(c *config.Config) {
		c.Sources.StaticPodPath = t.TempDir()
		path = filepath.Join(c.Sources.StaticPodPath, "static.json")
	}, stopWaitsFor(stopped))
	if err := os.WriteFile(path, []byte(staticManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	before := b.waitPhase("static-node-1", corev1.PodRunning)
	changed := strings.Replace(staticManifest, `"dnsPolicy"`, `"restartPolicy":"Never","dnsPolicy"`, 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	b.eventually("the next pod to wait", func() bool {
		pods := b.kubelet.pods.Pods()
		return len(pods) == 1 && pods[0].Spec.RestartPolicy == corev1.RestartPolicyNever && b.kubelet.workers.Phase(pods[0].UID) == podworker.Waiting
	})
	b.kubelet.cleaner.CleanUp(t.Context())
	b.kubelet.mirrors.Wait()
	if mirror := b.api.pod("static-node-1"); mirror == nil || mirror.UID != before.UID {
		t.Error("the mirror of a pod that still ends is gone")
	}
	close(stopped)
	b.api.wait("the next pod to run", func() bool {
		pod := b.api.pod("static-node-1")
		return pod != nil && pod.UID != before.UID && pod.Status.Phase == corev1.PodRunning
	})
}
