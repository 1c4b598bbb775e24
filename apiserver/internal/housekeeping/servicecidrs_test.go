package housekeeping

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/apiserver/internal/resources/networking"
	"kctl/apiserver/internal/resources/service"
	"kctl/proto/core"
)

func cidr(name string, ranges ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
}

// held is an address of a service in namespace shop, created a while ago.
func held(ip, name string) *networkingv1.IPAddress {
	out := service.NewAddress(netip.MustParseAddr(ip), "shop", name)
	out.UID, out.CreationTimestamp = types.UID("uid-"+ip), metav1.NewTime(time.Now().Add(-time.Hour))
	return out
}

// deleted begins the deletion of a range.
func deleted(s *registrytest.Store, name string) {
	c := s.Peek("", name).(*networkingv1.ServiceCIDR)
	c.DeletionTimestamp = new(metav1.Now())
	s.Put(c)
}

func remove(t *testing.T, s *registrytest.Store, namespace, name string) {
	t.Helper()
	if _, _, err := s.Delete(t.Context(), namespace, name, registry.Admission{}, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// expect checks a range's condition, and whether it is kept.
func expect(t *testing.T, what string, s *registrytest.Store, name string, kept bool, status metav1.ConditionStatus, reason string) {
	t.Helper()
	c := s.Peek("", name).(*networkingv1.ServiceCIDR)
	ready := meta.FindStatusCondition(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	if slices.Contains(c.Finalizers, serviceCIDRFinalizer) != kept || ready == nil || ready.Status != status || ready.Reason != reason {
		t.Errorf("%s: finalizers %v, ready %+v", what, c.Finalizers, ready)
	}
}

func TestRangesOfServicesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const terminating = networkingv1.ServiceCIDRReasonTerminating
		cidrs := registrytest.New(networking.ServiceCIDRResource, cidr("first", "10.0.0.0/24", "fd00::/112"), cidr("unused", "10.1.0.0/24"))
		foreign := held("10.1.0.9", "gateway")
		foreign.Labels = nil
		addresses := registrytest.New(core.IPAddresses, held("10.0.0.7", "web"), foreign)
		start(t, newServiceCIDRs, registrytest.New(core.Pods), cidrs, addresses)
		pass(settled)
		expect(t, "made", cidrs, "first", true, metav1.ConditionTrue, "")

		deleted(cidrs, "unused")
		pass(releaseDelay - time.Second)
		expect(t, "deleted a moment ago", cidrs, "unused", true, metav1.ConditionTrue, "")
		pass(2 * time.Second)
		expect(t, "nobody needs it", cidrs, "unused", false, metav1.ConditionTrue, "")

		deleted(cidrs, "first")
		pass(time.Minute)
		expect(t, "a service has an address of it", cidrs, "first", true, metav1.ConditionFalse, terminating)
		cidrs.Put(cidr("six", "fd00::/96"))
		pass(time.Minute)
		expect(t, "another one of the other family", cidrs, "first", true, metav1.ConditionFalse, terminating)
		cidrs.Put(cidr("wider", "10.0.0.0/16"))
		pass(time.Minute)
		expect(t, "a wider one has it, too", cidrs, "first", false, metav1.ConditionFalse, terminating)

		deleted(cidrs, "wider")
		remove(t, cidrs, "", "first")
		pass(time.Minute)
		expect(t, "the last one that has it", cidrs, "wider", true, metav1.ConditionFalse, terminating)
		remove(t, addresses, "", "10.0.0.7")
		pass(time.Second)
		expect(t, "the service has gone", cidrs, "wider", false, metav1.ConditionFalse, terminating)
	})
}

// TestOneOfTwoEqualRangesIsKept: otherwise each would be deleted on account of
// the other, and the address would be in none.
func TestOneOfTwoEqualRangesIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cidrs := registrytest.New(networking.ServiceCIDRResource, cidr("a", "10.0.0.0/24"), cidr("b", "10.0.0.0/24"))
		start(t, newServiceCIDRs, registrytest.New(core.Pods), cidrs, registrytest.New(core.IPAddresses, held("10.0.0.7", "web")))
		pass(settled)
		deleted(cidrs, "a")
		deleted(cidrs, "b")
		pass(time.Minute)
		left := 0
		for _, name := range []string{"a", "b"} {
			left += len(cidrs.Peek("", name).GetFinalizers())
		}
		if left != 1 {
			t.Errorf("%d of them are kept", left)
		}
	})
}

// repairing runs the loop that keeps services and addresses consistent.
func repairing(t *testing.T, services, addresses *registrytest.Store) *registrytest.Store {
	t.Helper()
	happened := registrytest.New(core.Events)
	cidrs := registrytest.New(networking.ServiceCIDRResource, cidr("kubernetes", "10.0.0.0/24"))
	start(t, func(d *Dependencies) (Loop, error) { return NewServiceAddresses(*d), nil }, registrytest.New(core.Pods), services, addresses, cidrs, happened)
	return happened
}

