package limitrange

import (
	"context"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Resource is the limit ranges' resource.
var Resource = core.Resource{Version: "v1", Name: "limitranges", Kind: "LimitRange", Namespaced: true}

// Strategy is the strategy of limit ranges.
func Strategy() registry.Strategy[*corev1.LimitRange] {
	return registry.Strategy[*corev1.LimitRange]{
		Resource: Resource, Singular: "limitrange", ShortNames: []string{"limits"},
		New:       func() *corev1.LimitRange { return new(corev1.LimitRange) },
		Default:   setDefaults,
		Normalize: func(l *corev1.LimitRange) { l.Spec.Limits = check.NilIfEmpty(l.Spec.Limits) },
		Create: registry.CreateStrategy[*corev1.LimitRange]{
			Prepare: func(_ context.Context, l *corev1.LimitRange) {
				if l.Name == "" { // this is the only kind that need not have a name
					l.Name = uuid.NewString()
				}
			},
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, l *corev1.LimitRange) field.ErrorList { return validate(l) },
		},
		Update: registry.UpdateStrategy[*corev1.LimitRange]{
			AllowCreate:        true,
			AllowUnconditional: true,
			Validate:           func(_ context.Context, l, _ *corev1.LimitRange) field.ErrorList { return validate(l) },
		},
		Read: registry.ReadStrategy[*corev1.LimitRange]{
			Columns: []metav1.TableColumnDefinition{cell.Name(), cell.CreatedAtColumn()},
			Row: func(l *corev1.LimitRange) []any {
				return []any{l.Name, l.CreationTimestamp.UTC().Format(time.RFC3339)}
			},
		},
	}
}

// setDefaults derives defaults: the maximum is the default limit, which is the
// default request; otherwise the minimum is. Amounts are rounded.
func setDefaults(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		check.RoundUpQuantities(item.Max, item.Min, item.Default, item.DefaultRequest, item.MaxLimitRequestRatio)
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		fill(&item.Default, item.Max)
		fill(&item.DefaultRequest, item.Default)
		fill(&item.DefaultRequest, item.Min)
	}
}

func fill(list *corev1.ResourceList, from corev1.ResourceList) {
	if *list == nil {
		*list = make(corev1.ResourceList, len(from))
	}
	for name, amount := range from {
		if _, set := (*list)[name]; !set {
			(*list)[name] = amount.DeepCopy()
		}
	}
}
