package registry_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/apiserver/internal/registry"
)

func TestListSelectsAndPages(t *testing.T) {
	b := start(t)
	for i := range 5 {
		s := service(fmt.Sprintf("s-%d", i))
		s.Labels = map[string]string{"odd": strconv.FormatBool(i%2 == 1)}
		b.create(s)
	}
	list, err := b.List(t.Context(), "ns", registry.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"odd": "true"})})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("labels: %d, %v", len(list.Items), err)
	}
	list, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.type=ClusterIP"), Limit: 3})
	if err != nil || len(list.Items) != 3 || list.Remaining != nil || list.Continue == "" {
		t.Errorf("fields: %d, %v", len(list.Items), err)
	}
	list, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.type=ClusterIP"), Limit: 3, Continue: list.Continue})
	if err != nil || len(list.Items) != 2 || list.Continue != "" {
		t.Errorf("next page: %d, %v", len(list.Items), err)
	}
	_, err = b.List(t.Context(), "", registry.ListOptions{Fields: fields.ParseSelectorOrDie("spec.clusterIP=x")})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field label not supported: spec.clusterIP") {
		t.Errorf("unknown field: %v", err)
	}
}

// TestAPageIsOfTheVersionAskedFor: with a limit, a list at a resourceVersion
// shows exactly that state, as upstream; without a limit, that or a newer one.
func TestAPageIsOfTheVersionAskedFor(t *testing.T) {
	b := start(t)
	first := b.create(service("a"))
	version := b.create(service("b")).ResourceVersion
	b.create(service("c"))
	changed := first.DeepCopy()
	changed.Labels = map[string]string{"new": "1"}
	if _, err := b.put(changed); err != nil {
		t.Fatal(err)
	}
	if _, err := b.List(t.Context(), "ns", registry.ListOptions{}); err != nil { // from here on, all of it has been seen
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		o    registry.ListOptions
		want string
	}{
		"of that":     {registry.ListOptions{Limit: 9}, "a b"},
		"its first":   {registry.ListOptions{Limit: 1}, "a …"},
		"not older":   {registry.ListOptions{}, "a+ b c"},
		"nor a page":  {registry.ListOptions{Limit: 9, ResourceVersionMatch: "NotOlderThan"}, "a+ b c"},
		"of one name": {registry.ListOptions{Limit: 9, Fields: fields.OneTermEqualSelector("metadata.name", "a")}, "a+"},
	} {
		test.o.ResourceVersion = version
		list, err := b.List(t.Context(), "ns", test.o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range list.Items {
			obj, err := b.Decode(item)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, obj.GetName()+map[bool]string{true: "+"}[len(obj.GetLabels()) > 0])
		}
		if list.Continue != "" {
			got = append(got, "…")
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
