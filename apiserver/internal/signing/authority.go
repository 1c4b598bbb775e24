package signing

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	// backdate lets machines whose clocks are slow accept a new certificate.
	backdate = 5 * time.Minute
	// shortValidity certificates are valid for their whole time from now on; the time of
	// longer ones includes backdate.
	shortValidity = 8 * time.Hour
	// minValidity is the shortest time that clients may request.
	minValidity = 10 * time.Minute
)

// Authority signs certificates with the key in its files, which it reads each
// time.
type Authority struct {
	CertFile, KeyFile string
	// Longest is the maximum and the default validity of a certificate.
	Longest time.Duration
}

var errNotCA = errors.New("the certificate is not a CA certificate")

func (a *Authority) load() (*x509.Certificate, crypto.Signer, error) {
	pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("signing authority: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, nil, fmt.Errorf("signing authority %s: %w", a.CertFile, errNotCA)
	}
	return pair.Leaf, signer, nil
}

// Validate returns an error if the files can't be used, so that bad ones are found at the
// start.
func (a *Authority) Validate() error {
	_, _, err := a.load()
	return err
}

// Sign makes the requested certificate, as PEM.
func (a *Authority) Sign(parsed *x509.CertificateRequest, spec *certificatesv1.CertificateSigningRequestSpec,
	now time.Time) ([]byte, error) {
	authority, key, err := a.load()
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		RawSubject:   parsed.RawSubject,
		DNSNames:     parsed.DNSNames, IPAddresses: parsed.IPAddresses, EmailAddresses: parsed.EmailAddresses, URIs: parsed.URIs,
		BasicConstraintsValid: true,
	}
	if template.KeyUsage, template.ExtKeyUsage, err = x509Usages(spec.Usages); err != nil {
		return nil, err
	}
	template.NotBefore, template.NotAfter = a.validityPeriod(spec.ExpirationSeconds, now)
	if template.NotAfter.After(authority.NotAfter) {
		template.NotAfter = authority.NotAfter
	}
	if !template.NotAfter.After(now) {
		return nil, fmt.Errorf("signing CA %s: it expired at %s", a.CertFile, authority.NotAfter.Format(time.RFC3339))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, parsed.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// validityPeriod limits the requested validity to what is allowed.
func (a *Authority) validityPeriod(seconds *int32, now time.Time) (from, until time.Time) {
	lasts := a.Longest
	if seconds != nil {
		lasts = min(a.Longest, max(minValidity, time.Duration(*seconds)*time.Second))
	}
	from = now.Add(-backdate)
	if lasts < shortValidity {
		return from, now.Add(lasts)
	}
	return from, from.Add(lasts)
}

var keyUsages = map[certificatesv1.KeyUsage]x509.KeyUsage{
	certificatesv1.UsageSigning:           x509.KeyUsageDigitalSignature,
	certificatesv1.UsageDigitalSignature:  x509.KeyUsageDigitalSignature,
	certificatesv1.UsageContentCommitment: x509.KeyUsageContentCommitment,
	certificatesv1.UsageKeyEncipherment:   x509.KeyUsageKeyEncipherment,
	certificatesv1.UsageKeyAgreement:      x509.KeyUsageKeyAgreement,
	certificatesv1.UsageDataEncipherment:  x509.KeyUsageDataEncipherment,
	certificatesv1.UsageCertSign:          x509.KeyUsageCertSign,
	certificatesv1.UsageCRLSign:           x509.KeyUsageCRLSign,
	certificatesv1.UsageEncipherOnly:      x509.KeyUsageEncipherOnly,
	certificatesv1.UsageDecipherOnly:      x509.KeyUsageDecipherOnly,
}

var extendedUsages = map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
	certificatesv1.UsageAny:             x509.ExtKeyUsageAny,
	certificatesv1.UsageServerAuth:      x509.ExtKeyUsageServerAuth,
	certificatesv1.UsageClientAuth:      x509.ExtKeyUsageClientAuth,
	certificatesv1.UsageCodeSigning:     x509.ExtKeyUsageCodeSigning,
	certificatesv1.UsageEmailProtection: x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageSMIME:           x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageIPsecEndSystem:  x509.ExtKeyUsageIPSECEndSystem,
	certificatesv1.UsageIPsecTunnel:     x509.ExtKeyUsageIPSECTunnel,
	certificatesv1.UsageIPsecUser:       x509.ExtKeyUsageIPSECUser,
	certificatesv1.UsageTimestamping:    x509.ExtKeyUsageTimeStamping,
	certificatesv1.UsageOCSPSigning:     x509.ExtKeyUsageOCSPSigning,
	certificatesv1.UsageMicrosoftSGC:    x509.ExtKeyUsageMicrosoftServerGatedCrypto,
	certificatesv1.UsageNetscapeSGC:     x509.ExtKeyUsageNetscapeServerGatedCrypto,
}

func x509Usages(usages []certificatesv1.KeyUsage) (key x509.KeyUsage, extended []x509.ExtKeyUsage, err error) {
	for _, usage := range usages {
		k, isKey := keyUsages[usage]
		e, isExtended := extendedUsages[usage]
		switch {
		case isKey:
			key |= k
		case isExtended:
			extended = append(extended, e)
		default:
			return 0, nil, fmt.Errorf("usage %q is not known", usage)
		}
	}
	return key, extended, nil
}
