package certificate

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/eventually"
	"kctl/proto/pki"
)

// A node that gets another address asks for a certificate that holds it, once, whatever the signer makes of it.
func TestAnotherAddressIsCertified(t *testing.T) {
	s, o := newSigner(t), options(t)
	o.Purpose = Serving
	o.Subject.DNSNames, o.Subject.IPs, o.Subject.Server = []string{"n1"}, []net.IP{net.IPv4(192, 0, 2, 1)}, true
	first, err := pki.NewCA("ca", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := first.Issue(o.Subject, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.write(pair); err != nil {
		t.Fatal(err)
	}
	var now atomic.Pointer[net.IP]
	move := func(to net.IP) { now.Store(&to) }
	move(net.IPv4(192, 0, 2, 1))
	rotated := make(chan struct{}, 1)
	rotator := Rotator{Options: o, Client: s.client(), Rotated: func() { rotated <- struct{}{} }, Addresses: func() []net.IP { return []net.IP{*now.Load()} }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rotator.Run(ctx) }()
	clock := o.Clock.(*clocktesting.FakeClock)
	asleep := func() { eventually.Holds(t, "it waits", clock.HasWaiters) }
	asked := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.requests)
	}
	asleep()
	clock.Step(nap)
	asleep()
	if n := asked(); n != 0 {
		t.Errorf("%d requests without a change", n)
	}
	move(net.IPv4(192, 0, 2, 7))
	clock.Step(nap)
	<-rotated
	for range 3 {
		asleep()
		clock.Step(nap)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := asked(); n != 1 {
		t.Fatalf("%d requests for one change", n)
	}
	block, _ := pem.Decode(s.requests[0].Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || len(request.IPAddresses) != 1 || !request.IPAddresses[0].Equal(net.IPv4(192, 0, 2, 7)) {
		t.Errorf("it asks for %v, %v", request, err)
	}
}
