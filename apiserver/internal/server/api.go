package server

import (
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/authn/serviceaccount"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/kubeletclient"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	serviceaccounts "kctl/apiserver/internal/resources/serviceaccount"
	"kctl/apiserver/internal/reviews"
)

// api is what is served of the objects: the built-in resources of the versions that are
// switched on, and the custom resources.
type api struct {
	*process
	objects *objects
	served  []registry.Served // the built-in ones
}

// newAPI builds the served resources from the stores. Without an issuer, tokens can't
// be requested.
func newAPI(objects *objects, issuer *serviceaccount.Issuer) (*api, error) {
	o := objects.options
	types := make([]corev1.NodeAddressType, 0, len(o.KubeletPreferredAddressTypes))
	for _, t := range o.KubeletPreferredAddressTypes {
		types = append(types, corev1.NodeAddressType(t))
	}
	kubelets, err := kubeletclient.New(kubeletclient.Options{
		CertFile: o.KubeletClientCertificate, KeyFile: o.KubeletClientKey, CAFile: o.KubeletCertificateAuthority, AddressTypes: types,
		Timeout: o.KubeletTimeout, Logger: objects.logger.Named("kubelets"),
	})
	if err != nil {
		return nil, err
	}
	var tokens serviceaccounts.Issuer // not an interface that holds nil
	if issuer != nil {
		tokens = issuer
	}
	served, err := choose(objects.resources.Served(kubelets, tokens), o.Operation.RuntimeConfig)
	if err != nil {
		return nil, err
	}
	return &api{process: objects.process, objects: objects, served: served}, nil
}

// choose returns the resources whose versions are to be served. The server
// itself has the others nevertheless.
func choose(all []registry.Served, versions config.RuntimeConfig) ([]registry.Served, error) {
	there := slices.Clone(reviews.Versions)
	for _, served := range all {
		there = append(there, served.Resource.Info().GVK().GroupVersion())
	}
	return slices.DeleteFunc(all, func(served registry.Served) bool {
		return !versions.Serves(served.Resource.Info().GVK().GroupVersion())
	}), versions.Missing(there)
}

// builtinStores are the stores of the built-in resources. Those that only show
// another's objects have none of their own.
func (a *api) builtinStores() []registry.Resource {
	var stores []registry.Resource
	for _, served := range a.served {
		if info := served.Resource.Info(); info.StoredAs == info.GVK() {
			stores = append(stores, served.Resource)
		}
	}
	return stores
}

// stores are the stores of all resources that are served now.
func (a *api) stores() []registry.Resource {
	custom, _ := a.objects.definitions.Resources()
	return append(a.builtinStores(), custom...)
}

// measure finds the size of a list, by which its cost is estimated.
func (a *api) measure() func(info *request.Info, mostObjects, mostBytes int) (objects, bytes int) {
	type measured interface {
		Measure(namespace string, mostObjects, mostBytes int) (objects, bytes int)
	}
	stores := map[[2]string]measured{}
	for _, served := range a.served {
		if store, ok := served.Resource.(measured); ok {
			info := served.Resource.Info()
			stores[[2]string{info.Group, info.Name}] = store
		}
	}
	return func(info *request.Info, mostObjects, mostBytes int) (objects, bytes int) {
		store, ok := stores[[2]string{info.APIGroup, info.ResourceName}]
		if !ok {
			custom := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.ResourceName}
			return a.objects.definitions.Measure(custom, info.Namespace, mostObjects, mostBytes)
		}
		return store.Measure(info.Namespace, mostObjects, mostBytes)
	}
}

// withoutSlash removes trailing slashes from paths of the server's own
// resources, as upstream does. Paths that are passed on to other servers keep
// them: there they may mean something.
func (a *api) withoutSlash(next http.Handler) http.Handler {
	groups := map[string]bool{}
	for _, served := range a.served {
		groups[served.Resource.Info().Resource.Group] = true
	}
	own := func(path string) bool {
		if strings.Contains(path, "/proxy/") {
			return false
		}
		group, ok := strings.CutPrefix(path, "/apis/")
		if !ok {
			return strings.HasPrefix(path, "/api/")
		}
		group, _, _ = strings.Cut(group, "/")
		return groups[group]
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := r.URL; strings.HasSuffix(u.Path, "/") && own(u.Path) {
			u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
		}
		next.ServeHTTP(w, r)
	})
}
