package certificatesigningrequest

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

const (
	minExpirationSeconds = 600
	requestPEMType       = "CERTIFICATE REQUEST"
	// maxRSABits is twice the largest RSA key that Go's TLS accepts. The cost of
	// checking a signature grows with its square: a megabyte of key takes hours.
	maxRSABits         = 16384
	certificatePEMType = "CERTIFICATE"
	maxDomain          = 253
)

var usages = sets.New(
	certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment,
	certificatesv1.UsageKeyEncipherment, certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment,
	certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign, certificatesv1.UsageEncipherOnly, certificatesv1.UsageDecipherOnly,
	certificatesv1.UsageAny, certificatesv1.UsageServerAuth, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning,
	certificatesv1.UsageEmailProtection, certificatesv1.UsageSMIME, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel,
	certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping, certificatesv1.UsageOCSPSigning,
	certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
)

func validate(r *certificatesv1.CertificateSigningRequest) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if _, err := Parse(r); err != nil {
		errs = append(errs, field.Invalid(path.Child("request"), r.Spec.Request, err.Error()))
	}
	if len(r.Spec.Usages) == 0 {
		errs = append(errs, field.Required(path.Child("usages"), ""))
	}
	seen := sets.New[certificatesv1.KeyUsage]()
	for i, usage := range r.Spec.Usages {
		if !usages.Has(usage) {
			errs = append(errs, field.NotSupported(path.Child("usages").Index(i), usage, sets.List(usages)))
		}
		if seen.Has(usage) {
			errs = append(errs, field.Duplicate(path.Child("usages").Index(i), usage))
		}
		seen.Insert(usage)
	}
	errs = append(errs, ValidateSigner(r.Spec.SignerName, path.Child("signerName"))...)
	if r.Spec.SignerName == certificatesv1beta1.LegacyUnknownSignerName {
		errs = append(errs, field.Invalid(path.Child("signerName"), r.Spec.SignerName,
			"the legacy signerName is not allowed via this API version"))
	}
	if seconds := r.Spec.ExpirationSeconds; seconds != nil && *seconds < minExpirationSeconds {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *seconds,
			"may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

// Parse parses the PKCS #10 request, and checks that its creator has the key.
func Parse(r *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(r.Spec.Request)
	if block == nil || block.Type != requestPEMType {
		return nil, fmt.Errorf("PEM block type must be %s", requestPEMType)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, ok := parsed.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return nil, fmt.Errorf("RSA keys of more than %d bits are not supported", maxRSABits)
	}
	return parsed, parsed.CheckSignature()
}

// ValidateSigner checks the name of a signer: a domain of two labels or more, a slash, and a name.
func ValidateSigner(name string, path *field.Path) field.ErrorList {
	domain, rest, found := strings.Cut(name, "/")
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "")}
	case !found || strings.Contains(rest, "/"):
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	var errs field.ErrorList
	labels := strings.Split(domain, ".")
	for _, label := range labels {
		for _, text := range validation.IsDNS1123Label(label) {
			errs = append(errs, field.Invalid(path, domain, fmt.Sprintf("validating label %q: %s", label, text)))
		}
	}
	if len(labels) < 2 {
		errs = append(errs, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	for label := range strings.SplitSeq(rest, ".") {
		for _, text := range validation.IsDNS1123Subdomain(label) {
			errs = append(errs, field.Invalid(path, rest, fmt.Sprintf("validating label %q: %s", label, text)))
		}
	}
	if len(domain) > maxDomain {
		errs = append(errs, field.TooLong(path, domain, maxDomain))
	}
	return errs
}

// maxAnnotations bounds users' annotations for signers, in bytes.
const maxAnnotations = 256 << 10

// ValidateUserAnnotations validates users' annotations for the signer of a
// pod's certificate.
func ValidateUserAnnotations(said map[string]string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(said)) {
		size += len(key) + len(said[key])
		lower := strings.ToLower(key)
		wrong := check.QualifiedName(lower, at)
		if len(wrong) == 0 && !strings.Contains(key, "/") {
			wrong = field.ErrorList{field.Invalid(at, lower, `must be a domain-prefixed key (such as "acme.io/foo")`)}
		}
		errs = append(errs, wrong...)
	}
	if size > maxAnnotations {
		errs = append(errs, field.TooLong(at, "", maxAnnotations))
	}
	return errs
}

// validateApproval checks that a decision is final.
func validateApproval(_ context.Context, r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	return validateConditions(r, old, true)
}

// validateStatus checks that signers set the certificate once, and may report
// failure, but take no decision.
func validateStatus(_ context.Context, r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	path := field.NewPath("status", "certificate")
	var errs field.ErrorList
	if len(r.Status.Certificate) > 0 {
		if err := checkCertificates(r.Status.Certificate); err != nil {
			errs = append(errs, field.Invalid(path, "<certificate data>", err.Error()))
		}
	}
	errs = append(errs, validateConditions(r, old, false)...)
	if len(old.Status.Certificate) > 0 && !bytes.Equal(old.Status.Certificate, r.Status.Certificate) {
		errs = append(errs, field.Forbidden(path, "updates may not modify existing certificate content"))
	}
	return errs
}

func checkCertificates(data []byte) error {
	for count := 0; ; count++ {
		block, rest := pem.Decode(data)
		switch {
		case block == nil && count == 0:
			return fmt.Errorf("must contain at least one %s PEM block", certificatePEMType)
		case block == nil:
			return nil
		case block.Type != certificatePEMType:
			return fmt.Errorf("only %s PEM blocks are allowed, found %q", certificatePEMType, block.Type)
		case len(block.Headers) > 0:
			return fmt.Errorf("no PEM block headers are permitted")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err
		}
		data = rest
	}
}

// permanentConditions are the conditions that can't be removed.
var permanentConditions = []certificatesv1.RequestConditionType{
	certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed,
}

func validateConditions(r, old *certificatesv1.CertificateSigningRequest, decides bool) field.ErrorList {
	path := field.NewPath("status", "conditions")
	var errs field.ErrorList
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, c := range r.Status.Conditions {
		at := path.Index(i)
		if c.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), ""))
		}
		if seen[c.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen[c.Type] = true
		errs = append(errs, validateConditionStatus(c, at.Child("status"))...)
	}
	for _, t := range permanentConditions {
		if findCondition(old, t) != nil && !seen[t] {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("updates may not remove a condition of type %q", t)))
		}
	}
	for _, t := range permanentConditions {
		if !decides && isDecision(t) && seen[t] && findCondition(old, t) == nil {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("updates may not add a condition of type %q", t)))
		}
	}
	if seen[certificatesv1.CertificateApproved] && seen[certificatesv1.CertificateDenied] {
		approved, denied := `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
		errs = append(errs, field.Invalid(path, "{"+approved+", "+denied+"}", "must specify at most one of: `"+approved+"`, `"+denied+"`"))
	}
	return errs
}

// validateConditionStatus checks that lasting conditions are true.
func validateConditionStatus(c certificatesv1.CertificateSigningRequestCondition, path *field.Path) field.ErrorList {
	allowed := sets.New(corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)
	if slices.Contains(permanentConditions, c.Type) {
		allowed = sets.New(corev1.ConditionTrue)
	}
	switch {
	case c.Status == "":
		return field.ErrorList{field.Required(path, "")}
	case !allowed.Has(c.Status):
		return field.ErrorList{field.NotSupported(path, c.Status, sets.List(allowed))}
	}
	return nil
}
