package housekeeping

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/networking"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/servicecidr"
	"kctl/proto/core"
)

const (
	serviceCIDRsName = "service-cidr-controller"
	// serviceCIDRFinalizer keeps a ServiceCIDR while services have addresses that
	// are in no other.
	serviceCIDRFinalizer = "networking.k8s.io/service-cidr-finalizer"
	// releaseDelay is the least time that a deleted ServiceCIDR stays, so that
	// no server assigns an address from it without knowing of the deletion.
	releaseDelay = 10 * time.Second
)

// serviceCIDRs marks ServiceCIDRs as ready, and keeps deleted ones as long as
// services need them (KEP-1880).
type serviceCIDRs struct {
	cidrs        *informer.Informer[*networkingv1.ServiceCIDR]
	store        registry.Resource
	addresses    *informer.Informer[netip.Addr] // those that services have; others are zero
	addressStore registry.Resource
	clock        clock.Clock
	worker       *worker
}

func newServiceCIDRs(d *Dependencies) (Loop, error) {
	s := &serviceCIDRs{clock: d.Clock}
	var err error
	if s.cidrs, s.store, err = newInformer(d, networking.ServiceCIDRResource, whole[*networkingv1.ServiceCIDR]); err != nil {
		return nil, err
	}
	if s.addresses, s.addressStore, err = newInformer(d, core.IPAddresses, serviceAddressOf); err != nil {
		return nil, err
	}
	// One at a time: of two ranges, each may be dispensable only because of the other.
	s.worker = newWorker(serviceCIDRsName, d, 1, s.sync)
	s.cidrs.OnChange(func(informer.Key, *(*networkingv1.ServiceCIDR), *(*networkingv1.ServiceCIDR)) {
		// A new range may make another one dispensable. There are few.
		s.cidrs.Each(func(key informer.Key, _ *networkingv1.ServiceCIDR) { s.worker.add(key) })
	})
	s.addresses.OnChange(func(_ informer.Key, old, now *netip.Addr) {
		s.cidrs.Each(func(key informer.Key, c *networkingv1.ServiceCIDR) {
			if c.DeletionTimestamp != nil && (old != nil && contains(c, *old) || now != nil && contains(c, *now)) {
				s.worker.add(key)
			}
		})
	})
	return runTogether(s.cidrs.Run, s.addresses.Run, afterSync(s.worker.run, s.cidrs.Synced(), s.addresses.Synced())), nil
}

