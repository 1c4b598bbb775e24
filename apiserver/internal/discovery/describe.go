package discovery

import (
	"net/http"
	"slices"
	"strings"

	"kctl/apiserver/internal/registry"
)

// Describe is the discovery of one of the server's own resources.
func Describe(served registry.Served) Resource {
	info := served.Resource.Info()
	d := Resource{Info: info, Verbs: standardVerbs}
	if info.Verbs != nil {
		d.Verbs = info.Verbs
	}
	if info.HasStatus {
		d.Subresources = append(d.Subresources, Subresource{Name: "status", Verbs: StatusVerbs})
	}
	for _, part := range info.Subresources {
		d.Subresources = append(d.Subresources, Subresource{Name: part, Verbs: registry.SubresourceVerbs(part)})
	}
	for _, sub := range served.Subresources {
		d.Subresources = append(d.Subresources, Subresource{Name: sub.Name, Kind: sub.Kind, Verbs: verbsOf(sub)})
	}
	slices.SortFunc(d.Subresources, func(a, b Subresource) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// verbOf is the verb of a method that a subresource answers itself.
var verbOf = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// verbsOf are in the order of standardVerbs.
func verbsOf(sub registry.Subresource) []string {
	if sub.Object != nil {
		return StatusVerbs
	}
	verbs := map[string]bool{"create": sub.Create != nil}
	for method := range sub.Connect {
		verbs[verbOf[method]] = true
	}
	var out []string
	for _, verb := range standardVerbs {
		if verbs[verb] {
			out = append(out, verb)
		}
	}
	return out
}
