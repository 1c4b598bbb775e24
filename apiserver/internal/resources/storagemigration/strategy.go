// Package storagemigration holds what is particular to storage version
// migrations: orders to write all objects of a resource again, in the version
// that is stored now. kube-controller-manager carries them out.
package storagemigration

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

func Served(o registry.Options) []registry.Served {
	return registry.Serve(registry.NewStore(strategy(), o))
}

func strategy() registry.Strategy[*migrationv1.StorageVersionMigration] {
	spec := field.NewPath("spec")
	columns := cell.Columns(migrationv1.StorageVersionMigrationSpec{}.SwaggerDoc(), "Name", "Resource=resource", "Status")
	columns = cell.Describe(columns, map[string]string{
		"Resource": "GroupResource to migrate",
		"Status":   "Status of the migration",
	})
	columns[0].Format = ""
	return registry.WithStatus(registry.Strategy[*migrationv1.StorageVersionMigration]{
		Resource: core.Resource{
			Group: "storagemigration.k8s.io", Version: "v1", Name: "storageversionmigrations", Kind: "StorageVersionMigration",
		},
		Singular: "storageversionmigration",
		Create: registry.CreateStrategy[*migrationv1.StorageVersionMigration]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, m *migrationv1.StorageVersionMigration) field.ErrorList {
				return validate(m.Spec.Resource, spec.Child("resource"))
			},
		},
		Update: registry.UpdateStrategy[*migrationv1.StorageVersionMigration]{
			Validate: func(_ context.Context, m, old *migrationv1.StorageVersionMigration) field.ErrorList {
				return append(validate(m.Spec.Resource, spec.Child("resource")), check.Unchanged(m.Spec, old.Spec, spec)...)
			},
		},
		Status: &registry.UpdateStrategy[*migrationv1.StorageVersionMigration]{
			KeepsMetadata: true,
			Validate: func(_ context.Context, m, old *migrationv1.StorageVersionMigration) field.ErrorList {
				return validateStatus(&m.Status, &old.Status, field.NewPath("status"))
			},
		},
		Read: registry.ReadStrategy[*migrationv1.StorageVersionMigration]{
			Columns: columns,
			Row: func(m *migrationv1.StorageVersionMigration) []any {
				what := schema.GroupResource{Group: m.Spec.Resource.Group, Resource: m.Spec.Resource.Resource}
				return []any{m.Name, what.String(), state(m.Status.Conditions)}
			},
		},
	})
}

// state is the first condition that is true: what the table shows as the
// status.
func state(conditions []metav1.Condition) string {
	for _, kind := range []migrationv1.MigrationConditionType{
		migrationv1.MigrationSucceeded, migrationv1.MigrationFailed, migrationv1.MigrationRunning,
	} {
		for _, c := range conditions {
			if c.Type == string(kind) && c.Status == metav1.ConditionStatus(corev1.ConditionTrue) {
				return c.Type
			}
		}
	}
	return "Unknown"
}

// validate checks that r can name a resource.
func validate(r metav1.GroupResource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Resource == "" {
		errs = append(errs, field.Required(at.Child("resource"), "resource is required to be set"))
	} else if problems := validation.IsDNS1035Label(r.Resource); len(problems) > 0 {
		errs = append(errs, field.Invalid(at.Child("resource"), r.Resource, strings.Join(problems, ",")))
	}
	if problems := validation.IsDNS1123Subdomain(r.Group); r.Group != "" && len(problems) > 0 {
		errs = append(errs, field.Invalid(at.Child("group"), r.Group, strings.Join(problems, ",")))
	}
	return errs
}

// validateStatus checks a migration's progress: the version that it started
// from is set once, and it either succeeds or fails, for good.
func validateStatus(now, old *migrationv1.StorageVersionMigrationStatus, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	version, conditions := at.Child("resourceVersion"), at.Child("conditions")
	if now.ResourceVersion != "" {
		if _, err := resourceversion.CompareResourceVersion(now.ResourceVersion, now.ResourceVersion); err != nil {
			errs = append(errs, field.Invalid(version, now.ResourceVersion, err.Error()))
		}
	}
	errs = append(errs, metav1validation.ValidateConditions(now.Conditions, conditions.Upstream())...)
	if old.ResourceVersion != "" {
		errs = append(errs, check.Unchanged(now.ResourceVersion, old.ResourceVersion, version)...)
	}
	ended := func(s *migrationv1.StorageVersionMigrationStatus, how migrationv1.MigrationConditionType) bool {
		return meta.IsStatusConditionTrue(s.Conditions, string(how))
	}
	succeeded, failed := ended(now, migrationv1.MigrationSucceeded), ended(now, migrationv1.MigrationFailed)
	for _, of := range []struct {
		wrong bool
		says  string
	}{
		{succeeded && failed, "Both success and failed conditions cannot be true at the same time"},
		{!succeeded && ended(old, migrationv1.MigrationSucceeded), "Success condition cannot be set to false once it is true"},
		{!failed && ended(old, migrationv1.MigrationFailed), "Failed condition cannot be set to false once it is true"},
	} {
		if of.wrong {
			errs = append(errs, field.Invalid(conditions, now.Conditions, of.says))
		}
	}
	return errs
}
