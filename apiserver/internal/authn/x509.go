package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/asn1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// Certificates authenticates requests by the client certificate of their
// connection: the common name is the user, organizations are groups, and an
// attribute of Kubernetes' own is the uid. The TLS layer asks for certificates
// without verifying them, so that a bad one is answered with a 401 and a reason
// rather than a broken handshake.
type Certificates struct {
	verifier
	remaining prometheus.Histogram
}

// NewCertificates trusts the authorities, whichever they are at the time of a request.
func NewCertificates(authorities *pki.Authorities, clock clock.PassiveClock, registry prometheus.Registerer) *Certificates {
	const hour, day = 3600, 24 * 3600
	left := daemon.NewHistogram(prometheus.HistogramOpts{
		Name:    "apiserver_client_certificate_expiration_seconds",
		Help:    "How long the client certificates that requests were authenticated by will still hold.",
		Buckets: []float64{0, hour / 2, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day, 30 * day, 90 * day, 180 * day, 360 * day},
	})
	registry.MustRegister(left)
	return &Certificates{verifier{authorities: authorities, clock: clock, userOf: userOfCertificate}, left}
}

// Authenticate implements Authenticator.
func (c *Certificates) Authenticate(r *http.Request) (*request.User, bool, error) {
	user, err := c.verify(r)
	if user != nil { // unauthenticated clients must not raise alerts
		c.remaining.Observe(r.TLS.PeerCertificates[0].NotAfter.Sub(c.clock.Now()).Seconds())
	}
	return user, user != nil, err
}

func userOfCertificate(leaf *x509.Certificate, sum [sha256.Size]byte) (*request.User, error) {
	if leaf.Subject.CommonName == "" {
		return nil, errors.New("client certificate: it has no common name to use as the user's name")
	}
	uid, err := uidOfCertificate(leaf)
	if err != nil {
		return nil, fmt.Errorf("client certificate of %q: %w", leaf.Subject.CommonName, err)
	}
	return &request.User{
		Username: leaf.Subject.CommonName,
		UID:      uid,
		Groups:   leaf.Subject.Organization,
		Extra:    map[string]authenticationv1.ExtraValue{ExtraCredentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}, nil
}

// certificateCacheSize is how many valid certificates are remembered.
const certificateCacheSize = 1024

// verifier checks client certificates and remembers good ones: a signature
// costs more than everything else about a small request.
type verifier struct {
	authorities *pki.Authorities
	clock       clock.PassiveClock
	userOf      func(leaf *x509.Certificate, sum [sha256.Size]byte) (*request.User, error)

	mu    sync.Mutex
	roots *x509.CertPool // against which the cached were verified
	cache map[[sha256.Size]byte]certified
}

type certified struct {
	user  *request.User
	until time.Time
}

// verify returns the user named by the connection's certificate, or nil if it
// has none. Users are shared and must not be changed.
func (v *verifier) verify(r *http.Request) (*request.User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	now := v.clock.Now()
	roots := v.authorities.Pool()
	if user := v.lookup(roots, sum, now); user != nil {
		return user, nil
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
	user, err := v.userOf(leaf, sum)
	if err != nil {
		return nil, err
	}
	v.remember(roots, sum, certified{user, chainsValidUntil(chains)})
	return user, nil
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

func (v *verifier) lookup(roots *x509.CertPool, sum [sha256.Size]byte, now time.Time) *request.User {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e, ok := v.cache[sum]; ok && roots == v.roots && now.Before(e.until) {
		return e.user
	}
	return nil
}

// remember forgets certificates verified against other authorities.
func (v *verifier) remember(roots *x509.CertPool, sum [sha256.Size]byte, e certified) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if roots != v.roots || len(v.cache) >= certificateCacheSize {
		v.roots, v.cache = roots, map[[sha256.Size]byte]certified{}
	}
	v.cache[sum] = e
}

// uidOfCertificate is empty if the subject has none (gate
// AllowParsingUserUIDFromCertAuth). More than one is nobody's.
func uidOfCertificate(leaf *x509.Certificate) (string, error) {
	var uids []string
	for _, attribute := range leaf.Subject.Names {
		if !attribute.Type.Equal(asn1.X509UID()) {
			continue
		}
		uid, _ := attribute.Value.(string) // Go's parser lets nothing else pass
		if uid == "" {
			return "", errors.New("its uid must not be empty")
		}
		uids = append(uids, uid)
	}
	switch len(uids) {
	case 0:
		return "", nil
	case 1:
		return uids[0], nil
	}
	return "", fmt.Errorf("it has %d uids, at most one is allowed", len(uids))
}
