// Package serviceaccount says what is particular about service accounts, and
// serves their token subresource.
package serviceaccount

import (
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
		StoragePrefix:       "serviceaccounts",
		New:                 func() *core.ServiceAccount { return new(core.ServiceAccount) },
		ValidateName:        check.NameIsSubdomain,
		UnconditionalUpdate: true,
		Columns: []metav1.TableColumnDefinition{
			cell.Name(), cell.Text("Secrets", core.ServiceAccount{}.SwaggerDoc()["secrets"]), cell.AgeColumn(),
		},
		Row: func(sa *core.ServiceAccount) []any {
			return []any{sa.Name, int64(len(sa.Secrets)), cell.Age(clock.Now(), sa.CreationTimestamp)}
		},
	}
}
