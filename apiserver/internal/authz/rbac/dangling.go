package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/request"
)

// DanglingRolesError lists the missing roles of a user's bindings: a user who
// is refused should learn that a permission may have been intended.
type DanglingRolesError []rbacv1.RoleRef

// Error names the missing roles.
func (d DanglingRolesError) Error() string { return d.describe("") }

// Stored names where they should have been stored.
func (d DanglingRolesError) Stored() string { return d.describe("s") }

func (d DanglingRolesError) describe(plural string) string {
	var out []string
	for _, ref := range d {
		text := fmt.Sprintf("%s%s.%s %q not found", strings.ToLower(ref.Kind), plural, rbacv1.GroupName, ref.Name)
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// danglingRoles are the missing roles of user's bindings in namespace ("" for the cluster
// scope).
func (x *index) danglingRoles(user *request.User, namespace string) DanglingRolesError {
	var out DanglingRolesError
	find := func(b binding, _ subject) bool {
		if _, ok := x.rulesOf(b); !ok {
			out = append(out, b.role)
		}
		return true
	}
	x.visitBindings(user, "", find)
	if namespace != "" {
		x.visitBindings(user, namespace, find)
	}
	slices.SortStableFunc(out, func(a, b rbacv1.RoleRef) int { return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name) })
	return out
}
