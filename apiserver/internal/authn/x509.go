package authn

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/request"
	"kctl/proto/clientauth"
	"kctl/proto/daemon"
	"kctl/proto/pki"
)

// Certificates authenticates requests by the client certificate of their
// connection.
type Certificates struct {
	verifier  *clientauth.Verifier[request.User]
	clock     clock.PassiveClock
	remaining prometheus.Histogram
}

// NewCertificates trusts the authorities, whichever they are at the time of a request.
func NewCertificates(authorities *pki.Authorities, clock clock.PassiveClock, registry prometheus.Registerer) *Certificates {
	const hour, day = 3600, 24 * 3600
	left := daemon.NewHistogram(prometheus.HistogramOpts{
		Name: "apiserver_client_certificate_expiration_seconds",
		Help: "How long the client certificates that requests were authenticated by will still hold.",
		Buckets: []float64{0, hour / 2, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day, 30 * day, 90 * day, 180 * day,
			360 * day},
	})
	registry.MustRegister(left)
	return &Certificates{clientauth.NewVerifier(authorities, clock, clientauth.UserOf), clock, left}
}

// Authenticate implements Authenticator.
func (c *Certificates) Authenticate(r *http.Request) (*request.User, bool, error) {
	user, err := c.verifier.Verify(r)
	if user != nil { // unauthenticated clients must not raise alerts
		c.remaining.Observe(r.TLS.PeerCertificates[0].NotAfter.Sub(c.clock.Now()).Seconds())
	}
	return user, user != nil, err
}
