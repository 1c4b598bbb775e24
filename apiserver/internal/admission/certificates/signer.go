package certificates

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/certificatesigningrequest"
	"kctl/proto/core"
)

// Upstream's names of the plugins.
const (
	ApprovalName = "CertificateApproval"
	SigningName  = "CertificateSigning"
)

// Approval admits decisions by users who may "approve" for the signer.
type Approval struct{ Authorizer authz.Authorizer }

// Handles updates: a decision comes through /approval.
func (Approval) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.Validator.
func (p Approval) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Resource != core.CertificateSigningRequests || a.Subresource != certificatesigningrequest.Approval {
		return nil
	}
	return authorizeSigner(ctx, p.Authorizer, a, "approve")
}

// Signing admits certificates and conditions from users who may "sign" for the
// signer.
type Signing struct{ Authorizer authz.Authorizer }

// Handles updates: a certificate comes through /status.
func (Signing) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.Validator.
func (p Signing) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Resource != core.CertificateSigningRequests || a.Subresource != "status" {
		return nil
	}
	now, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	old, okOld := a.OldObject.(*certificatesv1.CertificateSigningRequest)
	if ok && okOld && bytes.Equal(now.Status.Certificate, old.Status.Certificate) &&
		equality.Semantic.DeepEqual(now.Status.Conditions, old.Status.Conditions) {
		return nil
	}
	return authorizeSigner(ctx, p.Authorizer, a, "sign")
}

// authorizeSigner asks about the signer in the stored request; the one that was sent
// may name another.
func authorizeSigner(ctx context.Context, authorizer authz.Authorizer, a *admission.Attributes, verb string) error {
	stored, ok := a.OldObject.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return fmt.Errorf("expected a certificate signing request, got %T", a.OldObject)
	}
	if !mayUseSigner(ctx, authorizer, a.User, verb, stored.Spec.SignerName) {
		return fmt.Errorf("user not permitted to %s requests with signerName %q", verb, stored.Spec.SignerName)
	}
	return nil
}

// mayUseSigner asks about the signer, and then about all signers of its domain.
func mayUseSigner(ctx context.Context, authorizer authz.Authorizer, user *request.User, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	return slices.ContainsFunc([]string{signer, domain + "/*"}, func(name string) bool {
		return authz.Allowed(ctx, authorizer, user, request.Info{
			Resource: true, Verb: verb, APIGroup: certificatesv1.GroupName, APIVersion: "*", ResourceName: "signers", Name: name,
		})
	})
}
