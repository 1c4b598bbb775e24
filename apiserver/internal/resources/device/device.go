package device

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Served are the resources of the group resource.k8s.io.
func Served(o registry.Options) []registry.Served {
	return registry.Serve(
		registry.NewStore(classes(), o),
		registry.NewStore(claims(o.Clock), o),
		registry.NewStore(templates(), o),
		registry.NewStore(resourceSlices(o.Clock), o),
		registry.NewStore(taintRules(o.Clock), o),
	)
}

func resource(name, kind string, namespaced bool) core.Resource {
	return core.Resource{Group: resourcev1.GroupName, Version: "v1", Name: name, Kind: kind, Namespaced: namespaced}
}

var specPath = field.NewPath("spec")

func classes() registry.Strategy[*resourcev1.DeviceClass] {
	return registry.Strategy[*resourcev1.DeviceClass]{
		Resource: resource("deviceclasses", "DeviceClass", false), Singular: "deviceclass",
		Default: func(c *resourcev1.DeviceClass) {
			for i := range c.Spec.Config {
				if opaque := c.Spec.Config[i].Opaque; opaque != nil {
					compact(&opaque.Parameters)
				}
			}
		},
		HasGeneration: true,
		Create: registry.CreateStrategy[*resourcev1.DeviceClass]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(ctx context.Context, c *resourcev1.DeviceClass) field.ErrorList {
				return validateClass(ctx, &c.Spec)
			},
		},
		Update: registry.UpdateStrategy[*resourcev1.DeviceClass]{
			AllowUnconditional: true,
			Validate: func(ctx context.Context, c, _ *resourcev1.DeviceClass) field.ErrorList {
				return validateClass(ctx, &c.Spec)
			},
		},
		Delete: registry.DeleteStrategy[*resourcev1.DeviceClass]{ReturnDeletedObject: true},
	}
}

func claims(clock clock.PassiveClock) registry.Strategy[*resourcev1.ResourceClaim] {
	return registry.WithStatus(registry.Strategy[*resourcev1.ResourceClaim]{
		Resource: resource("resourceclaims", "ResourceClaim", true), Singular: "resourceclaim",
		Default: func(c *resourcev1.ResourceClaim) {
			defaultClaim(&c.Spec)
			if a := c.Status.Allocation; a != nil {
				for i := range a.Devices.Results {
					defaultTolerations(a.Devices.Results[i].Tolerations)
				}
			}
		},
		Normalize: func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests = check.NilIfEmpty(c.Spec.Devices.Requests) },
		Create: registry.CreateStrategy[*resourcev1.ResourceClaim]{
			Prepare:      func(_ context.Context, c *resourcev1.ResourceClaim) { dropDisabledClaimFields(&c.Spec, nil) },
			ValidateName: check.NameIsSubdomain,
			Validate: func(ctx context.Context, c *resourcev1.ResourceClaim) field.ErrorList {
				return validateClaim(ctx, &c.Spec, specPath)
			},
		},
		Update: registry.UpdateStrategy[*resourcev1.ResourceClaim]{
			AllowUnconditional: true,
			Prepare:            func(_ context.Context, c, old *resourcev1.ResourceClaim) { dropDisabledClaimFields(&c.Spec, &old.Spec) },
			Validate: func(_ context.Context, c, old *resourcev1.ResourceClaim) field.ErrorList {
				return check.DeclaredImmutable(c.Spec, old.Spec, specPath)
			},
		},
		Status: &registry.UpdateStrategy[*resourcev1.ResourceClaim]{
			KeepsMetadata: true, Prepare: prepareClaimStatus,
			Validate: func(_ context.Context, c, old *resourcev1.ResourceClaim) field.ErrorList {
				return validateClaimStatus(c, old)
			},
		},
		Delete: registry.DeleteStrategy[*resourcev1.ResourceClaim]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*resourcev1.ResourceClaim]{
			Columns: cell.Describe(cell.Columns(nil, "Name", "State", "Age"), map[string]string{
				"State": "A summary of the current state (allocated, pending, reserved, etc.).",
			}),
			Row: func(c *resourcev1.ResourceClaim) []any {
				return []any{c.Name, stateOf(c), cell.Age(clock.Now(), c.CreationTimestamp)}
			},
		},
	})
}

