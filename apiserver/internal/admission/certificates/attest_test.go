package certificates

import (
	"context"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources/podcertificaterequest"
	"kctl/proto/core"
)

// rights are a user's permissions: "verb signer".
type rights map[string]bool

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if a.ResourceName == "signers" && r[a.Verb+" "+a.Name] {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func TestAttest(t *testing.T) {
	bundle := func(signer string) *admission.Attributes {
		b := &certificatesv1.ClusterTrustBundle{Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer}}
		return &admission.Attributes{Operation: admission.Create, Object: b}
	}
	p := Attest{Authorizer: rights{"attest a.b/c": true, "attest d.e/*": true}}
	for signer, want := range map[string]string{
		"": "", "a.b/c": "", "d.e/x": "", "a.b/d": `user not permitted to attest for signerName "a.b/d"`,
	} {
		if err := p.Validate(t.Context(), bundle(signer)); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: got %v, want %q", signer, err, want)
		}
	}
}

// TestAttestAndGarbage: garbage collection and the migration of storage, which change
// nothing that is attested, need no right for the signer.
func TestAttestAndGarbage(t *testing.T) {
	old := &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: "a.b/c"}}
	owned, labelled := old.DeepCopy(), old.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
	labelled.Labels = map[string]string{"a": "b"}
	for now, admitted := range map[*certificatesv1.ClusterTrustBundle]bool{old: true, owned: true, labelled: false} {
		err := Attest{Authorizer: rights{}}.Validate(t.Context(), &admission.Attributes{Operation: admission.Update, Object: now, OldObject: old})
		if (err == nil) != admitted {
			t.Errorf("%v: %v", now.ObjectMeta, err)
		}
	}
}

func TestPodSigning(t *testing.T) {
	asked := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	asked.Spec.SignerName = "a.b/c"
	answered := asked.DeepCopy()
	answered.Status.Conditions = []metav1.Condition{{Type: "Denied"}}
	const want = `PodCertificateRequest.certificates.k8s.io "web" is invalid: spec.signerName: Forbidden: User "alice" is not permitted to "sign" for signer "a.b/c"`
	for what, c := range map[string]struct {
		may  rights
		now  core.Object
		want string
	}{
		"a signer":       {rights{"sign a.b/c": true}, answered, ""},
		"somebody":       {rights{"approve a.b/c": true}, answered, want},
		"nothing is new": {nil, asked, ""},
	} {
		a := &admission.Attributes{
			Operation: admission.Update, Resource: podcertificaterequest.Resource, Subresource: "status", Name: "web",
			Object: c.now, OldObject: asked, User: &request.User{Username: "alice"},
		}
		if err := (PodSigning{Authorizer: c.may}).Validate(t.Context(), a); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}
