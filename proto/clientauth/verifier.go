package clientauth

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kctl/proto/pki"
)

// certificateCacheSize is how many valid certificates are remembered.
const certificateCacheSize = 1024

// Verifier checks the certificates of connections and remembers good ones: a signature costs
// more than everything else about a small request. The TLS layer only has to ask for
// certificates: a bad one is then answered with a reason rather than a broken handshake. T is
// what is known of a certificate's owner. It is safe for concurrent use.
type Verifier[T any] struct {
	authorities *pki.Authorities
	clock       clock.PassiveClock
	ownerOf     OwnerOf[T]

	mu    sync.Mutex
	roots *x509.CertPool // against which the cached were verified
	cache map[[sha256.Size]byte]certified[T]
}

// OwnerOf reads what is to be known of the owner of a certificate with the given checksum.
type OwnerOf[T any] func(leaf *x509.Certificate, sum [sha256.Size]byte) (*T, error)

type certified[T any] struct {
	owner *T
	until time.Time
}

// NewVerifier trusts the authorities, whichever they are at the time of a request.
func NewVerifier[T any](authorities *pki.Authorities, clock clock.PassiveClock, ownerOf OwnerOf[T]) *Verifier[T] {
	return &Verifier[T]{authorities: authorities, clock: clock, ownerOf: ownerOf}
}

// Verify returns the owner of the connection's certificate, or nil if there is no certificate.
// Owners are shared and must not be changed.
func (v *Verifier[T]) Verify(r *http.Request) (*T, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	now := v.clock.Now()
	roots := v.authorities.Pool()
	if owner := v.lookup(roots, sum, now); owner != nil {
		return owner, nil
	}
	intermediates := x509.NewCertPool()
	for _, cert := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("client certificate of %q, serial %s: %w", leaf.Subject.CommonName, leaf.SerialNumber, err)
	}
	owner, err := v.ownerOf(leaf, sum)
	if err != nil {
		return nil, err
	}
	v.remember(roots, sum, certified[T]{owner, chainsValidUntil(chains)})
	return owner, nil
}

// chainsValidUntil is until when one of the chains is valid: until the first of its
// certificates expires, which need not be the user's.
func chainsValidUntil(chains [][]*x509.Certificate) time.Time {
	var longest time.Time
	for _, chain := range chains {
		until := chain[0].NotAfter
		for _, cert := range chain[1:] {
			if cert.NotAfter.Before(until) {
				until = cert.NotAfter
			}
		}
		if until.After(longest) {
			longest = until
		}
	}
	return longest
}

func (v *Verifier[T]) lookup(roots *x509.CertPool, sum [sha256.Size]byte, now time.Time) *T {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e, ok := v.cache[sum]; ok && roots == v.roots && now.Before(e.until) {
		return e.owner
	}
	return nil
}

// remember forgets certificates verified against other authorities.
func (v *Verifier[T]) remember(roots *x509.CertPool, sum [sha256.Size]byte, e certified[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if roots != v.roots || len(v.cache) >= certificateCacheSize {
		v.roots, v.cache = roots, map[[sha256.Size]byte]certified[T]{}
	}
	v.cache[sum] = e
}
