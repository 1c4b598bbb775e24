package operation

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/relay"
	"kctl/proto/rest"
)

// created are the hops of a pod that is created, when the watch has it, too.
var created = []relay.Hop{
	relay.ServerReceived, relay.ServerAuthenticated, relay.ServerAuthorized, relay.ServerDecoded, relay.ServerMutated,
	relay.ServerValidated, relay.ServerAdmitted, relay.ServerStored, relay.ServerWatched,
}

// traced asks for a trace.
func traced(t *testing.T, client *rest.Client, name string) (relay.Trace, error) {
	var found relay.Trace
	err := client.Do(t.Context(), http.MethodGet, relay.Path("shop", name), nil, &found)
	return found, err
}

// awaitHops waits until a pod's trace has exactly these hops, and returns it.
func awaitHops(t *testing.T, c *cluster, pod *core.Pod, want ...relay.Hop) relay.Trace {
	t.Helper()
	var found relay.Trace
	c.Until("the stamps of "+pod.Name, func(context.Context) bool {
		var err error
		found, err = traced(t, c.Root(), pod.Name)
		hops := make([]relay.Hop, 0, len(found.Stamps))
		for _, s := range found.Stamps {
			hops = append(hops, s.Hop)
		}
		slices.Sort(hops)
		return err == nil && found.UID == string(pod.UID) && slices.Equal(hops, slices.Sorted(slices.Values(want)))
	})
	return found
}

func stampsOf(at time.Time, hops ...relay.Hop) rest.Option {
	var stamps []relay.Stamp
	for _, hop := range hops {
		stamps = append(stamps, relay.Stamp{Hop: hop, At: at})
	}
	return rest.Header(relay.Header, relay.Encode(stamps))
}

func TestRelay(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	c.AwaitServiceAccount("shop")
	generated := servertest.Pod("")
	generated.GenerateName = "web-"
	web := c.Created("shop", generated, stampsOf(time.Now().Add(-time.Second), relay.ClientStarted))
	bad := c.Created("shop", servertest.Pod("other"), rest.Header(relay.Header, "not a stamp"))

	awaitHops(t, c, web, append(created, relay.ClientStarted)...)
	awaitHops(t, c, bad, created...)
	if _, err := traced(t, c.Token("nobody"), web.Name); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot get resource "pods"`) {
		t.Errorf("jane sees the trace: %v", err)
	}

	c.Must(c.Root().Resource(core.Nodes, "").Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, nil))
	bind(t, c, web.Name, stampsOf(time.Now(), relay.SchedulerAssumed))
	way := append(created, relay.ClientStarted, relay.SchedulerAssumed, relay.ServerBound)
	awaitHops(t, c, web, way...)

	node := c.Certificate(c.CA, pki.Subject{CommonName: "system:node:n1", Organization: []string{core.GroupNodes}, Client: true})
	pods := c.Root().Resource(core.Pods, "shop")
	c.Must(pods.Delete(t.Context(), web.Name, nil, nil))
	c.Until("the node may write the status", func(context.Context) bool {
		return node.Resource(core.Pods, "shop").Patch(t.Context(), web.Name, types.MergePatchType, []byte(`{"status":{"message":"over"}}`), nil,
			rest.Sub("status"), stampsOf(time.Now(), relay.KubeletStopped)) == nil
	})
	awaitHops(t, c, web, append(way, relay.ServerDeleting, relay.KubeletStopped)...)
	c.Must(pods.Delete(t.Context(), web.Name, &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, nil))
	awaitHops(t, c, web, append(way, relay.ServerDeleting, relay.KubeletStopped, relay.ServerRemoved)...)
}

func bind(t *testing.T, c *cluster, pod string, options ...rest.Option) {
	t.Helper()
	binding := &core.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: core.ObjectReference{Kind: "Node", Name: "n1"}}
	c.Must(c.Root().Do(t.Context(), http.MethodPost, core.Pods.Path("shop", pod)+"/binding", binding, nil, options...))
}

// Server-side apply creates pods, too, and changes them later, of which the trace says nothing.
func TestRelayOfApply(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	c.AwaitServiceAccount("shop")
	apply := func(image string, hops ...relay.Hop) *core.Pod {
		pod := servertest.Pod("web")
		pod.APIVersion, pod.Kind, pod.Spec.Containers[0].Image = "v1", "Pod", image
		body, err := json.Marshal(pod)
		c.Must(err)
		var out core.Pod
		c.Must(c.Root().Resource(core.Pods, "shop").Patch(t.Context(), "web", types.ApplyPatchType, body, &out,
			rest.Query("fieldManager", "argocd"), stampsOf(time.Now(), hops...)))
		return &out
	}
	web := apply("first", relay.ClientStarted)
	before := awaitHops(t, c, web, append(created, relay.ClientStarted)...)
	apply("second", relay.ClientSent)
	if after, err := traced(t, c.Root(), "web"); err != nil || !slices.Equal(after.Stamps, before.Stamps) {
		t.Errorf("a change has changed the trace: %v (%v), before %v", after, err, before)
	}
}

// Whoever may create a pod, or write the status of others', can tell nothing of what the programs
// do with them.
func TestRelayOfAForger(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Namespace("shop")
	c.AwaitServiceAccount("shop")
	web := c.Created("shop", servertest.Pod("web"), rest.Header(relay.Header, "kubelet.ready=1,scheduler.binding=2,apiserver.stored=3,kctl.sent=4"))
	found := awaitHops(t, c, web, created...)
	if found.Stamps[0].Hop != relay.ServerReceived || time.Since(found.Stamps[0].At) > time.Hour {
		t.Errorf("begins with %v", found.Stamps[0])
	}

	c.Must(c.Root().Resource(core.Nodes, "").Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, nil))
	bind(t, c, web.Name, stampsOf(time.Now(), relay.SchedulerBinding, relay.KubeletReady))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "status-writer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"},
	}}}
	c.Must(c.Root().Resource(core.ClusterRoles, "").Create(t.Context(), role, nil))
	c.Bind("status-writers", role.Name, rbacv1.Subject{Kind: "User", Name: "jane"})
	restarts := relay.EncodeRestarts([]relay.Restart{{Container: "web", Number: 1, Cause: relay.CauseLiveness, ExitCode: 137, Ended: time.Now()}})
	status := func(client *rest.Client, phase corev1.PodPhase, hop relay.Hop) error {
		return client.Resource(core.Pods, "shop").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{"phase":"`+string(phase)+`"}}`), nil,
			rest.Sub("status"), stampsOf(time.Now(), hop), rest.Header(relay.RestartHeader, restarts))
	}
	c.Until("jane may write the status", func(context.Context) bool {
		return status(c.Token("nobody"), corev1.PodPending, relay.KubeletReady) == nil
	})
	if found, err := traced(t, c.Root(), "web"); err != nil || len(found.Restarts) > 0 {
		t.Errorf("jane has made restarts up: %+v (%v)", found.Restarts, err)
	}
	node := c.Certificate(c.CA, pki.Subject{CommonName: "system:node:n1", Organization: []string{core.GroupNodes}, Client: true})
	c.Until("the node may write the status", func(context.Context) bool { return status(node, corev1.PodRunning, relay.KubeletSeen) == nil })
	found = awaitHops(t, c, web, append(created, relay.SchedulerBinding, relay.ServerBound, relay.KubeletSeen, relay.ServerStatusRunning)...)
	if len(found.Restarts) != 1 || found.Restarts[0].Cause != relay.CauseLiveness || found.Restarts[0].Ended.IsZero() {
		t.Errorf("what the node has told of restarts: %+v", found.Restarts)
	}
}
