package node

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of nodes.
func Strategy(clock clock.PassiveClock) registry.Strategy[*core.Node] {
	return registry.Strategy[*core.Node]{
		Resource: core.Nodes, Singular: "node", ShortNames: []string{"no"},
		StoragePrefix: "minions",
		New:           func() *core.Node { return new(core.Node) },
		Default:       setDefaults,
		Create: registry.CreateStrategy[*core.Node]{
			Prepare:      func(_ context.Context, n *core.Node) { dropUnused(n) },
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, n *core.Node) field.ErrorList { return validateCreate(n) },
			Warnings:     func(_ context.Context, n *core.Node) []string { return warnings(n) },
		},
		Update: registry.UpdateStrategy[*core.Node]{
			AllowUnconditional: true,
			Prepare:            prepareForUpdate,
			Validate:           validateUpdate,
			Warnings:           func(_ context.Context, n, _ *core.Node) []string { return warnings(n) },
		},
		Status: &registry.UpdateStrategy[*core.Node]{Prepare: prepareStatus, Validate: validateStatus},
		Read: registry.ReadStrategy[*core.Node]{
			Fields: func(n *core.Node) fields.Set {
				return fields.Set{"spec.unschedulable": strconv.FormatBool(n.Spec.Unschedulable)}
			},
			Columns: columns(),
			Row:     func(n *core.Node) []any { return row(n, clock.Now()) },
		},
	}
}

func warnings(n *core.Node) []string {
	var out []string
	if n.Spec.ConfigSource != nil {
		out = append(out, "spec.configSource: the feature is removed")
	}
	if n.Spec.DoNotUseExternalID != "" {
		out = append(out, "spec.externalID: this field is deprecated, and is unused by Kubernetes")
	}
	for i, one := range n.Spec.PodCIDRs {
		out = append(out, validation.GetWarningsForCIDR(field.NewPath("spec", "podCIDRs").Index(i).Upstream(), one)...)
	}
	return out
}

// setDefaults keeps podCIDR and podCIDRs consistent; the older one wins if they
// differ.
func setDefaults(n *core.Node) {
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	check.RoundUpQuantities(n.Status.Capacity, n.Status.Allocatable)
	switch {
	case n.Spec.PodCIDR != "" && (len(n.Spec.PodCIDRs) == 0 || n.Spec.PodCIDRs[0] != n.Spec.PodCIDR):
		n.Spec.PodCIDRs = []string{n.Spec.PodCIDR}
	case n.Spec.PodCIDR == "" && len(n.Spec.PodCIDRs) > 0:
		n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
	}
}

func prepareForUpdate(_ context.Context, n, old *core.Node) {
	n.Status = old.Status
	dropUnused(n)
}

// dropUnused drops fields without a meaning or of alpha features, as upstream does.
func dropUnused(n *core.Node) {
	n.Spec.ConfigSource = nil //lint:ignore SA1019 it is there to be emptied
	n.Spec.PodPreemptionPolicy = nil
}

func prepareStatus(_ context.Context, n, old *core.Node) {
	n.Spec = old.Spec
	n.Status.Config = nil
}
