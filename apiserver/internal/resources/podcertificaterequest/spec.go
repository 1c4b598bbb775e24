package podcertificaterequest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/certificatesigningrequest"
	"kctl/apiserver/internal/resources/check"
)

const (
	minExpirationSeconds = 60 * 60
	maxExpirationSeconds = 91 * defaultExpirationSeconds
	maxUID               = 128
	maxRequest           = 10 << 10
	// kubernetesSignerPrefix is the prefix of Kubernetes' own signers, which sign for a day at most.
	kubernetesSignerPrefix = "kubernetes.io/"
)

var specPath = field.NewPath("spec")

func validateSpec(s *certificatesv1.PodCertificateRequestSpec) field.ErrorList {
	errs := certificatesigningrequest.ValidateSigner(s.SignerName, specPath.Child("signerName"))
	errs = append(errs, certificatesigningrequest.ValidateUserAnnotations(s.UnverifiedUserAnnotations,
		specPath.Child("unverifiedUserAnnotations"))...)
	for _, of := range []struct {
		what, name string
		uid        types.UID
	}{
		{"pod", s.PodName, s.PodUID}, {"serviceAccount", s.ServiceAccountName, s.ServiceAccountUID}, {"node", string(s.NodeName), s.NodeUID},
	} {
		errs = append(errs, check.Messages(specPath.Child(of.what+"Name"), of.name, check.NameIsSubdomain(of.name, false))...)
		errs = append(errs, validateUID(of.uid, specPath.Child(of.what+"UID"))...)
	}
	longest := int32(maxExpirationSeconds)
	if strings.HasPrefix(s.SignerName, kubernetesSignerPrefix) {
		longest = defaultExpirationSeconds
	}
	if seconds := ptr.Deref(s.MaxExpirationSeconds, 0); seconds < minExpirationSeconds || seconds > longest {
		errs = append(errs, field.Invalid(specPath.Child("maxExpirationSeconds"), seconds,
			fmt.Sprintf("must be in the range [%d, %d]", minExpirationSeconds, longest)))
	}
	return append(errs, validateRequest(s.StubPKCS10Request)...)
}

func validateUID(uid types.UID, at *field.Path) field.ErrorList {
	switch {
	case uid == "":
		return field.ErrorList{field.Invalid(at, uid, "must not be empty")}
	case len(uid) > maxUID:
		return field.ErrorList{field.TooLong(at, uid, maxUID)}
	}
	return nil
}

// validateRequest checks that the request is signed with its own key, and the
// key is of a type that signers have to support.
func validateRequest(request []byte) field.ErrorList {
	at := specPath.Child("stubPKCS10Request")
	wrong := func(value any, words string) field.ErrorList {
		return field.ErrorList{field.Invalid(at, value, words)}
	}
	switch {
	case len(request) == 0:
		return field.ErrorList{field.Invalid(specPath, field.OmitValueType{},
			"exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")}
	case len(request) > maxRequest:
		return field.ErrorList{field.TooLong(at, "", maxRequest)}
	}
	parsed, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return wrong(field.OmitValueType{}, "must be a valid PKCS#10 CSR")
	}
	switch key := parsed.PublicKey.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if curve := key.Curve; curve != elliptic.P256() && curve != elliptic.P384() && curve != elliptic.P521() {
			return wrong("curve "+curve.Params().Name, "elliptic public keys must use curve P256, P384, or P521")
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits != 3072 && bits != 4096 {
			return wrong(fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")
		}
	default:
		return wrong(field.OmitValueType{}, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")
	}
	if parsed.CheckSignature() != nil {
		return wrong(field.OmitValueType{}, "invalid signature")
	}
	return nil
}
