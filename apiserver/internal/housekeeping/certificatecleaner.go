package housekeeping

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/registry"
)

// How long requests stay (Kubernetes docs, "Certificate signing requests").
const (
	decidedRetention = time.Hour      // approved, denied or failed
	pendingRetention = 24 * time.Hour // not decided
)

// certificateCleaner removes requests that are no longer useful.
type certificateCleaner struct{ *certificateRequests }

func newCertificateCleaner(d *Dependencies) (Loop, error) {
	return newCertificateLoop(d, "certificatesigningrequest-cleaner-controller", func(c *certificateRequests) certificateSync {
		return (&certificateCleaner{c}).sync
	})
}

func (c *certificateCleaner) sync(ctx context.Context, r *certificatesv1.CertificateSigningRequest) (time.Duration, error) {
	if left := expiryOf(r).Sub(c.clock.Now()); left > 0 {
		return left, nil
	}
	_, _, err := c.store.Delete(ctx, "", r.Name, registry.Admission{},
		&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.UID}})
	return 0, ignoreNotFound(err, "remove a certificate signing request")
}

// expiryOf is the time after which the request is no longer needed.
func expiryOf(r *certificatesv1.CertificateSigningRequest) time.Time {
	until := r.CreationTimestamp.Add(pendingRetention)
	decided := findCertificateCondition(r,
		certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed)
	if decided != nil {
		until = decided.LastUpdateTime.Add(decidedRetention)
	}
	if ends, ok := certificateExpiry(r.Status.Certificate); ok && ends.Before(until) {
		return ends
	}
	return until
}

// certificateExpiry is when the certificate issued for a request expires.
func certificateExpiry(certificate []byte) (time.Time, bool) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return time.Time{}, false
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return parsed.NotAfter, true
}
