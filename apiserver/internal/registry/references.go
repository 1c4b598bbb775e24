package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// standardFinalizers are those without a domain.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes"}

// domainGroups are those whose objects have finalizers with a domain only: all
// but the younger ones of upstream's, and users' own.
var domainGroups = sets.New("", "apps", "autoscaling", "batch", "certificates.k8s.io", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io",
	"networking.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io")

// finalizerNames refuses finalizers of which nobody could tell whose they are.
func finalizerNames(r core.Resource, finalizers []string) field.ErrorList {
	if len(finalizers) == 0 || !domainGroups.Has(r.Group) || r.Name == core.Events.Name {
		return nil
	}
	var errs field.ErrorList
	for i, name := range finalizers {
		if !strings.Contains(name, "/") && !slices.Contains(standardFinalizers, name) {
			errs = append(errs, field.Invalid(metadataPath.Child("finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// oneOfEachOwner drops references to owners that are there twice, and tells the
// client of those that it names in two ways too.
func oneOfEachOwner(ctx context.Context, obj core.Object) {
	owners := obj.GetOwnerReferences()
	if len(owners) < 2 {
		return
	}
	var once []metav1.OwnerReference
	var twice []string
	for i, owner := range owners {
		same := func(other metav1.OwnerReference) bool { return other.UID == owner.UID }
		if slices.ContainsFunc(owners[:i], same) && !slices.Contains(twice, string(owner.UID)) {
			twice = append(twice, string(owner.UID))
		}
		if !slices.ContainsFunc(once, func(other metav1.OwnerReference) bool { return sameOwner(&other, &owner) }) {
			once = append(once, owner)
		}
	}
	if len(twice) == 0 {
		return
	}
	obj.SetOwnerReferences(once)
	request.Warn(ctx, fmt.Sprintf(".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "+
		"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s", strings.Join(twice, ", ")))
}

func sameOwner(a, b *metav1.OwnerReference) bool {

	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		ptr.Equal(a.Controller, b.Controller) && ptr.Equal(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}
