package access

import (
	"context"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kctl/apiserver/internal/admission/ownerpermission"
	"kctl/apiserver/internal/config"
	"kctl/proto/core"
)

// An owner may be referred to in any of its served versions.
func TestOwnersOfEveryVersion(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) { o.EnableAdmissionPlugins = []string{ownerpermission.Name} })
	c.Must(c.Root().Resource(core.ClusterRoles, "").Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "owning"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
			{APIGroups: []string{autoscalingv1.GroupName}, Resources: []string{"horizontalpodautoscalers/finalizers"}, Verbs: []string{"update"}},
		},
	}, nil))
	c.Bind("owning", "owning", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "jane"})
	create := func(owner metav1.OwnerReference) error {
		owner.Name, owner.UID, owner.BlockOwnerDeletion = "owner", types.UID("4f9ff5a4-6d9c-4e0e-8d0e-4d5f0c7a4b11"), new(true)
		obj := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "owned-", OwnerReferences: []metav1.OwnerReference{owner}}}
		return c.Token("nobody").Resource(core.ConfigMaps, "default").Create(t.Context(), obj, nil)
	}
	c.Until("the role counts", func(context.Context) bool {
		return create(metav1.OwnerReference{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"}) == nil
	})
	c.Must(create(metav1.OwnerReference{APIVersion: "autoscaling/v1", Kind: "HorizontalPodAutoscaler"}))
	if err := create(metav1.OwnerReference{APIVersion: "autoscaling/v2", Kind: "Nothing"}); !apierrors.IsForbidden(err) {
		t.Errorf("an owner of a kind that is not served: %v", err)
	}
}
