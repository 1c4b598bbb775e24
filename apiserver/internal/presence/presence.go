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

	renewEvery = 5 * time.Second
	// lost is how long a lease may stay unchanged before its holder counts as gone.
	lost = 15 * time.Second
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
	// seen is when each lease last changed, by this server's own clock: those of
	// other machines may differ.
	seen map[string]sighting
}

type sighting struct {
	version string
	at      time.Time
}

// New is the keeper of the server that is reached at address.
func New(stores Stores, address netip.AddrPort, clock clock.WithTicker, logger *zap.Logger) *Keeper {
	return &Keeper{stores: stores, address: address, clock: clock, logger: logger, seen: map[string]sighting{}}
}

// Run keeps the server among the endpoints until ctx ends, and then removes it,
// so that new connections go to another one.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := k.clock.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		if err := k.once(ctx); err != nil && ctx.Err() == nil {
			k.logger.Warn("the endpoints of service kubernetes may be out of date, trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return k.leave(context.WithoutCancel(ctx))
		case <-ticker.C():
		}
	}
}

// leave gives up the lease. If the storage is already gone, the lease expires by itself.
func (k *Keeper) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	err := k.stores.Leases.DeleteTyped(ctx, core.NamespaceSystem, k.leaseName(), nil)
	if err == nil {
		err = k.publish(ctx)
	}
	if err != nil {
		k.logger.Info("this server is among the endpoints of service kubernetes until its lease ends", zap.Error(err))
	}
	return nil
}

func (k *Keeper) once(ctx context.Context) error {
	if err := k.renew(ctx); err != nil {
		return err
	}
	return k.publish(ctx)
}

func (k *Keeper) leaseName() string {
	return "apiserver-" + strings.NewReplacer(":", "-", ".", "-", "[", "", "]", "").Replace(k.address.String())
}

func (k *Keeper) renew(ctx context.Context) error {
	hold := func(lease *core.Lease) error {
		lease.Labels = labels.Merge(lease.Labels, labels.Set{identityLabel: identity})
		lease.Spec.HolderIdentity = ptr.To(k.address.String())
		lease.Spec.LeaseDurationSeconds = ptr.To(int32(lost / time.Second))
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

// publish writes the addresses of live servers.
func (k *Keeper) publish(ctx context.Context) error {
	alive, err := k.alive(ctx)
	if err != nil {
		return err
	}
	if err := write(ctx, k.stores.Endpoints, k.endpointsOf(alive), func(has, want *corev1.Endpoints) { //nolint:staticcheck // old clients still use it
		has.Labels, has.Subsets = labels.Merge(has.Labels, want.Labels), want.Subsets
	}); err != nil {
		return fmt.Errorf("endpoints of service %s: %w", service.ServerService, err)
	}
	if err := write(ctx, k.stores.Slices, k.sliceOf(alive), func(has, want *discoveryv1.EndpointSlice) {
		has.Labels, has.Endpoints, has.Ports = labels.Merge(has.Labels, want.Labels), want.Endpoints, want.Ports
	}); err != nil {
		return fmt.Errorf("endpoint slice of service %s: %w", service.ServerService, err)
	}
	return nil
}

// alive returns the addresses of all servers whose leases still change, and
// removes the leases of the others. A service has one port, so servers on
// another port than the first one's are left out.
func (k *Keeper) alive(ctx context.Context) ([]netip.AddrPort, error) {
	leases, _, err := k.stores.Leases.ListTyped(ctx, core.NamespaceSystem, registry.ListOptions{
		Labels: labels.SelectorFromSet(labels.Set{identityLabel: identity}),
	})
	if err != nil {
		return nil, fmt.Errorf("list the leases of API servers: %w", err)
	}
	now, seen := k.clock.Now(), map[string]sighting{}
	var alive []netip.AddrPort
	for _, lease := range leases {
		held, err := netip.ParseAddrPort(ptr.Deref(lease.Spec.HolderIdentity, ""))
		if err != nil || held.Addr().Is4() != k.address.Addr().Is4() {
			continue
		}
		last, known := k.seen[lease.Name]
		if !known || last.version != lease.ResourceVersion {
			last = sighting{lease.ResourceVersion, now}
		}
		if now.Sub(last.at) < lost {
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
	k.seen = seen
	slices.SortFunc(alive, netip.AddrPort.Compare)
	return slices.DeleteFunc(alive, func(a netip.AddrPort) bool { return a.Port() != alive[0].Port() }), nil
}
