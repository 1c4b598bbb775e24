package rbac

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/resources/cell"
)

// unresolved is what upstream's tables show for bindings' roles.
const unresolved = " If the RoleRef cannot be resolved, the Authorizer must return an error."

func bindingColumns(role, kind string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		cell.Name(),
		cell.Text("Role", role),
		cell.AgeColumn(),
		cell.Wide("Users", "Users in the "+kind),
		cell.Wide("Groups", "Groups in the "+kind),
		cell.Wide("ServiceAccounts", "ServiceAccounts in the "+kind),
	}
}

func bindingRow(meta *metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject, now time.Time) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{
		meta.Name, ref.Kind + "/" + ref.Name, cell.Age(now, meta.CreationTimestamp),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}
