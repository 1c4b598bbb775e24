package networking

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
)

// serverRange is the range that the server's flags say.
const serverRange = "kubernetes"

// ServiceCIDRs is the strategy of the ranges of services' addresses.
func ServiceCIDRs(clock clock.PassiveClock) registry.Strategy[*networkingv1.ServiceCIDR] {
	return registry.WithStatus(registry.Strategy[*networkingv1.ServiceCIDR]{
		Resource: resource("servicecidrs", "ServiceCIDR", false), Singular: "servicecidr",
		UnconditionalUpdate: true,
		Status:              &registry.Change[*networkingv1.ServiceCIDR]{KeepsMetadata: true},
		ValidateName:        check.NameIsSubdomain,
		Validate: func(_ context.Context, c *networkingv1.ServiceCIDR) field.ErrorList {
			return validateRanges(c.Spec.CIDRs)
		},
		Update: registry.Change[*networkingv1.ServiceCIDR]{Validate: func(_ context.Context, c, old *networkingv1.ServiceCIDR) field.ErrorList {
			return sameRanges(c.Spec.CIDRs, old.Spec.CIDRs)
		}},
		Columns: cell.Columns(networkingv1.ServiceCIDRSpec{}.SwaggerDoc(), "Name", "CIDRs=cidrs", "Age"),
		Row: func(c *networkingv1.ServiceCIDR) []any {
			return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), cell.Age(clock.Now(), c.CreationTimestamp)}
		},
	})
}

func validateRanges(ranges []string) field.ErrorList {
	at := specPath.Child("cidrs")
	if len(ranges) == 0 {
		return field.ErrorList{field.Required(at, "at least one CIDR required")}
	}
	var errs field.ErrorList
	if len(ranges) > 2 {
		errs = append(errs, field.Invalid(at, ranges, "may only hold up to 2 values"))
	}
	for i, text := range ranges {
		errs = append(errs, validation.IsValidCIDR(at.Index(i).Upstream(), text)...)
		if i == 0 {
			continue
		}
		first, err := netip.ParsePrefix(ranges[0])
		other, otherErr := netip.ParsePrefix(text)
		if err == nil && otherErr == nil && first.Addr().Is4() == other.Addr().Is4() {
			errs = append(errs, field.Invalid(at, ranges, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
		}
	}
	return errs
}

// sameRanges: a second family may be added, and the ranges stay otherwise.
func sameRanges(now, old []string) field.ErrorList {
	if len(now) > len(old) && slices.Equal(now[:len(old)], old) {
		return validateRanges(now)
	}
	return check.Same(now, old, specPath.Child("cidrs"))
}

// Bootstrap makes the ranges that the server gives addresses from known. A
// cluster that gets its second family has that added.
func Bootstrap(ctx context.Context, ranges *registry.Store[*networkingv1.ServiceCIDR], own []netip.Prefix, now metav1.Time) error {
	var cidrs []string
	for _, r := range own {
		cidrs = append(cidrs, r.Masked().String())
	}
	_, err := ranges.CreateTyped(ctx, &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: serverRange}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs},
	})
	if apierrors.IsAlreadyExists(err) {
		return addSecond(ctx, ranges, cidrs)
	}
	if err == nil {
		_, err = ranges.UpdateTyped(ctx, "", serverRange, "status", func(c *networkingv1.ServiceCIDR) error {
			c.Status.Conditions = []metav1.Condition{{
				Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: now,
				Message: "Kubernetes default Service CIDR is ready",
			}}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("bootstrap service range: %w", err)
	}
	return nil
}

func addSecond(ctx context.Context, ranges *registry.Store[*networkingv1.ServiceCIDR], cidrs []string) error {
	known, err := ranges.GetTyped(ctx, "", serverRange, "")
	if err != nil || len(known.Spec.CIDRs) >= len(cidrs) || !slices.Equal(known.Spec.CIDRs, cidrs[:len(known.Spec.CIDRs)]) {
		return err
	}
	_, err = ranges.UpdateTyped(ctx, "", serverRange, "", func(c *networkingv1.ServiceCIDR) error {
		c.Spec.CIDRs = cidrs
		return nil
	})
	return err
}
