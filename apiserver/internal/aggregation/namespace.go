package aggregation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
			if err := a.deleteObjects(ctx, r, resource, namespace, func(finalizers []string) { stays(of, finalizers) }); err != nil {
				failures = append(failures, err)
			}
		}
	}
	return undiscovered, failures
}

// objectList is the part of a list that is needed.
type objectList struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	} `json:"items"`
}

// deleteObjects deletes all objects of a resource in a namespace: together if its
// server can, otherwise one by one.
func (a *Aggregator) deleteObjects(ctx context.Context, r *remote, resource *apidiscoveryv2.APIResourceDiscovery, namespace string,
	stays func(finalizers []string)) error {
	can := func(verb string) bool { return slices.Contains(resource.Verbs, verb) }
	path := "/apis/" + r.String() + "/namespaces/" + namespace + "/" + resource.Resource
	if can("deletecollection") {
		if err := a.deleteObject(ctx, r, path); err != nil {
			return fmt.Errorf("delete all %s: %w", resource.Resource, err)
		}
	}
	if !can("list") {
		return nil
	}
	left, err := a.listObjects(ctx, r, path)
	if err != nil {
		return fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	if !can("deletecollection") && can("delete") && len(left.Items) > 0 {
		for i := range left.Items {
			if err := a.deleteObject(ctx, r, path+"/"+left.Items[i].Metadata.Name); err != nil {
				return fmt.Errorf("delete %s %s: %w", resource.Resource, left.Items[i].Metadata.Name, err)
			}
		}
		if left, err = a.listObjects(ctx, r, path); err != nil {
			return fmt.Errorf("list %s: %w", resource.Resource, err)
		}
	}
	for i := range left.Items {
		stays(left.Items[i].Metadata.Finalizers)
	}
	return nil
}

func (a *Aggregator) listObjects(ctx context.Context, r *remote, path string) (*objectList, error) {
	_, body, err := a.send(ctx, r, remoteRequest{path: path, accept: "application/json", user: aggregatorUser})
	if err != nil {
		return nil, err
	}
	list := &objectList{}
	return list, json.Unmarshal(body, list)
}

// deleteObject deletes the object at a path. A missing object is no error.
func (a *Aggregator) deleteObject(ctx context.Context, r *remote, path string) error {
	response, _, err := a.send(ctx, r, remoteRequest{
		method: http.MethodDelete, path: path + "?propagationPolicy=" + string(metav1.DeletePropagationBackground), accept: "application/json",
		user: aggregatorUser,
	})
	if response != nil && response.StatusCode == http.StatusNotFound {
		return nil
	}
	return err
}
