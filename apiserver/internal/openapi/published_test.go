package openapi

import (
	"encoding/json"
	"testing"
	"time"

	"kctl/proto/core"
)

// TestPublished: fields and operations are described as by kube-apiserver
// v1.37.0.
func TestPublished(t *testing.T) {
	h := New(entries(), []core.Resource{core.TokenReviews}, "v1.37.2", time.Now())
	third, second := decoded(t, get(t, h, "/openapi/v3/api/v1")), decoded(t, get(t, h, "/openapi/v2"))
	const pods, spec = "/api/v1/namespaces/{namespace}/pods", "io.k8s.api.core.v1.PodSpec"
	for _, c := range []struct {
		want string
		of   any
		at   []string
	}{
		{`"deleteCoreV1CollectionNamespacedPod"`, third, []string{"paths", pods, "delete", "operationId"}},
		{`["application/json-patch+json","application/merge-patch+json","application/strategic-merge-patch+json","application/apply-patch+yaml"]`, second, []string{"paths", pods + "/{name}", "patch", "consumes"}},
		{`true`, third, []string{"paths", pods, "post", "requestBody", "required"}},
		{`["ClusterFirst","ClusterFirstWithHostNet","Default","None"]`, third, []string{"components", "schemas", spec, "properties", "dnsPolicy", "enum"}},
		{`["name"]`, third, []string{"components", "schemas", spec, "properties", "containers", "x-kubernetes-list-map-keys"}},
		{`"map"`, second, []string{"definitions", spec, "properties", "containers", "x-kubernetes-list-type"}},
		{`"atomic"`, second, []string{"definitions", spec, "properties", "nodeSelector", "x-kubernetes-map-type"}},
		{`"set"`, third, []string{"components", "schemas", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "properties", "finalizers", "x-kubernetes-list-type"}},
		{`"atomic"`, third, []string{"components", "schemas", "io.k8s.api.core.v1.LocalObjectReference", "x-kubernetes-map-type"}},
		{`"TCP"`, third, []string{"components", "schemas", "io.k8s.api.core.v1.ContainerPort", "properties", "protocol", "default"}},
		{`{}`, third, []string{"components", "schemas", "io.k8s.api.core.v1.Pod", "properties", "spec", "default"}},
		{`["conditionType"]`, third, []string{"components", "schemas", "io.k8s.api.core.v1.PodReadinessGate", "required"}},
		{`"watchCoreV1PodListForAllNamespaces"`, third, []string{"paths", "/api/v1/watch/pods", "get", "operationId"}},
		{`"watchlist"`, second, []string{"paths", "/api/v1/watch/namespaces/{namespace}/pods", "get", "x-kubernetes-action"}},
		{`"watchCoreV1NamespacedPodList"`, second, []string{"paths", "/api/v1/watch/namespaces/{namespace}/pods", "get", "operationId"}},
		{`{"group":"","kind":"Pod","version":"v1"}`, second, []string{"paths", "/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "x-kubernetes-group-version-kind"}},
		{`"watch changes to an object of kind Pod. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter."`, third, []string{"paths", "/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "description"}},
		{`"watchCoreV1Node"`, third, []string{"paths", "/api/v1/watch/nodes/{name}", "get", "operationId"}},
		{`"watch individual changes to a list of Node. deprecated: use the 'watch' parameter with a list operation instead."`, second, []string{"paths", "/api/v1/watch/nodes", "get", "description"}},
		{`{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"}`, second, []string{"paths", "/api/v1/watch/nodes", "get", "responses", "200", "schema"}},
		{`["object","type"]`, third, []string{"components", "schemas", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent", "required"}},
		{`["port"]`, third, []string{"components", "schemas", "io.k8s.api.core.v1.GRPCAction", "required"}},
	} {
		if got, _ := json.Marshal(at(t, c.of, c.at...)); string(got) != c.want {
			t.Errorf("%v: %s, want %s", c.at, got, c.want)
		}
	}
}
