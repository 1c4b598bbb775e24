package resourcequota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// resource is the resource quotas' resource.
var resource = core.Resource{Version: "v1", Name: "resourcequotas", Kind: "ResourceQuota", Namespaced: true}

// Strategy is the strategy of resource quotas.
func Strategy(clock clock.PassiveClock) registry.Strategy[*corev1.ResourceQuota] {
	return registry.Strategy[*corev1.ResourceQuota]{
		Resource: resource, Singular: "resourcequota", ShortNames: []string{"quota"},
		New:     func() *corev1.ResourceQuota { return new(corev1.ResourceQuota) },
		Default: func(q *corev1.ResourceQuota) { check.RoundUpQuantities(q.Spec.Hard, q.Status.Hard, q.Status.Used) },
		Create: registry.CreateStrategy[*corev1.ResourceQuota]{
			Prepare:      func(_ context.Context, q *corev1.ResourceQuota) { q.Status = corev1.ResourceQuotaStatus{} },
			ValidateName: check.NameIsSubdomain,
			Validate:     validate,
			Warnings:     func(_ context.Context, q *corev1.ResourceQuota) []string { return warnings(q.Spec.Hard) },
		},
		Update: registry.UpdateStrategy[*corev1.ResourceQuota]{
			AllowUnconditional: true,
			Prepare:            func(_ context.Context, q, old *corev1.ResourceQuota) { q.Status = old.Status },
			Validate:           validateUpdate,
		},
		Status: &registry.UpdateStrategy[*corev1.ResourceQuota]{
			Prepare:  func(_ context.Context, q, old *corev1.ResourceQuota) { q.Spec = old.Spec },
			Validate: validateStatus,
		},
		Delete: registry.DeleteStrategy[*corev1.ResourceQuota]{ReturnDeletedObject: true},
		Read: registry.ReadStrategy[*corev1.ResourceQuota]{
			Columns: []metav1.TableColumnDefinition{
				cell.Name(),
				cell.Text("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
				cell.Text("Limit", "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."),
				cell.AgeColumn(),
			},
			Row: func(q *corev1.ResourceQuota) []any {
				requests, limits := usage(q)
				return []any{q.Name, requests, limits, cell.Age(clock.Now(), q.CreationTimestamp)}
			},
		},
	}
}

// warnings warns about bounds that can't both be reached: the requests of pods are at most
// their limits.
func warnings(hard corev1.ResourceList) []string {
	var out []string
	for _, name := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage,
	} {
		asked, limit := "requests."+name, "limits."+name
		if _, ok := hard[asked]; !ok && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			asked = name // the older name of the same
		}
		requests, ok := hard[asked]
		limits, both := hard[limit]
		if ok && both && requests.Cmp(limits) > 0 {
			out = append(out, fmt.Sprintf("ResourceQuota %s (%s) should be less than %s (%s)", asked, requests.String(), limit, limits.String()))
		}
	}
	return out
}

// usage lists usage and bounds, with limits separate from the rest.
func usage(q *corev1.ResourceQuota) (requests, limits string) {
	var others, ofLimits []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		text := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits") {
			ofLimits = append(ofLimits, text)
		} else {
			others = append(others, text)
		}
	}
	return strings.Join(others, ", "), strings.Join(ofLimits, ", ")
}
