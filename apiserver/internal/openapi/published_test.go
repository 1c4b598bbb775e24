package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"kctl/proto/core"
)

// TestPublished: fields and operations are described as by kube-apiserver
// v1.37.0.
func TestPublished(t *testing.T) {
	h := New(entries(), []core.Resource{core.TokenReviews}, "v1.37.2", time.Now())
	third, second := decoded(t, get(t, h, "/openapi/v3/api/v1")), decoded(t, get(t, h, "/openapi/v2"))
	const pods, spec, discovered = "/api/v1/namespaces/{namespace}/pods", "io.k8s.api.core.v1.PodSpec", "io.k8s.apimachinery.pkg.apis.meta.v1."
	for _, c := range []struct {
		want string
		of   any
		at   []string
	}{
		{`"deleteCoreV1CollectionNamespacedPod"`, third, []string{"paths", pods, "delete", "operationId"}},
		{`["application/json-patch+json","application/merge-patch+json","application/strategic-merge-patch+json","application/apply-patch+yaml"]`, second,
			[]string{"paths", pods + "/{name}", "patch", "consumes"}},
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
		{`[{"discriminator":"type","fields-to-discriminateBy":{"localhostProfile":"LocalhostProfile"}}]`, second,
			[]string{"definitions", "io.k8s.api.core.v1.SeccompProfile", "x-kubernetes-unions"}},
		{`[{"fields-to-discriminateBy":{"podGroupName":"PodGroupName"}}]`, third,
			[]string{"components", "schemas", "io.k8s.api.core.v1.PodSchedulingGroup", "x-kubernetes-unions"}},
		{`"watchlist"`, second, []string{"paths", "/api/v1/watch/namespaces/{namespace}/pods", "get", "x-kubernetes-action"}},
		{`"watchCoreV1NamespacedPodList"`, second, []string{"paths", "/api/v1/watch/namespaces/{namespace}/pods", "get", "operationId"}},
		{`{"group":"","kind":"Pod","version":"v1"}`, second, []string{"paths", "/api/v1/watch/namespaces/{namespace}/pods/{name}", "get",
			"x-kubernetes-group-version-kind"}},
		{`"watch changes to an object of kind Pod. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter."`, third, []string{"paths", "/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "description"}},
		{`"watchCoreV1Node"`, third, []string{"paths", "/api/v1/watch/nodes/{name}", "get", "operationId"}},
		{`"watch individual changes to a list of Node. deprecated: use the 'watch' parameter with a list operation instead."`, second,
			[]string{"paths", "/api/v1/watch/nodes", "get", "description"}},
		{`{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"}`, second,
			[]string{"paths", "/api/v1/watch/nodes", "get", "responses", "200", "schema"}},
		{`["object","type"]`, third, []string{"components", "schemas", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent", "required"}},
		{`["port"]`, third, []string{"components", "schemas", "io.k8s.api.core.v1.GRPCAction", "required"}},
		{`"getCoreV1APIResources"`, third, []string{"paths", "/api/v1/", "get", "operationId"}},
		{`[{"group":"","kind":"APIResourceList","version":"v1"}]`, third, []string{"components", "schemas", discovered + "APIResourceList",
			"x-kubernetes-group-version-kind"}},
		{`{"$ref":"#/definitions/` + discovered + `APIGroup"}`, second, []string{"paths", "/apis/coordination.k8s.io/", "get", "responses", "200", "schema"}},
		{`["coordination"]`, second, []string{"paths", "/apis/coordination.k8s.io/", "get", "tags"}},
		{`"getCoordinationV1APIResources"`, second, []string{"paths", "/apis/coordination.k8s.io/v1/", "get", "operationId"}},
		{`{"consumes":["application/json"],"description":"get the version information for this server","operationId":"getCodeVersion","produces":["application/json"],"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.version.Info"}},"401":{"description":"Unauthorized"}},"schemes":["https"],"tags":["version"]}`, second, []string{"paths", "/version/", "get"}},
		{`{"application/jwk-set+json":{"schema":{"type":"string"}}}`, decoded(t, get(t, h, "/openapi/v3/openid/v1/jwks")),
			[]string{"paths", "/openid/v1/jwks/", "get", "responses", "200", "content"}},
		{`["apis"]`, decoded(t, get(t, h, "/openapi/v3/apis")), []string{"paths", "/apis/", "get", "tags"}},
		{`["coordination"]`, decoded(t, get(t, h, "/openapi/v3/apis/coordination.k8s.io")), []string{"paths", "/apis/coordination.k8s.io/", "get", "tags"}},
		{`[{"BearerToken":[]}]`, second, []string{"security"}},
	} {
		if got, _ := json.Marshal(at(t, c.of, c.at...)); string(got) != c.want {
			t.Errorf("%v: %s, want %s", c.at, got, c.want)
		}
	}
	listed := at(t, decoded(t, get(t, h, "/openapi/v3")), "paths").(map[string]any)
	if names, want := slices.Sorted(maps.Keys(listed)), []string{
		".well-known/openid-configuration", "api", "api/v1", "apis", "apis/authentication.k8s.io", "apis/authentication.k8s.io/v1",
		"apis/coordination.k8s.io", "apis/coordination.k8s.io/v1", "openid/v1/jwks", "version",
	}; !slices.Equal(names, want) {
		t.Errorf("documents %q, want %q", names, want)
	}
	for kind, want := range map[string]string{"Endpoints": "", "Event": "an ", "IngressClass": "an ", "Pod": "a "} {
		if got := article(kind); got != want {
			t.Errorf("%q before %s, want %q", got, kind, want)
		}
	}
}
