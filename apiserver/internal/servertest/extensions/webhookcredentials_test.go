package extensions

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
)

// refuseSaying has a webhook refuse with what it was shown: the Authorization header, or the
// user that a proxy named.
func (h *hooks) refuseSaying(name string) {
	h.raw(name, func(_ http.ResponseWriter, r *http.Request, review *admissionv1.AdmissionReview) {
		review.Response.Allowed = false
		shown := cmp.Or(r.Header.Get("X-Remote-User"), r.Header.Get("Authorization"), "nothing")
		review.Response.Result = &metav1.Status{Message: "was shown " + shown}
	})
}

func (c *cluster) wantsShown(hook, want string) {
	c.T.Helper()
	if status, _ := c.refusal(hook); status == nil || !strings.HasSuffix(status.Message, "was shown "+want) {
		c.T.Errorf("%s: %+v, want it to be shown %s", hook, status, want)
	}
}

// TestWebhooksAreShownCredentials: each plugin shows webhooks what its own kubeconfig has for them.
func TestWebhooksAreShownCredentials(t *testing.T) {
	t.Parallel()
	h := serveHooks(t)
	directory := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	address := h.Listener.Addr().String()
	named := write("named", fmt.Sprintf("kind: Config\nusers:\n- {name: %q, user: {token: its-own}}\n- {name: '*', user: {token: any}}\n", address))
	any := write("any", "kind: Config\nusers:\n- {name: 'elsewhere:443', user: {token: not-this}}\n- {name: '*', user: {username: jane, password: secret}}\n")
	file := write("admission.yaml", fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %s}
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %s}
`, named, any))
	c := start(t, func(o *config.Options) { o.AdmissionControlConfigFile = file })
	h.refuseSaying("mutating")
	h.refuseSaying("validating")
	c.register(h, true, h.webhook("mutating"))
	c.register(h, false, h.webhook("validating"))
	c.wantsShown("mutating", "Bearer its-own")
	c.wantsShown("validating", "Basic amFuZTpzZWNyZXQ=")
}

// TestWebhooksOfExtensionServers: a webhook behind the service "kubernetes" is asked through the
// server, as one who may, so that an extension server need not be reachable otherwise. Other paths of
// the API are no webhooks.
func TestWebhooksOfExtensionServers(t *testing.T) {
	t.Parallel()
	f, h := startFederation(t), serveHooks(t)
	f.extension.reviews = h
	f.register()
	f.untilCondition("True Passed: all checks passed")
	h.refuseSaying("behind")
	through := func(path string) func(w *admissionregistrationv1.MutatingWebhook) {
		return func(w *admissionregistrationv1.MutatingWebhook) {
			w.ClientConfig.URL = nil
			w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "kubernetes", Path: &path}
		}
	}
	f.cluster.register(h, false, h.webhook("behind", through(reviewsPath+"/behind")), h.webhook("beside", through("/api/v1/namespaces")))
	f.wantsShown("behind", "system:apiserver")
	if status, _ := f.refusal("beside"); status == nil || !strings.Contains(status.Message, "failed calling webhook") {
		t.Errorf("%+v", status)
	}
}
