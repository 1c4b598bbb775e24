// Package ownerpermission requires the right to delete an object for changing
// its owners, since an owner's deletion deletes it, and the right to change an
// owner's finalizers for blocking its deletion. It is off by default
// (Kubernetes docs, "OwnerReferencesPermissionEnforcement").
package ownerpermission

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// Name is upstream's name.
const Name = "OwnerReferencesPermissionEnforcement"

// Plugin is the plugin.
type Plugin struct {
	admission.OnWrites
	Authorizer authz.Authorizer
	// Resource returns the resource of a kind, if it is served.
	Resource func(schema.GroupVersionKind) (core.Resource, bool)
}

// Validate implements admission.Validator. Kubelets write the status of pods
// that they may not delete.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.User == nil || a.Object == nil || a.Resource.Name == "pods" && a.Resource.Group == "" && a.Subresource == "status" {
		return nil
	}
	owners := a.Object.GetOwnerReferences()
	var had []metav1.OwnerReference
	if a.OldObject != nil {
		had = a.OldObject.GetOwnerReferences()
		if equality.Semantic.DeepEqual(owners, had) {
			return nil
		}
		deletes := request.Info{Verb: "delete", Namespace: a.Namespace, Name: a.Name}
		if decision, reason, err := p.authorize(ctx, a.User, a.Resource, deletes); decision != authz.Allow {
			return fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %v, %v", reason, err)
		}
	}
	return p.checkBlocking(ctx, a, newlyBlocking(owners, had))
}

// newlyBlocking are the owners whose deletion the object now blocks, and did not before.
func newlyBlocking(now, had []metav1.OwnerReference) []metav1.OwnerReference {
	held := map[string]bool{}
	for _, owner := range had {
		if ptr.Deref(owner.BlockOwnerDeletion, false) {
			held[string(owner.UID)] = true
		}
	}
	var blocking []metav1.OwnerReference
	for _, owner := range now {
		if ptr.Deref(owner.BlockOwnerDeletion, false) && !held[string(owner.UID)] {
			blocking = append(blocking, owner)
		}
	}
	return blocking
}

func (p *Plugin) checkBlocking(ctx context.Context, a *admission.Attributes, owners []metav1.OwnerReference) error {
	if len(owners) == 0 {
		return nil
	}
	anything := core.Resource{Group: "*", Version: "*", Name: "*", Namespaced: true}
	finalizers := request.Info{Verb: "update", Namespace: a.Namespace, Subresource: "finalizers", Name: "*"}
	if decision, _, _ := p.authorize(ctx, a.User, anything, finalizers); decision == authz.Allow {
		return nil
	}
	for _, owner := range owners {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		resource, served := p.Resource(kind)
		if !served {
			return fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: no "+
				"matches for kind %q in version %q",
				owner.APIVersion, owner.Kind, owner.Kind, strings.TrimPrefix(kind.GroupVersion().String(), "/"))
		}
		finalizers.Name = owner.Name
		if decision, reason, err := p.authorize(ctx, a.User, resource, finalizers); decision != authz.Allow {
			return fmt.Errorf("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %v, %v",
				reason, err)
		}
	}
	return nil
}

// authorize asks whether user may do something to a resource; what has the other attributes.
func (p *Plugin) authorize(ctx context.Context, user *request.User, r core.Resource, what request.Info) (authz.Decision, string, error) {
	what.Resource, what.APIGroup, what.APIVersion, what.ResourceName = true, r.Group, r.Version, r.Name
	if !r.Namespaced {
		what.Namespace = ""
	}
	return p.Authorizer.Authorize(ctx, &authz.Attributes{User: user, Info: what})
}
