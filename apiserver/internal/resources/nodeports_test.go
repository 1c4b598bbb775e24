package resources_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"kctl/apiserver/internal/resources/service"
)

const nodePortsKey = "/registry/ranges/servicenodeports"

func onPort(port int32) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, port }
}

// TestNodePortsOfAnotherRange: servers with other ranges allocate each port once.
func TestNodePortsOfAnotherRange(t *testing.T) {
	first := start(t)
	for name, port := range map[string]int32{"a": 30000, "b": 30003} {
		if _, err := first.service(newService(name, onPort(port))); err != nil {
			t.Fatal(err)
		}
	}
	// Of a service that is not stored yet.
	first.allocate(30000, 30002, 30003)
	second := startOn(t, first.raw, utilnet.PortRange{Base: 30001, Size: 4}, "10.0.0.0/28")
	for _, port := range []int32{30002, 30003} {
		_, err := second.service(newService("c", onPort(port)))
		refused(t, "taken in another range", err, "provided port is already allocated")
	}
	if _, err := second.service(newService("c", onPort(30004))); err != nil {
		t.Fatal(err)
	}
	_, err := first.service(newService("d", onPort(30000)))
	refused(t, "taken before the range was another", err, "provided port is already allocated")
}

// ports returns the stored bitmap.
func (b *bed) ports() (set corev1.RangeAllocation, revision int64) {
	b.t.Helper()
	stored, err := b.raw.Get(b.t.Context(), nodePortsKey)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(stored.Value, &set); err != nil {
		b.t.Fatal(err)
	}
	return set, stored.Revision
}

// allocate makes these ports the allocated ones.
func (b *bed) allocate(ports ...int32) {
	b.t.Helper()
	set, revision := b.ports()
	set.ResourceVersion, set.Range, set.Data = "", "30000-30003", bitmap(ports...)
	value, err := json.Marshal(&set)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.raw.Update(b.t.Context(), nodePortsKey, revision, value, 0); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) expectAllocated(ports ...int32) {
	b.t.Helper()
	if set, _ := b.ports(); set.Range != "30000-30003" || !slices.Equal(set.Data, bitmap(ports...)) {
		b.t.Errorf("allocated: %s %b, not %b", set.Range, set.Data, bitmap(ports...))
	}
}

func bitmap(ports ...int32) []byte {
	bits := byte(0)
	for _, port := range ports {
		bits |= 1 << (port - 30000)
	}
	return []byte{bits}
}

// TestNodePortsAreRepaired: what services have is allocated, and what none has for several rounds is released.
func TestNodePortsAreRepaired(t *testing.T) {
	b := start(t)
	create := func(at *bed, name string, port int32) {
		t.Helper()
		if _, err := at.service(newService(name, onPort(port))); err != nil {
			t.Fatal(err)
		}
	}
	create(b, "lost", 30001)
	create(b, "web", 30002)
	create(startOn(t, b.raw, utilnet.PortRange{Base: 20000, Size: 4}, "10.0.0.0/28"), "far", 20000)
	b.allocate(30002, 30003)
	create(b, "twin", 30001)
	b.allocate(30002, 30003)

	repair := service.NewPortRepair(b.Services)
	for round, want := range [][]string{
		{"far PortOutOfRange", "lost PortNotAllocated", "twin PortAlreadyAllocated"},
		{"far PortOutOfRange", "twin PortAlreadyAllocated"},
		{"far PortOutOfRange", "twin PortAlreadyAllocated"},
		{" ", "far PortOutOfRange", "twin PortAlreadyAllocated"},
		{"far PortOutOfRange", "twin PortAlreadyAllocated"},
	} {
		problems, err := repair.Round(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range problems {
			name := ""
			if p.Service != nil {
				name = p.Service.Name
			}
			got = append(got, name+" "+p.Reason)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("round %d: %q, not %q", round+1, got, want)
		}
		if round < 3 {
			b.expectAllocated(30001, 30002, 30003)
		} else {
			b.expectAllocated(30001, 30002)
		}
	}
}
