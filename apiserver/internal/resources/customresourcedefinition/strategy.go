package customresourcedefinition

import (
	"context"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/proto/core"
)

// Definition is a CustomResourceDefinition.
type Definition = apiextensionsv1.CustomResourceDefinition

// resource is where definitions are.
var resource = core.Resource{
	Group: apiextensionsv1.GroupName, Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition",
}

// Finalizer keeps a definition until its instances are gone.
const Finalizer = apiextensionsv1.CustomResourceCleanupFinalizer

// Strategy is how definitions are kept.
func Strategy(clock clock.PassiveClock) registry.Strategy[*Definition] {
	return registry.Strategy[*Definition]{
		Resource: resource, Singular: "customresourcedefinition", ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
		StoragePrefix: "apiextensions.k8s.io/customresourcedefinitions",
		New:           func() *Definition { return &Definition{} },
		Default:       Default,
		HasGeneration: true,
		Create: registry.CreateStrategy[*Definition]{
			Prepare: func(_ context.Context, d *Definition) {
				d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
				addStoredVersion(d)
			},
			Validate: func(ctx context.Context, d *Definition) field.ErrorList { return validate(ctx, d, nil) },
			Warnings: func(_ context.Context, d *Definition) []string { return formatWarnings(d, nil) },
		},
		Update: registry.UpdateStrategy[*Definition]{
			AllowUnconditional: false,
			Prepare: func(_ context.Context, d, old *Definition) {
				d.Status = old.Status
				d.Status.StoredVersions = slices.Clone(old.Status.StoredVersions)
				addStoredVersion(d)
			},
			Validate: func(ctx context.Context, d, old *Definition) field.ErrorList { return validate(ctx, d, old) },
			Warnings: func(_ context.Context, d, old *Definition) []string { return formatWarnings(d, old) },
		},
		Status: &registry.UpdateStrategy[*Definition]{
			Prepare: func(_ context.Context, d, old *Definition) {
				d.Spec = old.Spec
			},
			Validate: func(_ context.Context, d, _ *Definition) field.ErrorList { return validateStatus(&d.Status) },
		},
		Delete: registry.DeleteStrategy[*Definition]{
			NoGracePeriod:             true,
			GracePeriodOnSecondDelete: true,
			Begin: func(d *Definition) {
				if d.DeletionTimestamp == nil {
					beginDelete(d, clock.Now())
				}
			},
			HasNoDependents: true,
		},
		Read: registry.ReadStrategy[*Definition]{Columns: columns, Row: row},
	}
}

// addStoredVersion records that objects of the storage version may be stored from now on.
// Among several, which is refused, the first one counts.
func addStoredVersion(d *Definition) {
	i := slices.IndexFunc(d.Spec.Versions, func(v version) bool { return v.Storage })
	if i >= 0 && !slices.Contains(d.Status.StoredVersions, d.Spec.Versions[i].Name) {
		d.Status.StoredVersions = append(d.Status.StoredVersions, d.Spec.Versions[i].Name)
	}
}

// beginDelete prepares the deletion of a definition: its instances go first.
func beginDelete(d *Definition, now time.Time) {
	if !slices.Contains(d.Finalizers, Finalizer) {
		d.Finalizers = append(d.Finalizers, Finalizer)
	}
	SetCondition(d, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	}, now)
}

// SetCondition sets a condition. The time of the last transition is now if the status
// changes.
func SetCondition(d *Definition, c apiextensionsv1.CustomResourceDefinitionCondition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	for i := range d.Status.Conditions {
		have := &d.Status.Conditions[i]
		if have.Type != c.Type {
			continue
		}
		if have.Status == c.Status {
			c.LastTransitionTime = have.LastTransitionTime
		}
		*have = c
		return
	}
	d.Status.Conditions = append(d.Status.Conditions, c)
}

// IsConditionTrue reports whether a condition is true.
func IsConditionTrue(d *Definition, kind apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == kind && c.Status == apiextensionsv1.ConditionTrue
	})
}

// Default fills in what the user left out.
func Default(d *Definition) {
	if len(d.Status.StoredVersions) == 0 {
		addStoredVersion(d)
	}
	names := &d.Spec.Names
	if names.Singular == "" {
		names.Singular = strings.ToLower(names.Kind)
	}
	if names.ListKind == "" && names.Kind != "" {
		names.ListKind = names.Kind + "List"
	}
	if d.Spec.Conversion == nil {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	if hook := d.Spec.Conversion.Webhook; hook != nil && hook.ClientConfig != nil && hook.ClientConfig.Service != nil &&
		hook.ClientConfig.Service.Port == nil {
		port := int32(443)
		hook.ClientConfig.Service.Port = &port
	}
}

var columns = []metav1.TableColumnDefinition{
	cell.Name(),
	{Name: "Scope", Type: "string", Description: "Cluster/Namespaced"},
	{Name: "Versions", Type: "string", Description: "Served versions"},
	cell.CreatedAtColumn(),
	{Name: "Group", Type: "string", Description: "API group", Priority: 1},
	{Name: "Kind", Type: "string", Description: "CustomResource kind", Priority: 1},
	{Name: "ShortNames", Type: "string", Description: "Short names", Priority: 1},
	{Name: "Established", Type: "boolean", Description: "Established status", Priority: 1},
}

func row(d *Definition) []any {
	var versions []string
	for _, v := range d.Spec.Versions {
		switch {
		case v.Storage:
			versions = append(versions, v.Name+"(storage)")
		case v.Served:
			versions = append(versions, v.Name)
		}
	}
	return []any{
		d.Name, string(d.Spec.Scope), strings.Join(versions, ","), d.CreationTimestamp.UTC().Format(time.RFC3339),
		d.Spec.Group, d.Spec.Names.Kind, strings.Join(d.Spec.Names.ShortNames, ","), IsConditionTrue(d, apiextensionsv1.Established),
	}
}
