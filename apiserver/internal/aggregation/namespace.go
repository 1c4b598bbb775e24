package aggregation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

// EmptyNamespace deletes what other servers have in a namespace, and calls stays
// for each object that still exists, with its resource and finalizers.
// undiscovered are the groups and versions whose discovery is unavailable.
func (a *Aggregator) EmptyNamespace(ctx context.Context, namespace string,
	stays func(of schema.GroupResource, finalizers []string)) (undiscovered map[schema.GroupVersion]error, failures []error) {
	undiscovered = map[schema.GroupVersion]error{}
	done := map[schema.GroupResource]bool{} // another version has the same objects
	remotes := *a.remotes.Load()
	for _, gv := range slices.SortedFunc(maps.Keys(remotes), func(x, y schema.GroupVersion) int {
		return strings.Compare(x.String(), y.String())
	}) {
		r := remotes[gv]
		served := r.discovery()
		if served == nil {
			undiscovered[gv] = fmt.Errorf("stale GroupVersion discovery: %s", gv)
			continue
		}
		for i := range served.Resources {
			resource := &served.Resources[i]
			of := gv.WithResource(resource.Resource).GroupResource()
			if resource.Scope != apidiscoveryv2.ScopeNamespace || done[of] {
				continue
			}
			done[of] = true
			o := a.objectsIn(r, resource)
			if err := o.deleteAll(ctx, resource.Verbs, namespace, func(finalizers []string) { stays(of, finalizers) }); err != nil {
				failures = append(failures, err)
				if errors.Is(err, context.DeadlineExceeded) { // nor would the others of this server be faster
					break
				}
			}
		}
	}
	return undiscovered, failures
}

// objectsIn are the objects of a resource in namespaces.
func (a *Aggregator) objectsIn(r *remote, resource *apidiscoveryv2.APIResourceDiscovery) *objects {
	return &objects{aggregator: a, remote: r, info: registry.Info{Resource: core.Resource{
		Group: r.Group, Version: r.Version, Name: resource.Resource, Namespaced: true,
	}}}
}

// deleteAll deletes all objects in a namespace: together if their server can, otherwise one by
// one.
func (o *objects) deleteAll(ctx context.Context, verbs []string, namespace string, stays func(finalizers []string)) error {
	can := func(verb string) bool { return slices.Contains(verbs, verb) }
	if can("deletecollection") {
		if err := o.deleteAt(ctx, o.path(namespace, ""), collectionTimeout); err != nil {
			return fmt.Errorf("delete all %s: %w", o.info.Name, err)
		}
	}
	if !can("list") {
		return nil
	}
	if !can("deletecollection") && can("delete") {
		err := o.pages(ctx, namespace, func(page *metav1.PartialObjectMetadataList) error {
			for i := range page.Items {
				if err := o.deleteAt(ctx, o.path(namespace, page.Items[i].Name), readTimeout); err != nil {
					return fmt.Errorf("delete %s %s: %w", o.info.Name, page.Items[i].Name, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return o.pages(ctx, namespace, func(page *metav1.PartialObjectMetadataList) error {
		for i := range page.Items {
			stays(page.Items[i].Finalizers)
		}
		return nil
	})
}

// deleteAt deletes what is at a path. What is missing is no error.
func (o *objects) deleteAt(ctx context.Context, path string, timeout time.Duration) error {
	response, _, err := o.aggregator.send(ctx, o.remote, remoteRequest{
		method: http.MethodDelete, path: path + "?propagationPolicy=" + string(metav1.DeletePropagationBackground), accept: "application/json",
		user: aggregatorUser, timeout: timeout,
	})
	if response != nil && response.StatusCode == http.StatusNotFound {
		return nil
	}
	return err
}
