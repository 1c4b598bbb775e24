package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/proto/pki"
)

// certificateFunc is tls.Config.GetCertificate.
type certificateFunc = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// operationTLS brings the flags on TLS into a configuration that shows one
// certificate.
func operationTLS(c *tls.Config, o *config.Operation, clock clock.PassiveClock) (err error) {
	if err := o.TLS.Apply(c); err != nil {
		return err
	}
	named, err := o.SNICertificates()
	if err != nil || len(named) == 0 {
		return err
	}
	c.GetCertificate, err = byName(named, c.GetCertificate, clock)
	return err
}

// byName chooses certificates by the name that clients ask for: one that is
// named before one that a wildcard covers, what the flags name before what
// certificates do, and the ordinary one where nothing fits.
func byName(named []config.SNICertificate, ordinary certificateFunc, clock clock.PassiveClock) (certificateFunc, error) {
	explicit, found := map[string]certificateFunc{}, map[string]certificateFunc{}
	for _, n := range named {
		reloader, err := pki.NewReloader(n.CertFile, n.KeyFile, clock)
		if err != nil {
			return nil, fmt.Errorf("--tls-sni-cert-key: %w", err)
		}
		names, into := n.Names, explicit
		if len(names) == 0 {
			into = found
			if names, err = namesOf(reloader.GetCertificate); err != nil {
				return nil, fmt.Errorf("--tls-sni-cert-key: %s: %w", n.CertFile, err)
			}
		}
		for _, name := range names {
			if name = strings.ToLower(name); into[name] == nil {
				into[name] = reloader.GetCertificate
			}
		}
	}
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
		_, parent, _ := strings.Cut(name, ".")
		for _, key := range []string{name, "*." + parent} {
			for _, names := range []map[string]certificateFunc{explicit, found} {
				if choose := names[key]; choose != nil {
					return choose(hello)
				}
			}
		}
		return ordinary(hello)
	}, nil
}

// namesOf are the names that a certificate is for.
func namesOf(load certificateFunc) ([]string, error) {
	pair, err := load(nil)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, err
	}
	names := certificate.DNSNames
	for _, ip := range certificate.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 && certificate.Subject.CommonName != "" {
		names = []string{certificate.Subject.CommonName}
	}
	return names, nil
}
