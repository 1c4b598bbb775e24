package certificates

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
)

// AttestName is upstream's name of the plugin.
const AttestName = "ClusterTrustBundleAttest"

// Attest admits trust bundles of a signer from users who may "attest" for it.
type Attest struct {
	admission.OnWrites
	Authorizer authz.Authorizer
}

// Validate implements admission.Validator.
func (p Attest) Validate(ctx context.Context, a *admission.Attributes) error {
	bundle, ok := a.Object.(*certificatesv1.ClusterTrustBundle)
	if !ok || bundle.Spec.SignerName == "" || a.ChangesOnlyGarbageFields() ||
		mayUseSigner(ctx, p.Authorizer, a.User, "attest", bundle.Spec.SignerName) {
		return nil
	}
	return fmt.Errorf("user not permitted to attest for signerName %q", bundle.Spec.SignerName)
}

// PodSigning lets users who may "sign" for a signer answer pods' requests to
// it. In upstream it is part of validation rather than a plugin, so it is
// always on.
type PodSigning struct{ Authorizer authz.Authorizer }

// Handles updates: an answer comes through /status.
func (PodSigning) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.Validator.
func (p PodSigning) Validate(ctx context.Context, a *admission.Attributes) error {
	now, ok := a.Object.(*certificatesv1.PodCertificateRequest)
	old, okOld := a.OldObject.(*certificatesv1.PodCertificateRequest)
	if !ok || !okOld || a.Subresource != "status" || a.User == nil || equality.Semantic.DeepEqual(now.Status, old.Status) {
		return nil
	}
	signer := old.Spec.SignerName
	if mayUseSigner(ctx, p.Authorizer, a.User, "sign", signer) {
		return nil
	}
	refusal := fmt.Sprintf("User %q is not permitted to \"sign\" for signer %q", a.User.Username, signer)
	return apierrors.NewInvalid(a.Resource.GVK().GroupKind(), a.Name, field.ErrorList{
		field.Forbidden(field.NewPath("spec", "signerName"), refusal),
	})
}
