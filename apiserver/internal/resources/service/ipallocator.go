package service

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/servicecidr"
	"kctl/proto/core"
)

// allocatorName is the value of the managed-by label of services' addresses.
const allocatorName = "ipallocator.k8s.io"

// IsManaged reports whether an API server created an address for a service.
func IsManaged(ip *networkingv1.IPAddress) bool {
	return ip.Labels[networkingv1.LabelManagedBy] == allocatorName
}

// BelongsTo reports whether an address belongs to a service.
func BelongsTo(ip *networkingv1.IPAddress, namespace, name string) bool {
	p := ip.Spec.ParentRef
	return p != nil && *p == networkingv1.ParentReference{Resource: core.Services.Name, Namespace: namespace, Name: name}
}

// NewAddress is the IPAddress for a service's address.
func NewAddress(addr netip.Addr, namespace, name string) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: addr.String(), Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: string(FamilyOf(addr)), networkingv1.LabelManagedBy: allocatorName,
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{
			Resource: core.Services.Name, Namespace: namespace, Name: name,
		}},
	}
}

// Addresses is the strategy of IP addresses. The address is the name, so it
// can't be assigned twice.
func Addresses() registry.Strategy[*networkingv1.IPAddress] {
	return registry.Strategy[*networkingv1.IPAddress]{
		Resource: core.IPAddresses, Singular: "ipaddress", ShortNames: []string{"ip"},
		Create: registry.CreateStrategy[*networkingv1.IPAddress]{
			ValidateName: func(name string, _ bool) (problems []string) {
				for _, problem := range validation.IsValidIP(nil, name) {
					problems = append(problems, problem.Detail)
				}
				return problems
			},
			Validate: func(_ context.Context, ip *networkingv1.IPAddress) field.ErrorList { return validateParent(ip) },
		},
		Update: registry.UpdateStrategy[*networkingv1.IPAddress]{
			AllowUnconditional: true,
			Validate: func(_ context.Context, ip, old *networkingv1.IPAddress) field.ErrorList {
				return append(check.DeclaredImmutable(ip.Spec.ParentRef, old.Spec.ParentRef, parentPath), validateParent(ip)...)
			},
		},
		Read: registry.ReadStrategy[*networkingv1.IPAddress]{
			Columns: cell.Columns(networkingv1.IPAddressSpec{}.SwaggerDoc(), "Name", "ParentRef=parentRef"),
			Row: func(ip *networkingv1.IPAddress) []any {
				p := ip.Spec.ParentRef
				if p == nil {
					return []any{ip.Name, cell.None}
				}
				return []any{ip.Name, parent(p)}
			},
		},
	}
}

var parentPath = field.NewPath("spec", "parentRef")

// validateParent checks that an address names its owner.
func validateParent(ip *networkingv1.IPAddress) field.ErrorList {
	p := ip.Spec.ParentRef
	if p == nil {
		return field.ErrorList{field.Required(parentPath, "")}
	}
	var errs field.ErrorList
	if p.Group != "" {
		errs = append(errs, check.Messages(parentPath.Child("group"), p.Group, check.NameIsSubdomain(p.Group, false))...)
	}
	for _, part := range []struct {
		name, value string
		required    bool
	}{{"resource", p.Resource, true}, {"name", p.Name, true}, {"namespace", p.Namespace, false}} {
		switch at := parentPath.Child(part.name); {
		case part.value != "":
			errs = append(errs, check.Messages(at, part.value, check.NameIsSegment(part.value, false))...)
		case part.required:
			errs = append(errs, field.Required(at, ""))
		}
	}
	return errs
}

// parent names the object that has an address.
func parent(p *networkingv1.ParentReference) string {
	name := p.Resource
	if p.Group != "" {
		name += "." + p.Group
	}
	if p.Namespace != "" {
		name += "/" + p.Namespace
	}
	return name + "/" + p.Name
}

var (
	errFull          = errors.New("range is full")
	errTaken         = errors.New("provided IP is already allocated")
	errNotInAnyRange = errors.New("the provided network does not match the current range")
)

