package registry

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kctl/proto/core"
)

// standardFinalizers are those without a domain.
var standardFinalizers = []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes"}

// domainGroups are the groups whose objects may only have finalizers with a
// domain: all but upstream's newer groups and custom resources.
var domainGroups = sets.New("", "apps", "autoscaling", "batch", "certificates.k8s.io", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io",
	"networking.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io")

// validateFinalizerNames refuses finalizers whose names do not tell who owns them.
func validateFinalizerNames(r core.Resource, finalizers []string) field.ErrorList {
	if len(finalizers) == 0 || !domainGroups.Has(r.Group) || r.Name == core.Events.Name {
		return nil
	}
	return ValidateQualifiedFinalizers(finalizers, metadataPath.Child("finalizers"))
}

// ValidateQualifiedFinalizers refuses finalizers that are neither upstream's own nor
// have a domain.
func ValidateQualifiedFinalizers[S ~string](finalizers []S, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range finalizers {
		if !isQualified(string(name)) {
			errs = append(errs, field.Invalid(path.Index(i), string(name), "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// FinalizerWarnings warns of finalizers that now has and before did not, and
// whose names do not tell who owns them, where that is no reason to refuse
// them.
func FinalizerWarnings(now, before []string) (warnings []string) {
	had := sets.New(before...)
	for _, name := range now {
		if isQualified(name) || had.Has(name) {
			continue
		}
		path := ""
		if strings.Contains(name, ".") {
			path = " including a path (/)"
		}
		warnings = append(warnings,
			fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name%s to avoid accidental conflicts "+
				"with other finalizer writers", name, path))
	}
	return warnings
}

func isQualified(finalizer string) bool {
	return strings.Contains(finalizer, "/") || slices.Contains(standardFinalizers, finalizer)
}