func withAddress(name string, ips ...string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ips[0], ClusterIPs: ips},
	}
}

// told are the reasons of all events.
func told(t *testing.T, s *registrytest.Store) []string {
	t.Helper()
	list, err := s.List(t.Context(), "", registry.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, item := range list.Items {
		obj, err := s.Decode(item)
		if err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, obj.(*core.Event).Reason)
	}
	slices.Sort(reasons)
	return reasons
}

func TestServicesAndAddressesAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unlabelled := held("10.0.0.4", "unlabelled")
		unlabelled.Labels = nil
		elsewhere := held("10.0.0.5", "web")
		elsewhere.Spec.ParentRef = &networkingv1.ParentReference{Group: "example.org", Resource: "gateways", Name: "g"}
		gateways := elsewhere.DeepCopy()
		gateways.Name, gateways.Labels = "10.0.0.6", nil
		services := registrytest.New(core.Services,
			withAddress("fine", "10.0.0.1"), withAddress("missing", "10.0.0.2"), withAddress("others", "10.0.0.3"),
			withAddress("unlabelled", "10.0.0.4"), withAddress("gateway", "10.0.0.5"), withAddress("far", "10.1.0.1"),
			withAddress("twin", "10.0.0.1"))
		addresses := registrytest.New(core.IPAddresses,
			held("10.0.0.1", "fine"), held("10.0.0.3", "gone"), unlabelled, elsewhere, gateways,
			held("10.0.0.7", "gone"), held("10.0.0.8", "fine"))
		happened := repairing(t, services, addresses)
		pass(settled)
		for ip, owner := range map[string]string{
			"10.0.0.1": "fine", "10.0.0.2": "missing", "10.0.0.3": "others", "10.0.0.4": "unlabelled", "10.0.0.5": "gateway",
		} {
			obj := addresses.Peek("", ip)
			if obj == nil || !service.BelongsTo(obj.(*networkingv1.IPAddress), "shop", owner) || !service.IsManaged(obj.(*networkingv1.IPAddress)) {
				t.Errorf("%s is not %s's: %+v", ip, owner, obj)
			}
		}
		for ip, stays := range map[string]bool{"10.0.0.6": true, "10.0.0.7": false, "10.0.0.8": false, "10.1.0.1": false} {
			if (addresses.Peek("", ip) != nil) != stays {
				t.Errorf("%s is there: %v", ip, !stays)
			}
		}
		for _, reason := range []string{"ClusterIPNotAllocated", "ClusterIPOutOfRange", "ClusterIPAlreadyAllocated", "IPAddressNotAllocated",
			"IPAddressWrongReference"} {
			if !slices.Contains(told(t, happened), reason) {
				t.Errorf("%s is not told: %v", reason, told(t, happened))
			}
		}
	})
}

// TestAddressesInFlight: an address that a service is about to be stored with
// is left alone for as long as a request may take; that of a deleted service is
// left to the server that deletes it, as long as that lives.
func TestAddressesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		services := registrytest.New(core.Services, withAddress("web", "10.0.0.1"))
		addresses := registrytest.New(core.IPAddresses, held("10.0.0.1", "web"))
		happened := repairing(t, services, addresses)
		pass(settled)
		young := held("10.0.0.2", "late")
		young.CreationTimestamp = metav1.NewTime(time.Now())
		addresses.Put(young)
		remove(t, services, "shop", "web")
		pass(maxAllocationTime - time.Second)
		if addresses.Peek("", "10.0.0.1") == nil || addresses.Peek("", "10.0.0.2") == nil || len(told(t, happened)) != 0 {
			t.Errorf("taken away too early: %v", told(t, happened))
		}
		pass(2 * time.Second)
		if addresses.Peek("", "10.0.0.1") != nil || addresses.Peek("", "10.0.0.2") != nil {
			t.Error("an unused address stays")
		}
		// No event for a service that is deleted as fast as the loop sees it.
		before := len(told(t, happened))
		quick := held("10.0.0.3", "quick")
		quick.CreationTimestamp = metav1.NewTime(time.Now())
		addresses.Put(quick) // first, as the server does it
		services.Put(withAddress("quick", "10.0.0.3"))
		pass(time.Second)
		remove(t, services, "shop", "quick")
		remove(t, addresses, "", "10.0.0.3")
		pass(2 * maxAllocationTime)
		if n := len(told(t, happened)); n != before {
			t.Errorf("a service that went tells of its address: %v", told(t, happened))
		}
	})
}
