package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/certificatesigningrequest"
)

// keyTypes are the types of pods' private keys.
var keyTypes = []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}

// Bounds on the lifetime of a pod's certificate; Kubernetes' own signers allow
// a day.
const (
	minCertificateSeconds = 60 * 60
	dayOfSeconds          = 24 * 60 * 60
	maxCertificateSeconds = 91 * dayOfSeconds
)

// validatePodCertificate also returns the files that the projection writes.
func validatePodCertificate(c *corev1.PodCertificateProjection, at *field.Path) (files []string, errs field.ErrorList) {
	errs = certificatesigningrequest.ValidateSigner(c.SignerName, at.Child("signerName"))
	errs = append(errs, owner(c.User, at.Child("user"))...)
	if !slices.Contains(keyTypes, c.KeyType) {
		errs = append(errs, field.NotSupported(at.Child("keyType"), c.KeyType, keyTypes))
	}
	longest := int32(maxCertificateSeconds)
	if strings.HasPrefix(c.SignerName, "kubernetes.io/") {
		longest = dayOfSeconds
	}
	lasts := at.Child("maxExpirationSeconds")
	switch seconds := c.MaxExpirationSeconds; {
	case seconds == nil:
	case *seconds < minCertificateSeconds:
		errs = append(errs, field.Invalid(lasts, *seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", minCertificateSeconds)))
	case *seconds > longest:
		errs = append(errs, field.Invalid(lasts, *seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", longest)))
	}
	for _, file := range []struct{ field, path string }{
		{"credentialBundlePath", c.CredentialBundlePath}, {"keyPath", c.KeyPath}, {"certificateChainPath", c.CertificateChainPath},
	} {
		if file.path != "" {
			files = append(files, file.path)
			errs = append(errs, fileName(file.path, at.Child(file.field))...)
		}
	}
	if len(files) == 0 {
		errs = append(errs, field.Required(at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
	return files, append(errs, certificatesigningrequest.ValidateUserAnnotations(c.UserAnnotations, at.Child("userAnnotations"))...)
}
