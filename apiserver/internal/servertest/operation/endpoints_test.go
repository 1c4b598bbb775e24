package operation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/endpointreconciler"
	"kctl/apiserver/internal/identity"
	"kctl/apiserver/internal/identity/lease"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

const leasePrefix = "/registry" + endpointreconciler.LeasePrefix

// beside is a second server's reconciler on the same storage, on a machine of its
// own with a clock of its own.
func (c *cluster) beside(address string, clock *testingclock.FakeClock) (stop func()) {
	return c.besideAt(netip.AddrPortFrom(netip.MustParseAddr(address), uint16(c.Port())), clock)
}

func (c *cluster) besideAt(address netip.AddrPort, clock *testingclock.FakeClock) (stop func()) {
	s := c.Server
	reconciler := endpointreconciler.New(endpointreconciler.Stores{
		Leases: s.Storage(), LeasePrefix: leasePrefix, Endpoints: s.Resources().Endpoints, Slices: s.Resources().EndpointSlices,
	}, address, clock, zap.NewNop())
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
		endpoints, err := registry.GetStored[*corev1.Endpoints](ctx, c.Server.Resources().Endpoints, core.NamespaceDefault, service.ServerService)
		slice, err2 := registry.GetStored[*discoveryv1.EndpointSlice](ctx, c.Server.Resources().EndpointSlices, core.NamespaceDefault, service.ServerService)
		return errors.Join(err, err2) == nil && slices.Equal(addressesOf(endpoints), want) && slices.Equal(addressesOfSlice(slice), want) &&
			int(endpoints.Subsets[0].Ports[0].Port) == c.Port() && int(*slice.Ports[0].Port) == c.Port() &&
			endpoints.Labels[discoveryv1.LabelSkipMirror] == "true" && slice.Labels[discoveryv1.LabelServiceName] == service.ServerService
	})
}

// servers are the addresses in the endpoints.
func (c *cluster) servers() []string {
	c.T.Helper()
	endpoints, err := registry.GetStored[*corev1.Endpoints](c.T.Context(), c.Server.Resources().Endpoints, core.NamespaceDefault, service.ServerService)
	if err != nil {
		c.T.Fatal(err)
	}
	return addressesOf(endpoints)
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
	c.expire("192.0.2.2")
	c.Until("the silent server is forgotten", func(context.Context) bool {
		clocks[0].Step(5 * time.Second)
		return slices.Equal(c.servers(), []string{"192.0.2.1"})
	})

	c.Until("it is back", func(context.Context) bool {
		clocks[1].Step(5 * time.Second)
		return slices.Equal(c.servers(), []string{"192.0.2.1", "192.0.2.2"})
	})
	stop()
	c.awaitServers("192.0.2.1")
}

// TestServersOnOneAddress: of two servers with one address, the one with the lower port is the
// endpoint, also when the other one comes and goes.
func TestServersOnOneAddress(t *testing.T) {
	t.Parallel()
	c := start(t)
	address, port := netip.MustParseAddr("192.0.2.1"), uint16(c.Port())
	first := testingclock.NewFakeClock(time.Now())
	c.besideAt(netip.AddrPortFrom(address, port), first)
	c.awaitServers("192.0.2.1")
	lease := func() *clientv3.GetResponse {
		found, err := c.Server.Etcd().Get(t.Context(), leasePrefix+"192.0.2.1")
		if err != nil || len(found.Kvs) != 1 {
			t.Fatal("no lease of the server: ", err)
		}
		return found
	}
	before := lease().Kvs[0].ModRevision
	second := testingclock.NewFakeClock(time.Now())
	stop := c.besideAt(netip.AddrPortFrom(address, port-1), second)
	c.Until("the lower port has the lease", func(context.Context) bool { return lease().Kvs[0].ModRevision != before })
	before = lease().Kvs[0].ModRevision
	third := c.besideAt(netip.AddrPortFrom(address, port), testingclock.NewFakeClock(time.Now()))
	third()
	if now := lease().Kvs[0].ModRevision; now != before {
		t.Errorf("the higher port wrote the lease, which had revision %d, at %d", before, now)
	}
	stop()
	c.Until("the higher port is back", func(context.Context) bool {
		first.Step(5 * time.Second)
		e, err := registry.GetStored[*corev1.Endpoints](t.Context(), c.Server.Resources().Endpoints, core.NamespaceDefault, service.ServerService)
		return err == nil && len(e.Subsets) == 1 && e.Subsets[0].Ports[0].Port == int32(port)
	})
}

