package endpointreconciler

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/service"
	"kctl/proto/core"
)

const (
	// identityLabel marks the leases of API servers, under upstream's name.
	identityLabel = "apiserver.kubernetes.io/identity"
	identity      = "kctl-apiserver"

	renewInterval = 5 * time.Second
	// leaseDuration is how long a lease may stay unchanged before its holder counts as gone.
	leaseDuration = 15 * time.Second
)

// Stores are what a Reconciler reads and writes.
type Stores struct {
	Leases    *registry.Store[*core.Lease]
	Endpoints *registry.Store[*corev1.Endpoints] //nolint:staticcheck // old clients still use it
	Slices    *registry.Store[*discoveryv1.EndpointSlice]
}

// Reconciler publishes one API server to the cluster.
type Reconciler struct {
	stores  Stores
	address netip.AddrPort
	clock   clock.WithTicker
	logger  *zap.Logger
	// observed is when each lease last changed, by this server's own clock: those of
	// other machines may differ.
	observed map[string]leaseObservation
}

type leaseObservation struct {
	version string
	at      time.Time
}

// New is the keeper of the server that is reached at address.
func New(stores Stores, address netip.AddrPort, clock clock.WithTicker, logger *zap.Logger) *Reconciler {
	return &Reconciler{stores: stores, address: address, clock: clock, logger: logger, observed: map[string]leaseObservation{}}
}

// Run keeps the server among the endpoints until ctx ends, and then removes it,
// so that new connections go to another one.
func (r *Reconciler) Run(ctx context.Context) error {
	ticker := r.clock.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		if err := r.renewAndPublish(ctx); err != nil && ctx.Err() == nil {
			r.logger.Warn("the endpoints of service kubernetes may be out of date, trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return r.releaseLease(context.WithoutCancel(ctx))
		case <-ticker.C():
		}
	}
}

// releaseLease gives up the lease. If the storage is already gone, the lease expires by itself.
func (r *Reconciler) releaseLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewInterval)
	defer cancel()
	err := r.stores.Leases.DeleteTyped(ctx, core.NamespaceSystem, r.leaseName(), nil)
	if err == nil {
		err = r.publishEndpoints(ctx)
	}
	if err != nil {
		r.logger.Info("this server is among the endpoints of service kubernetes until its lease ends", zap.Error(err))
	}
	return nil
}

func (r *Reconciler) renewAndPublish(ctx context.Context) error {
	if err := r.renewLease(ctx); err != nil {
		return err
	}
	return r.publishEndpoints(ctx)
}

func (r *Reconciler) leaseName() string {
	return "apiserver-" + strings.NewReplacer(":", "-", ".", "-", "[", "", "]", "").Replace(r.address.String())
}

func (r *Reconciler) renewLease(ctx context.Context) error {
	hold := func(lease *core.Lease) error {
		lease.Labels = labels.Merge(lease.Labels, labels.Set{identityLabel: identity})
		lease.Spec.HolderIdentity = new(r.address.String())
		lease.Spec.LeaseDurationSeconds = new(int32(leaseDuration / time.Second))
		lease.Spec.RenewTime = new(metav1.NewMicroTime(r.clock.Now()))
		return nil
	}
	_, err := r.stores.Leases.UpdateTyped(ctx, core.NamespaceSystem, r.leaseName(), "", hold)
	if apierrors.IsNotFound(err) {
		lease := &core.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: core.NamespaceSystem, Name: r.leaseName()}}
		_ = hold(lease)
		_, err = r.stores.Leases.CreateTyped(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("renew lease %s: %w", r.leaseName(), err)
	}
	return nil
}

// publishEndpoints writes the addresses of live servers.
func (r *Reconciler) publishEndpoints(ctx context.Context) error {
	alive, err := r.liveServers(ctx)
	if err != nil {
		return err
	}
	if err := createOrUpdate(ctx, r.stores.Endpoints, newEndpoints(alive), func(has, want *corev1.Endpoints) { //nolint:staticcheck // old clients still use it
		has.Labels, has.Subsets = labels.Merge(has.Labels, want.Labels), want.Subsets
	}); err != nil {
		return fmt.Errorf("endpoints of service %s: %w", service.ServerService, err)
	}
	if err := createOrUpdate(ctx, r.stores.Slices, r.newSlice(alive), func(has, want *discoveryv1.EndpointSlice) {
		has.Labels, has.Endpoints, has.Ports = labels.Merge(has.Labels, want.Labels), want.Endpoints, want.Ports
	}); err != nil {
		return fmt.Errorf("endpoint slice of service %s: %w", service.ServerService, err)
	}
	return nil
}

// liveServers returns the addresses of all servers whose leases still change, and
// removes the leases of the others. A service has one port, so servers on
// another port than the first one's are left out.
func (r *Reconciler) liveServers(ctx context.Context) ([]netip.AddrPort, error) {
	leases, _, err := r.stores.Leases.ListTyped(ctx, core.NamespaceSystem, registry.ListOptions{
		Labels: labels.SelectorFromSet(labels.Set{identityLabel: identity}),
	})
	if err != nil {
		return nil, fmt.Errorf("list the leases of API servers: %w", err)
	}
	now, seen := r.clock.Now(), map[string]leaseObservation{}
	var alive []netip.AddrPort
	for _, lease := range leases {
		held, err := netip.ParseAddrPort(ptr.Deref(lease.Spec.HolderIdentity, ""))
		if err != nil || held.Addr().Is4() != r.address.Addr().Is4() {
			continue
		}
		last, known := r.observed[lease.Name]
		if !known || last.version != lease.ResourceVersion {
			last = leaseObservation{lease.ResourceVersion, now}
		}
		if now.Sub(last.at) < leaseDuration {
			seen[lease.Name] = last
			alive = append(alive, held)
			continue
		}
		// Only this version: a lease that is being renewed stays.
		only := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &last.version}}
		if err := r.stores.Leases.DeleteTyped(ctx, core.NamespaceSystem, lease.Name, only); err != nil {
			seen[lease.Name] = last
		}
	}
	r.observed = seen
	slices.SortFunc(alive, netip.AddrPort.Compare)
	return slices.DeleteFunc(alive, func(a netip.AddrPort) bool { return a.Port() != alive[0].Port() }), nil
}
