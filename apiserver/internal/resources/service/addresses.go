package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

const managedBy = "ipaddress.kubernetes.io/managed-by"

// Addresses is the strategy of IP addresses. Each is named as itself, which is
// what keeps it from being given twice.
func Addresses() registry.Strategy[*networkingv1.IPAddress] {
	return registry.Strategy[*networkingv1.IPAddress]{
		Resource: core.IPAddresses, Singular: "ipaddress", ShortNames: []string{"ip"},
		Columns: cell.Columns(networkingv1.IPAddressSpec{}.SwaggerDoc(), "Name", "ParentRef=parentRef"),
		Row: func(ip *networkingv1.IPAddress) []any {
			p := ip.Spec.ParentRef
			if p == nil {
				return []any{ip.Name, cell.None}
			}
			return []any{ip.Name, parent(p)}
		},
		UnconditionalUpdate: true,
		Validate:            func(_ context.Context, ip *networkingv1.IPAddress) field.ErrorList { return validateParent(ip) },
		Update: registry.Change[*networkingv1.IPAddress]{Validate: func(_ context.Context, ip, old *networkingv1.IPAddress) field.ErrorList {
			return append(check.Same(ip.Spec.ParentRef, old.Spec.ParentRef, parentPath), validateParent(ip)...)
		}},
		ValidateName: func(name string, _ bool) []string {
			if addr, err := netip.ParseAddr(name); err != nil || addr.String() != name {
				return []string{"must be a valid IP address in canonical form"}
			}
			return check.NameIsSegment(name, false)
		},
	}
}

var parentPath = field.NewPath("spec", "parentRef")

// validateParent checks that an address says whose it is.
func validateParent(ip *networkingv1.IPAddress) field.ErrorList {
	p := ip.Spec.ParentRef
	if p == nil {
		return field.ErrorList{field.Required(parentPath, "")}
	}
	var errs field.ErrorList
	if p.Resource == "" {
		errs = append(errs, field.Required(parentPath.Child("resource"), ""))
	}
	if p.Name == "" {
		errs = append(errs, field.Required(parentPath.Child("name"), ""))
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
	errFull  = errors.New("range is full")
	errTaken = errors.New("provided IP is already allocated")
)

// addresses gives addresses of the cluster's ranges to services.
type addresses struct {
	ranges   []netip.Prefix // one of each family, the default first
	held     *registry.Store[*networkingv1.IPAddress]
	services *registry.Store[*corev1.Service]
	clock    clock.PassiveClock
}

// inFlight is how long a service may take from getting its address to being
// stored.
const inFlight = time.Minute

// families are those of the ranges.
func (a *addresses) families() []corev1.IPFamily {
	families := make([]corev1.IPFamily, len(a.ranges))
	for i, r := range a.ranges {
		families[i] = family(r.Addr())
	}
	return families
}

// of returns the range of a family. A service has none that the cluster has no
// range of: see checkFamilies.
func (a *addresses) of(wanted corev1.IPFamily) (netip.Prefix, error) {
	for _, r := range a.ranges {
		if family(r.Addr()) == wanted {
			return r, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("%s is not configured on this cluster", wanted)
}

// bounds are the first address of a range that can be given and how many there
// are: not the network's own and not the one for broadcasts.
func bounds(r netip.Prefix) (first netip.Addr, count uint32) {
	bits := min(r.Addr().BitLen()-r.Bits(), 16) // larger ranges are given from their beginning
	return r.Masked().Addr().Next(), uint32(1)<<bits - 2
}

// take gives the wanted address, or any of the family where it is "".
func (a *addresses) take(ctx context.Context, s *corev1.Service, family corev1.IPFamily, wanted string, dry bool) (string, error) {
	from, err := a.of(family)
	if err != nil {
		return "", err
	}
	if wanted != "" {
		addr, err := netip.ParseAddr(wanted)
		if err != nil || !from.Contains(addr) {
			return "", fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", wanted, from)
		}
		return wanted, a.hold(ctx, s, addr.String(), dry)
	}
	first, count := bounds(from)
	at := rand.Uint32N(count)
	for range count {
		ip := after(first, at).String()
		err := a.hold(ctx, s, ip, dry)
		if !errors.Is(err, errTaken) {
			return ip, err
		}
		at = (at + 1) % count
	}
	return "", errFull
}

// after is the nth address behind addr.
func after(addr netip.Addr, n uint32) netip.Addr {
	raw := addr.AsSlice()
	for i := len(raw) - 1; n > 0 && i >= 0; i-- {
		n += uint32(raw[i])
		raw[i] = byte(n)
		n >>= 8
	}
	next, _ := netip.AddrFromSlice(raw)
	return next
}

// hold writes down that the service has the address. Only one writer can. An
// address whose service is gone, because a server ended between two writes, is
// taken over.
func (a *addresses) hold(ctx context.Context, s *corev1.Service, ip string, dry bool) error {
	held, err := a.held.GetTyped(ctx, "", ip, "0")
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case err == nil && !a.orphaned(ctx, held):
		return errTaken
	case dry:
		return nil
	case err == nil:
		options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &held.UID}}
		if err := a.held.DeleteTyped(ctx, "", ip, options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	family, _ := familyOf(ip)
	_, err = a.held.CreateTyped(ctx, &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip, Labels: map[string]string{
			"ipaddress.kubernetes.io/ip-family": string(family), managedBy: "ipallocator.k8s.io",
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: core.Services.Name, Namespace: s.Namespace, Name: s.Name}},
	})
	if apierrors.IsAlreadyExists(err) {
		return errTaken
	}
	return err
}

// orphaned: the address's service is not there, and was not about to be stored.
func (a *addresses) orphaned(ctx context.Context, held *networkingv1.IPAddress) bool {
	parent := held.Spec.ParentRef
	if held.Labels[managedBy] == "" || parent == nil || a.clock.Since(held.CreationTimestamp.Time) < inFlight {
		return false
	}
	service, err := a.services.GetTyped(ctx, parent.Namespace, parent.Name, "")
	return apierrors.IsNotFound(err) || err == nil && !slices.Contains(addressesOf(service), held.Name)
}

// release gives an address back.
func (a *addresses) release(ctx context.Context, ip string) error {
	if err := a.held.DeleteTyped(ctx, "", ip, nil); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release address %s: %w", ip, err)
	}
	return nil
}
