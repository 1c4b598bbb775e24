package extensions

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/proto/core"
)

// TestWebhookBehindAService reaches the webhook by the service's endpoints.
func TestWebhookBehindAService(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	ctx, root := t.Context(), c.Root()
	c.Namespace("hooks")
	h.on("path", func(r *admissionv1.AdmissionReview) { r.Response.Allowed = false })
	behind := func(w *admissionregistrationv1.MutatingWebhook) {
		w.ClientConfig.URL = nil
		w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "hook", Path: new("/path"), Port: new(int32(8443))}
	}
	c.register(h, false, h.webhook("service", behind))
	wants := func(what, want string) {
		t.Helper()
		status, _ := c.refusal("service")
		if status == nil || !strings.Contains(status.Message, want) {
			t.Errorf("%s: %+v", what, status)
		}
	}
	wants("no service", `service "hook" not found`)
	c.Must(root.Resource(core.Services, "hooks").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "other", Port: 80}, {Name: "https", Port: 8443}},
	}}, nil))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(8443))}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}},
	}
	c.Must(root.Resource(core.EndpointSlices, "hooks").Create(ctx, slice, nil))
	c.Until("not ready", func(context.Context) bool {
		status, _ := c.refusal("service")
		return status != nil && strings.Contains(status.Message, `no endpoints available for service "hook"`)
	})
	// Endpoints can't be on loopback, where this test is; other names can.
	port := h.Listener.Addr().(*net.TCPAddr).Port
	c.Must(root.Resource(core.Services, "hooks").Patch(ctx, "hook", types.MergePatchType,
		[]byte(`{"spec":{"type":"ExternalName","externalName":"127.0.0.1","clusterIP":null,"clusterIPs":null}}`), nil))
	c.Must(root.Resource(validatingWebhooks, "").Patch(ctx, "testwebhookbehindaservice-2", types.JSONPatchType,
		fmt.Appendf(nil, `[{"op":"replace","path":"/webhooks/0/clientConfig/service/port","value":%d}]`, port), nil))
	c.Until("ready", func(context.Context) bool {
		status, _ := c.refusal("service")
		return status != nil && status.Message == `admission webhook "service.hooks.test" denied the request without explanation`
	})
}

// TestWebhookThatCallsBack: a webhook that creates what it is called for does
// not recurse for ever, because of its timeouts, and the server stays in order.
func TestWebhookThatCallsBack(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	root := c.Root()
	var depth sync.Map
	h.raw("deep", func(_ http.ResponseWriter, r *http.Request, review *admissionv1.AdmissionReview) {
		name := review.Request.Name + "-a"
		depth.Store(name, true)
		if err := root.Resource(core.ConfigMaps, "default").Create(r.Context(), labelled(name, "deep"), nil); err != nil {
			review.Response.Allowed = false
		}
	})
	c.register(h, true, h.webhook("deep", func(w *admissionregistrationv1.MutatingWebhook) { w.TimeoutSeconds = new(int32(1)) }))
	if status, _ := c.refusal("deep"); status == nil {
		t.Error("it has no end, and is allowed")
	}
	deep := 0
	depth.Range(func(any, any) bool { deep++; return true })
	if deep < 2 {
		t.Errorf("%d calls", deep)
	}
	if status, _ := c.refusal("nobody"); status != nil {
		t.Errorf("the server answers others with %+v", status)
	}
}
