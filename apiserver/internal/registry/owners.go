package registry

import (
	"context"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// DropDuplicateOwners drops owners that an object lists twice identically, and warns
// of them. when names the point in the request, if it is not the first.
func DropDuplicateOwners(ctx context.Context, obj core.Object, when string) {
	owners := obj.GetOwnerReferences()
	if len(owners) < 2 {
		return
	}
	seen := make(map[ownerKey]bool, len(owners))
	unique := make([]metav1.OwnerReference, 0, len(owners))
	doubled := map[string]bool{}
	for _, owner := range owners {
		key := ownerKey{owner.APIVersion, owner.Kind, owner.Name, string(owner.UID), optional(owner.Controller),
			optional(owner.BlockOwnerDeletion)}
		if seen[key] {
			doubled[string(owner.UID)] = true
			continue
		}
		seen[key] = true
		unique = append(unique, owner)
	}
	if len(doubled) == 0 {
		return
	}
	obj.SetOwnerReferences(unique)
	request.Warn(ctx, ".metadata.ownerReferences contains duplicate entries"+when+
		"; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "+
		"duplicate UID(s) observed: "+strings.Join(slices.Sorted(maps.Keys(doubled)), ", "))
}

// ownerKey is an owner reference in comparable form: there may be thousands.
type ownerKey struct {
	apiVersion, kind, name, uid string
	controller, blocks          optionalBool
}

// optionalBool is an optional bool.
type optionalBool struct{ given, yes bool }

func optional(b *bool) optionalBool { return optionalBool{given: b != nil, yes: b != nil && *b} }

// afterMutation: the owners come from admission, or from a patch.
const afterMutation = " after mutating admission happens"
