package extensions

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/pki"
)

var (
	validatingWebhooks = core.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Name: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration",
	}
	mutatingWebhooks = core.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Name: "mutatingwebhookconfigurations", Kind: "MutatingWebhookConfiguration",
	}
)

// hooks is a server of webhooks, each at a path of its own.
type hooks struct {
	*httptest.Server
	ca *pki.Pair

	mu       sync.Mutex
	answers  map[string]func(w http.ResponseWriter, r *http.Request, review *admissionv1.AdmissionReview)
	requests map[string][]*admissionv1.AdmissionRequest
}

// serveHooks serves until the test ends. Its certificate is for 127.0.0.1 and
// for the service "hook" in the namespace "hooks".
func serveHooks(t *testing.T) *hooks {
	t.Helper()
	ca, err := pki.NewCA("hooks", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Subject{
		CommonName: "hook", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"hook.hooks.svc"}, Server: true,
	}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	h := &hooks{
		ca:       ca,
		answers:  map[string]func(http.ResponseWriter, *http.Request, *admissionv1.AdmissionReview){},
		requests: map[string][]*admissionv1.AdmissionRequest{},
	}
	h.Server = httptest.NewUnstartedServer(h)
	h.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := strings.Trim(r.URL.Path, "/")
	h.mu.Lock()
	h.requests[name] = append(h.requests[name], review.Request)
	answer := h.answers[name]
	h.mu.Unlock()
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if answer != nil {
		answer(w, r, &review)
		if review.Response == nil && review.Request == nil {
			return // it has written the answer itself
		}
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&review)
}

// on sets a webhook's answer: change gets one that allows.
func (h *hooks) on(name string, change func(review *admissionv1.AdmissionReview)) {
	h.raw(name, func(_ http.ResponseWriter, _ *http.Request, review *admissionv1.AdmissionReview) { change(review) })
}

func (h *hooks) raw(name string, answer func(w http.ResponseWriter, r *http.Request, review *admissionv1.AdmissionReview)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[name] = answer
}

// asked returns the requests to a webhook since the last call.
func (h *hooks) asked(name string) []*admissionv1.AdmissionRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := h.requests[name]
	delete(h.requests, name)
	return asked
}

// webhook is a webhook for every object with the label hook=name.
func (h *hooks) webhook(name string, change ...func(w *admissionregistrationv1.MutatingWebhook)) admissionregistrationv1.MutatingWebhook {
	w := admissionregistrationv1.MutatingWebhook{
		Name:         name + ".hooks.test",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(h.URL + "/" + name), CABundle: h.ca.Cert},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"*"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
		}},
		ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"hook": name}},
		SideEffects:    new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

func asValidating(w admissionregistrationv1.MutatingWebhook) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
		AdmissionReviewVersions: w.AdmissionReviewVersions, FailurePolicy: w.FailurePolicy, TimeoutSeconds: w.TimeoutSeconds,
		MatchConditions: w.MatchConditions, NamespaceSelector: w.NamespaceSelector,
	}
}

// register stores webhooks and waits until they are used.
func (c *cluster) register(h *hooks, mutating bool, webhooks ...admissionregistrationv1.MutatingWebhook) {
	c.T.Helper()
	ready := "ready-" + fmt.Sprint(mutating) + fmt.Sprint(len(webhooks))
	h.on(ready, func(r *admissionv1.AdmissionReview) { r.Response.Allowed = false })
	webhooks = append(webhooks, h.webhook(ready))
	meta := metav1.ObjectMeta{Name: strings.ToLower(strings.ReplaceAll(c.T.Name(), "/", "-")) + "-" + fmt.Sprint(len(webhooks))}
	if mutating {
		c.Must(c.Root().Resource(mutatingWebhooks, "").Create(c.T.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: webhooks,
		}, nil))
	} else {
		validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
		for _, w := range webhooks {
			validating.Webhooks = append(validating.Webhooks, asValidating(w))
		}
		c.Must(c.Root().Resource(validatingWebhooks, "").Create(c.T.Context(), validating, nil))
	}
	c.Until("webhooks count", func(ctx context.Context) bool {
		err := c.Root().Resource(core.ConfigMaps, "default").Create(ctx, labelled("ready", ready), nil)
		return err != nil && strings.Contains(err.Error(), ".hooks.test")
	})
}

func labelled(name, hook string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"hook": hook}}, Data: map[string]string{"a": "1"}}
}

func patches(text string) func(*admissionv1.AdmissionReview) {
	return func(r *admissionv1.AdmissionReview) {
		r.Response.Patch, r.Response.PatchType = []byte(text), new(admissionv1.PatchTypeJSONPatch)
	}
}

func says(body string) func(http.ResponseWriter, *http.Request, *admissionv1.AdmissionReview) {
	return func(w http.ResponseWriter, _ *http.Request, r *admissionv1.AdmissionReview) {
		r.Request, r.Response = nil, nil
		_, _ = io.WriteString(w, body)
	}
}

// askAll creates the namespace "shop", and has the webhook "all" called for
// everything in it.
func (c *cluster) askAll(h *hooks) {
	namespaced := func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector = nil
		w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"asks": "yes"}}
	}
	c.T.Helper()
	ctx, root := c.T.Context(), c.Root()
	c.register(h, false, h.webhook("all", namespaced))
	shop := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"asks": "yes"}}}
	c.Must(root.Resource(core.Namespaces, "").Create(ctx, shop, nil))
	c.Until("what the server itself makes there", func(ctx context.Context) bool {
		return root.Resource(core.ServiceAccounts, "shop").Get(ctx, "default", nil) == nil &&
			root.Resource(core.ConfigMaps, "shop").Get(ctx, "kube-root-ca.crt", nil) == nil
	})
	h.asked("all")
}

// last is the last request to the webhook "all"; what says what it is about. It
// is repeated if the server turns out to have used an old cache.
func (h *hooks) last(t *testing.T, what string) *admissionv1.AdmissionRequest {
	t.Helper()
	asked := h.asked("all")
	if len(asked) == 0 {
		t.Fatalf("%s: it was not asked", what)
	}
	last := asked[len(asked)-1]
	for _, r := range asked {
		if r.Operation != last.Operation || r.Kind != last.Kind || r.Name != last.Name {
			t.Fatalf("%s: asked about %s of %s %s too", what, r.Operation, r.Kind.Kind, r.Name)
		}
	}
	return last
}
