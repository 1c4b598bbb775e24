package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
)

// The words are kube-apiserver 1.37's.
func TestPodCertificateSources(t *testing.T) {
	good := corev1.PodCertificateProjection{SignerName: "a.b/c", KeyType: "ED25519", CredentialBundlePath: "bundle"}
	for name, c := range map[string]struct {
		change func(*corev1.PodCertificateProjection)
		want   string
	}{
		"good": {func(*corev1.PodCertificateProjection) {}, ""},
		"short": {func(c *corev1.PodCertificateProjection) { c.MaxExpirationSeconds = new(int32(3599)) },
			"at.maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600"},
		"long": {func(c *corev1.PodCertificateProjection) { c.MaxExpirationSeconds = new(int32(7862401)) },
			"at.maxExpirationSeconds: Invalid value: 7862401: if provided, maxExpirationSeconds must be <= 7862400"},
		"its own": {func(c *corev1.PodCertificateProjection) {
			c.SignerName, c.MaxExpirationSeconds = "kubernetes.io/x", new(int32(86401))
		}, "at.maxExpirationSeconds: Invalid value: 86401: if provided, maxExpirationSeconds must be <= 86400"},
		"no domain": {func(c *corev1.PodCertificateProjection) { c.SignerName = "abc" },
			`at.signerName: Invalid value: "abc": must be a fully qualified domain and path of the form 'example.com/signer-name'`},
		"key": {func(c *corev1.PodCertificateProjection) { c.KeyType = "DSA" },
			`at.keyType: Unsupported value: "DSA": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"`},
		"no file": {func(c *corev1.PodCertificateProjection) { c.CredentialBundlePath = "" },
			"at: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath"},
		"absolute": {func(c *corev1.PodCertificateProjection) { c.KeyPath = "/abs" }, `at.keyPath: Invalid value: "/abs": must be a relative path`},
		"elsewhere": {func(c *corev1.PodCertificateProjection) { c.CertificateChainPath = "../c" },
			`at.certificateChainPath: Invalid value: "../c": must not contain '..'`},
		"annotation": {func(c *corev1.PodCertificateProjection) { c.UserAnnotations = map[string]string{"nodomain": "x"} },
			`at.userAnnotations: Invalid value: "nodomain": must be a domain-prefixed key (such as "acme.io/foo")`},
	} {
		source := good
		c.change(&source)
		_, errs := validatePodCertificate(&source, field.NewPath("at"))
		var words []string
		for _, err := range errs {
			words = append(words, err.Error())
		}
		if got := strings.Join(words, "; "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
