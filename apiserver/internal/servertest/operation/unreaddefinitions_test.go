package operation

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"kctl/proto/core"
)

// TestWhatUnreadDefinitionsDefineIsKept: a server that starts beside a definition that can't
// be read knows no definition. It neither takes their APIServices for left over nor ends a
// namespace, where their objects would stay behind in etcd.
func TestWhatUnreadDefinitionsDefineIsKept(t *testing.T) {
	t.Parallel()
	const (
		definitions, apiServices = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/apiregistration.k8s.io/v1/apiservices/"
		widgets                  = "/apis/kept.test/v1/namespaces/leaving/widgets"
		bad                      = "/registry/apiextensions.k8s.io/customresourcedefinitions/bad"
		stored                   = "/registry/kept.test/widgets/leaving/w"
	)
	dir := t.TempDir()
	c := startIn(t, dir)
	get := func(path string) (int, string) {
		answer, text := c.Ask(http.MethodGet, path, nil, nil)
		return answer.StatusCode, string(text)
	}
	put := func(key, value string) {
		t.Helper()
		if _, err := c.Server.Etcd().Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	post := func(path, object string) {
		t.Helper()
		if answer, text := c.Ask(http.MethodPost, path, http.Header{"Content-Type": {"application/json"}}, []byte(object)); answer.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
	post(definitions, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.kept.test"},
		"spec": {"group": "kept.test", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`)
	c.Namespace("leaving")
	c.Until("widgets are served", func(context.Context) bool {
		code, _ := get(widgets)
		return code == http.StatusOK
	})
	post(widgets, `{"apiVersion": "kept.test/v1", "kind": "Widget", "metadata": {"name": "w"}}`)
	var uid string
	c.Until("there is an APIService", func(context.Context) bool {
		code, text := get(apiServices + "v1.kept.test")
		_, uid, _ = strings.Cut(text, `"uid":"`)
		uid, _, _ = strings.Cut(uid, `"`)
		return code == http.StatusOK
	})
	put(bad, "nonsense")
	c.Until("the definitions are held back", func(context.Context) bool {
		_, text := get("/readyz?verbose")
		return strings.Contains(text, "held back")
	})
	put("/registry/apiregistration.k8s.io/apiservices/v1.stale.test", `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": {"name": "v1.stale.test", "uid": "stale", "labels": {"kube-aggregator.kubernetes.io/automanaged": "true"}},
		"spec": {"group": "stale.test", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}}`)
	c.Must(c.Stop())

	c = startIn(t, dir)
	c.Must(c.Root().Resource(core.Namespaces, "").Delete(t.Context(), "leaving", nil, nil))
	c.Until("the namespace waits", func(context.Context) bool {
		_, text := get("/api/v1/namespaces/leaving")
		return strings.Contains(text, "Failed to delete all resource types: read the definitions of custom resources: customresourcedefinitions: held back")
	})
	if answer, err := c.Server.Etcd().Get(t.Context(), stored); err != nil || answer.Count != 1 {
		t.Errorf("the widget: %v, %v", answer, err)
	}
	if code, text := get(apiServices + "v1.stale.test"); code != http.StatusOK {
		t.Errorf("an APIService that may belong to a definition: %d %s", code, text)
	}
	if _, err := c.Server.Etcd().Delete(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/namespaces/leaving", apiServices + "v1.stale.test"} {
		c.Until(path+" goes", func(context.Context) bool {
			code, _ := get(path)
			return code == http.StatusNotFound
		})
	}
	if answer, err := c.Server.Etcd().Get(t.Context(), stored); err != nil || answer.Count != 0 {
		t.Errorf("the widget outlives its namespace: %v, %v", answer, err)
	}
	if _, text := get(apiServices + "v1.kept.test"); !strings.Contains(text, uid) || uid == "" {
		t.Errorf("the APIService %s became %s", uid, text)
	}
}
