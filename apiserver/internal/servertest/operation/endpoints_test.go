package operation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/endpointreconciler"
	"kctl/apiserver/internal/resources/service"
	"kctl/proto/core"
)

// beside is a second server's reconciler on the same storage, on a machine of its
// own with a clock of its own.
func (c *cluster) beside(address string, clock *testingclock.FakeClock) (stop func()) {
	s := c.Server
	reconciler := endpointreconciler.New(endpointreconciler.Stores{Leases: s.Resources().Leases, Endpoints: s.Resources().Endpoints, Slices: s.Resources().EndpointSlices},
		netip.AddrPortFrom(netip.MustParseAddr(address), uint16(c.Port())), clock, zap.NewNop())
	ctx, cancel := context.WithCancel(c.T.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = reconciler.Run(ctx) }()
	stop = func() { cancel(); <-done }
	c.T.Cleanup(stop)
	return stop
}

// awaitServers waits until the endpoints and the slice of service kubernetes
// have these addresses and the server's port.
func (c *cluster) awaitServers(want ...string) {
	c.T.Helper()
	c.Until(fmt.Sprintf("the endpoints are %v", want), func(ctx context.Context) bool {
		endpoints, err := c.Server.Resources().Endpoints.GetTyped(ctx, core.NamespaceDefault, service.ServerService, "")
		slice, err2 := c.Server.Resources().EndpointSlices.GetTyped(ctx, core.NamespaceDefault, service.ServerService, "")
		return errors.Join(err, err2) == nil && slices.Equal(addressesOf(endpoints), want) && slices.Equal(addressesOfSlice(slice), want) &&
			int(endpoints.Subsets[0].Ports[0].Port) == c.Port() && int(*slice.Ports[0].Port) == c.Port() &&
			endpoints.Labels[discoveryv1.LabelSkipMirror] == "true" && slice.Labels[discoveryv1.LabelServiceName] == service.ServerService
	})
}

func addressesOf(e *corev1.Endpoints) (out []string) { //nolint:staticcheck // old clients still use it
	for _, s := range e.Subsets {
		for _, a := range s.Addresses {
			out = append(out, a.IP)
		}
	}
	return out
}

func addressesOfSlice(s *discoveryv1.EndpointSlice) (out []string) {
	for _, e := range s.Endpoints {
		out = append(out, e.Addresses...)
	}
	return out
}

func TestServerIsFound(t *testing.T) {
	t.Parallel()
	start(t, func(o *config.Options) { o.AdvertiseAddress = "192.0.2.1" }).awaitServers("192.0.2.1")
}

// TestServersComeAndGo: the live servers are the endpoints of service
// kubernetes; those that stop or go silent are not.
func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	c := start(t) // on loopback, so it does not register itself
	clocks := []*testingclock.FakeClock{testingclock.NewFakeClock(time.Now()), testingclock.NewFakeClock(time.Now().Add(time.Hour))}
	c.beside("192.0.2.1", clocks[0])
	c.awaitServers("192.0.2.1")
	stop := c.beside("192.0.2.2", clocks[1])
	c.awaitServers("192.0.2.1", "192.0.2.2")

	// The second one's clock stands still, so it does not renew its lease.
	lease := fmt.Sprintf("apiserver-192-0-2-2-%d", c.Port())
	c.Until("the silent server is forgotten", func(ctx context.Context) bool {
		clocks[0].Step(5 * time.Second)
		_, err := c.Server.Resources().Leases.GetTyped(ctx, core.NamespaceSystem, lease, "")
		return apierrors.IsNotFound(err)
	})
	c.awaitServers("192.0.2.1")

	clocks[1].Step(5 * time.Second)
	c.awaitServers("192.0.2.1", "192.0.2.2")
	stop()
	c.awaitServers("192.0.2.1")
}
