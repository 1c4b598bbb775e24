package aggregation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/version"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// Collectable are the resources of other servers whose objects take part in
// garbage collection: those that can be listed, watched and deleted. They are
// included as long as their APIService exists, even while its server does not
// answer.
func (a *Aggregator) Collectable() []registry.Objects {
	// The same objects may be served in several versions: take the newest.
	remotes := slices.SortedFunc(maps.Values(*a.remotes.Load()), func(x, y *remote) int {
		return cmp.Or(strings.Compare(x.Group, y.Group), version.CompareKubeAwareVersionStrings(y.Version, x.Version))
	})
	var out []registry.Objects
	taken := sets.Set[schema.GroupResource]{}
	for _, r := range remotes {
		for _, o := range a.objectsOf(r) {
			if of := o.info.GVR().GroupResource(); !taken.Has(of) {
				taken.Insert(of)
				out = append(out, o)
			}
		}
	}
	return out
}

// objectsOf are a server's resources, the same values as long as its discovery does not
// change.
func (a *Aggregator) objectsOf(r *remote) []*objects {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.documents.discovery == nil {
		return nil
	}
	var out []*objects
	known := r.objects
	r.objects = map[core.Resource]*objects{} // not what is no longer served
	for i := range r.documents.discovery.Resources {
		served := &r.documents.discovery.Resources[i]
		if served.ResponseKind == nil || !sets.New(served.Verbs...).HasAll("list", "watch", "delete") {
			continue
		}
		resource := core.Resource{
			Group: r.Group, Version: r.Version, Name: served.Resource, Kind: served.ResponseKind.Kind,
			Namespaced: served.Scope == apidiscoveryv2.ScopeNamespace,
		}
		o := cmp.Or(r.objects[resource], known[resource]) // the first if discovery names it twice
		if o == nil {
			o = &objects{aggregator: a, remote: r, info: registry.Info{Resource: resource}}
		}
		r.objects[resource] = o
		out = append(out, o)
	}
	return out
}