// stateOf sums up how far a claim is, in upstream's words, which scripts look for.
func stateOf(c *resourcev1.ResourceClaim) string {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	}
	if c.Status.Allocation == nil {
		if c.DeletionTimestamp == nil {
			states = append(states, "pending")
		}
	} else {
		states = append(states, "allocated")
		if len(c.Status.ReservedFor) > 0 {
			states = append(states, "reserved")
		}
	}
	return strings.Join(states, ",")
}

func defaultClaim(s *resourcev1.ResourceClaimSpec) {
	exact := func(mode *resourcev1.DeviceAllocationMode, count *int64) {
		if *mode == "" {
			*mode = resourcev1.DeviceAllocationModeExactCount
		}
		if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
			*count = 1
		}
	}
	for i := range s.Devices.Config {
		if opaque := s.Devices.Config[i].Opaque; opaque != nil {
			compact(&opaque.Parameters)
		}
	}
	for i := range s.Devices.Requests {
		r := &s.Devices.Requests[i]
		if r.Exactly != nil {
			exact(&r.Exactly.AllocationMode, &r.Exactly.Count)
			defaultTolerations(r.Exactly.Tolerations)
		}
		for k := range r.FirstAvailable {
			exact(&r.FirstAvailable[k].AllocationMode, &r.FirstAvailable[k].Count)
			defaultTolerations(r.FirstAvailable[k].Tolerations)
		}
	}
}

func defaultTolerations(all []resourcev1.DeviceToleration) {
	for i := range all {
		if all[i].Operator == "" {
			all[i].Operator = resourcev1.DeviceTolerationOpEqual
		}
	}
}

// dropDisabledClaimFields drops what belongs to an alpha feature that is off, where none of it was
// there before.
func dropDisabledClaimFields(s, old *resourcev1.ResourceClaimSpec) {
	derives := func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && len(r.Exactly.DerivedAttributes) > 0 ||
			slices.ContainsFunc(r.FirstAvailable, func(sub resourcev1.DeviceSubRequest) bool {
				return len(sub.DerivedAttributes) > 0
			})
	}
	if old != nil && slices.ContainsFunc(old.Devices.Requests, derives) {
		return
	}
	for _, r := range s.Devices.Requests {
		if r.Exactly != nil {
			r.Exactly.DerivedAttributes = nil
		}
		for i := range r.FirstAvailable {
			r.FirstAvailable[i].DerivedAttributes = nil
		}
	}
}

func templates() registry.Strategy[*resourcev1.ResourceClaimTemplate] {
	at := specPath.Child("spec")
	return registry.Strategy[*resourcev1.ResourceClaimTemplate]{
		Resource: resource("resourceclaimtemplates", "ResourceClaimTemplate", true), Singular: "resourceclaimtemplate",
		Default: func(t *resourcev1.ResourceClaimTemplate) { defaultClaim(&t.Spec.Spec) },
		Normalize: func(t *resourcev1.ResourceClaimTemplate) {
			t.Spec.Spec.Devices.Requests = check.NilIfEmpty(t.Spec.Spec.Devices.Requests)
		},
		Create: registry.CreateStrategy[*resourcev1.ResourceClaimTemplate]{
			Prepare: func(_ context.Context, t *resourcev1.ResourceClaimTemplate) {
				dropDisabledClaimFields(&t.Spec.Spec, nil)
			},
			ValidateName: check.NameIsSubdomain,
			Validate: func(ctx context.Context, t *resourcev1.ResourceClaimTemplate) field.ErrorList {
				return append(check.TemplateMetadata(&t.Spec.ObjectMeta, specPath.Child("metadata")), validateClaim(ctx, &t.Spec.Spec, at)...)
			},
		},
		Update: registry.UpdateStrategy[*resourcev1.ResourceClaimTemplate]{
			AllowUnconditional: true,
			Prepare: func(_ context.Context, t, old *resourcev1.ResourceClaimTemplate) {
				dropDisabledClaimFields(&t.Spec.Spec, &old.Spec.Spec)
			},
			Validate: func(ctx context.Context, t, old *resourcev1.ResourceClaimTemplate) field.ErrorList {
				errs := check.TemplateMetadata(&t.Spec.ObjectMeta, specPath.Child("metadata"))
				errs = append(errs, validateClaim(ctx, &t.Spec.Spec, at)...)
				if equality.Semantic.DeepEqual(t.Spec, old.Spec) {
					return errs
				}
				return append(errs, field.Invalid(specPath, check.GoFieldNames{Value: t.Spec}, check.Immutable))
			},
		},
		Delete: registry.DeleteStrategy[*resourcev1.ResourceClaimTemplate]{ReturnDeletedObject: true},
	}
}

