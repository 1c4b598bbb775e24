package kubeconfig

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// Untimely says why the target's client certificate can't be accepted now: it
// has expired, or is not valid yet; "" if there is none, or its dates are fine.
func (t *Target) Untimely(now time.Time) string {
	data := t.Client.CertData
	if len(data) == 0 {
		data, _ = os.ReadFile(t.Client.CertFile) // one that can't be read was never shown
	}
	block, rest := pem.Decode(data)
	for block != nil && block.Type != "CERTIFICATE" { // the key may be in the same file
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return ""
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	name := certificate.Subject.CommonName
	switch {
	case now.Before(certificate.NotBefore):
		return fmt.Sprintf("the client certificate of %q is not valid before %s: is this machine's clock right?",
			name, certificate.NotBefore.UTC().Format(time.RFC3339))
	case now.After(certificate.NotAfter):
		return fmt.Sprintf("the client certificate of %q expired at %s: on the control plane, `kctl pki renew` or `kctl pki "+
			"kubeconfig` makes a new one", name, certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	return ""
}
