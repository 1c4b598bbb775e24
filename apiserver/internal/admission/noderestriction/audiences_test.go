package noderestriction

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// rights are permissions: "verb resource namespace/name".
type rights map[string]bool

func (r rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	if r[a.Verb+" "+a.ResourceName+" "+a.Namespace+"/"+a.Name] {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// TestAudiencesByRight: a node may request tokens with an audience that no
// volume needs if it has the permission for the account.
func TestAudiencesByRight(t *testing.T) {
	web := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}, Spec: core.PodSpec{NodeName: "n1", ServiceAccountName: "web"}}
	p := &Plugin{
		Pods: stored[*core.Pod]{"web": web}, Claims: stored[*corev1.PersistentVolumeClaim]{}, Volumes: stored[*corev1.PersistentVolume]{},
		Drivers:    stored[*storagev1.CSIDriver]{},
		Authorizer: rights{"request-serviceaccounts-token-audience registry shop/web": true, "request-serviceaccounts-token-audience  shop/api": true},
	}
	for _, test := range []struct{ account, audience, want string }{
		{"web", "registry", ""},
		{"web", "bank", `system:node:n1 is not authorized to request tokens for audience "bank"`},
		{"other", "registry", `system:node:n1 is not authorized to request tokens for audience "registry"`},
		{"api", "", ""},
		{"web", "", `system:node:n1 is not authorized to request tokens for audience ""`},
	} {
		a := &admission.Attributes{
			Operation: admission.Create, Resource: core.ServiceAccounts, Subresource: "token", Namespace: "shop", Name: test.account,
			User: &request.User{Username: "system:node:n1", Groups: []string{core.GroupNodes}},
			Object: &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				Audiences: []string{test.audience}, BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "u1"},
			}},
		}
		got := ""
		if err := p.Admit(t.Context(), a); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s for %q: %q, want %q", test.account, test.audience, got, test.want)
		}
	}
}

// TestAudiencesOfDrivers: the audiences of a CSI driver apply to volumes of
// every kind that it serves.
func TestAudiencesOfDrivers(t *testing.T) {
	azure := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{}}}}
	claim := func(volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	driver := &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}}}
	p := &Plugin{
		Claims:  stored[*corev1.PersistentVolumeClaim]{"azure": claim("azure"), "web-own": claim("azure"), "unbound": claim("")},
		Volumes: stored[*corev1.PersistentVolume]{"azure": azure},
		Drivers: stored[*storagev1.CSIDriver]{"file.csi.azure.com": driver},
	}
	for _, test := range []struct {
		volume corev1.VolumeSource
		want   string
	}{
		{corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "file.csi.azure.com"}}, ""},
		{corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{}}, ""},
		{corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "azure"}}, ""},
		{corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, ""},
		{corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, `n1 is not authorized to request tokens for audience "vault"`},
		{corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{}},
			`error validating audience "vault": csidriver.storage.k8s.io "cinder.csi.openstack.org" not found`},
		{corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "none"}},
			`error validating audience "vault": persistentvolumeclaim "none" not found`},
		{corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "unbound"}},
			`error validating audience "vault": persistentvolume "" not found`},
	} {
		pod := &core.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec:       core.PodSpec{Volumes: []corev1.Volume{{Name: "own", VolumeSource: test.volume}}},
		}
		got := ""
		if err := p.admitAudiences(t.Context(), &admission.Attributes{User: &request.User{Username: "n1"}}, []string{"vault"}, pod); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.volume, got, test.want)
		}
	}
}