// serviceAddressOf is the address of an IPAddress that an API server created for a
// service; the zero Addr for others.
func serviceAddressOf(obj core.Object) netip.Addr {
	ip := obj.(*networkingv1.IPAddress)
	if !service.IsManaged(ip) {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(ip.Name)
	return addr
}

// contains reports whether an address may have come from a ServiceCIDR.
func contains(c *networkingv1.ServiceCIDR, addr netip.Addr) bool {
	return slices.ContainsFunc(servicecidr.Of(c), func(r netip.Prefix) bool { return servicecidr.Assignable(r, addr) })
}

func (s *serviceCIDRs) sync(ctx context.Context, key informer.Key) (time.Duration, error) {
	c, ok := s.cidrs.Get("", key.Name)
	switch {
	case !ok:
		return 0, nil
	case c.DeletionTimestamp != nil:
		return s.releaseCIDR(ctx, c)
	}
	if !slices.Contains(c.Finalizers, serviceCIDRFinalizer) {
		err := s.modifyCIDR(ctx, c, func(c *networkingv1.ServiceCIDR) {
			if c.DeletionTimestamp == nil && !slices.Contains(c.Finalizers, serviceCIDRFinalizer) {
				c.Finalizers = append(c.Finalizers, serviceCIDRFinalizer)
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return 0, s.setReady(ctx, c, metav1.Condition{Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready"})
}

// releaseCIDR releases a deleted ServiceCIDR once no service needs it.
func (s *serviceCIDRs) releaseCIDR(ctx context.Context, c *networkingv1.ServiceCIDR) (again time.Duration, err error) {
	if !slices.Contains(c.Finalizers, serviceCIDRFinalizer) {
		return 0, nil
	}
	cidrs, held := s.cidrs.List(), s.addresses.List()
	needed := slices.ContainsFunc(held, func(addr netip.Addr) bool { return isOnlyRangeOf(c, addr, cidrs) })
	if rest := releaseDelay - s.clock.Since(c.DeletionTimestamp.Time); !needed && rest > 0 {
		return rest, nil
	}
	if !needed { // according to the informers; the stored state decides
		if needed, err = s.neededNow(ctx, c); err != nil {
			return 0, err
		}
	}
	if needed {
		return 0, s.setReady(ctx, c, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: networkingv1.ServiceCIDRReasonTerminating,
			Message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
		})
	}
	return 0, s.modifyCIDR(ctx, c, func(c *networkingv1.ServiceCIDR) {
		c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == serviceCIDRFinalizer })
	})
}

// neededNow reports whether, in the stored state, a service has an address that
// is in this ServiceCIDR and no other.
func (s *serviceCIDRs) neededNow(ctx context.Context, c *networkingv1.ServiceCIDR) (bool, error) {
	var cidrs []*networkingv1.ServiceCIDR
	_, err := anyMatches(ctx, s.store, "", func(one *networkingv1.ServiceCIDR) bool {
		cidrs = append(cidrs, one)
		return false
	})
	if err != nil {
		return false, err
	}
	return anyMatches(ctx, s.addressStore, "", func(ip *networkingv1.IPAddress) bool { return isOnlyRangeOf(c, serviceAddressOf(ip), cidrs) })
}

// isOnlyRangeOf reports whether an address is in a ServiceCIDR and in no other. Released
// ones don't count.
func isOnlyRangeOf(c *networkingv1.ServiceCIDR, addr netip.Addr, all []*networkingv1.ServiceCIDR) bool {
	return addr.IsValid() && contains(c, addr) && !slices.ContainsFunc(all, func(other *networkingv1.ServiceCIDR) bool {
		stays := other.DeletionTimestamp == nil || slices.Contains(other.Finalizers, serviceCIDRFinalizer)
		return other.Name != c.Name && stays && contains(other, addr)
	})
}

// setReady records whether the range is ready, if that has changed.
func (s *serviceCIDRs) setReady(ctx context.Context, c *networkingv1.ServiceCIDR, ready metav1.Condition) error {
	has := meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	if has != nil && has.Status == ready.Status && has.Reason == ready.Reason && has.Message == ready.Message {
		return nil
	}
	ready.Type, ready.LastTransitionTime = networkingv1.ServiceCIDRConditionReady, metav1.NewTime(s.clock.Now())
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ready)
	if err != nil {
		return fmt.Errorf("encode whether the range is ready: %w", err)
	}
	fields := map[string]any{"metadata": map[string]any{"uid": string(c.UID)}, "status": map[string]any{"conditions": []any{condition}}}
	err = registry.Apply(ctx, s.store, registry.Target{Name: c.Name, Subresource: "status"}, serviceCIDRsName, fields)
	return ignoreNotFound(err, "record whether the range is ready")
}

// modifyCIDR changes the intended ServiceCIDR, and not another of its name.
func (s *serviceCIDRs) modifyCIDR(ctx context.Context, meant *networkingv1.ServiceCIDR, change func(c *networkingv1.ServiceCIDR)) error {
	err := modify(ctx, s.store, registry.Target{Name: meant.Name}, func(current core.Object) (core.Object, error) {
		if c := current.(*networkingv1.ServiceCIDR); c.UID == meant.UID {
			change(c)
		}
		return current, nil
	})
	return ignoreNotFound(err, "keep the range of services' addresses")
}
