package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
)

// How often the authority's file is looked at for a new one, and how many
// certificates are remembered as good between two looks.
const (
	authorityReloadEvery = 10 * time.Second
	certificateCacheSize = 1024
)

// Certificates authenticates requests by the client certificate of their
// connection: the common name is the user, organizations are groups. The TLS
// layer asks for certificates without judging them, so that a bad one is
// answered with 401 and words rather than a broken handshake.
type Certificates struct {
	file  string
	clock clock.PassiveClock

	mu       sync.Mutex
	roots    *x509.CertPool
	checked  time.Time
	modified time.Time
	good     map[[sha256.Size]byte]certified
}

type certified struct {
	user  *request.User
	until time.Time
}

// NewCertificates trusts the authorities in file, and takes up a new file.
func NewCertificates(file string, clock clock.PassiveClock) (*Certificates, error) {
	c := &Certificates{file: file, clock: clock}
	if err := c.load(); err != nil {
		return nil, err
	}
	c.checked = clock.Now()
	return c, nil
}

// load reads the file where it is new, and forgets what the old one vouched for.
func (c *Certificates) load() error {
	info, err := os.Stat(c.file)
	if err != nil {
		return fmt.Errorf("client certificate authority: %w", err)
	}
	if c.roots != nil && info.ModTime().Equal(c.modified) {
		return nil
	}
	data, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("client certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return fmt.Errorf("client certificate authority %s: no PEM certificate in it", c.file)
	}
	c.roots, c.modified, c.good = roots, info.ModTime(), map[[sha256.Size]byte]certified{}
	return nil
}

// Authenticate implements Authenticator.
func (c *Certificates) Authenticate(r *http.Request) (*request.User, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	now := c.clock.Now()
	roots, user := c.known(sum, now)
	if user != nil {
		return user, true, nil
	}
	intermediates := x509.NewCertPool()
	for _, cert := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		CurrentTime:   now,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, false, fmt.Errorf("client certificate of %q, serial %s: %w", leaf.Subject.CommonName, leaf.SerialNumber, err)
	}
	if leaf.Subject.CommonName == "" {
		return nil, false, errors.New("client certificate: no common name, which would be the user's name")
	}
	user = &request.User{
		Username: leaf.Subject.CommonName,
		Groups:   leaf.Subject.Organization,
		Extra:    map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}
	c.remember(sum, user, roots, leaf.NotAfter)
	return user, true, nil
}

// known returns the authorities to check against and, if the certificate has
// been checked against them before, its user. A new file that can't be read
// leaves the old one in use.
func (c *Certificates) known(sum [sha256.Size]byte, now time.Time) (*x509.CertPool, *request.User) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.checked) >= authorityReloadEvery {
		c.checked = now
		_ = c.load()
	}
	if e, ok := c.good[sum]; ok && now.Before(e.until) {
		return c.roots, e.user
	}
	return c.roots, nil
}

func (c *Certificates) remember(sum [sha256.Size]byte, user *request.User, roots *x509.CertPool, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if roots != c.roots {
		return // checked against authorities that have been replaced since
	}
	if len(c.good) >= certificateCacheSize {
		clear(c.good)
	}
	c.good[sum] = certified{user, until}
}
