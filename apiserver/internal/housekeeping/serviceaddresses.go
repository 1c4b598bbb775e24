package housekeeping

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/informer"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/networking"
	"kctl/apiserver/internal/resources/service"
	"kctl/proto/core"
	"kctl/proto/events"
)

const (
	serviceAddressesName = "ipallocator-repair-controller"
	// maxAllocationTime is how long a service may take from being assigned an
	// address to being stored: longer than any request.
	maxAllocationTime = time.Minute
)

// serviceAddresses makes sure that each address of a service has its IPAddress,
// and that no IPAddress of a service stays that the service does not have. That
// happens when a server stops between the two writes, or when a user deletes or
// writes them.
type serviceAddresses struct {
	services     *informer.Informer[[]netip.Addr]
	serviceStore registry.Resource
	addresses    *informer.Informer[addressState]
	addressStore registry.Resource
	cidrs        registry.Resource
	events       registry.Resource
	clock        clock.Clock
	logger       *zap.Logger

	byService, byAddress *worker
}

// addressState are what the loop knows of an IPAddress.
type addressState struct {
	managed bool
	parent  informer.Key // the service, if it belongs to one
	valid   bool         // labelled as it should be
	created time.Time
}

func addressStateOf(obj core.Object) addressState {
	ip := obj.(*networkingv1.IPAddress)
	f := addressState{managed: service.IsManaged(ip), created: ip.CreationTimestamp.Time}
	if p := ip.Spec.ParentRef; p != nil && service.BelongsTo(ip, p.Namespace, p.Name) {
		f.parent = informer.Key{Namespace: p.Namespace, Name: p.Name}
	}
	if addr, err := netip.ParseAddr(ip.Name); err == nil {
		want := service.NewAddress(addr, "", "").Labels
		f.valid = f.managed && ip.Labels[networkingv1.LabelIPAddressFamily] == want[networkingv1.LabelIPAddressFamily]
	}
	return f
}

func clusterIPsOf(obj core.Object) []netip.Addr { return service.ClusterIPs(obj.(*corev1.Service)) }

// NewServiceAddresses is the loop that keeps services and their addresses consistent.
// In kube-apiserver, too, it belongs to the server itself: --controllers does
// not include it.
func NewServiceAddresses(d Dependencies) Loop {
	return func(ctx context.Context) error {
		s := &serviceAddresses{clock: d.Clock, logger: d.Logger}
		var err error
		if s.services, s.serviceStore, err = newInformer(&d, core.Services, clusterIPsOf); err != nil {
			return err
		}
		if s.addresses, s.addressStore, err = newInformer(&d, core.IPAddresses, addressStateOf); err != nil {
			return err
		}
		if s.cidrs, err = d.Store(networking.ServiceCIDRResource); err != nil {
			return err
		}
		if s.events, err = d.Store(core.Events); err != nil {
			return err
		}
		// One at a time: two services may have the same address.
		s.byService = newWorker(serviceAddressesName, &d, 1, s.syncService)
		s.byAddress = newWorker(serviceAddressesName, &d, 1, s.syncAddress)
		s.services.OnChange(s.serviceChanged)
		s.addresses.OnChange(s.addressChanged)
		known := []<-chan struct{}{s.services.Synced(), s.addresses.Synced()}
		return runAll(ctx, []func(context.Context) error{s.services.Run, s.addresses.Run, afterSync(s.byService.run, known...),
			afterSync(s.byAddress.run, known...)})
	}
}

func (s *serviceAddresses) serviceChanged(key informer.Key, old, now *[]netip.Addr) {
	if now != nil {
		s.byService.add(key)
	}
	if old == nil {
		return
	}
	for _, addr := range *old { // the server that removed the address returns it, if it still runs
		if now == nil || !slices.Contains(*now, addr) {
			s.byAddress.addAfter(informer.Key{Name: addr.String()}, maxAllocationTime)
		}
	}
}

