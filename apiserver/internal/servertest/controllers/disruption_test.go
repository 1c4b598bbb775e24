package controllers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

var budgets = core.Resource{Group: "policy", Version: "v1", Name: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true}

func (c *cluster) budget(name string, spec policyv1.PodDisruptionBudgetSpec) {
	c.T.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	c.Must(c.Root().Resource(budgets, "default").Create(c.T.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, nil))
}

// allows waits until a budget's status has these figures.
func (c *cluster) allows(name string, healthy, desired, expected, allowed int32) {
	c.T.Helper()
	c.Until(fmt.Sprintf("budget %s: %d of %d healthy, %d to go", name, healthy, expected, allowed), func(ctx context.Context) bool {
		var b policyv1.PodDisruptionBudget
		c.Must(c.Root().Resource(budgets, "default").Get(ctx, name, &b))
		s := b.Status
		return s.CurrentHealthy == healthy && s.DesiredHealthy == desired && s.ExpectedPods == expected && s.DisruptionsAllowed == allowed &&
			s.ObservedGeneration == b.Generation
	})
}

func (c *cluster) is(pod, ready string) {
	c.T.Helper()
	answer, text := c.Request(http.MethodPatch, "/api/v1/namespaces/default/pods/"+pod+"/status", map[string]string{
		"Authorization": "Bearer master", "Content-Type": "application/merge-patch+json",
	}, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"`+ready+`"}]}}`)
	if answer.StatusCode != http.StatusOK {
		c.T.Fatal(text)
	}
}

func (c *cluster) evicted(pod, query string, code int, want string) {
	c.T.Helper()
	header := servertest.AsMaster()
	header["Content-Type"] = "application/json"
	answer, text := c.Request(http.MethodPost, "/api/v1/namespaces/default/pods/"+pod+"/eviction"+query, header,
		`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"`+pod+`","namespace":"default"}}`)
	if answer.StatusCode != code || !strings.Contains(text, want) {
		c.T.Errorf("%s: %d %s\n want: %d %s", pod, answer.StatusCode, text, code, want)
	}
}

// TestDisruptionBudget evicts the pods of a replication controller within their
// budget; the messages are upstream 1.37's.
func TestDisruptionBudget(t *testing.T) {
	t.Parallel()
	c := start(t)
	controllers := core.Resource{Version: "v1", Name: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true}
	labels := map[string]string{"app": "web"}
	owner := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ReplicationControllerSpec{
		Replicas: new(int32(4)), Selector: labels,
		Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: servertest.Pod("x").Spec},
	}}
	c.Must(c.Root().Resource(controllers, "default").Create(t.Context(), owner, owner))
	for _, name := range []string{"a", "b", "c"} {
		p := servertest.Pod(name)
		p.Labels, p.Finalizers = labels, []string{"example.com/takes-its-time"}
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, controllers.GVK())}
		c.Created("default", p)
		c.is(name, "True")
	}
	c.budget("web", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromString("50%"))})
	c.allows("web", 3, 2, 4, 1)

	c.evicted("a", "?dryRun=All", 201, `"Success"`)
	c.evicted("a", "", 201, `"Success"`)
	c.allows("web", 2, 2, 4, 0)
	c.evicted("a", "", 201, `"Success"`) // it may always be evicted
	c.evicted("b", "", 429, "The disruption budget web needs 2 healthy pods and has 2 currently")
	c.evicted("b", "", 429, `"reason":"DisruptionBudget"`)
	c.evicted("b", "", 429, "Cannot evict pod as it would violate the pod's disruption budget.")

	c.is("b", "False")
	c.allows("web", 1, 2, 4, 0)
	c.evicted("b", "", 429, "needs 2 healthy pods and has 1 currently") // IfHealthyBudget
	answer, text := c.Request(http.MethodPatch, "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web", map[string]string{
		"Authorization": "Bearer master", "Content-Type": "application/merge-patch+json",
	}, `{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`)
	if answer.StatusCode != http.StatusOK {
		t.Fatal(text)
	}
	c.evicted("b", "", 201, `"Success"`)

	c.budget("second", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))})
	c.evicted("c", "", 500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
	c.evicted("none", "", 404, `pods \"none\" not found`)
}
