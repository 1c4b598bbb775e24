package openapi

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kctl/apiserver/internal/registry"
)

// TestConnections: the options of connections are described as by
// kube-apiserver v1.37.0.
func TestConnections(t *testing.T) {
	served := entries()
	for name, kind := range map[string]string{"exec": "PodExecOptions", "portforward": "PodPortForwardOptions", "proxy": "PodProxyOptions", "log": "Pod"} {
		served[0].Subresources = append(served[0].Subresources, registry.Subresource{
			Name: name, Kind: corev1.SchemeGroupVersion.WithKind(kind),
			Connect: map[string]func(context.Context, http.ResponseWriter, *http.Request, string, string) error{http.MethodGet: nil},
		})
	}
	h := New(served, nil, "v1.37.2", time.Now())
	document := decoded(t, get(t, h, "/openapi/v3/api/v1"))
	for path, want := range map[string]string{
		"exec": "connectCoreV1GetNamespacedPodExec command:query:string container:query:string name:path:string namespace:path:string stderr:query:boolean " +
			"stdin:query:boolean stdout:query:boolean tty:query:boolean",
		"portforward":  "connectCoreV1GetNamespacedPodPortforward name:path:string namespace:path:string ports:query:integer",
		"proxy":        "connectCoreV1GetNamespacedPodProxy name:path:string namespace:path:string path:query:string",
		"proxy/{path}": "connectCoreV1GetNamespacedPodProxyWithPath name:path:string namespace:path:string path:path:string path:query:string",
		"log": "readCoreV1NamespacedPodLog container:query:string follow:query:boolean insecureSkipTLSVerifyBackend:query:boolean limitBytes:query:integer " +
			"name:path:string namespace:path:string" +
			" pretty:query:string previous:query:boolean sinceSeconds:query:integer stream:query:string tailLines:query:integer timestamps:query:boolean",
	} {
		item := at(t, document, "paths", "/api/v1/namespaces/{namespace}/pods/{name}/"+path)
		got := fmt.Sprint(at(t, item, "get", "operationId"))
		for _, p := range at(t, item, "parameters").([]any) {
			got += fmt.Sprintf(" %v:%v:%v", at(t, p, "name"), at(t, p, "in"), at(t, p, "schema", "type"))
			if at(t, p, "description") == "" {
				t.Errorf("%s: %v is not described", path, p)
			}
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", path, got, want)
		}
	}
}
