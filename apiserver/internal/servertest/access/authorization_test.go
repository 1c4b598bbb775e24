package access

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

// accessHook allows users to list pods in the namespace with their name, denies
// access to secrets, and has no opinion on the rest.
func accessHook(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.APIVersion != "authorization.k8s.io/v1" {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	if a := review.Spec.ResourceAttributes; a != nil {
		review.Status.Allowed = a.Verb == "list" && a.Resource == "pods" && a.Namespace == review.Spec.User
		review.Status.Denied = a.Resource == "secrets"
		review.Status.Reason = "the hook says so"
	}
	_ = json.NewEncoder(w).Encode(review)
}

// TestModesOutside uses authorizers of all modes in a row: what the webhook
// denies is denied, whatever comes after it.
func TestModesOutside(t *testing.T) {
	t.Parallel()
	url, caFile := outside(t, http.HandlerFunc(accessHook))
	policy := filepath.Join(t.TempDir(), "policy.jsonl")
	lines := ""
	for _, spec := range []string{`"namespace":"*","resource":"*","apiGroup":"*","readonly":true`,
		`"resource":"selfsubjectrulesreviews","apiGroup":"authorization.k8s.io"`} {
		lines += `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"dev",` + spec + "}}\n"
	}
	if err := os.WriteFile(policy, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, func(o *config.Options) {
		o.AuthorizationModes = []string{config.ModeWebhook, config.ModeABAC}
		o.AuthorizationPolicyFile = policy
		o.AuthorizationWebhook.ConfigFile, o.AuthorizationWebhook.Version = webhookFile(t, url, caFile), "v1"
	})
	jane := c.Token("nobody")
	c.Must(jane.Resource(core.Pods, "jane").List(t.Context(), &corev1.PodList{}))
	c.Must(jane.Resource(core.ConfigMaps, "default").List(t.Context(), &corev1.ConfigMapList{}))
	if err := jane.Resource(core.Secrets, "default").List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "the hook says so") {
		t.Errorf("secrets, that ABAC allows and the webhook denies: %v", err)
	}
	if err := jane.Resource(core.Pods, "default").Create(t.Context(), servertest.Pod("web"), nil); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "No policy matched.") {
		t.Errorf("a write that no authorizer allows: %v", err)
	}
	c.Must(c.Root().Resource(core.Secrets, "").List(t.Context(), &corev1.SecretList{}))
	rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}
	c.Must(jane.Do(t.Context(), http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", rules, rules))
	if !rules.Status.Incomplete || !strings.Contains(rules.Status.EvaluationError, "webhook authorizer does not support user rule resolution") ||
		len(rules.Status.ResourceRules) != 1 {
		t.Errorf("rules: %+v", rules.Status)
	}
}
