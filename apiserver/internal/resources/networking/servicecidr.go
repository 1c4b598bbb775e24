package networking

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
)

// ServiceCIDRResource is the resource of the ranges of services' addresses.
var ServiceCIDRResource = resource("servicecidrs", "ServiceCIDR", false)

const (
	// DefaultServiceCIDRName is the name of the range from the server's flags.
	DefaultServiceCIDRName = "kubernetes"
	// DefaultServiceCIDRManager is the field manager with which the server marks its range as
	// ready; upstream's.
	DefaultServiceCIDRManager = "kubernetes-service-cidr-controller"
)

// ServiceCIDRs is the strategy of the ranges of services' addresses.
func ServiceCIDRs(clock clock.PassiveClock) registry.Strategy[*networkingv1.ServiceCIDR] {
	return registry.WithStatus(registry.Strategy[*networkingv1.ServiceCIDR]{
		Resource: ServiceCIDRResource, Singular: "servicecidr",
		Create: registry.CreateStrategy[*networkingv1.ServiceCIDR]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, c *networkingv1.ServiceCIDR) field.ErrorList {
				return validateRanges(c.Spec.CIDRs)
			},
		},
		Update: registry.UpdateStrategy[*networkingv1.ServiceCIDR]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, c, old *networkingv1.ServiceCIDR) field.ErrorList {
				return sameRanges(c.Spec.CIDRs, old.Spec.CIDRs)
			},
		},
		Status: &registry.UpdateStrategy[*networkingv1.ServiceCIDR]{KeepsMetadata: true},
		Read: registry.ReadStrategy[*networkingv1.ServiceCIDR]{
			Columns: cell.Columns(networkingv1.ServiceCIDRSpec{}.SwaggerDoc(), "Name", "CIDRs=cidrs", "Age"),
			Row: func(c *networkingv1.ServiceCIDR) []any {
				return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), cell.Age(clock.Now(), c.CreationTimestamp)}
			},
		},
	})
}

func validateRanges(ranges []string) field.ErrorList {
	at := specPath.Child("cidrs")
	if len(ranges) == 0 {
		return field.ErrorList{field.Required(at, "at least one CIDR required")}
	}
	if len(ranges) > 2 {
		return field.ErrorList{field.Invalid(at, check.GoFieldNames{Value: networkingv1.ServiceCIDRSpec{CIDRs: ranges}},
			"may only hold up to 2 values")}
	}
	var errs field.ErrorList
	for i, text := range ranges {
		errs = append(errs, validation.IsValidCIDR(at.Index(i).Upstream(), text)...)
		if i == 0 {
			continue
		}
		first, err := netip.ParsePrefix(ranges[0])
		other, otherErr := netip.ParsePrefix(text)
		if err == nil && otherErr == nil && first.Addr().Is4() == other.Addr().Is4() {
			errs = append(errs, field.Invalid(at, ranges,
				"may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
		}
	}
	return errs
}

// sameRanges checks that ranges don't change, except that a second family may be added.
func sameRanges(now, old []string) field.ErrorList {
	at := specPath.Child("cidrs")
	switch {
	case len(now) == len(old):
		var errs field.ErrorList
		for i := range now {
			errs = append(errs, check.Unchanged(now[i], old[i], at.Index(i))...)
		}
		return errs
	case len(old) == 1 && len(now) == 2:
		return append(check.Unchanged(now[0], old[0], at.Index(0)), validateRanges(now)...)
	}
	return field.ErrorList{field.Invalid(at, now, check.Immutable)}
}

// ErrDefaultServiceCIDRDiffers is returned if the cluster's default ranges are not those of the
// server's flags; addresses are still assigned from the cluster's.
var ErrDefaultServiceCIDRDiffers = errors.New("the default ServiceCIDR does not match the server's flags")

// Bootstrap stores the ranges of the server's flags, if there are none. To a
// cluster with one family, it adds the second.
func Bootstrap(ctx context.Context, ranges *registry.Store[*networkingv1.ServiceCIDR], own []netip.Prefix, now metav1.Time) error {
	cidrs := make([]string, 0, len(own))
	for _, r := range own {
		cidrs = append(cidrs, r.Masked().String())
	}
	known, err := registry.GetStored[*networkingv1.ServiceCIDR](ctx, ranges, "", DefaultServiceCIDRName)
	if apierrors.IsNotFound(err) {
		known, err = ranges.CreateTyped(ctx, &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: DefaultServiceCIDRName}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs},
		})
	}
	switch {
	case apierrors.IsAlreadyExists(err): // another server was faster, and does the rest
		return nil
	case err != nil:
		return fmt.Errorf("bootstrap service range: %w", err)
	case known.DeletionTimestamp != nil: // created again when it is gone
		return nil
	case len(known.Spec.CIDRs) < len(cidrs) && slices.Equal(known.Spec.CIDRs, cidrs[:len(known.Spec.CIDRs)]):
		_, err = ranges.UpdateTyped(ctx, "", DefaultServiceCIDRName, "", func(c *networkingv1.ServiceCIDR) error {
			c.Spec.CIDRs = cidrs
			return nil
		})
	case !slices.Equal(known.Spec.CIDRs, cidrs):
		return fmt.Errorf("%w: %v and %v", ErrDefaultServiceCIDRDiffers, known.Spec.CIDRs, cidrs)
	}
	if err == nil && isReadinessUnknown(known) {
		ready := map[string]any{
			"type": networkingv1.ServiceCIDRConditionReady, "status": string(metav1.ConditionTrue),
			"lastTransitionTime": now.UTC().Format(time.RFC3339), "message": "Kubernetes default Service CIDR is ready",
		}
		err = registry.Apply(ctx, ranges, registry.Target{Name: DefaultServiceCIDRName, Subresource: "status"}, DefaultServiceCIDRManager,
			map[string]any{"status": map[string]any{"conditions": []any{ready}}})
	}
	if err != nil {
		return fmt.Errorf("bootstrap service range: %w", err)
	}
	return nil
}

// isReadinessUnknown reports whether the range's readiness is still undetermined.
func isReadinessUnknown(c *networkingv1.ServiceCIDR) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	return ready == nil || ready.Status == metav1.ConditionUnknown
}