func (s *serviceAddresses) addressChanged(key informer.Key, old, now *addressState) {
	if now != nil && now.parent != (informer.Key{}) {
		s.byAddress.addAfter(key, s.remainingAllocationTime(*now))
	} else if now != nil {
		s.byAddress.add(key)
	}
	for _, f := range []*addressState{old, now} {
		if f != nil && f.parent != (informer.Key{}) {
			s.byService.add(f.parent)
		}
	}
}

// getTyped returns an object as it is stored now; false for none.
func getTyped[T core.Object](ctx context.Context, store registry.Resource, key informer.Key) (T, bool, error) {
	obj, err := registry.GetStored[T](ctx, store, key.Namespace, key.Name)
	if err != nil {
		return obj, false, ignoreNotFound(err, "read "+key.String())
	}
	return obj, true, nil
}

// syncService checks the addresses of one service.
func (s *serviceAddresses) syncService(ctx context.Context, key informer.Key) (again time.Duration, err error) {
	for _, addr := range s.knownAddresses(key) {
		f, ok := s.addresses.Get("", addr.String())
		if ok && f.valid && f.parent == key {
			continue
		}
		svc, ok, err := getTyped[*corev1.Service](ctx, s.serviceStore, key) // the informers may be at different revisions
		if err != nil || !ok || !slices.Contains(service.ClusterIPs(svc), addr) {
			return again, err
		}
		wait, err := s.repair(ctx, svc, addr)
		if err != nil {
			return 0, err
		}
		again = max(again, wait)
	}
	return again, nil
}

// knownAddresses are the service's addresses in the informer.
func (s *serviceAddresses) knownAddresses(key informer.Key) []netip.Addr {
	addrs, _ := s.services.Get(key.Namespace, key.Name)
	return addrs
}

// repair makes sure that an address of a service is recorded as the service's.
// If two services have the same address, it stays the other's.
func (s *serviceAddresses) repair(ctx context.Context, svc *corev1.Service, addr netip.Addr) (again time.Duration, err error) {
	ip, ok, err := getTyped[*networkingv1.IPAddress](ctx, s.addressStore, informer.Key{Name: addr.String()})
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, s.writeMissing(ctx, svc, addr)
	}
	f, own := addressStateOf(ip), informer.Key{Namespace: svc.Namespace, Name: svc.Name}
	if f.parent == own && f.valid {
		return 0, nil
	}
	if f.parent != own && f.parent != (informer.Key{}) {
		other, ok, err := getTyped[*corev1.Service](ctx, s.serviceStore, f.parent)
		if err != nil {
			return 0, err
		}
		if ok && slices.Contains(service.ClusterIPs(other), addr) {
			s.reportEvent(ctx, svc, core.Services, "ClusterIPAlreadyAllocated",
				fmt.Sprintf("Cluster IP [%s]:%s was assigned to multiple services; please recreate service", service.FamilyOf(addr), addr))
			return 0, nil
		}
		if wait := s.remainingAllocationTime(f); wait > 0 { // another service may be about to be stored with it
			return wait, nil
		}
	}
	if f.parent != own {
		s.reportEvent(ctx, svc, core.Services, "ClusterIPNotAllocated",
			fmt.Sprintf("the ClusterIP [%s]: %s for Service %s has a wrong reference; repairing", service.FamilyOf(addr), addr, own))
	}
	if err := s.deleteAddress(ctx, ip); err != nil {
		return 0, err
	}
	return 0, s.createAddress(ctx, svc, addr)
}

// writeMissing records an address of a service that has no IPAddress, unless it
// is outside the cluster's ranges.
func (s *serviceAddresses) writeMissing(ctx context.Context, svc *corev1.Service, addr netip.Addr) error {
	known, err := anyMatches(ctx, s.cidrs, "", func(c *networkingv1.ServiceCIDR) bool { return contains(c, addr) })
	if err != nil {
		return err
	}
	shown := fmt.Sprintf("Cluster IP [%s]: %s", service.FamilyOf(addr), addr)
	if !known {
		s.reportEvent(ctx, svc, core.Services, "ClusterIPOutOfRange", shown+" is not within any configured Service CIDR; please recreate service")
		return nil
	}
	s.reportEvent(ctx, svc, core.Services, "ClusterIPNotAllocated", shown+" is not allocated; repairing")
	return s.createAddress(ctx, svc, addr)
}

