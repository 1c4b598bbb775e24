package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Store is what Reconcile writes to: a registry.Resource.
type Store interface {
	Create(ctx context.Context, obj core.Object, admit registry.Admission, o *metav1.CreateOptions) (registry.Encoded, error)
	Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
		o *metav1.UpdateOptions) (registry.Encoded, bool, error)
	Delete(ctx context.Context, namespace, name string, admit registry.Admission, o *metav1.DeleteOptions) (registry.Encoded, bool, error)
}

// Stores are the stores of the RBAC kinds.
type Stores struct{ Roles, RoleBindings, ClusterRoles, ClusterRoleBindings Store }

// maxConcurrent is how many objects are written concurrently: an empty store needs
// some 150, and each write waits for a disk.
const maxConcurrent = 32

// Reconcile brings the stored objects up to the policy of every cluster. It may
// run in several servers at once.
func Reconcile(ctx context.Context, s Stores) error {
	p, err := parse(policyText)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrent)
	for _, r := range p.clusterRoles {
		group.Go(func() error { return ensure(ctx, s.ClusterRoles, r, mergeClusterRole) })
	}
	for _, b := range p.clusterRoleBindings {
		group.Go(func() error { return ensure(ctx, s.ClusterRoleBindings, b, mergeClusterRoleBinding) })
	}
	for _, r := range p.roles {
		group.Go(func() error { return ensure(ctx, s.Roles, r, mergeRole) })
	}
	for _, b := range p.roleBindings {
		group.Go(func() error { return ensure(ctx, s.RoleBindings, b, mergeRoleBinding) })
	}
	return group.Wait()
}

// ensure creates want, or merges it into the stored object. merge changes have;
// it returns false if have can't be changed that way and has to be created
// again.
func ensure[T core.Object](ctx context.Context, store Store, want T, merge func(have, want T) bool) error {
	create := func() error {
		_, err := store.Create(ctx, want.DeepCopyObject().(T), registry.Admission{}, &metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // another server was faster
		}
		return err
	}
	recreate := false
	err := registry.Modify(ctx, store, registry.Target{Namespace: want.GetNamespace(), Name: want.GetName()}, registry.ServerManager,
		func(current core.Object) (core.Object, error) {
			if current == nil {
				return want.DeepCopyObject().(T), nil
			}
			have := current.(T)
			if have.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] == "false" {
				return have, nil
			}
			if recreate = !merge(have, want); recreate {
				return have, nil
			}
			addMeta(have, want)
			return have, nil // a store does not write an unchanged object
		})
	switch {
	case apierrors.IsNotFound(err):
		err = create()
	case err == nil && recreate:
		_, _, err = store.Delete(ctx, want.GetNamespace(), want.GetName(), registry.Admission{}, &metav1.DeleteOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			err = create()
		}
	}
	if err != nil {
		return fmt.Errorf("bootstrap %T %s: %w", want, want.GetName(), err)
	}
	return nil
}

// addMeta adds labels and annotations that are missing.
func addMeta(have, want metav1.Object) {
	have.SetLabels(addMap(have.GetLabels(), want.GetLabels()))
	have.SetAnnotations(addMap(have.GetAnnotations(), want.GetAnnotations()))
}

func addMap(have, want map[string]string) map[string]string {
	if have == nil && len(want) > 0 {
		have = map[string]string{}
	}
	maps.Copy(have, want)
	return have
}

func mergeClusterRole(have, want *rbacv1.ClusterRole) bool {
	if want.AggregationRule == nil {
		return mergeRules(&have.Rules, want.Rules)
	}
	if have.AggregationRule == nil {
		have.AggregationRule = &rbacv1.AggregationRule{}
	}
	for _, selector := range want.AggregationRule.ClusterRoleSelectors {
		same := func(s metav1.LabelSelector) bool { return equality.Semantic.DeepEqual(s, selector) }
		if !slices.ContainsFunc(have.AggregationRule.ClusterRoleSelectors, same) {
			have.AggregationRule.ClusterRoleSelectors = append(have.AggregationRule.ClusterRoleSelectors, selector)
		}
	}
	return true
}

func mergeRole(have, want *rbacv1.Role) bool { return mergeRules(&have.Rules, want.Rules) }

func mergeRules(have *[]rbacv1.PolicyRule, want []rbacv1.PolicyRule) bool {
	if equality.Semantic.DeepEqual(*have, want) { // the usual case at a start, found far faster than by Covers
		return true
	}
	_, missing := validation.Covers(*have, want)
	*have = append(*have, missing...)
	return true
}

func mergeClusterRoleBinding(have, want *rbacv1.ClusterRoleBinding) bool {
	return mergeSubjects(have.RoleRef, want.RoleRef, &have.Subjects, want.Subjects)
}

func mergeRoleBinding(have, want *rbacv1.RoleBinding) bool {
	return mergeSubjects(have.RoleRef, want.RoleRef, &have.Subjects, want.Subjects)
}

// mergeSubjects adds subjects; a binding's role can't be changed.
func mergeSubjects(haveRef, wantRef rbacv1.RoleRef, have *[]rbacv1.Subject, want []rbacv1.Subject) bool {
	if haveRef != wantRef {
		return false
	}
	for _, subject := range want {
		if !slices.Contains(*have, subject) {
			*have = append(*have, subject)
		}
	}
	return true
}
