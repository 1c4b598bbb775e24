// Package runtimeclass holds what is particular to runtime classes: the runtime
// handler of pods, its overhead, and the nodes that have it.
package runtimeclass

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of runtime classes.
func Strategy(clock clock.PassiveClock) registry.Strategy[*nodev1.RuntimeClass] {
	return registry.Strategy[*nodev1.RuntimeClass]{
		Resource: core.RuntimeClasses, Singular: "runtimeclass",
		New: func() *nodev1.RuntimeClass { return new(nodev1.RuntimeClass) },
		Create: registry.CreateStrategy[*nodev1.RuntimeClass]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, c *nodev1.RuntimeClass) field.ErrorList { return validate(c, check.ShortName) },
			Warnings:     func(_ context.Context, c *nodev1.RuntimeClass) []string { return warnings(c) },
		},
		Update: registry.UpdateStrategy[*nodev1.RuntimeClass]{
			AllowCreate: true,
			Validate: func(_ context.Context, c, old *nodev1.RuntimeClass) field.ErrorList {
				return append(check.DeclaredImmutable(c.Handler, old.Handler, field.NewPath("handler")), validate(c, check.Label)...)
			},
			Warnings: func(_ context.Context, c, _ *nodev1.RuntimeClass) []string { return warnings(c) },
		},
		Read: registry.ReadStrategy[*nodev1.RuntimeClass]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(), cell.Text("Handler", ""), cell.AgeColumn(),
			},
			Row: func(c *nodev1.RuntimeClass) []any {
				return []any{c.Name, c.Handler, cell.Age(clock.Now(), c.CreationTimestamp)}
			},
		},
	}
}

// warnings warns about deprecated node labels.
func warnings(c *nodev1.RuntimeClass) []string {
	if c.Scheduling == nil {
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(c.Scheduling.NodeSelector)) {
		if text := check.NodeLabelWarning(key); text != "" {
			out = append(out, "scheduling.nodeSelector: "+text)
		}
	}
	return out
}

// validate validates a class, and its handler's name with isName.
func validate(c *nodev1.RuntimeClass, isName func(string, *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	if c.Overhead != nil {
		errs = append(errs, check.Overhead(c.Overhead.PodFixed, field.NewPath("overhead"))...)
	}
	if s := c.Scheduling; s != nil {
		at := field.NewPath("scheduling")
		errs = append(errs, metav1validation.ValidateLabels(s.NodeSelector, at.Child("nodeSelector").Upstream())...)
		errs = append(errs, check.Tolerations(s.Tolerations, at.Child("tolerations"))...)
		seen := map[corev1.Toleration]bool{}
		for i, t := range s.Tolerations {
			what := t
			what.TolerationSeconds = nil
			if seen[what] {
				errs = append(errs, field.Duplicate(at.Child("tolerations").Index(i), check.GoFieldNames{Value: t}))
			}
			seen[what] = true
		}
	}
	// It comes last, like all declarative validation in upstream.
	if c.Handler != "" {
		return append(errs, isName(c.Handler, field.NewPath("handler"))...)
	}
	return append(errs, check.Required(nil, "handler", c.Handler)...)
}
