package serviceaccount

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of service accounts.
func Strategy(clock clock.PassiveClock) registry.Strategy[*core.ServiceAccount] {
	return registry.Strategy[*core.ServiceAccount]{
		Resource: core.ServiceAccounts, Singular: "serviceaccount", ShortNames: []string{"sa"},
		StoragePrefix: "serviceaccounts",
		New:           func() *core.ServiceAccount { return new(core.ServiceAccount) },
		Create: registry.CreateStrategy[*core.ServiceAccount]{
			Prepare:      func(_ context.Context, sa *core.ServiceAccount) { onlyNames(sa) },
			ValidateName: check.NameIsSubdomain,
			Warnings:     func(_ context.Context, sa *core.ServiceAccount) []string { return warnings(sa) },
		},
		Update: registry.UpdateStrategy[*core.ServiceAccount]{
			AllowUnconditional: true,
			Prepare:            func(_ context.Context, sa, _ *core.ServiceAccount) { onlyNames(sa) },
			Warnings: func(_ context.Context, sa, old *core.ServiceAccount) []string {
				if _, had := old.Annotations[mountableAnnotation]; had {
					return nil
				}
				return warnings(sa)
			},
		},
		Delete: registry.DeleteStrategy[*core.ServiceAccount]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*core.ServiceAccount]{
			Columns: []metav1.TableColumnDefinition{cell.Name(), cell.AgeColumn()},
			Row: func(sa *core.ServiceAccount) []any {
				return []any{sa.Name, cell.Age(clock.Now(), sa.CreationTimestamp)}
			},
		},
	}
}

// onlyNames keeps only the names of an account's secrets, which are in its
// namespace.
func onlyNames(sa *core.ServiceAccount) {
	for i, secret := range sa.Secrets {
		sa.Secrets[i] = corev1.ObjectReference{Name: secret.Name}
	}
}

// mountableAnnotation restricts an account's pods to the account's own secrets.
const mountableAnnotation = "kubernetes.io/enforce-mountable-secrets"

func warnings(sa *core.ServiceAccount) []string {
	if _, set := sa.Annotations[mountableAnnotation]; !set {
		return nil
	}
	return []string{"metadata.annotations[" + mountableAnnotation +
		"]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}
