package servicecidr

import (
	"net/netip"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every address is tried once, those reserved for services that name theirs
// last, and none that is not Assignable.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		cidr        string
		count, kept int
		last        string
	}{
		{"10.0.0.0/32", 0, 0, ""},
		{"10.0.0.0/31", 0, 0, ""},
		{"10.0.0.0/30", 2, 0, "10.0.0.2"},
		{"10.0.0.16/28", 14, 0, "10.0.0.30"},
		{"10.0.0.0/27", 30, 16, "10.0.0.30"},
		{"10.0.0.0/24", 254, 16, "10.0.0.254"},
		{"10.0.0.0/20", 4094, 256, "10.0.15.254"},
		{"10.0.0.0/16", 65534, 256, "10.0.255.254"},
		{"fd00::/128", 0, 0, ""},
		{"fd00::/127", 1, 0, "fd00::1"},
		{"fd00::/124", 15, 0, "fd00::f"},
		{"fd00::/123", 31, 16, "fd00::1f"},
		{"fd00::/63", 0, 0, ""},
	} {
		r := netip.MustParsePrefix(c.cidr)
		tried := slices.Collect(Addresses(r))
		if len(tried) != c.count {
			t.Fatalf("%s gives %d addresses, not %d", r, len(tried), c.count)
		}
		for i, addr := range tried {
			early := int(offset(r, addr)) > c.kept
			if !Assignable(r, addr) || early != (i < c.count-c.kept) {
				t.Errorf("%s: %s is tried as number %d", r, addr, i)
			}
		}
		slices.SortFunc(tried, netip.Addr.Compare)
		if len(slices.Compact(tried)) != c.count || c.count > 0 && (tried[0] != First(r) || tried[c.count-1].String() != c.last) {
			t.Errorf("%s gives %d different addresses up to %v", r, len(slices.Compact(tried)), tried[max(0, c.count-1):])
		}
	}
}

// TestTheWidestRange: the number of its addresses just fits into the type.
func TestTheWidestRange(t *testing.T) {
	r := netip.MustParsePrefix("fd00:1::/64")
	seen := 0
	for addr := range Addresses(r) {
		if !Assignable(r, addr) || offset(r, addr) <= 256 {
			t.Fatalf("%s", addr)
		}
		if seen++; seen == 1000 {
			break
		}
	}
	for addr, gives := range map[string]bool{
		"fd00:1::": false, "fd00:1::1": true, "fd00:1::ffff:ffff:ffff:ffff": true, "fd00:1:0:1::1": false, "10.0.0.1": false,
	} {
		if Assignable(r, netip.MustParseAddr(addr)) != gives {
			t.Errorf("%s gives %s: %v", r, addr, !gives)
		}
	}
}

func TestReady(t *testing.T) {
	now := metav1.Now()
	saying := func(s metav1.ConditionStatus) networkingv1.ServiceCIDRStatus {
		return networkingv1.ServiceCIDRStatus{Conditions: []metav1.Condition{{Type: "Other", Status: "False"}, {Type: "Ready", Status: s}}}
	}
	for what, c := range map[string]struct {
		cidr  networkingv1.ServiceCIDR
		ready bool
	}{
		"nobody has looked": {networkingv1.ServiceCIDR{}, true},
		"ready":             {networkingv1.ServiceCIDR{Status: saying("True")}, true},
		"not ready":         {networkingv1.ServiceCIDR{Status: saying("False")}, false},
		"not known":         {networkingv1.ServiceCIDR{Status: saying("Unknown")}, false},
		"being deleted":     {networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: saying("True")}, false},
	} {
		if Ready(&c.cidr) != c.ready {
			t.Errorf("%s: ready is %v", what, !c.ready)
		}
	}
}
