package node

import (
	"maps"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// slowAPI takes a second for each request.
type slowAPI struct {
	nodeAPI
	clock *clocktesting.FakeClock
}

func (a *slowAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	a.clock.Step(time.Second)
	return a.nodeAPI.RoundTrip(r)
}

// The phases from the machine's start to a ready node are reported once, by the
// kubelet that created the Node; one that finds it there reports nothing.
func TestStartupIsToldOnce(t *testing.T) {
	started := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(started)
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Transport: &slowAPI{clock: clock}})
	if err != nil {
		t.Fatal(err)
	}
	config, runtime := testConfig(t, client, clock), &fakeRuntime{notReady: []string{"down"}}
	config.Runtime, config.Machine.Booted = runtime, started.Add(-time.Minute)
	legs := map[StartupPhase]time.Duration{}
	config.Startup = func(leg StartupPhase, took time.Duration) { legs[leg] += took }
	look := func(m *Manager, notReady ...string) {
		t.Helper()
		runtime.notReady = notReady
		if err := m.update(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m := New(config)
	clock.Step(10 * time.Second)
	look(m, "down")
	clock.Step(30 * time.Second)
	look(m)
	look(m, "down")
	look(m)
	// The Node is created with one request, and updated with one for each change.
	want := map[StartupPhase]time.Duration{
		StartupPreKubelet: time.Minute, StartupPreRegistration: 10 * time.Second, StartupRegistration: time.Second,
		StartupPostRegistration: 32 * time.Second, Startup: 103 * time.Second,
	}
	if got := statusOf(&m.Node().Status, corev1.NodeReady); got != corev1.ConditionTrue || !maps.Equal(legs, want) {
		t.Errorf("%s, %v, want %v", got, legs, want)
	}
	clear(legs)
	look(New(config))
	if len(legs) > 0 {
		t.Errorf("told by a kubelet that came back: %v", legs)
	}
}

// The watch, or who reads the node for a pod, may show it before this kubelet could register. It is
// an earlier kubelet's, with that one's labels.
func TestANodeThatIsSeenBeforeItIsRegistered(t *testing.T) {
	before := core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid", ResourceVersion: "1", Labels: map[string]string{"zone": "b"}}}
	api := &nodeAPI{node: before.DeepCopy()}
	client, err := rest.New(&rest.Config{Host: "https://127.0.0.1:1", Transport: api})
	if err != nil {
		t.Fatal(err)
	}
	m := New(testConfig(t, client, clocktesting.NewFakeClock(time.Now())))
	nodeSink{m}.Replace([]*core.Node{&before})
	for range 2 {
		if err := m.update(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if api.node.Labels["zone"] != "a" || api.node.Labels[corev1.LabelHostname] != "n" || api.patches != 2 {
		t.Errorf("%d patches, and the node has the labels %v", api.patches, api.node.Labels)
	}
}
