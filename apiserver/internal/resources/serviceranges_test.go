package resources_test

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/service"
)

// rangeOf creates a range of addresses for services.
func (b *bed) rangeOf(name string, cidrs ...string) {
	b.t.Helper()
	_, err := b.ServiceCIDRs.CreateTyped(b.t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.org/kept"}}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// ready sets whether addresses may be allocated from a range.
func (b *bed) ready(name string, status metav1.ConditionStatus) {
	b.t.Helper()
	_, err := b.ServiceCIDRs.UpdateTyped(b.t.Context(), "", name, "status", func(c *networkingv1.ServiceCIDR) error {
		c.Status.Conditions = []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady, Status: status, LastTransitionTime: metav1.Now()}}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestAddressesOfManyRanges: services get addresses from every range that is
// ready and not being deleted, whoever created it.
func TestAddressesOfManyRanges(t *testing.T) {
	b := start(t, "10.0.0.0/29")
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		if _, err := b.service(newService(name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.service(newService("more"))
	refused(t, "six of six are given", err, "range is full")
	b.rangeOf("six", "fd00::/112")
	_, err = b.service(newService("more"))
	refused(t, "another family", err, "range is full")
	_, err = b.service(newService("six", func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }))
	refused(t, "a family that the server is not for", err, "not configured on this cluster")

	b.rangeOf("added", "10.1.0.0/30", "fd00:1::/112")
	more, err := b.service(newService("more"))
	if err != nil || more.Spec.ClusterIP != "10.1.0.1" && more.Spec.ClusterIP != "10.1.0.2" {
		t.Fatalf("of the range that was added: %+v %v", more, err)
	}
	free := map[string]string{"10.1.0.1": "10.1.0.2", "10.1.0.2": "10.1.0.1"}[more.Spec.ClusterIP]
	b.ready("added", metav1.ConditionFalse)
	_, err = b.service(newService("late"))
	refused(t, "a range that is not ready", err, "range is full")
	_, err = b.service(newService("late", at(free)))
	refused(t, "an address of it", err, "failed to allocate IP "+free+": the provided network does not match the current range")
	b.ready("added", metav1.ConditionTrue)
	for ip, words := range map[string]string{
		more.Spec.ClusterIP: "provided IP is already allocated",
		"10.1.0.0":          "the provided network does not match the current range",
		"10.1.0.3":          "the provided network does not match the current range",
	} {
		_, err = b.service(newService("late", at(ip)))
		refused(t, ip, err, "failed to allocate IP "+ip+": "+words)
	}
	if late, err := b.service(newService("late", at(free))); err != nil || late.Spec.ClusterIP != free {
		t.Fatalf("an address that it names: %+v %v", late, err)
	}
	if _, _, err := b.Services.Delete(t.Context(), "default", "late", registry.Admission{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.ServiceCIDRs.DeleteTyped(t.Context(), "", "added", nil); err != nil {
		t.Fatal(err)
	}
	_, err = b.service(newService("late", at(free)))
	refused(t, "a range on its way out", err, "the provided network does not match the current range")
	if kept, err := b.change("more", func(s *corev1.Service) { s.Labels = map[string]string{"a": "b"} }); err != nil ||
		kept.Spec.ClusterIP != more.Spec.ClusterIP {
		t.Errorf("its allocated address stays: %+v %v", kept, err)
	}
}

// TestFirstAddressesAreGivenLast: the first addresses of a range are reserved
// for services that name theirs (KEP-3070).
func TestFirstAddressesAreGivenLast(t *testing.T) {
	b := start(t, "10.0.0.0/27")
	var given []netip.Addr
	for i := range 15 {
		s, err := b.service(newService("s" + string(rune('a'+i))))
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, netip.MustParseAddr(s.Spec.ClusterIP))
	}
	first := slices.MinFunc(given[:14], netip.Addr.Compare)
	if first.String() != "10.0.0.17" || !given[14].Less(first) {
		t.Errorf("the addresses are given in the order %v", given)
	}
}

// TestAnAddressOfAnother: a service keeps its address when another service that
// claims it, too, is deleted.
func TestAnAddressOfAnother(t *testing.T) {
	b := start(t, "10.0.0.0/28", "fd00::/112")
	s, err := b.service(newService("web", func(s *corev1.Service) {
		s.Spec.IPFamilyPolicy, s.Spec.ClusterIPs = new(corev1.IPFamilyPolicyRequireDualStack), []string{"10.0.0.5", "fd00::0005"}
		s.Spec.ClusterIP = "10.0.0.5"
	}))
	if err != nil || b.held() != 2 {
		t.Fatalf("%+v %v, %d held", s, err, b.held())
	}
	ip, err := registry.GetStored[*networkingv1.IPAddress](t.Context(), b.IPAddresses, "", "10.0.0.5")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.IPAddresses.DeleteTyped(t.Context(), "", ip.Name, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.IPAddresses.CreateTyped(t.Context(), service.NewAddress(netip.MustParseAddr("10.0.0.5"), "default", "other")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Services.Delete(t.Context(), "default", "web", registry.Admission{}, nil); err != nil || b.held() != 1 {
		t.Errorf("%v, %d held: the other's should be", err, b.held())
	}
}
