package kubelet

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/kubelet/internal/runtimestate"
	"kctl/proto/core"
)

// A runtime that can't list its pods at first is asked until it can: a manifest with the UID of a
// pod that runs for the API would end that pod.
func TestPodsOfTheAPIAreKnownHoweverOftenTheRuntimeFails(t *testing.T) {
	b, _ := newHollowBed(t, nil)
	b.create(hollowPod("web", nil))
	uid := b.waitPhase("web", corev1.PodRunning).UID
	fails := 2
	uids, err := b.kubelet.sources.apiPods(t.Context(), func(ctx context.Context) ([]*runtimestate.RunningPod, error) {
		if fails--; fails >= 0 {
			return nil, errors.New("the runtime is confused")
		}
		return b.kubelet.machinery.state.Pods(ctx)
	})
	if got := slices.Collect(maps.Keys(uids)); err != nil || !slices.Equal(got, []types.UID{uid}) {
		t.Errorf("%v, %v, want %s", got, err, uid)
	}
	ended, end := context.WithCancel(t.Context())
	if _, err := b.kubelet.sources.apiPods(ended, func(context.Context) ([]*runtimestate.RunningPod, error) {
		end()
		return nil, errors.New("it ends first")
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("a kubelet that ends: %v", err)
	}
}

// What an administrator has given to a node is only in the API. A kubelet that judged pods before it
// has read that would end those that need it, whenever it starts.
func TestPodsWaitForTheNode(t *testing.T) {
	b, runtime := newHollowBed(t, nil)
	b.api.wait("the node", func() bool { return b.api.object("/api/v1/nodes/node-1", &core.Node{}) })
	b.patchNode(`{"metadata":{"labels":{"disk":"ssd"}}}`)
	web := hollowPod("web", nil)
	web.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	b.create(web)
	before := b.waitPhase("web", corev1.PodRunning).Status.ContainerStatuses[0].ContainerID
	b.stop()

	var known, early atomic.Bool
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	b.api.around = func(r *http.Request, serve func()) {
		if r.URL.Path == core.Pods.Path("", "") && !known.Load() {
			early.Store(true)
		}
		if !strings.HasPrefix(r.URL.Path, "/api/v1/nodes") {
			if r.URL.Path == core.RuntimeClasses.Path("", "") && r.URL.Query().Get("watch") != "" {
				begin() // what needs no node has had the time to list all that it lists
			}
			serve()
			return
		}
		select {
		case <-begun:
		case <-r.Context().Done():
		}
		serve()
		known.Store(known.Load() || r.Method == http.MethodGet)
	}
	b.startHollow(runtime, clock.RealClock{})
	b.create(hollowPod("later", nil))
	b.waitPhase("later", corev1.PodRunning)
	if early.Load() {
		t.Error("the pods were asked for before the node was known")
	}
	if status := b.api.pod("web").Status; status.Phase != corev1.PodRunning || status.ContainerStatuses[0].ContainerID != before {
		t.Errorf("the pod that ran is %s, %s", status.Phase, status.Message)
	}
}

// A scheduler may know that a node has got a label, or lost a taint, before the kubelet does, whose
// watch of its node may be slow.
func TestPodsForANodeThatHasJustChanged(t *testing.T) {
	b, runtime := newHollowBed(t, nil)
	b.api.wait("the node", func() bool { return b.api.object("/api/v1/nodes/node-1", &core.Node{}) })
	b.patchNode(`{"spec":{"taints":[{"key":"broken","effect":"NoExecute"}]}}`)
	b.stop()
	reports := make(chan struct{})
	report := sync.OnceFunc(func() { close(reports) })
	// From neither its watch nor its reports the kubelet hears what the node has become.
	b.api.around = func(r *http.Request, serve func()) {
		if strings.HasPrefix(r.URL.Path, "/api/v1/nodes") && r.URL.Query().Get("watch") != "" {
			<-r.Context().Done()
			return
		}
		serve()
	}
	b.api.refuses = func(r *http.Request, _ []byte) bool {
		reporting := strings.HasSuffix(r.URL.Path, "/nodes/node-1/status")
		if reporting {
			report()
		}
		return reporting
	}
	b.startHollow(runtime, clock.RealClock{})
	<-reports // it has read the node
	runs := func(pod *core.Pod) {
		t.Helper()
		b.create(pod)
		b.api.wait(pod.Name+" to be judged", func() bool { return b.phase(pod.Name) != corev1.PodPending && b.phase(pod.Name) != "" })
		if status := b.api.pod(pod.Name).Status; status.Phase != corev1.PodRunning {
			t.Errorf("%s: %s: %s", pod.Name, status.Phase, status.Message)
		}
	}
	b.patchNode(`{"spec":{"taints":null}}`)
	runs(hollowPod("after-the-taint", nil))
	b.patchNode(`{"metadata":{"labels":{"disk":"ssd"}}}`)
	fast := hollowPod("for-the-label", nil)
	fast.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	runs(fast)
}

// Many pods that come together, as when a kubelet starts, cost one look at the node.
func TestTheNodeIsReadOnceForManyPods(t *testing.T) {
	b, runtime := newHollowBed(t, nil)
	b.api.wait("the node", func() bool { return b.api.object("/api/v1/nodes/node-1", &core.Node{}) })
	b.stop()
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		pod := hollowPod(name, nil)
		pod.Spec.NodeSelector = map[string]string{"no": "such"}
		b.create(pod)
	}
	var reads atomic.Int32
	b.api.around = func(r *http.Request, serve func()) {
		if r.Method == http.MethodGet && r.URL.Path == "/api/v1/nodes/node-1" {
			reads.Add(1)
		}
		serve()
	}
	b.startHollow(runtime, clock.RealClock{})
	for _, name := range names {
		if reason := b.waitPhase(name, corev1.PodFailed).Status.Reason; reason != "NodeAffinity" {
			t.Errorf("%s ended for %s", name, reason)
		}
	}
	if n := reads.Load(); n > 2 { // once as the kubelet registers
		t.Errorf("the node was read %d times", n)
	}
}

func (b *bed) patchNode(patch string) {
	b.t.Helper()
	if err := b.client.Resource(core.Nodes, "").Patch(b.t.Context(), "node-1", types.MergePatchType, []byte(patch), nil); err != nil {
		b.t.Fatal(err)
	}
}
