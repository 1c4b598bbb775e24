package extensions

import (
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// TestWebhooksInTheAudit: events report which webhooks changed an object,
// failed, or denied it, and contain the patch if they contain the object. Keys
// and values are those of kube-apiserver v1.37.
func TestWebhooksInTheAudit(t *testing.T) {
	t.Parallel()
	audited, path := servertest.StartAudited(t)
	c, h := &cluster{audited}, serveHooks(t)
	everything := func(w *admissionregistrationv1.MutatingWebhook) {
		w.ObjectSelector.MatchLabels = map[string]string{"asks": "all"}
		w.FailurePolicy = new(admissionregistrationv1.Ignore)
	}
	h.on("patch", patches(`[{"value":"2","op":"add","path":"/metadata/annotations","value":{"by":"hook"}}]`))
	h.on("keep", patches(`[]`))
	h.raw("broken", func(w http.ResponseWriter, _ *http.Request, r *admissionv1.AdmissionReview) {
		r.Request, r.Response = nil, nil
		http.Error(w, "no luck", http.StatusInternalServerError)
	})
	h.on("deny", func(r *admissionv1.AdmissionReview) { r.Response.Allowed = r.Request.Name != "denied" })
	c.register(h, true, h.webhook("patch", everything), h.webhook("keep", everything), h.webhook("broken", everything), h.webhook("deny", everything))
	as := func(agent string) *rest.Client {
		return c.Client(&rest.Config{BearerToken: "master", UserAgent: agent})
	}
	kept := labelled("c", "x")
	kept.Labels["asks"] = "all"
	c.Must(as("kept").Resource(core.ConfigMaps, "default").Create(t.Context(), kept, nil))
	secret := &core.Secret{}
	secret.Name, secret.Labels = "s", kept.Labels
	c.Must(as("hidden").Resource(core.Secrets, "default").Create(t.Context(), secret, nil))
	kept.Name, kept.ResourceVersion, kept.UID = "denied", "", ""
	if as("denied").Resource(core.ConfigMaps, "default").Create(t.Context(), kept, nil) == nil {
		t.Error("a refusal did not count")
	}
	c.Must(c.Stop())
	const configuration = `{"configuration":"testwebhooksintheaudit-5","webhook":"`
	for agent, patch := range map[string]string{
		"kept":   configuration + `patch.hooks.test","patch":[{"op":"add","path":"/metadata/annotations","value":{"by":"hook"}}],"patchType":"JSONPatch"}`,
		"hidden": "", "denied": configuration +
			`patch.hooks.test","patch":[{"op":"add","path":"/metadata/annotations","value":{"by":"hook"}}],"patchType":"JSONPatch"}`,
	} {
		events := servertest.AuditEvents(t, path, agent)
		if len(events) != 1 || events[0].Level != map[bool]audit.Level{true: audit.Metadata, false: audit.RequestResponse}[agent == "hidden"] {
			t.Fatalf("%s: %+v", agent, events)
		}
		for key, want := range map[string]string{
			"patch.webhook.admission.k8s.io/round_0_index_0":                patch,
			"mutation.webhook.admission.k8s.io/round_0_index_0":             configuration + `patch.hooks.test","mutated":true}`,
			"mutation.webhook.admission.k8s.io/round_0_index_1":             configuration + `keep.hooks.test","mutated":false}`,
			"mutation.webhook.admission.k8s.io/round_0_index_2":             configuration + `broken.hooks.test","mutated":false}`,
			"failed-open.mutation.webhook.admission.k8s.io/round_0_index_2": "broken.hooks.test",
			"mutation.webhook.admission.k8s.io/round_0_index_3":             configuration + `deny.hooks.test","mutated":false}`,
		} {
			if got := events[0].Annotations[key]; got != want {
				t.Errorf("%s: %s: %s, want %s", agent, key, got, want)
			}
		}
	}
}
