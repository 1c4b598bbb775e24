package extensions

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/proto/core"
)

// TestManifests: webhooks and policies in files are in force from the first request on, before those
// of the API, also for requests about webhooks and policies, and change when the files do.
func TestManifests(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const form = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kept.static.k8s.io}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ['', admissionregistration.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [configmaps, validatingadmissionpolicies]}
  validations: [{expression: "object.metadata.name != 'never'", message: %s}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kept.static.k8s.io}
spec: {policyName: kept.static.k8s.io, validationActions: [Deny]}
`
	write("policies/a.yaml", fmt.Sprintf(form, "not this one"))
	write("hooks/a.yaml", `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: asked.static.k8s.io}
webhooks:
- name: nobody.hooks.test
  clientConfig: {url: 'https://127.0.0.1:1/nobody'}
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{apiGroups: [admissionregistration.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [validatingwebhookconfigurations]}]
`)
	file := write("admission.yaml", fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ValidatingAdmissionPolicyConfiguration, staticManifestsDir: %[1]s/policies}
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, staticManifestsDir: %[1]s/hooks}
`, directory))
	c := start(t, func(o *config.Options) { o.AdmissionControlConfigFile = file })
	maps := c.Root().Resource(core.ConfigMaps, "default")
	named := func(name string) *core.ConfigMap { return &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	const refused = "ValidatingAdmissionPolicy 'kept.static.k8s.io' with binding 'kept.static.k8s.io' denied request: "
	if err := maps.Create(t.Context(), named("never"), nil); err == nil || !strings.Contains(err.Error(), refused+"not this one") {
		t.Errorf("a map that the policy forbids: %v", err)
	}
	c.Must(maps.Create(t.Context(), named("other"), nil))
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "never"}}
	policy.Spec.MatchConstraints, policy.Spec.Validations = about("never"), []admissionregistrationv1.Validation{{Expression: "true"}}
	if err := c.Root().Resource(validatingPolicies, "").Create(t.Context(), policy, nil); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("a policy that the policy forbids: %v", err)
	}
	const webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	if err := c.Root().Do(t.Context(), http.MethodPost, webhooks, map[string]any{"metadata": map[string]any{"name": "a"}}, nil); !apierrors.IsInternalError(err) ||
		!strings.Contains(err.Error(), `failed calling webhook "nobody.hooks.test"`) {
		t.Errorf("webhooks that the webhook should be asked about: %v", err)
	}

	policies := c.Server.Files()[1]
	reload := func() error {
		content, err := policies.Read()
		c.Must(err)
		return policies.Apply(content)
	}
	write("policies/a.yaml", fmt.Sprintf(form, "neither now")+"---\nkind: Nonsense\n")
	if err := reload(); err == nil || !strings.Contains(err.Error(), "a.yaml: ") {
		t.Errorf("a bad file: %v", err)
	}
	if err := maps.Create(t.Context(), named("never"), nil); err == nil || !strings.Contains(err.Error(), refused+"not this one") {
		t.Errorf("a bad file changed something: %v", err)
	}
	write("policies/a.yaml", fmt.Sprintf(form, "neither now"))
	c.Must(reload())
	if err := maps.Create(t.Context(), named("never"), nil); err == nil || !strings.Contains(err.Error(), refused+"neither now") {
		t.Errorf("a map that the changed policy forbids: %v", err)
	}
	if err := os.Remove(filepath.Join(directory, "policies/a.yaml")); err != nil {
		t.Fatal(err)
	}
	c.Must(reload())
	c.Must(maps.Create(t.Context(), named("never"), nil))
	if answer, _ := c.Ask(http.MethodGet, webhooks+"/asked.static.k8s.io", nil, nil); answer.StatusCode != http.StatusNotFound {
		t.Errorf("webhooks of files are served: %d", answer.StatusCode)
	}
}
