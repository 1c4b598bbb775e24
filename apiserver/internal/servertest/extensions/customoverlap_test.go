package extensions

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestDefinitionsOfWhatIsBuiltIn: a definition whose objects would be stored
// where APIServices or definitions are is accepted, changes nothing, and its
// deletion deletes none of them.
func TestDefinitionsOfWhatIsBuiltIn(t *testing.T) {
	t.Parallel()
	c := start(t)
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	count := func(path string) int {
		_, text := c.Ask(http.MethodGet, path, nil, nil)
		return strings.Count(string(text), `"creationTimestamp":`)
	}
	for plural, group := range map[string]string{"apiservices": "apiregistration.k8s.io", "customresourcedefinitions": "apiextensions.k8s.io"} {
		name, path := plural+"."+group, "/apis/"+group+"/v1/"+plural
		before := count(path)
		answer, text := c.Ask(http.MethodPost, definitions, http.Header{"Content-Type": {"application/json"}}, []byte(`{"metadata":{"name":"`+name+`","annotations":{"api-approved.kubernetes.io":"unapproved, testing only"}},
			"spec":{"group":"`+group+`","scope":"Cluster","names":{"plural":"`+plural+`","singular":"custom`+plural+`","kind":"Custom","listKind":"CustomList"},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","required":["foo"],"properties":{"foo":{"type":"string"}}}}}]}}`))
		if answer.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, answer.StatusCode, text)
		}
		c.Until(name+" is established", func(context.Context) bool {
			_, text := c.Ask(http.MethodGet, definitions+"/"+name, nil, nil)
			return strings.Contains(string(text), `"type":"Established"`)
		})
		if answer, text := c.Ask(http.MethodDelete, definitions+"/"+name, nil, nil); answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", name, answer.StatusCode, text)
		}
		c.Until(name+" is gone", func(context.Context) bool {
			answer, _ := c.Ask(http.MethodGet, definitions+"/"+name, nil, nil)
			return answer.StatusCode == http.StatusNotFound
		})
		// The server may still have been writing its own when they were counted
		// first.
		if after := count(path); after < before {
			t.Errorf("%s: %d were there, and %d are left", plural, before, after)
		}
	}
}
