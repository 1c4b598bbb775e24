package extensions

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestDefinitionsFromBeforeV1: definitions that an API server with
// apiextensions.k8s.io/v1beta1 left in etcd are still served. Objects of
// versions without a schema, and of definitions that preserve unknown fields,
// are as they were sent, and the documents don't say that there are no such fields.
func TestDefinitionsFromBeforeV1(t *testing.T) {
	t.Parallel()
	c := start(t)
	for plural, version := range map[string]string{
		"loose":    `{"name": "v1", "served": true, "storage": true}`,
		"keepings": `{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"known": {"type": "string"}}}}}}}`,
	} {
		definition := `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "` + plural + `.old.test", "uid": "` + plural + `", "creationTimestamp": "2020-01-01T00:00:00Z"},
			"spec": {"group": "old.test", "scope": "Cluster", "preserveUnknownFields": true, "names": {"plural": "` + plural + `", "singular": "` + plural + `", "kind": "K` + plural + `", "listKind": "K` + plural + `List"},
				"conversion": {"strategy": "None"}, "versions": [` + version + `]},
			"status": {"storedVersions": ["v1"], "acceptedNames": {"plural": "` + plural + `", "singular": "` + plural + `", "kind": "K` + plural + `", "listKind": "K` + plural + `List"},
				"conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]}}`
		if _, err := c.Server.Etcd().Put(t.Context(), "/registry/apiextensions.k8s.io/customresourcedefinitions/"+plural+".old.test", definition); err != nil {
			t.Fatal(err)
		}
		path := "/apis/old.test/v1/" + plural
		c.Until(plural+" are served", func(context.Context) bool {
			answer, _ := c.Ask(http.MethodGet, path, nil, nil)
			return answer.StatusCode == http.StatusOK
		})
		json := http.Header{"Content-Type": {"application/json"}}
		object := `{"apiVersion": "old.test/v1", "kind": "K` + plural + `", "metadata": {"name": "o"}, "spec": {"known": "a", "other": {"deep": 1}}}`
		if answer, text := c.Ask(http.MethodPost, path+"?fieldValidation=Strict", json, []byte(object)); answer.StatusCode != http.StatusCreated ||
			!strings.Contains(string(text), `"other":{"deep":1}`) {
			t.Errorf("%s: create: %d %s", plural, answer.StatusCode, text)
		}
		merge := http.Header{"Content-Type": {"application/merge-patch+json"}}
		if answer, text := c.Ask(http.MethodPatch, path+"/o", merge, []byte(`{"spec": {"more": true}}`)); answer.StatusCode != http.StatusOK ||
			!strings.Contains(string(text), `"more":true`) || !strings.Contains(string(text), `"deep":1`) {
			t.Errorf("%s: patch: %d %s", plural, answer.StatusCode, text)
		}
		if _, text := c.Ask(http.MethodGet, path+"/o", nil, nil); !strings.Contains(string(text), `"deep":1`) {
			t.Errorf("%s: get: %s", plural, text)
		}
		apply := http.Header{"Content-Type": {"application/apply-patch+yaml"}}
		applied := strings.Replace(strings.Replace(object, `"o"`, `"p"`, 1), `"deep": 1`, `"deep": {"list": [1]}`, 1)
		if answer, text := c.Ask(http.MethodPatch, path+"/p?fieldManager=m", apply, []byte(applied)); answer.StatusCode != http.StatusCreated ||
			!strings.Contains(string(text), `"deep":{"list":[1]}`) {
			t.Errorf("%s: apply: %d %s", plural, answer.StatusCode, text)
		}
		_, document := c.Ask(http.MethodGet, "/openapi/v2", nil, nil)
		if !strings.Contains(string(document), `"test.old.v1.K`+plural+`":{"type":"object","x-kubernetes-group-version-kind"`) {
			t.Errorf("%s: the document does not tell of any object", plural)
		}
	}
}
