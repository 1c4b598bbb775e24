package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Ranges are the server's own: one address range, or one per family, of which the
// first is the default, and the range of node ports. Addresses come from all
// ServiceCIDRs, of which these are one.
type Ranges struct {
	Addresses []netip.Prefix
	NodePorts utilnet.PortRange
}

// Store is the store of services: it assigns each its addresses and node ports before it
// is stored, and releases them when it is gone. It is a prometheus.Collector.
type Store struct {
	*registry.Store[*corev1.Service]
	addresses *ipAllocator
	ports     *nodePortAllocator
	metrics   *metrics
	logger    *zap.Logger
}

// NewStore returns the store of services. held are the addresses in use, cidrs
// their ranges.
func NewStore(held *registry.Store[*networkingv1.IPAddress], cidrs *registry.Store[*networkingv1.ServiceCIDR], ranges Ranges,
	o registry.Options) *Store {
	prefix := o.Prefix
	if prefix == "" {
		prefix = "/registry"
	}
	m := newMetrics()
	ports := &nodePortAllocator{storage: o.Storage, key: prefix + "/ranges/servicenodeports", ports: ranges.NodePorts, metrics: m}
	ports.allocated.Store(-1)
	services := registry.NewStore(strategy(o.Clock), o)
	ports.services = func(ctx context.Context) ([]*corev1.Service, error) {
		all, _, err := services.ListTyped(ctx, "", registry.ListOptions{})
		return all, err
	}
	return &Store{
		Store:     services,
		addresses: &ipAllocator{own: ranges.Addresses, ranges: cidrs, ipAddresses: held, metrics: m},
		ports:     ports,
		metrics:   m,
		logger:    o.Logger,
	}
}

// Create implements registry.Resource.
func (s *Store) Create(ctx context.Context, obj core.Object, admit registry.Admission, o *metav1.CreateOptions) (registry.Encoded, error) {
	a := &allocation{store: s, dry: len(o.DryRun) > 0}
	e, err := s.Store.Create(ctx, obj, a.withAllocation(admit), o)
	a.end(ctx, err)
	return e, err
}

// Update implements registry.Resource.
func (s *Store) Update(ctx context.Context, target registry.Target, change registry.Transform, admit registry.Admission,
	o *metav1.UpdateOptions) (registry.Encoded, bool, error) {
	a := &allocation{store: s, dry: len(o.DryRun) > 0}
	e, created, err := s.Store.Update(ctx, target, change, a.withAllocation(admit), o)
	a.end(ctx, err)
	return e, created, err
}

// Delete implements registry.Resource.
func (s *Store) Delete(ctx context.Context, namespace, name string, admit registry.Admission,
	o *metav1.DeleteOptions) (registry.Encoded, bool, error) {
	e, gone, err := s.Store.Delete(ctx, namespace, name, admit, o)
	if err == nil && gone && (o == nil || len(o.DryRun) == 0) {
		s.releaseAll(ctx, e)
	}
	return e, gone, err
}

// DeleteCollection implements registry.Resource.
func (s *Store) DeleteCollection(ctx context.Context, namespace string, admit registry.Admission, o *metav1.DeleteOptions,
	list registry.ListOptions) (registry.List, error) {
	return registry.DeleteEach(ctx, s, namespace, admit, o, list)
}

// releaseAll releases what a deleted service had. One with finalizers is still
// there.
func (s *Store) releaseAll(ctx context.Context, e registry.Encoded) {
	obj, err := s.Decode(e)
	if err != nil {
		s.logger.Warn("can't release a service's addresses and ports", zap.Error(err))
		return
	}
	if service := obj.(*corev1.Service); len(service.Finalizers) == 0 {
		s.release(ctx, service, nil)
	}
}

// release releases what old had and now, which may be nil, has not.
func (s *Store) release(ctx context.Context, old, now *corev1.Service) {
	var errs []error
	for _, ip := range addressesOf(old) {
		if now == nil || !slices.Contains(addressesOf(now), ip) {
			errs = append(errs, s.addresses.release(ctx, old, ip))
		}
	}
	done := map[int32]bool{0: true}
	for _, port := range nodePortsInUse(old) {
		if !done[port] && (now == nil || !slices.Contains(nodePortsInUse(now), port)) {
			errs = append(errs, s.ports.release(ctx, port))
		}
		done[port] = true
	}
	if err := errors.Join(errs...); err != nil {
		s.logger.Warn("some of a service's addresses and ports were not released",
			zap.String("service", old.Namespace+"/"+old.Name), zap.Error(err))
	}
}

// nodePortsInUse are a service's node ports; 0 means none.
func nodePortsInUse(s *corev1.Service) []int32 {
	ports := []int32{s.Spec.HealthCheckNodePort}
	for _, port := range s.Spec.Ports {
		ports = append(ports, port.NodePort)
	}
	return ports
}

// allocation is what one create or update allocates.
type allocation struct {
	store *Store
	dry   bool
	undo  []func(ctx context.Context)
	// now and old are the stored service and the earlier one.
	now, old *corev1.Service
}

