package extensions

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/eventually"
	"kctl/proto/rest"
)

// TestWhatTheServerGives: validating webhooks see what the server itself is
// about to set: a service's addresses and ports, the grace period of a pod's
// deletion.
func TestWhatTheServerGives(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	ctx, root := t.Context(), c.Root()
	c.askAll(h)
	c.Must(root.Resource(core.Services, "shop").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
	}, nil))
	var service corev1.Service
	if err := json.Unmarshal(h.last(t, "service").Object.Raw, &service); err != nil {
		t.Fatal(err)
	}
	if len(service.Spec.ClusterIPs) != 1 || service.Spec.ClusterIPs[0] != service.Spec.ClusterIP || service.Spec.Ports[0].NodePort == 0 ||
		len(service.Spec.IPFamilies) != 1 || service.Spec.IPFamilyPolicy == nil {
		t.Errorf("service: %+v", service.Spec)
	}
	placed := servertest.Pod("web")
	placed.Spec.NodeName = "n1"
	c.Must(root.Resource(core.Pods, "shop").Create(ctx, placed, nil))
	h.last(t, "pod")
	grace := func(what string, want int64) {
		t.Helper()
		var options metav1.DeleteOptions
		if r := h.last(t, what); r.Operation != "DELETE" || json.Unmarshal(r.Options.Raw, &options) != nil || ptr.Deref(options.GracePeriodSeconds, -9) != want {
			t.Errorf("%s: %+v %s", what, r, r.Options.Raw)
		}
	}
	remove := func(name string, o *metav1.DeleteOptions) {
		t.Helper()
		c.Must(root.Resource(core.Pods, "shop").Delete(ctx, name, o, nil))
	}
	remove("web", nil)
	grace("deletion of a pod on a node", 30)
	eventually.Holds(t, "the cache to have the deletion", func() bool { // with an older state, it would be asked again
		var pod core.Pod
		c.Must(root.Resource(core.Pods, "shop").Get(ctx, "web", &pod, rest.Query("resourceVersion", "0")))
		return pod.DeletionTimestamp != nil
	})
	remove("web", nil)
	remove("web", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(30))})
	if asked := h.asked("all"); len(asked) > 0 {
		t.Errorf("asked again about a pod that is being deleted: %+v", asked[0])
	}
	remove("web", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(-3))})
	grace("deletion of a pod in less time", 1)
	c.Must(root.Resource(core.Pods, "shop").Create(ctx, servertest.Pod("nowhere"), nil))
	h.last(t, "another pod")
	remove("nowhere", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(10))})
	grace("deletion of a pod without a node", 0)
}
