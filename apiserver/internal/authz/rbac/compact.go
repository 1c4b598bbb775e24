package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Compact joins rules about the same resource, so that each is listed once with
// all its verbs. validation.Covers has already split and reduced its input.
func Compact(atoms []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type thing struct{ group, resource, name string }
	var out []rbacv1.PolicyRule
	at := map[thing]int{}
	for _, atom := range atoms {
		if len(atom.Resources) == 0 {
			out = append(out, atom)
			continue
		}
		key := thing{group: atom.APIGroups[0], resource: atom.Resources[0]}
		if len(atom.ResourceNames) > 0 {
			key.name = atom.ResourceNames[0]
		}
		i, ok := at[key]
		if !ok {
			at[key] = len(out)
			out = append(out, atom)
			continue
		}
		if !slices.Contains(out[i].Verbs, atom.Verbs[0]) {
			out[i].Verbs = append(slices.Clip(out[i].Verbs), atom.Verbs[0])
		}
	}
	return out
}
