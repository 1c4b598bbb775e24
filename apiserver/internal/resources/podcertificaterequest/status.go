package podcertificaterequest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

const (
	// refreshMargin is the least time between a certificate's refresh and its
	// beginning and end.
	refreshMargin = 10 * time.Minute
	// clockSkew is the tolerated error of signers' clocks.
	clockSkew = 5 * time.Minute
)

var (
	statusPath = field.NewPath("status")
	chainPath  = statusPath.Child("certificateChain")
	// outcomeConditions are the conditions, of which a request gets exactly one.
	outcomeConditions = []string{
		certificatesv1.PodCertificateRequestConditionTypeIssued, certificatesv1.PodCertificateRequestConditionTypeDenied,
		certificatesv1.PodCertificateRequestConditionTypeFailed,
	}
)

// outcome is the condition with the outcome of a request, or nil.
func outcome(s *certificatesv1.PodCertificateRequestStatus) *metav1.Condition {
	i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return slices.Contains(outcomeConditions, c.Type) })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// validateStatus checks that a request is answered in one write, which is final.
func validateStatus(r, old *certificatesv1.PodCertificateRequest, now time.Time) field.ErrorList {
	errs := validateConditions(r.Status.Conditions)
	if len(errs) > 0 && len(validateConditions(old.Status.Conditions)) == 0 {
		return errs // that is enough; but those that old had don't hide what else is changed
	}
	return append(errs, validateAnswer(r, old, now)...)
}

func validateAnswer(r, old *certificatesv1.PodCertificateRequest, now time.Time) field.ErrorList {
	same := equality.Semantic.DeepEqual(r.Status, old.Status)
	immutable := func(words string) field.ErrorList {
		return field.ErrorList{field.Invalid(statusPath, field.OmitValueType{}, words)}
	}
	if outcome(&old.Status) != nil {
		if !same {
			return immutable("immutable after PodCertificateRequest is issued, denied, or failed")
		}
		return nil
	}
	answer := outcome(&r.Status)
	switch {
	case answer == nil && same:
		return nil
	case answer == nil:
		return immutable(`status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	case answer.Type == certificatesv1.PodCertificateRequestConditionTypeIssued:
		return validateIssued(r, now)
	}
	if s := &r.Status; s.CertificateChain != "" || s.NotBefore != nil || s.NotAfter != nil || s.BeginRefreshAt != nil {
		return immutable("non-condition status fields must be empty when denying or failing the PodCertificateRequest")
	}
	return nil
}

func validateConditions(conditions []metav1.Condition) field.ErrorList {
	var errs field.ErrorList
	found := false
	for i, c := range conditions {
		at := statusPath.Child("conditions", fmt.Sprintf("[%d]", i)) // with a superfluous dot, as in upstream
		if !slices.Contains(outcomeConditions, c.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), c.Type, outcomeConditions))
			continue
		}
		if found {
			errs = append(errs, field.Invalid(at.Child("type"), c.Type,
				`There may be at most one condition with type "Issued", "Denied", or "Failed"`))
		}
		found = true
		errs = append(errs, check.Supported(c.Status, at.Child("status"), metav1.ConditionTrue)...)
	}
	return append(errs, metav1validation.ValidateConditions(conditions, statusPath.Child("conditions").Upstream())...)
}

// validateIssued checks that the certificate fits the request, and reports the
// first error.
func validateIssued(r *certificatesv1.PodCertificateRequest, now time.Time) field.ErrorList {
	wrong := func(value any, words string) field.ErrorList {
		return field.ErrorList{field.Invalid(chainPath, value, words)}
	}
	chain := r.Status.CertificateChain
	leaf, rest, words := nextCertificate([]byte(chain), "leaf")
	switch {
	case words != "":
		return wrong(chain, words)
	case leaf == nil:
		return wrong(chain, "issued certificate chain must contain at least one certificate")
	}
	if request, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request); err != nil ||
		!bytes.Equal(request.RawSubjectPublicKeyInfo, leaf.RawSubjectPublicKeyInfo) {
		return wrong(chain, "leaf certificate was not issued to the requested public key")
	}
	if errs := validateTimes(&r.Status, leaf, now); len(errs) > 0 {
		return errs
	}
	longest := ptr.Deref(r.Spec.MaxExpirationSeconds, defaultExpirationSeconds)
	switch lifetime := leaf.NotAfter.Sub(leaf.NotBefore); {
	case lifetime < minExpirationSeconds*time.Second:
		return wrong(lifetime, "leaf certificate lifetime must be >= 1 hour")
	case lifetime > time.Duration(longest)*time.Second:
		return wrong(lifetime, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%d)", longest))
	}
	for another := leaf; another != nil; {
		if another, rest, words = nextCertificate(rest, "intermediate"); words != "" {
			return wrong(chain, words)
		}
	}
	return nil
}

// nextCertificate takes a certificate from a chain, nil after the last, or returns what is
// wrong with it.
func nextCertificate(chain []byte, which string) (certificate *x509.Certificate, rest []byte, wrong string) {
	block, rest := pem.Decode(chain)
	switch {
	case block == nil:
		return nil, nil, ""
	case block.Type != "CERTIFICATE":
		return nil, nil, "issued certificate chain must consist entirely of CERTFICATE PEM blocks"
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, which + " certificate does not parse as valid X.509"
	}
	return certificate, rest, ""
}

// validateTimes checks that the status's times are those of the certificate,
// and that there is time to refresh it.
func validateTimes(s *certificatesv1.PodCertificateRequestStatus, leaf *x509.Certificate, now time.Time) field.ErrorList {
	begin, end, refresh := statusPath.Child("notBefore"), statusPath.Child("notAfter"), statusPath.Child("beginRefreshAt")
	var errs field.ErrorList
	for _, required := range []struct {
		at    *field.Path
		time  *metav1.Time
		words string
	}{
		{begin, s.NotBefore, "must be present and consistent with the issued certificate"},
		{end, s.NotAfter, "must be present and consistent with the issued certificate"},
		{refresh, s.BeginRefreshAt, "must be present and in the range [notbefore+10min, notafter-10min]"},
	} {
		if required.time == nil {
			errs = append(errs, field.Required(required.at, required.words))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	wrong := func(at *field.Path, value *metav1.Time, words string) field.ErrorList {
		return field.ErrorList{field.Invalid(at, value, words)}
	}
	switch {
	case !s.NotBefore.Time.Equal(leaf.NotBefore):
		return wrong(begin, s.NotBefore, "must be set to the NotBefore time encoded in the leaf certificate")
	case now.Sub(s.NotBefore.Time).Abs() > clockSkew:
		return wrong(begin, s.NotBefore, "must be set to within 5 minutes of kube-apiserver's current time")
	case !s.NotAfter.Time.Equal(leaf.NotAfter):
		return wrong(end, s.NotAfter, "must be set to the NotAfter time encoded in the leaf certificate")
	case s.BeginRefreshAt.Sub(leaf.NotBefore) < refreshMargin:
		return wrong(refresh, s.BeginRefreshAt, "must be at least 10 minutes after status.notBefore")
	case leaf.NotAfter.Sub(s.BeginRefreshAt.Time) < refreshMargin:
		return wrong(refresh, s.BeginRefreshAt, "must be at least 10 minutes before status.notAfter")
	}
	return nil
}
