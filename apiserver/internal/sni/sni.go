package sni

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/config"
	"kctl/proto/daemon"
)

// Choose is tls.Config.GetCertificate.
type Choose = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// ByName chooses certificates by the requested name: an exact match before a
// wildcard, names in flags before those in certificates, and the default
// certificate if nothing matches.
func ByName(named []config.SNICertificate, ordinary Choose, clock clock.PassiveClock, logger *zap.Logger) (Choose, error) {
	explicit, found := map[string]Choose{}, map[string]Choose{}
	for _, n := range named {
		reloader, err := daemon.Certificate(n.CertFile, n.KeyFile, clock, logger)
		if err != nil {
			return nil, fmt.Errorf("--tls-sni-cert-key: %w", err)
		}
		names, into := n.Names, explicit
		if len(names) == 0 {
			into = found
			if names, err = certificateNames(reloader.GetCertificate); err != nil {
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
			for _, names := range []map[string]Choose{explicit, found} {
				if choose := names[key]; choose != nil {
					return choose(hello)
				}
			}
		}
		return ordinary(hello)
	}, nil
}

// certificateNames are the names that a certificate is for.
func certificateNames(load Choose) ([]string, error) {
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