// remainingAllocationTime is for how much longer an address may belong to a service that is
// not stored yet.
func (s *serviceAddresses) remainingAllocationTime(f addressState) time.Duration {
	return max(0, maxAllocationTime-s.clock.Since(f.created))
}

// syncAddress removes an address that no service has.
func (s *serviceAddresses) syncAddress(ctx context.Context, key informer.Key) (again time.Duration, err error) {
	f, ok := s.addresses.Get("", key.Name)
	same := func(a netip.Addr) bool { return a.String() == key.Name }
	if !ok || !f.managed || f.parent != (informer.Key{}) && slices.ContainsFunc(s.knownAddresses(f.parent), same) {
		return 0, nil
	}
	ip, ok, err := getTyped[*networkingv1.IPAddress](ctx, s.addressStore, key)
	if err != nil || !ok || !service.IsManaged(ip) {
		return 0, err
	}
	reason, message := "IPAddressNotAllocated",
		fmt.Sprintf("IPAddress %s appears to have been modified, not referencing a Service %v: cleaning up", ip.Name, ip.Spec.ParentRef)
	if parent := addressStateOf(ip).parent; parent != (informer.Key{}) {
		svc, ok, err := getTyped[*corev1.Service](ctx, s.serviceStore, parent)
		switch {
		case err != nil:
			return 0, err
		case ok && slices.ContainsFunc(service.ClusterIPs(svc), same):
			return 0, nil
		case s.remainingAllocationTime(addressStateOf(ip)) > 0:
			return s.remainingAllocationTime(addressStateOf(ip)), nil
		case ok:
			reason = "IPAddressWrongReference"
			message = fmt.Sprintf("IPAddress: %s for Service %s has a wrong reference; cleaning up", ip.Name, parent)
		default:
			message = fmt.Sprintf("IPAddress: %s for Service %s appears to have leaked: cleaning up", ip.Name, parent)
		}
	}
	s.reportEvent(ctx, ip, core.IPAddresses, reason, message)
	return 0, s.deleteAddress(ctx, ip)
}

// createAddress records that a service has an address.
func (s *serviceAddresses) createAddress(ctx context.Context, svc *corev1.Service, addr netip.Addr) error {
	_, err := s.addressStore.Create(ctx, service.NewAddress(addr, svc.Namespace, svc.Name), registry.Admission{}, &metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("write down the address of service %s/%s: %w", svc.Namespace, svc.Name, err)
	}
	return nil
}

// deleteAddress removes this address but not one that was created since.
func (s *serviceAddresses) deleteAddress(ctx context.Context, ip *networkingv1.IPAddress) error {
	_, _, err := s.addressStore.Delete(ctx, "", ip.Name, registry.Admission{},
		&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ip.UID}})
	return ignoreNotFound(err, "take away address "+ip.Name)
}

// reportEvent logs what was wrong, and records upstream's event.
func (s *serviceAddresses) reportEvent(ctx context.Context, obj core.Object, of core.Resource, reason, message string) {
	s.logger.Warn("services and their addresses did not agree",
		zap.String("reason", reason), zap.String("object", obj.GetName()), zap.String("problem", message))
	event := events.New(&core.ObjectReference{
		Kind: of.Kind, APIVersion: of.GVK().GroupVersion().String(), Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	}, corev1.EventSource{Component: serviceAddressesName}, corev1.EventTypeWarning, reason, message, s.clock.Now())
	WriteEvent(ctx, s.events, registry.ServerManager, event, s.logger)
}
