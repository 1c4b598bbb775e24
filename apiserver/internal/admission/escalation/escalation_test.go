package escalation

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// TestCombinations: a rule with more combinations than can be compared is
// rejected without comparing them.
func TestCombinations(t *testing.T) {
	rules := rbac.NewAuthorizer()
	p := Plugin{Rules: rules, Authorizer: rules}
	role := func(words int) *rbacv1.Role {
		many := strings.Split(strings.Repeat("get ", words)+"list", " ")
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{Verbs: many, APIGroups: many, Resources: many}}}
	}
	for words, says := range map[int]string{20: "not currently held", 60: "too many combinations"} {
		err := p.Admit(t.Context(), &admission.Attributes{
			Operation: admission.Create, Resource: core.Roles, Name: "r", Namespace: "a", User: &request.User{Username: "jane"}, Object: role(words),
		})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%d words: %.300v, want %q", words, err, says)
		}
	}
}
