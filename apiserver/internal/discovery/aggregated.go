package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregatedList is the document with everything: of the core group for /api, of
// all others for /apis.
func aggregatedList(all []groupVersion, core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for _, gv := range all {
		if (gv.Group == "") != core {
			continue
		}
		version := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		if gv.remote != nil {
			version.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			if d := gv.remote.Discovery; d != nil {
				version = *d
			}
		}
		for _, r := range gv.resources {
			version.Resources = append(version.Resources, resourceDiscovery(gv.GroupVersion, r))
		}
		if n := len(list.Items); n > 0 && list.Items[n-1].Name == gv.Group {
			list.Items[n-1].Versions = append(list.Items[n-1].Versions, version)
			continue
		}
		list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: gv.Group}, Versions: []apidiscoveryv2.APIVersionDiscovery{version},
		})
	}
	return list
}

func resourceDiscovery(gv schema.GroupVersion, r Resource) apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeCluster
	if r.Namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	own := gv.WithKind(r.Kind)
	if !r.JSONOnly {
		own = schema.GroupVersionKind{Kind: r.Kind} // built-in kinds belong to the group and version they are listed in
	}
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Name, SingularResource: r.Singular, Scope: scope,
		ResponseKind: groupVersionKind(own),
		Verbs:        r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
	}
	for _, s := range r.Subresources {
		of := s.Kind
		if of.Empty() {
			of = own
		}
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: s.Name, ResponseKind: groupVersionKind(of), Verbs: s.Verbs,
		})
	}
	return d
}

func groupVersionKind(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}
