package access

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/config"
	"kctl/proto/core"
)

// TestAuthorizationFile: several webhooks, each called according to its match
// conditions, and a changed file that takes effect without a restart.
func TestAuthorizationFile(t *testing.T) {
	t.Parallel()
	url, caFile := outside(t, http.HandlerFunc(accessHook))
	const form = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n" +
		"- type: Webhook\n  name: broken\n  webhook: {timeout: 1s, subjectAccessReviewVersion: v1, " +
		"matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny,\n" +
		"    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q},\n" +
		"    matchConditions: [{expression: 'has(request.resourceAttributes)'}, {expression: 'request.resourceAttributes.resource == \"configmaps\"'}]}\n" +
		"- type: Webhook\n  name: hook\n  webhook: {timeout: 10s, subjectAccessReviewVersion: v1, failurePolicy: NoOpinion, connectionInfo: {type: " +
		"KubeConfigFile, kubeConfigFile: %q}}\n"
	content := fmt.Sprintf(form, webhookFile(t, "https://127.0.0.1:1/nobody", caFile), webhookFile(t, url, caFile))
	path := filepath.Join(t.TempDir(), "authorization.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, func(o *config.Options) { o.AuthorizationConfig = path })
	jane := c.Token("nobody")
	c.Must(jane.Resource(core.Pods, "jane").List(t.Context(), &corev1.PodList{}))
	if err := jane.Resource(core.ConfigMaps, "jane").List(t.Context(), &corev1.ConfigMapList{}); err == nil {
		t.Error("a request that the broken webhook should decide was allowed")
	}
	if err := jane.Resource(core.Secrets, "default").List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "the hook says so") {
		t.Errorf("secrets, which the second denies: %v", err)
	}
	c.Must(c.Root().Resource(core.ConfigMaps, "jane").List(t.Context(), &corev1.ConfigMapList{}))

	changed := c.Server.Files()[0]
	if err := changed.Apply([]byte(content + "- {type: Nonsense, name: other}\n")); err == nil ||
		!strings.Contains(err.Error(), "authorizers[2].type: Unsupported value") {
		t.Errorf("a bad file: %v", err)
	}
	if err := jane.Resource(core.ConfigMaps, "jane").List(t.Context(), &corev1.ConfigMapList{}); err == nil {
		t.Error("a bad file changed something")
	}
	c.Must(changed.Apply([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: AlwaysAllow, name: all}\n")))
	c.Must(jane.Resource(core.ConfigMaps, "jane").List(t.Context(), &corev1.ConfigMapList{}))
}