func resourceSlices(clock clock.PassiveClock) registry.Strategy[*resourcev1.ResourceSlice] {
	return registry.Strategy[*resourcev1.ResourceSlice]{
		Resource: resource("resourceslices", "ResourceSlice", false), Singular: "resourceslice",
		Default: func(s *resourcev1.ResourceSlice) {
			for i := range s.Spec.Devices {
				for k := range s.Spec.Devices[i].Taints {
					setTimeAdded(&s.Spec.Devices[i].Taints[k], clock)
				}
			}
		},
		HasGeneration: true,
		Create: registry.CreateStrategy[*resourcev1.ResourceSlice]{
			Prepare:      func(_ context.Context, s *resourcev1.ResourceSlice) { dropDisabledSliceFields(s, nil) },
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, s *resourcev1.ResourceSlice) field.ErrorList {
				return validateSlice(&s.Spec, nil)
			},
			Warnings: func(_ context.Context, s *resourcev1.ResourceSlice) []string { return sliceWarnings(&s.Spec) },
		},
		Update: registry.UpdateStrategy[*resourcev1.ResourceSlice]{
			AllowUnconditional: true,
			Prepare:            func(_ context.Context, s, old *resourcev1.ResourceSlice) { dropDisabledSliceFields(s, old) },
			Validate: func(_ context.Context, s, old *resourcev1.ResourceSlice) field.ErrorList {
				return validateSliceUpdate(s, old)
			},
			Warnings: func(_ context.Context, s, _ *resourcev1.ResourceSlice) []string { return sliceWarnings(&s.Spec) },
		},
		Delete: registry.DeleteStrategy[*resourcev1.ResourceSlice]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*resourcev1.ResourceSlice]{
			Fields: func(s *resourcev1.ResourceSlice) fields.Set {
				return fields.Set{"spec.nodeName": ptr.Deref(s.Spec.NodeName, ""), "spec.driver": s.Spec.Driver, "spec.pool.name": s.Spec.Pool.Name}
			},
			UnknownFieldMessage: func(name string) string {
				return "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: " + name
			},
			Columns: cell.Describe(cell.Columns(resourcev1.ResourceSliceSpec{}.SwaggerDoc(),
				"Name", "Node=nodeName", "Driver=driver", "Pool=pool", "Age",
			), map[string]string{
				"Pool": resourcev1.ResourcePool{}.SwaggerDoc()["name"],
			}),
			Row: func(s *resourcev1.ResourceSlice) []any {
				return []any{s.Name, nodesOf(&s.Spec), s.Spec.Driver, s.Spec.Pool.Name, cell.Age(clock.Now(), s.CreationTimestamp)}
			},
		},
	}
}