// expire does at once what etcd does when a server's lease ends, after having looked that
// it would.
func (c *cluster) expire(address string) {
	c.T.Helper()
	client := c.Server.Etcd()
	found, err := client.Get(c.T.Context(), leasePrefix+address)
	if err != nil || len(found.Kvs) != 1 {
		c.T.Fatal("no lease of the server: ", err)
	}
	lease := clientv3.LeaseID(found.Kvs[0].Lease)
	ends, err := client.TimeToLive(c.T.Context(), lease)
	if err != nil || ends.GrantedTTL < 15 || ends.GrantedTTL > 16 {
		c.T.Fatalf("the lease lasts %+v, %v", ends, err)
	}
	if _, err := client.Revoke(c.T.Context(), lease); err != nil {
		c.T.Fatal(err)
	}
}

// TestServersOfBothKinds: a kube-apiserver on the same etcd is among the endpoints, too, and reads
// the address of ours, and which node ports are in use, even if all resources are encrypted.
func TestServersOfBothKinds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(encryptionBy(newKey), "secrets", "'*.*'", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, func(o *config.Options) { o.Encryption.File = file })
	// As kube-apiserver v1.37.2 stores it: in protobuf, without a port.
	object := &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.9"}}}}} //nolint:staticcheck // upstream's form
	encoded, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Endpoints"}, Raw: encoded}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	client := c.Server.Etcd()
	if _, err := client.Put(t.Context(), leasePrefix+"192.0.2.9", "k8s\x00"+string(theirs)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), leasePrefix+"192.0.2.1", "nonsense"); err != nil { // which its owner replaces
		t.Fatal(err)
	}
	c.beside("192.0.2.1", testingclock.NewFakeClock(time.Now()))
	c.awaitServers("192.0.2.1", "192.0.2.9")
	readByThem := func(key string) runtime.Object {
		t.Helper()
		ours, err := client.Get(t.Context(), key)
		if err != nil || len(ours.Kvs) != 1 {
			t.Fatalf("%s is not there: %v", key, err)
		}
		read, _, err := serializer.NewCodecFactory(scheme.Scheme).UniversalDeserializer().Decode(ours.Kvs[0].Value, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return read
	}
	//nolint:staticcheck // upstream's form
	if got := addressesOf(readByThem(leasePrefix + "192.0.2.1").(*corev1.Endpoints)); !slices.Equal(got, []string{"192.0.2.1"}) {
		t.Errorf("kube-apiserver reads %v", got)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	c.Must(c.Root().Resource(core.Services, "default").Create(t.Context(), service, nil))
	if got := readByThem("/registry/ranges/servicenodeports").(*corev1.RangeAllocation); len(got.Data) == 0 {
		t.Errorf("kube-apiserver reads %v", got)
	}
}

// TestIdentity: the server has a Lease as kube-apiserver's while it runs, and deletes
// those of others that have expired.
func TestIdentity(t *testing.T) {
	t.Parallel()
	c := start(t)
	leases, now := c.Server.Resources().Leases, time.Now()
	exists := func(ctx context.Context, name string) bool {
		_, err := registry.GetStored[*coordinationv1.Lease](ctx, leases, core.NamespaceSystem, name)
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	const label = "apiserver.kubernetes.io/identity"
	c.Until("the server has a lease", func(ctx context.Context) bool { return exists(ctx, identity.Name()) })
	own, err := registry.GetStored[*coordinationv1.Lease](t.Context(), leases, core.NamespaceSystem, identity.Name())
	if err != nil {
		t.Fatal(err)
	}
	if own.Labels[label] != "kube-apiserver" || own.Labels[corev1.LabelHostname] == "" || *own.Spec.LeaseDurationSeconds != 3600 ||
		!strings.HasPrefix(*own.Spec.HolderIdentity, identity.Name()+"_") || own.Spec.RenewTime == nil {
		t.Errorf("%+v", own)
	}
	renewed := func(name, component string, ago time.Duration) {
		lease := &core.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: core.NamespaceSystem, Name: name, Labels: map[string]string{label: component}}}
		lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = new(int32(3600)), new(metav1.NewMicroTime(now.Add(-ago)))
		if _, err := leases.CreateTyped(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	renewed("apiserver-gone", "kube-apiserver", 2*time.Hour)
	renewed("apiserver-alive", "kube-apiserver", 50*time.Minute)
	renewed("other", "somebody", 2*time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- lease.New(leases, testingclock.NewFakeClock(now), zap.NewNop()).Run(ctx)
	}()
	c.Until("the lease that has expired is deleted", func(ctx context.Context) bool { return !exists(ctx, "apiserver-gone") })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{"apiserver-alive": true, "other": true, identity.Name(): false} {
		if got := exists(t.Context(), name); got != want {
			t.Errorf("%s is there: %t", name, got)
		}
	}
}
