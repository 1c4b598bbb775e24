package certificate

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"kctl/proto/eventually"
	"kctl/proto/pki"
)

// A node that gets another address asks for a certificate that holds it, once, whatever the signer makes of it.
func TestAnotherAddressIsCertified(t *testing.T) {
	m := newMoving(t)
	m.run()
	m.nap()
	m.asleep()
	if n := m.asked(); n != 0 {
		t.Errorf("%d requests without a change", n)
	}
	m.move(net.IPv4(192, 0, 2, 7))
	m.nap()
	<-m.rotated
	for range 3 {
		m.nap()
	}
	m.end()
	if n := m.asked(); n != 1 {
		t.Fatalf("%d requests for one change", n)
	}
	m.checkRequest(0, net.IPv4(192, 0, 2, 7))
}

// Nobody approves a request for addresses that the node has no more.
func TestARequestThatWaitsFollowsTheAddress(t *testing.T) {
	m := newMoving(t)
	m.signer.decide = func(r *certificatesv1.CertificateSigningRequest, n int) {
		if n > 1 {
			r.Status.Certificate = m.signer.sign(r.Spec.Request, int64(n))
		}
	}
	m.run()
	m.move(net.IPv4(192, 0, 2, 7))
	m.nap()
	eventually.Holds(t, "a request", func() bool { return m.asked() == 1 })
	m.move(net.IPv4(192, 0, 2, 8))
	eventually.Holds(t, "a request for the new address", func() bool { m.nap(); return m.asked() == 2 })
	<-m.rotated
	m.end()
	m.checkRequest(1, net.IPv4(192, 0, 2, 8))
}

// moving is a node with a serving certificate for 192.0.2.1 whose address changes.
type moving struct {
	t       *testing.T
	signer  *signer
	clock   *clocktesting.FakeClock
	address atomic.Pointer[net.IP]
	rotator Rotator
	rotated chan struct{}
	end     func()
}

func newMoving(t *testing.T) *moving {
	o := options(t)
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
	m := &moving{t: t, signer: newSigner(t), clock: o.Clock.(*clocktesting.FakeClock), rotated: make(chan struct{}, 1)}
	m.move(o.Subject.IPs[0])
	m.rotator = Rotator{
		Options: o, Client: m.signer.client(), Rotated: func() { m.rotated <- struct{}{} },
		Addresses: func() []net.IP { return []net.IP{*m.address.Load()} },
	}
	return m
}

func (m *moving) run() {
	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan error, 1)
	go func() { done <- m.rotator.Run(ctx) }()
	m.end = func() {
		cancel()
		if err := <-done; err != nil {
			m.t.Error(err)
		}
	}
}

func (m *moving) move(to net.IP) { m.address.Store(&to) }

func (m *moving) asleep() { eventually.Holds(m.t, "it waits", m.clock.HasWaiters) }

func (m *moving) nap() {
	m.asleep()
	m.clock.Step(nap)
}

func (m *moving) asked() int {
	m.signer.mu.Lock()
	defer m.signer.mu.Unlock()
	return len(m.signer.requests)
}

func (m *moving) checkRequest(n int, address net.IP) {
	m.t.Helper()
	block, _ := pem.Decode(m.signer.requests[n].Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || len(request.IPAddresses) != 1 || !request.IPAddresses[0].Equal(address) {
		m.t.Errorf("it asks for %v, %v", request, err)
	}
}