// withAllocation allocates before validating admission, which sees the service as it is
// about to be stored. If admission refuses, the allocation is released.
func (a *allocation) withAllocation(admit registry.Admission) registry.Admission {
	agree := admit.Validate
	admit.Validate = func(ctx context.Context, obj, old core.Object) error {
		a.rollBack(ctx) // an earlier attempt lost a race
		a.now, a.old = obj.(*corev1.Service), nil
		if before, ok := old.(*corev1.Service); ok {
			a.old = before
		}
		err := a.allocate(ctx)
		if err == nil && agree != nil {
			err = agree(ctx, obj, old)
		}
		if err != nil { // also with a status that leaves `end` uncertain
			a.rollBack(ctx)
		}
		return err
	}
	return admit
}

// end releases what an unsuccessful change had allocated, or what the stored
// service no longer has. If the outcome is unknown, it releases nothing.
func (a *allocation) end(ctx context.Context, err error) {
	var status apierrors.APIStatus
	switch {
	case a.now == nil || a.dry:
	case err == nil && a.old != nil && a.old.DeletionTimestamp != nil && len(a.now.Finalizers) == 0:
		a.store.release(ctx, a.old, nil)
	case err == nil && a.old != nil:
		a.store.release(ctx, a.old, a.now)
	case errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError:
		a.rollBack(ctx)
	}
}

func (a *allocation) rollBack(ctx context.Context) {
	for _, undo := range a.undo {
		undo(ctx)
	}
	a.undo = nil
}

// allocate allocates what the service lacks.
func (a *allocation) allocate(ctx context.Context) error {
	s := a.now
	errs := setFamilies(&s.Spec, a.store.addresses.families())
	if len(errs) == 0 {
		var err error
		if errs, err = a.allocateClusterIPs(ctx, s); err != nil {
			return err
		}
	}
	if len(errs) == 0 {
		errs = a.allocateNodePorts(ctx, s)
	}
	if len(errs) == 0 {
		errs = a.allocateHealthCheckNodePort(ctx, s)
	}
	if len(errs) > 0 {
		return registry.Invalid(core.Services.GVK().GroupKind(), s.Name, errs)
	}
	return nil
}

// allocateClusterIPs allocates an address in each of the service's families.
func (a *allocation) allocateClusterIPs(ctx context.Context, s *corev1.Service) (field.ErrorList, error) {
	if !needsClusterIP(s) {
		return nil, nil
	}
	wished := slices.Clone(s.Spec.ClusterIPs)
	ips := slices.Clone(wished)
	for i, family := range s.Spec.IPFamilies {
		wanted := ""
		if i < len(ips) {
			wanted = ips[i]
		}
		if wanted != "" && a.old != nil && slices.Contains(addressesOf(a.old), wanted) {
			continue
		}
		ip, err := a.store.addresses.allocate(ctx, s, family, wanted, a.dry)
		switch {
		case errors.Is(err, errFull):
			return nil, apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", s.Name, err))
		case err != nil:
			text := "failed to allocate IP: "
			if wanted != "" {
				text = "failed to allocate IP " + wanted + ": "
			}
			return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs"), wished, text+err.Error())}, nil
		}
		if wanted == "" {
			ips = append(ips, ip)
		}
		a.onRollback(func(ctx context.Context) error {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "", wished
			if len(wished) > 0 {
				s.Spec.ClusterIP = wished[0]
			}
			return a.store.addresses.release(ctx, s, ip)
		})
	}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = ips[0], ips
	return nil, nil
}

func (a *allocation) allocateNodePorts(ctx context.Context, s *corev1.Service) field.ErrorList {
	if !isReachableThroughNodes(s) {
		return nil
	}
	held := map[int32]bool{}
	if a.old != nil {
		for _, port := range a.old.Spec.Ports {
			held[port.NodePort] = port.NodePort != 0
		}
	}
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		if held[port.NodePort] || port.NodePort == 0 && !defaultsNodePorts(s) {
			continue
		}
		wanted := port.NodePort
		given, err := a.store.ports.allocate(ctx, wanted, a.dry)
		if err != nil {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), wanted, err.Error())}
		}
		port.NodePort, held[given] = given, true
		a.onRollback(func(ctx context.Context) error {
			port.NodePort = wanted
			return a.store.ports.release(ctx, given)
		})
	}
	return nil
}

// allocateHealthCheckNodePort allocates the port for a load balancer's health checks of nodes.
func (a *allocation) allocateHealthCheckNodePort(ctx context.Context, s *corev1.Service) field.ErrorList {
	wanted := s.Spec.HealthCheckNodePort
	if !needsHealthCheckNodePort(&s.Spec) || a.old != nil && wanted != 0 && wanted == a.old.Spec.HealthCheckNodePort {
		return nil
	}
	given, err := a.store.ports.allocate(ctx, wanted, a.dry)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "healthCheckNodePort"), wanted, err.Error())}
	}
	s.Spec.HealthCheckNodePort = given
	a.onRollback(func(ctx context.Context) error {
		s.Spec.HealthCheckNodePort = wanted
		return a.store.ports.release(ctx, given)
	})
	return nil
}

// onRollback records how to undo an allocation. A dry run allocates nothing.
func (a *allocation) onRollback(undo func(ctx context.Context) error) {
	if a.dry {
		return
	}
	a.undo = append(a.undo, func(ctx context.Context) {
		if err := undo(ctx); err != nil {
			a.store.logger.Warn("addresses and ports of a service that was not stored were not released", zap.Error(err))
		}
	})
}
