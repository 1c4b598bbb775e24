package presence

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

// Stores are what a Keeper reads and writes.
type Stores struct {
	Leases    *registry.Store[*core.Lease]
	Endpoints *registry.Store[*corev1.Endpoints] //nolint:staticcheck // old clients still use it
	Slices    *registry.Store[*discoveryv1.EndpointSlice]
}

// Keeper publishes one API server to the cluster.
type Keeper struct {
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
func New(stores Stores, address netip.AddrPort, clock clock.WithTicker, logger *zap.Logger) *Keeper {
	return &Keeper{stores: stores, address: address, clock: clock, logger: logger, observed: map[string]leaseObservation{}}
}

// Run keeps the server among the endpoints until ctx ends, and then removes it,
// so that new connections go to another one.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := k.clock.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		if err := k.renewAndPublish(ctx); err != nil && ctx.Err() == nil {
			k.logger.Warn("the endpoints of service kubernetes may be out of date, trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return k.releaseLease(context.WithoutCancel(ctx))
		case <-ticker.C():
		}
	}
}

// releaseLease gives up the lease. If the storage is already gone, the lease expires by itself.
func (k *Keeper) releaseLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewInterval)
	defer cancel()
	err := k.stores.Leases.DeleteTyped(ctx, core.NamespaceSystem, k.leaseName(), nil)
	if err == nil {
		err = k.publishEndpoints(ctx)
	}
	if err != nil {
		k.logger.Info("this server is among the endpoints of service kubernetes until its lease ends", zap.Error(err))
	}
	return nil
}

func (k *Keeper) renewAndPublish(ctx context.Context) error {
	if err := k.renewLease(ctx); err != nil {
		return err
	}
	return k.publishEndpoints(ctx)
}

func (k *Keeper) leaseName() string {
	return "apiserver-" + strings.NewReplacer(":", "-", ".", "-", "[", "", "]", "").Replace(k.address.String())
}

func (k *Keeper) renewLease(ctx context.Context) error {
	hold := func(lease *core.Lease) error {
		lease.Labels = labels.Merge(lease.Labels, labels.Set{identityLabel: identity})
		lease.Spec.HolderIdentity = ptr.To(k.address.String())
		lease.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(k.clock.Now()))
		return nil
	}
	_, err := k.stores.Leases.UpdateTyped(ctx, core.NamespaceSystem, k.leaseName(), "", hold)
	if apierrors.IsNotFound(err) {
		lease := &core.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: core.NamespaceSystem, Name: k.leaseName()}}
		_ = hold(lease)
		_, err = k.stores.Leases.CreateTyped(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("renew lease %s: %w", k.leaseName(), err)
	}
	return nil
}

// publishEndpoints writes the addresses of live servers.
func (k *Keeper) publishEndpoints(ctx context.Context) error {
	alive, err := k.liveServers(ctx)
	if err != nil {
		return err
	}
	if err := createOrUpdate(ctx, k.stores.Endpoints, k.newEndpoints(alive), func(has, want *corev1.Endpoints) { //nolint:staticcheck // old clients still use it
		has.Labels, has.Subsets = labels.Merge(has.Labels, want.Labels), want.Subsets
	}); err != nil {
		return fmt.Errorf("endpoints of service %s: %w", service.ServerService, err)
	}
	if err := createOrUpdate(ctx, k.stores.Slices, k.newSlice(alive), func(has, want *discoveryv1.EndpointSlice) {
		has.Labels, has.Endpoints, has.Ports = labels.Merge(has.Labels, want.Labels), want.Endpoints, want.Ports
	}); err != nil {
		return fmt.Errorf("endpoint slice of service %s: %w", service.ServerService, err)
	}
	return nil
}

// liveServers returns the addresses of all servers whose leases still change, and
// removes the leases of the others. A service has one port, so servers on
// another port than the first one's are left out.
func (k *Keeper) liveServers(ctx context.Context) ([]netip.AddrPort, error) {
	leases, _, err := k.stores.Leases.ListTyped(ctx, core.NamespaceSystem, registry.ListOptions{
		Labels: labels.SelectorFromSet(labels.Set{identityLabel: identity}),
	})
	if err != nil {
		return nil, fmt.Errorf("list the leases of API servers: %w", err)
	}
	now, seen := k.clock.Now(), map[string]leaseObservation{}
	var alive []netip.AddrPort
	for _, lease := range leases {
		held, err := netip.ParseAddrPort(ptr.Deref(lease.Spec.HolderIdentity, ""))
		if err != nil || held.Addr().Is4() != k.address.Addr().Is4() {
			continue
		}
		last, known := k.observed[lease.Name]
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
		if err := k.stores.Leases.DeleteTyped(ctx, core.NamespaceSystem, lease.Name, only); err != nil {
			seen[lease.Name] = last
		}
	}
	k.observed = seen
	slices.SortFunc(alive, netip.AddrPort.Compare)
	return slices.DeleteFunc(alive, func(a netip.AddrPort) bool { return a.Port() != alive[0].Port() }), nil
}
