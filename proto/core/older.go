package core

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Older reports whether one state of an object is older than another, which may come from another
// watch or answer: resource versions are numbers that grow (Kubernetes API concepts, "Resource
// versions"; KEP-5504). A state without one, which was never stored, is neither.
func Older(one, other Object) bool {
	order, err := resourceversion.CompareResourceVersion(one.GetResourceVersion(), other.GetResourceVersion())
	return err == nil && order < 0
}
