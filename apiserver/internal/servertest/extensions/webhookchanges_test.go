package extensions

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

// TestSubresourcesAreChanged: webhooks may change what is sent to a
// subresource.
func TestSubresourcesAreChanged(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	h.on("sub", patches(`[{"op":"add","path":"/metadata/annotations","value":{"by":"hook"}}]`))
	c.register(h, true, h.webhook("sub"))
	c.Created("default", servertest.Pod("web"))
	for _, sent := range []string{`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web","labels":{"hook":"sub"}}}`,
		`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"web","labels":{"hook":"sub"}},"target":{"kind":"Node","name":"n1"}}`} {
		way := "/eviction"
		if strings.Contains(sent, "Binding") {
			way = "/binding"
		}
		answer, text := c.Ask(http.MethodPost, core.Pods.Path("default", "web")+way+"?dryRun=All", http.Header{"Content-Type": {"application/json"}}, []byte(sent))
		if answer.StatusCode != http.StatusCreated || len(h.asked("sub")) != 1 {
			t.Errorf("%s: %d %s", way, answer.StatusCode, text)
		}
	}
}

// TestReinvocation: a webhook that asks for it is called once more, and only
// once, if a later one changed the object.
func TestReinvocation(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	again := func(w *admissionregistrationv1.MutatingWebhook) {
		w.ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
		w.ObjectSelector.MatchLabels = map[string]string{"hook": "order"}
	}
	never := func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector.MatchLabels = map[string]string{"hook": "order"}
	}
	grows := func(key string) func(*admissionv1.AdmissionReview) {
		return func(r *admissionv1.AdmissionReview) {
			var obj core.ConfigMap
			_ = json.Unmarshal(r.Request.Object.Raw, &obj)
			patches(fmt.Sprintf(`[{"op":"add","path":"/data/%s","value":%q}]`, key, obj.Data[key]+"x"))(r)
		}
	}
	for _, name := range []string{"first", "second", "third"} {
		h.on(name, grows(name))
	}
	c.register(h, true, h.webhook("first", again), h.webhook("second", never), h.webhook("third", again), h.webhook("last", again))
	_, stored := c.refusal("order")
	if stored == nil {
		t.Fatal("refused")
	}
	// The third's second call follows from the first's second change; the last
	// changes nothing and sees all of it again.
	if stored.Data["first"] != "xx" || stored.Data["second"] != "x" || stored.Data["third"] != "xx" {
		t.Errorf("%v", stored.Data)
	}
	if n := len(h.asked("last")); n != 2 {
		t.Errorf("the last was asked %d times", n)
	}
}

// TestChangesAreDefaultedAndAdmitted: a pod changed by a webhook is defaulted,
// and passes the built-in plugins once more.
func TestChangesAreDefaultedAndAdmitted(t *testing.T) {
	t.Parallel()
	c, h := start(t), serveHooks(t)
	h.on("pod", patches(`[{"op":"add","path":"/spec/initContainers","value":[{"name":"added","image":"i"}]}]`))
	c.register(h, true, h.webhook("pod"))
	p := servertest.Pod("web")
	p.Labels = map[string]string{"hook": "pod"}
	stored := c.Created("default", p)
	if len(stored.Spec.InitContainers) != 1 {
		t.Fatalf("%+v", stored.Spec)
	}
	added := stored.Spec.InitContainers[0]
	if added.TerminationMessagePolicy == "" || added.ImagePullPolicy == "" {
		t.Errorf("not defaulted: %+v", added)
	}
	if !slices.ContainsFunc(added.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount"
	}) {
		t.Errorf("the service account's plugin did not see it: %+v", added.VolumeMounts)
	}
}
