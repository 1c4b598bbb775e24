package operation

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kctl/proto/core"
)

// TestObjectsOfDefinitionsThatCannotBeServedAreKept: another server, or a restored backup, may leave a
// definition that this one can't serve, such as one with a pattern that it can't compile. Its objects
// still exist: they own others, and hold their namespace back.
func TestObjectsOfDefinitionsThatCannotBeServedAreKept(t *testing.T) {
	t.Parallel()
	const (
		definitions, definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			"/registry/apiextensions.k8s.io/customresourcedefinitions/gears.kept.test"
		gears, stored = "/apis/kept.test/v1/namespaces/%s/gears", "/registry/kept.test/gears/leaving/g"
	)
	c := startIn(t, t.TempDir())
	get := func(path string) (int, string) {
		answer, text := c.Ask(http.MethodGet, path, nil, nil)
		return answer.StatusCode, string(text)
	}
	post := func(path, object string) string {
		t.Helper()
		answer, text := c.Ask(http.MethodPost, path, http.Header{"Content-Type": {"application/json"}}, []byte(object))
		if answer.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
		}
		_, uid, _ := strings.Cut(string(text), `"uid":"`)
		uid, _, _ = strings.Cut(uid, `"`)
		return uid
	}
	const sound = `"properties":{"a":{"type":"string"}}`
	post(definitions, `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gears.kept.test"},
		"spec": {"group": "kept.test", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", `+sound+`}}}]}}`)
	for _, namespace := range []string{"leaving", "staying"} {
		c.Namespace(namespace)
		c.Until("gears are served", func(context.Context) bool {
			code, _ := get(fmt.Sprintf(gears, namespace))
			return code == http.StatusOK
		})
		uid := post(fmt.Sprintf(gears, namespace), `{"apiVersion": "kept.test/v1", "kind": "Gear", "metadata": {"name": "g"}}`)
		post("/api/v1/namespaces/"+namespace+"/configmaps", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned",
			"ownerReferences": [{"apiVersion": "kept.test/v1", "kind": "Gear", "name": "g", "uid": "`+uid+`"}]}}`)
	}
	before, err := c.Server.Etcd().Get(t.Context(), definition)
	if err != nil || before.Count != 1 || !bytes.Contains(before.Kvs[0].Value, []byte(sound)) {
		t.Fatalf("%+v, %v", before, err)
	}
	broken := strings.Replace(string(before.Kvs[0].Value), sound, `"properties":{"a":{"type":"string","pattern":"("}}`, 1)
	if _, err := c.Server.Etcd().Put(t.Context(), definition, broken); err != nil {
		t.Fatal(err)
	}
	c.Until("gears can't be served", func(context.Context) bool {
		code, _ := get(fmt.Sprintf(gears, "leaving"))
		return code == http.StatusInternalServerError
	})
	c.Must(c.Root().Resource(core.Namespaces, "").Delete(t.Context(), "leaving", nil, nil))
	c.Until("the namespace waits", func(context.Context) bool {
		code, text := get("/api/v1/namespaces/leaving")
		if code == http.StatusNotFound {
			t.Fatal("the namespace is gone before its objects")
		}
		return strings.Contains(text, "read the definitions of custom resources: definition gears.kept.test: ")
	})
	if answer, err := c.Server.Etcd().Get(t.Context(), stored); err != nil || answer.Count != 1 {
		t.Errorf("the gear: %v, %v", answer, err)
	}
	if _, err := c.Server.Etcd().Put(t.Context(), definition, string(before.Kvs[0].Value)); err != nil {
		t.Fatal(err)
	}
	c.Until("the namespace goes", func(context.Context) bool {
		code, _ := get("/api/v1/namespaces/leaving")
		return code == http.StatusNotFound
	})
	if answer, err := c.Server.Etcd().Get(t.Context(), stored); err != nil || answer.Count != 0 {
		t.Errorf("the gear outlives its namespace: %v, %v", answer, err)
	}
	if code, text := get("/api/v1/namespaces/staying/configmaps/owned"); code != http.StatusOK {
		t.Errorf("what a gear owns: %d %s", code, text)
	}
}