func validateSliceUpdate(s, old *resourcev1.ResourceSlice) field.ErrorList {
	errs := validateSlice(&s.Spec, &old.Spec)
	errs = append(errs, check.Unchanged(s.Spec.Driver, old.Spec.Driver, specPath.Child("driver"))...)
	errs = append(errs, check.Unchanged(s.Spec.Pool.Name, old.Spec.Pool.Name, specPath.Child("pool", "name"))...)
	return append(errs, check.Unchanged(s.Spec.NodeName, old.Spec.NodeName, specPath.Child("nodeName"))...)
}

// sliceWarnings warns about drivers' names that others may spell in another way.
func sliceWarnings(s *resourcev1.ResourceSliceSpec) []string {
	if s.Driver == strings.ToLower(s.Driver) {
		return nil
	}
	return []string{fmt.Sprintf("spec.driver: driver names should be lowercase; %q contains uppercase characters", s.Driver)}
}

// nodesOf tells for a table which nodes reach a slice's devices.
func nodesOf(s *resourcev1.ResourceSliceSpec) string {
	switch {
	case s.NodeName != nil:
		return *s.NodeName
	case ptr.Deref(s.AllNodes, false):
		return "<all>"
	case s.NodeSelector != nil:
		return "<some>"
	}
	return "<unset>"
}

// setTimeAdded notes when a taint came.
func setTimeAdded(t *resourcev1.DeviceTaint, clock clock.PassiveClock) {
	if t.TimeAdded == nil {
		t.TimeAdded = new(metav1.NewTime(clock.Now()).Rfc3339Copy())
	}
}

func taintRules(clock clock.PassiveClock) registry.Strategy[*resourcev1.DeviceTaintRule] {
	return registry.WithStatus(registry.Strategy[*resourcev1.DeviceTaintRule]{
		Resource: resource("devicetaintrules", "DeviceTaintRule", false), Singular: "devicetaintrule",
		Default:       func(r *resourcev1.DeviceTaintRule) { setTimeAdded(&r.Spec.Taint, clock) },
		HasGeneration: true,
		Create: registry.CreateStrategy[*resourcev1.DeviceTaintRule]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, r *resourcev1.DeviceTaintRule) field.ErrorList {
				return validateTaintRule(&r.Spec)
			},
		},
		Update: registry.UpdateStrategy[*resourcev1.DeviceTaintRule]{
			Prepare: func(_ context.Context, r, old *resourcev1.DeviceTaintRule) {
				now, was := &r.Spec.Taint, &old.Spec.Taint
				if now.Effect != was.Effect && now.TimeAdded.Equal(was.TimeAdded) { // it is since when this effect is there
					now.TimeAdded = nil
					setTimeAdded(now, clock)
				}
			},
			Validate: func(_ context.Context, r, _ *resourcev1.DeviceTaintRule) field.ErrorList {
				return validateTaintRule(&r.Spec)
			},
		},
		Status: &registry.UpdateStrategy[*resourcev1.DeviceTaintRule]{
			KeepsMetadata: true,
			Validate: func(_ context.Context, r, _ *resourcev1.DeviceTaintRule) field.ErrorList {
				at, n := field.NewPath("status", "conditions"), len(r.Status.Conditions)
				errs := metav1validation.ValidateConditions(r.Status.Conditions, at.Upstream())
				if n > resourcev1.DeviceTaintRuleStatusMaxConditions {
					errs = append(errs, field.TooMany(at, n, resourcev1.DeviceTaintRuleStatusMaxConditions))
				}
				return errs
			},
		},
		Read: registry.ReadStrategy[*resourcev1.DeviceTaintRule]{
			Columns: cell.Columns(resourcev1.DeviceTaint{}.SwaggerDoc(),
				"Name", "Key=key", "Value=value", "Effect=effect", "TimeAdded=timeAdded", "Age",
			),
			Row: func(r *resourcev1.DeviceTaintRule) []any {
				t := r.Spec.Taint
				added := ""
				if t.TimeAdded != nil {
					added = cell.Age(clock.Now(), *t.TimeAdded)
				}
				return []any{r.Name, t.Key, t.Value, string(t.Effect), added, cell.Age(clock.Now(), r.CreationTimestamp)}
			},
		},
	})
}
