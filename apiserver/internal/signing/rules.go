package signing

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"

	"kctl/proto/core"
)

// rules are what each signer permits.
var rules = map[string]func(parsed *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error{
	certificatesv1.KubeAPIServerClientSignerName:        validateClient,
	certificatesv1.KubeAPIServerClientKubeletSignerName: ValidateKubeletClient,
	certificatesv1.KubeletServingSignerName:             validateKubeletServing,
	// Older clients name no signer. The API no longer accepts their requests, but old
	// ones may be stored.
	certificatesv1beta1.LegacyUnknownSignerName: func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error { return nil },
}

// Knows reports whether the signer is one of Kubernetes' own.
func Knows(signer string) bool { return rules[signer] != nil }

// Check returns why a signer does not permit a request; nil if it does.
func Check(signer string, parsed *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	rule := rules[signer]
	if rule == nil {
		return fmt.Errorf("signer %q is not known", signer)
	}
	return rule(parsed, usages)
}

var (
	errNodesOnly        = fmt.Errorf("subject organization is not %q", core.GroupNodes)
	errNodeName         = fmt.Errorf("subject common name does not begin with %s", core.UserNodePrefix)
	errSubjectAltNames  = errors.New("DNS names and IP addresses are not permitted")
	errNoSubjectAltName = errors.New("a DNS name or an IP address is required")
	errEmail            = errors.New("email addresses are not permitted")
	errURI              = errors.New("URIs are not permitted")
)

func validateClient(_ *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return fmt.Errorf("usages did not include %q", certificatesv1.UsageClientAuth)
	}
	return allowOnly(usages, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth)
}

// ValidateKubeletClient returns why a request is not for a kubelet's client
// certificate; nil if it is.
func ValidateKubeletClient(parsed *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	if err := validateNodeSubject(parsed); err != nil {
		return err
	}
	if len(parsed.DNSNames) > 0 || len(parsed.IPAddresses) > 0 {
		return errSubjectAltNames
	}
	return validateKubeletUsages(usages, certificatesv1.UsageClientAuth)
}

func validateKubeletServing(parsed *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	if err := validateNodeSubject(parsed); err != nil {
		return err
	}
	if len(parsed.DNSNames) == 0 && len(parsed.IPAddresses) == 0 {
		return errNoSubjectAltName
	}
	return validateKubeletUsages(usages, certificatesv1.UsageServerAuth)
}

func validateNodeSubject(parsed *x509.CertificateRequest) error {
	switch {
	case !slices.Equal(parsed.Subject.Organization, []string{core.GroupNodes}):
		return errNodesOnly
	case !strings.HasPrefix(parsed.Subject.CommonName, core.UserNodePrefix):
		return errNodeName
	case len(parsed.EmailAddresses) > 0:
		return errEmail
	case len(parsed.URIs) > 0:
		return errURI
	}
	return nil
}

// validateKubeletUsages checks the usages: the purpose, digital signature and, as RSA
// needs, key encipherment.
func validateKubeletUsages(usages []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage) error {
	for _, usage := range []certificatesv1.KeyUsage{purpose, certificatesv1.UsageDigitalSignature} {
		if !slices.Contains(usages, usage) {
			return fmt.Errorf("usages did not include %q", usage)
		}
	}
	return allowOnly(usages, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, purpose)
}

func allowOnly(usages []certificatesv1.KeyUsage, permitted ...certificatesv1.KeyUsage) error {
	for _, usage := range usages {
		if !slices.Contains(permitted, usage) {
			return fmt.Errorf("usage %q is not permitted", usage)
		}
	}
	return nil
}
