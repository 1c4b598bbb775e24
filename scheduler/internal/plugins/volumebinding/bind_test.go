package volumebinding

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kctl/proto/rest"
	"kctl/scheduler/framework"
	"kctl/scheduler/internal/fixture"
	"kctl/scheduler/internal/volumes"
)

// TestPreBind plays the API server and the volume controller: what the plugin
// writes is answered by claims that get their volumes, or lose their node.
func TestPreBind(t *testing.T) {
	local, made := class("local", "kubernetes.io/no-provisioner", true), class("made", "csi.example.com", true)
	selected := func(node string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{volumes.SelectedNode: node} }
	}
	at := func(version string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = version }
	}
	for name, test := range map[string]struct {
		claims  []string
		answers map[string][]*corev1.PersistentVolumeClaim // by the object that is written
		code    int
		wrong   string
	}{
		"a volume that is there": {claims: []string{"a"}, answers: map[string][]*corev1.PersistentVolumeClaim{"v": {claim("a", "local", "1Gi", boundTo("v"))}}},
		"a volume that is made": {claims: []string{"b"}, answers: map[string][]*corev1.PersistentVolumeClaim{
			"b": {claim("b", "made", "1Gi", selected("n")), claim("b", "made", "1Gi", boundTo("w"))},
		}},
		"both": {claims: []string{"a", "b"}, answers: map[string][]*corev1.PersistentVolumeClaim{
			"v": {claim("a", "local", "1Gi", boundTo("v"))}, "b": {claim("b", "made", "1Gi", boundTo("w"))},
		}},
		"no volume can be made here": {claims: []string{"b"}, answers: map[string][]*corev1.PersistentVolumeClaim{
			"b": {claim("b", "made", "1Gi", selected("m"))},
		}, wrong: `no volume for persistentvolumeclaim "b" could be provisioned on node n`},
		"a driver that refuses before anybody looks": {claims: []string{"b"}, answers: map[string][]*corev1.PersistentVolumeClaim{
			"b": {claim("b", "made", "1Gi", selected("n"), at("8")), claim("b", "made", "1Gi", at("9"))},
		}, wrong: `no volume for persistentvolumeclaim "b" could be provisioned on node n`},
		"somebody else was quicker": {claims: []string{"a"}, code: http.StatusConflict, wrong: "persistent volume v for claim a"},
	} {
		t.Run(name, func(t *testing.T) {
			known := volumes.NewKnown(local, made, claim("a", "local", "1Gi"), claim("b", "made", "1Gi"), volume("v", "local", "1Gi", "n"))
			var mu sync.Mutex
			var sent []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				object := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, r.Method+" "+r.URL.Path+" "+string(body))
				for _, now := range test.answers[object] {
					known.Set(now)
				}
				w.Header().Set("Content-Type", "application/json")
				if test.code != 0 {
					w.WriteHeader(test.code)
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "reason": "Conflict",
					"metadata": map[string]string{"resourceVersion": "8"}})
			}))
			defer server.Close()
			client, err := rest.New(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			plugin, state := New(known, client, DefaultOptions), framework.NewCycleState(nil)
			state.Nodes = []*framework.NodeInfo{fixture.NodeInfo(fixture.Node("n"))}
			pod := framework.NewPodInfo(using(test.claims...))
			if _, status := plugin.PreFilter(t.Context(), state, pod); !status.IsSuccess() {
				t.Fatal(status.Message())
			}
			if status := plugin.Reserve(t.Context(), state, pod, "n"); !status.IsSuccess() {
				t.Fatal(status.Message())
			}
			status := plugin.PreBind(t.Context(), state, pod, "n")
			mu.Lock()
			defer mu.Unlock()
			if status.IsSuccess() != (test.wrong == "") || !strings.Contains(status.Message(), test.wrong) {
				t.Errorf("%q, want %q; sent %q", status.Message(), test.wrong, sent)
			}
			all := strings.Join(sent, "\n")
			if _, writes := test.answers["v"]; writes &&
				(!strings.Contains(all,
					`PATCH /api/v1/persistentvolumes/v {"metadata":{"annotations":{"pv.kubernetes.io/bound-by-controller":"yes"},"resourceVersion":"8"}`) ||
					!strings.Contains(all, `"name":"a","uid":"claim-a"`)) {
				t.Errorf("sent %s", all)
			}
			if _, writes := test.answers["b"]; writes &&
				!strings.Contains(all,
					`PATCH /api/v1/namespaces/default/persistentvolumeclaims/b {"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"n"},"resourceVersion":"7"}}`) {
				t.Errorf("sent %s", all)
			}
		})
	}
}

// The plugin waits no longer than its timeout.
func TestNobodyAnswers(t *testing.T) {
	waits := claim("a", "local", "1Gi")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := New(volumes.NewKnown(waits), nil, DefaultOptions).await(ctx, &claims{waiting: []*corev1.PersistentVolumeClaim{waits}}, "n")
	if err == nil || !strings.Contains(err.Error(), "claims without their volumes: 1") {
		t.Error(err)
	}
	err = New(volumes.NewKnown(), nil, DefaultOptions).await(t.Context(), &claims{waiting: []*corev1.PersistentVolumeClaim{waits}}, "n")
	if err == nil || !strings.Contains(err.Error(), "no longer exists") {
		t.Error(err)
	}
}

// Pods with claims wait a little for the volume caches to fill, and only once.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := New(volumes.New(clock.RealClock{}, func(framework.ClusterEvent) {}), nil, DefaultOptions)
		began := time.Now()
		for range 3 {
			_, status := plugin.PreFilter(t.Context(), framework.NewCycleState(nil), framework.NewPodInfo(using("a")))
			if status.Code() != framework.Error {
				t.Errorf("%v %q", status.Code(), status.Message())
			}
		}
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}
