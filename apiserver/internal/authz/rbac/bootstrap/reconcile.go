package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Store is what Reconcile writes to: a registry.Resource.
type Store interface {
	Create(ctx context.Context, obj core.Object, admit registry.Admit, o *metav1.CreateOptions) (registry.Encoded, error)
	Update(ctx context.Context, namespace, name, subresource string, change func(current core.Object) (core.Object, error), admit registry.Admit, o *metav1.UpdateOptions) (registry.Encoded, bool, error)
	Delete(ctx context.Context, namespace, name string, admit registry.Admit, o *metav1.DeleteOptions) (registry.Encoded, bool, error)
}

// Stores are the stores of the RBAC kinds.
type Stores struct{ Roles, RoleBindings, ClusterRoles, ClusterRoleBindings Store }

// Reconcile brings what is stored up to the policy of every cluster. It may run
// in several servers at once.
func Reconcile(ctx context.Context, s Stores) error {
	var errs []error
	for _, r := range ClusterRoles() {
		errs = append(errs, ensure(ctx, s.ClusterRoles, r, mergeClusterRole))
	}
	for _, b := range ClusterRoleBindings() {
		errs = append(errs, ensure(ctx, s.ClusterRoleBindings, b, mergeClusterRoleBinding))
	}
	for _, r := range Roles() {
		errs = append(errs, ensure(ctx, s.Roles, r, mergeRole))
	}
	for _, b := range RoleBindings() {
		errs = append(errs, ensure(ctx, s.RoleBindings, b, mergeRoleBinding))
	}
	return errors.Join(errs...)
}

// errRecreate says that the stored object can't be changed into what is wanted.
var errRecreate = errors.New("has to be made anew")

// errUnchanged ends an update that would change nothing.
var errUnchanged = errors.New("is as wanted")

// ensure creates want, or merges it into what is stored. merge changes have
// and tells whether it did.
func ensure[T interface {
	core.Object
	comparable
}](ctx context.Context, store Store, want T, merge func(have, want T) (changed bool, err error)) error {
	create := func() error {
		_, err := store.Create(ctx, want.DeepCopyObject().(T), registry.Admit{}, &metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // another server was faster
		}
		return err
	}
	_, _, err := store.Update(ctx, want.GetNamespace(), want.GetName(), "", func(current core.Object) (core.Object, error) {
		have, ok := current.(T)
		var none T
		if !ok || have == none {
			return nil, apierrors.NewNotFound(rbacv1.Resource("roles"), want.GetName())
		}
		if have.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] == "false" {
			return nil, errUnchanged
		}
		changed, err := merge(have, want)
		if err != nil {
			return nil, err
		}
		if addMeta(have, want) || changed {
			return have, nil
		}
		return nil, errUnchanged
	}, registry.Admit{}, &metav1.UpdateOptions{})
	switch {
	case errors.Is(err, errUnchanged):
		return nil
	case apierrors.IsNotFound(err):
		err = create()
	case errors.Is(err, errRecreate):
		if _, _, err = store.Delete(ctx, want.GetNamespace(), want.GetName(), registry.Admit{}, &metav1.DeleteOptions{}); err == nil || apierrors.IsNotFound(err) {
			err = create()
		}
	}
	if err != nil {
		return fmt.Errorf("bootstrap %T %s: %w", want, want.GetName(), err)
	}
	return nil
}

// addMeta adds labels and annotations that are missing.
func addMeta(have, want metav1.Object) bool {
	labels, labelled := addMap(have.GetLabels(), want.GetLabels())
	annotations, annotated := addMap(have.GetAnnotations(), want.GetAnnotations())
	have.SetLabels(labels)
	have.SetAnnotations(annotations)
	return labelled || annotated
}

func addMap(have, want map[string]string) (map[string]string, bool) {
	changed := false
	for key, value := range want {
		if have[key] == value {
			continue
		}
		if have == nil {
			have = map[string]string{}
		}
		have[key], changed = value, true
	}
	return have, changed
}

func mergeClusterRole(have, want *rbacv1.ClusterRole) (bool, error) {
	if want.AggregationRule == nil {
		return mergeRules(&have.Rules, want.Rules), nil
	}
	if have.AggregationRule == nil {
		have.AggregationRule = &rbacv1.AggregationRule{}
	}
	changed := false
	for _, selector := range want.AggregationRule.ClusterRoleSelectors {
		same := func(s metav1.LabelSelector) bool { return equality.Semantic.DeepEqual(s, selector) }
		if !slices.ContainsFunc(have.AggregationRule.ClusterRoleSelectors, same) {
			have.AggregationRule.ClusterRoleSelectors = append(have.AggregationRule.ClusterRoleSelectors, selector)
			changed = true
		}
	}
	return changed, nil
}

func mergeRole(have, want *rbacv1.Role) (bool, error) {
	return mergeRules(&have.Rules, want.Rules), nil
}

func mergeRules(have *[]rbacv1.PolicyRule, want []rbacv1.PolicyRule) bool {
	missing := rbac.Uncovered(*have, want)
	*have = append(*have, missing...)
	return len(missing) > 0
}

func mergeClusterRoleBinding(have, want *rbacv1.ClusterRoleBinding) (bool, error) {
	return mergeSubjects(have.RoleRef, want.RoleRef, &have.Subjects, want.Subjects)
}

func mergeRoleBinding(have, want *rbacv1.RoleBinding) (bool, error) {
	return mergeSubjects(have.RoleRef, want.RoleRef, &have.Subjects, want.Subjects)
}

func mergeSubjects(haveRef, wantRef rbacv1.RoleRef, have *[]rbacv1.Subject, want []rbacv1.Subject) (bool, error) {
	if haveRef != wantRef {
		return false, errRecreate
	}
	changed := false
	for _, subject := range want {
		if !slices.Contains(*have, subject) {
			*have, changed = append(*have, subject), true
		}
	}
	return changed, nil
}
