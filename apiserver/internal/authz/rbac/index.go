package rbac

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Policy is all stored roles and bindings at one moment.
type Policy struct {
	Roles               []*rbacv1.Role
	RoleBindings        []*rbacv1.RoleBinding
	ClusterRoles        []*rbacv1.ClusterRole
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
}

// index finds the rules of a subject.
type index struct {
	roles        map[objectKey][]rbacv1.PolicyRule
	clusterRoles map[string][]rbacv1.PolicyRule
	// bindings by namespace ("" for cluster role bindings) and subject.
	bindings map[string]map[subject][]binding
}

type objectKey struct{ namespace, name string }

type subject struct {
	group bool
	name  string
}

type binding struct {
	namespace, name string
	role            rbacv1.RoleRef
}

func newIndex(p Policy) *index {
	x := &index{
		roles:        make(map[objectKey][]rbacv1.PolicyRule, len(p.Roles)),
		clusterRoles: make(map[string][]rbacv1.PolicyRule, len(p.ClusterRoles)),
		bindings:     map[string]map[subject][]binding{},
	}
	for _, r := range p.Roles {
		x.role(r, true)
	}
	for _, r := range p.ClusterRoles {
		x.clusterRole(r, true)
	}
	for _, b := range p.RoleBindings {
		x.roleBinding(b, true)
	}
	for _, b := range p.ClusterRoleBindings {
		x.clusterRoleBinding(b, true)
	}
	return x
}

// Each of these adds an object to the index or, unless it is there, removes it.

func (x *index) role(r *rbacv1.Role, there bool) {
	set(x.roles, objectKey{r.Namespace, r.Name}, r.Rules, there)
}

func (x *index) clusterRole(r *rbacv1.ClusterRole, there bool) {
	set(x.clusterRoles, r.Name, r.Rules, there)
}

func (x *index) roleBinding(b *rbacv1.RoleBinding, there bool) {
	x.bind(b.Subjects, binding{b.Namespace, b.Name, b.RoleRef}, there)
}

func (x *index) clusterRoleBinding(b *rbacv1.ClusterRoleBinding, there bool) {
	x.bind(b.Subjects, binding{"", b.Name, b.RoleRef}, there)
}

func set[K comparable, V any](in map[K]V, key K, value V, there bool) {
	if there {
		in[key] = value
	} else {
		delete(in, key)
	}
}

func (x *index) bind(subjects []rbacv1.Subject, b binding, there bool) {
	bySubject := x.bindings[b.namespace]
	if bySubject == nil {
		bySubject = map[subject][]binding{}
		x.bindings[b.namespace] = bySubject
	}
	for _, s := range subjects {
		var key subject
		switch s.Kind {
		case rbacv1.UserKind:
			key = subject{name: s.Name}
		case rbacv1.GroupKind:
			key = subject{group: true, name: s.Name}
		case rbacv1.ServiceAccountKind:
			namespace := cmp.Or(s.Namespace, b.namespace)
			if namespace == "" {
				continue // a cluster role binding has to name the account's namespace
			}
			key = subject{name: core.ServiceAccountPrefix + namespace + ":" + s.Name}
		default:
			continue
		}
		bound := bySubject[key]
		if there {
			bound = append(bound, b)
		} else {
			bound = slices.DeleteFunc(bound, func(have binding) bool { return have.name == b.name })
		}
		set(bySubject, key, bound, len(bound) > 0)
	}
	set(x.bindings, b.namespace, bySubject, len(bySubject) > 0)
}

// rulesOf returns the rules of a referenced role; false if it does not exist.
func (x *index) rulesOf(b binding) ([]rbacv1.PolicyRule, bool) {
	switch b.role.Kind {
	case "ClusterRole":
		rules, ok := x.clusterRoles[b.role.Name]
		return rules, ok
	case "Role":
		rules, ok := x.roles[objectKey{b.namespace, b.role.Name}]
		return rules, ok
	}
	return nil, false
}

// visit calls f for each rule that applies to user in namespace ("" for the
// cluster scope), until f returns false.
func (x *index) visit(user *request.User, namespace string, f func(b binding, s subject, rule *rbacv1.PolicyRule) bool) {
	if !x.visitScope(user, "", f) || namespace == "" {
		return
	}
	x.visitScope(user, namespace, f)
}

func (x *index) visitScope(user *request.User, namespace string, f func(binding, subject, *rbacv1.PolicyRule) bool) bool {
	return x.visitBindings(user, namespace, func(b binding, s subject) bool {
		rules, _ := x.rulesOf(b)
		for i := range rules {
			if !f(b, s, &rules[i]) {
				return false
			}
		}
		return true
	})
}

// visitBindings calls f for each binding of one scope whose subject user is,
// until f returns false.
func (x *index) visitBindings(user *request.User, namespace string, f func(binding, subject) bool) bool {
	bySubject := x.bindings[namespace]
	if len(bySubject) == 0 {
		return true
	}
	visit := func(s subject) bool {
		for _, b := range bySubject[s] {
			if !f(b, s) {
				return false
			}
		}
		return true
	}
	if !visit(subject{name: user.Username}) {
		return false
	}
	for _, group := range user.Groups {
		if !visit(subject{group: true, name: group}) {
			return false
		}
	}
	return true
}
