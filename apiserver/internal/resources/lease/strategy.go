// Package lease holds what is particular to leases: the heartbeat of nodes and
// the lock of leaders. A PUT can create one.
package lease

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of leases.
func Strategy(clock clock.PassiveClock) registry.Strategy[*core.Lease] {
	return registry.Strategy[*core.Lease]{
		Resource: core.Leases, Singular: "lease",
		StoragePrefix: "leases",
		New:           func() *core.Lease { return new(core.Lease) },
		Create: registry.CreateStrategy[*core.Lease]{
			Prepare:      func(_ context.Context, l *core.Lease) { dropElection(&l.Spec, &coordinationv1.LeaseSpec{}) },
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, l *core.Lease) field.ErrorList { return validate(&l.Spec) },
		},
		Update: registry.UpdateStrategy[*core.Lease]{
			AllowCreate: true,
			Prepare:     func(_ context.Context, l, old *core.Lease) { dropElection(&l.Spec, &old.Spec) },
			Validate:    func(_ context.Context, l, _ *core.Lease) field.ErrorList { return validate(&l.Spec) },
		},
		Read: registry.ReadStrategy[*core.Lease]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(), cell.Text("Holder", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]), cell.AgeColumn(),
			},
			Row: func(l *core.Lease) []any {
				holder := ""
				if l.Spec.HolderIdentity != nil {
					holder = *l.Spec.HolderIdentity
				}
				return []any{l.Name, holder, cell.Age(clock.Now(), l.CreationTimestamp)}
			},
		},
	}
}

// dropElection drops fields of coordinated leader election (KEP-4355), which
// kube-apiserver has off by default and is not supported here, unless they are already
// stored.
func dropElection(spec, old *coordinationv1.LeaseSpec) {
	if old.Strategy == nil {
		spec.Strategy = nil
	}
	if old.PreferredHolder == nil {
		spec.PreferredHolder = nil
	}
}

func validate(spec *coordinationv1.LeaseSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if d := spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if t := spec.LeaseTransitions; t != nil && *t < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *t, "must be greater than or equal to 0"))
	}
	if spec.PreferredHolder != nil && *spec.PreferredHolder != "" && (spec.Strategy == nil || *spec.Strategy == "") {
		errs = append(errs, field.Forbidden(path.Child("preferredHolder"), "may only be specified when `strategy` is defined"))
	}
	return errs
}
