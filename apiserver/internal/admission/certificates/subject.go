package certificates

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/resources/certificatesigningrequest"
	"kctl/proto/core"
)

// SubjectName is upstream's name.
const SubjectName = "CertificateSubjectRestriction"

// Subject refuses requests for a client certificate of the group
// system:masters.
type Subject struct{ admission.OnCreates }

// Validate implements admission.Validator.
func (Subject) Validate(_ context.Context, a *admission.Attributes) error {
	r, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok || a.Subresource != "" || r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	parsed, err := certificatesigningrequest.Parse(r)
	if err != nil {
		return fmt.Errorf("failed to parse CSR: %w", err)
	}
	if slices.Contains(parsed.Subject.Organization, core.GroupMasters) {
		return fmt.Errorf("use of %s signer with %s group is not allowed", r.Spec.SignerName, core.GroupMasters)
	}
	return nil
}