// ipAllocator assigns addresses from the cluster's ranges (ServiceCIDRs) to
// services. Each is recorded in an IPAddress, which only one writer can create.
type ipAllocator struct {
	// own are the server's own ranges, one per family, the default first. Services
	// are of these families.
	own         []netip.Prefix
	ranges      *registry.Store[*networkingv1.ServiceCIDR]
	ipAddresses *registry.Store[*networkingv1.IPAddress]

	metrics *metrics
}

// families are the possible families of services.
func (a *ipAllocator) families() []corev1.IPFamily {
	families := make([]corev1.IPFamily, len(a.own))
	for i, r := range a.own {
		families[i] = FamilyOf(r.Addr())
	}
	return families
}

// readyRanges are the ranges of a family from which addresses are assigned, the oldest
// first: an added range is used when the earlier ones are full. They are read
// from the store, so that a new range is used at once, and one being deleted no
// longer.
func (a *ipAllocator) readyRanges(ctx context.Context, wanted corev1.IPFamily) ([]netip.Prefix, error) {
	all, _, err := a.ranges.ListTyped(ctx, "", registry.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the ranges of services' addresses: %w", err)
	}
	slices.SortStableFunc(all, func(x, y *networkingv1.ServiceCIDR) int {
		return x.CreationTimestamp.Compare(y.CreationTimestamp.Time)
	})
	var out []netip.Prefix
	for _, c := range all {
		if !servicecidr.Ready(c) {
			continue
		}
		for _, r := range servicecidr.Of(c) {
			if FamilyOf(r.Addr()) == wanted {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// allocate assigns the requested address, or any of the family if it is "".
func (a *ipAllocator) allocate(ctx context.Context, s *corev1.Service, family corev1.IPFamily, wanted string, dry bool) (string, error) {
	ranges, err := a.readyRanges(ctx, family)
	if err != nil {
		return "", err
	}
	if wanted != "" {
		return wanted, a.allocateRequested(ctx, s, ranges, wanted, dry)
	}
	for _, r := range ranges {
		for addr := range servicecidr.Addresses(r) {
			err := a.createIPAddress(ctx, s, addr, dry)
			if !errors.Is(err, errTaken) {
				a.count(err, r, dynamic, dry)
				return addr.String(), err
			}
		}
		a.count(errFull, r, dynamic, dry)
	}
	return "", errFull
}

func (a *ipAllocator) allocateRequested(ctx context.Context, s *corev1.Service, ranges []netip.Prefix, wanted string, dry bool) error {
	addr, err := netip.ParseAddr(wanted)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(ranges, func(r netip.Prefix) bool { return servicecidr.Assignable(r, addr) }); i >= 0 {
		err := a.createIPAddress(ctx, s, addr, dry)
		a.count(err, ranges[i], static, dry)
		return err
	}
	if dry && len(ranges) > 0 { // in upstream's words for a dry run
		return fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", wanted, ranges[0])
	}
	return errNotInAnyRange
}

func (a *ipAllocator) count(err error, r netip.Prefix, scope string, dry bool) {
	if !dry {
		count(a.metrics.addresses, a.metrics.addressErrors, err, r.String(), scope)
	}
}

// createIPAddress records that the service has the address; only one writer can. If a
// server stops between two writes, a loop removes what it left.
func (a *ipAllocator) createIPAddress(ctx context.Context, s *corev1.Service, addr netip.Addr, dry bool) error {
	_, err := a.ipAddresses.Get(ctx, "", addr.String(), "0")
	switch {
	case err == nil:
		return errTaken
	case !apierrors.IsNotFound(err):
		return err
	case dry:
		return nil
	}
	_, err = a.ipAddresses.CreateTyped(ctx, NewAddress(addr, s.Namespace, s.Name))
	if apierrors.IsAlreadyExists(err) {
		return errTaken
	}
	return err
}

// release releases a service's address, if it still belongs to the service.
func (a *ipAllocator) release(ctx context.Context, s *corev1.Service, ip string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return err
	}
	held, err := registry.GetStored[*networkingv1.IPAddress](ctx, a.ipAddresses, "", addr.String())
	if err == nil && BelongsTo(held, s.Namespace, s.Name) {
		err = a.ipAddresses.DeleteTyped(ctx, "", held.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &held.UID}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release address %s: %w", ip, err)
	}
	return nil
}
