package customresources

import (
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestUnreadableColumn: the table ends before a column with an invalid path,
// and the definition is still served, as by kube-apiserver.
func TestUnreadableColumn(t *testing.T) {
	c := newColumns([]apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Host", Type: "string", JSONPath: ".spec.http[].host"},
		{Name: "Bad", Type: "string", JSONPath: ".spec.http[x]"},
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
	})
	names := ""
	for _, d := range c.definitions {
		names += d.Name + " "
	}
	o := &object{Object: map[string]any{
		"metadata": map[string]any{"name": "a"},
		"spec":     map[string]any{"http": []any{map[string]any{"host": "first"}, map[string]any{"host": "second"}}},
	}}
	if got := fmt.Sprint(names, c.row(o, time.Time{})); got != "Name Host [a first]" {
		t.Errorf("%s", got)
	}
}
