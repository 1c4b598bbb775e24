// Package priorityclass holds what is particular to priority classes: their
// value is immutable, and names that begin with "system-" are reserved.
package priorityclass

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

const (
	// highestUserDefinable is the highest value of users' classes; higher ones are reserved for
	// the system.
	highestUserDefinable = int32(1000000000)
	reservedPrefix       = "system-"
)

// systemClasses are the classes of every cluster.
var systemClasses = []schedulingv1.PriorityClass{
	{
		ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}, Value: 2*highestUserDefinable + 1000,
		Description:      "Used for system critical pods that must not be moved from their current node.",
		PreemptionPolicy: new(corev1.PreemptLowerPriority),
	},
	{
		ObjectMeta: metav1.ObjectMeta{Name: "system-cluster-critical"}, Value: 2 * highestUserDefinable,
		Description:      "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
		PreemptionPolicy: new(corev1.PreemptLowerPriority),
	},
}

// Strategy is the strategy of priority classes.
func Strategy(clock clock.PassiveClock) registry.Strategy[*schedulingv1.PriorityClass] {
	doc := schedulingv1.PriorityClass{}.SwaggerDoc()
	value := cell.Text("Value", doc["value"])
	value.Type = "integer"
	global := cell.Text("Global-Default", doc["globalDefault"])
	global.Type = "boolean"
	return registry.Strategy[*schedulingv1.PriorityClass]{
		Resource: core.PriorityClasses, Singular: "priorityclass", ShortNames: []string{"pc"},
		New: func() *schedulingv1.PriorityClass { return new(schedulingv1.PriorityClass) },
		Default: func(c *schedulingv1.PriorityClass) {
			if c.PreemptionPolicy == nil {
				c.PreemptionPolicy = new(corev1.PreemptLowerPriority)
			}
		},
		HasGeneration: true,
		Create: registry.CreateStrategy[*schedulingv1.PriorityClass]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, c *schedulingv1.PriorityClass) field.ErrorList { return validate(c) },
		},
		Update: registry.UpdateStrategy[*schedulingv1.PriorityClass]{
			AllowUnconditional: true,
			KeepsGeneration:    true,
			Validate:           validateUpdate,
		},
		Read: registry.ReadStrategy[*schedulingv1.PriorityClass]{
			Columns: []metav1.TableColumnDefinition{cell.Name(), value, global, cell.AgeColumn(),
				cell.Text("PreemptionPolicy", doc["preemptionPolicy"])},
			Row: func(c *schedulingv1.PriorityClass) []any {
				return []any{c.Name, int64(c.Value), c.GlobalDefault, cell.Age(clock.Now(), c.CreationTimestamp),
					string(ptr.Deref(c.PreemptionPolicy, ""))}
			},
		},
	}
}

func validate(c *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	switch {
	case strings.HasPrefix(c.Name, reservedPrefix):
		if problem := differsFromSystemClass(c); problem != "" {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with '"+reservedPrefix+"' prefix are reserved for system use only. error: "+problem))
		}
	case c.Value > highestUserDefinable:
		errs = append(errs, field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %v",
			highestUserDefinable)))
	}
	policies := sets.New(corev1.PreemptLowerPriority, corev1.PreemptNever)
	switch policy := ptr.Deref(c.PreemptionPolicy, ""); {
	case policy == "":
		errs = append(errs, field.Required(field.NewPath("preemptionPolicy"), ""))
	case !policies.Has(policy):
		errs = append(errs, field.NotSupported(field.NewPath("preemptionPolicy"), policy,
			[]corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever}))
	}
	return errs
}

// differsFromSystemClass says how a class differs from the system's class of its name,
// or "" if it does not.
func differsFromSystemClass(c *schedulingv1.PriorityClass) string {
	for i := range systemClasses {
		own := &systemClasses[i]
		switch {
		case own.Name != c.Name:
		case own.Value != c.Value:
			return fmt.Sprintf("value of %v PriorityClass must be %v", own.Name, own.Value)
		case own.GlobalDefault != c.GlobalDefault:
			return fmt.Sprintf("globalDefault of %v PriorityClass must be %v", own.Name, own.GlobalDefault)
		default:
			return ""
		}
	}
	return c.Name + " is not a known system priority class"
}

func validateUpdate(_ context.Context, c, old *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if c.Value != old.Value {
		errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
	}
	return append(errs, check.Unchanged(c.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
}

// Bootstrap creates missing system classes.
func Bootstrap(ctx context.Context, classes *registry.Store[*schedulingv1.PriorityClass]) error {
	for i := range systemClasses {
		if _, err := classes.CreateTyped(ctx, systemClasses[i].DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("bootstrap priority class %s: %w", systemClasses[i].Name, err)
		}
	}
	return nil
}
