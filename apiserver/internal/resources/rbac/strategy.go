package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Roles is the strategy of roles.
func Roles() registry.Strategy[*rbacv1.Role] {
	return registry.Strategy[*rbacv1.Role]{
		Resource: core.Roles, Singular: "role", StoragePrefix: "roles",
		New:       func() *rbacv1.Role { return new(rbacv1.Role) },
		Normalize: func(r *rbacv1.Role) { r.Rules = check.NilIfEmpty(r.Rules) },
		Create: registry.CreateStrategy[*rbacv1.Role]{
			ValidateName: check.NameIsSegment,
			Validate: func(_ context.Context, r *rbacv1.Role) field.ErrorList {
				return validateRules(r.Rules, true, field.NewPath("rules"))
			},
		},
		Update: registry.UpdateStrategy[*rbacv1.Role]{
			AllowCreate:        true,
			AllowUnconditional: true,
			Validate: func(_ context.Context, r, _ *rbacv1.Role) field.ErrorList {
				return validateRules(r.Rules, true, field.NewPath("rules"))
			},
		},
		Read: registry.ReadStrategy[*rbacv1.Role]{
			Columns: cell.NameAndTime(),
			Row:     func(r *rbacv1.Role) []any { return cell.NameAndTimeRow(&r.ObjectMeta) },
		},
	}
}

// ClusterRoles is the strategy of cluster roles.
func ClusterRoles() registry.Strategy[*rbacv1.ClusterRole] {
	return registry.Strategy[*rbacv1.ClusterRole]{
		Resource: core.ClusterRoles, Singular: "clusterrole", StoragePrefix: "clusterroles",
		New:       func() *rbacv1.ClusterRole { return new(rbacv1.ClusterRole) },
		Normalize: func(r *rbacv1.ClusterRole) { r.Rules = check.NilIfEmpty(r.Rules) },
		Create: registry.CreateStrategy[*rbacv1.ClusterRole]{
			ValidateName: check.NameIsSegment,
			Validate:     func(_ context.Context, r *rbacv1.ClusterRole) field.ErrorList { return validateClusterRole(r) },
		},
		Update: registry.UpdateStrategy[*rbacv1.ClusterRole]{
			AllowCreate:        true,
			AllowUnconditional: true,
			Validate: func(_ context.Context, r, _ *rbacv1.ClusterRole) field.ErrorList {
				return validateClusterRole(r)
			},
		},
		Read: registry.ReadStrategy[*rbacv1.ClusterRole]{
			Columns: cell.NameAndTime(),
			Row:     func(r *rbacv1.ClusterRole) []any { return cell.NameAndTimeRow(&r.ObjectMeta) },
		},
	}
}

// RoleBindings is the strategy of role bindings.
func RoleBindings(clock clock.PassiveClock) registry.Strategy[*rbacv1.RoleBinding] {
	validate := func(b *rbacv1.RoleBinding) field.ErrorList {
		return validateBinding(b.RoleRef, b.Subjects, true, "Role", "ClusterRole")
	}
	return registry.Strategy[*rbacv1.RoleBinding]{
		Resource: core.RoleBindings, Singular: "rolebinding", StoragePrefix: "rolebindings",
		New: func() *rbacv1.RoleBinding { return new(rbacv1.RoleBinding) },
		Default: func(b *rbacv1.RoleBinding) {
			defaultRoleRef(&b.RoleRef)
			defaultSubjects(b.Subjects)
		},
		Create: registry.CreateStrategy[*rbacv1.RoleBinding]{
			ValidateName: check.NameIsSegment,
			Validate:     func(_ context.Context, b *rbacv1.RoleBinding) field.ErrorList { return validate(b) },
		},
		Update: registry.UpdateStrategy[*rbacv1.RoleBinding]{
			AllowCreate:        true,
			AllowUnconditional: true,
			Validate: func(_ context.Context, b, old *rbacv1.RoleBinding) field.ErrorList {
				return append(validate(b), sameRoleRef(b.RoleRef, old.RoleRef)...)
			},
		},
		Read: registry.ReadStrategy[*rbacv1.RoleBinding]{
			Columns: bindingColumns("roleRef can reference a Role in the current namespace or a "+
				"ClusterRole in the global namespace."+unresolved, "roleBinding"),
			Row: func(b *rbacv1.RoleBinding) []any {
				return bindingRow(&b.ObjectMeta, b.RoleRef, b.Subjects, clock.Now())
			},
		},
	}
}

// ClusterRoleBindings is the strategy of cluster role bindings.
func ClusterRoleBindings(clock clock.PassiveClock) registry.Strategy[*rbacv1.ClusterRoleBinding] {
	validate := func(b *rbacv1.ClusterRoleBinding) field.ErrorList {
		return validateBinding(b.RoleRef, b.Subjects, false, "ClusterRole")
	}
	return registry.Strategy[*rbacv1.ClusterRoleBinding]{
		Resource: core.ClusterRoleBindings, Singular: "clusterrolebinding", StoragePrefix: "clusterrolebindings",
		New: func() *rbacv1.ClusterRoleBinding { return new(rbacv1.ClusterRoleBinding) },
		Default: func(b *rbacv1.ClusterRoleBinding) {
			defaultRoleRef(&b.RoleRef)
			defaultSubjects(b.Subjects)
		},
		Create: registry.CreateStrategy[*rbacv1.ClusterRoleBinding]{
			ValidateName: check.NameIsSegment,
			Validate:     func(_ context.Context, b *rbacv1.ClusterRoleBinding) field.ErrorList { return validate(b) },
		},
		Update: registry.UpdateStrategy[*rbacv1.ClusterRoleBinding]{
			AllowCreate:        true,
			AllowUnconditional: true,
			Validate: func(_ context.Context, b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
				return append(validate(b), sameRoleRef(b.RoleRef, old.RoleRef)...)
			},
		},
		Read: registry.ReadStrategy[*rbacv1.ClusterRoleBinding]{
			Columns: bindingColumns("roleRef can only reference a ClusterRole in the global namespace."+unresolved, "clusterRoleBinding"),
			Row: func(b *rbacv1.ClusterRoleBinding) []any {
				return bindingRow(&b.ObjectMeta, b.RoleRef, b.Subjects, clock.Now())
			},
		},
	}
}

func defaultRoleRef(ref *rbacv1.RoleRef) {
	if ref.APIGroup == "" {
		ref.APIGroup = rbacv1.GroupName
	}
}

func defaultSubjects(subjects []rbacv1.Subject) {
	for i := range subjects {
		s := &subjects[i]
		if s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
			s.APIGroup = rbacv1.GroupName
		}
	}
}
