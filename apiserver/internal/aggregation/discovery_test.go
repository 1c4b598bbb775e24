package aggregation

import (
	"slices"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestResourcesWithoutAKind: clients of v0.26 crash on resources without a
// kind.
func TestResourcesWithoutAKind(t *testing.T) {
	r := &remote{GroupVersion: schema.GroupVersion{Group: "a.test", Version: "v1"}}
	got, err := fromAggregated(r, []byte(`{"items": [{"metadata": {"name": "a.test"}, "versions": [{"version": "v1", "resources": [
		{"resource": "jobs", "subresources": [{"subresource": "status"}]},
		{"resource": "runs", "responseKind": {"kind": "Run"}}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	jobs, runs := got.Resources[0], got.Resources[1]
	if jobs.ResponseKind == nil || jobs.Subresources[0].ResponseKind == nil || *runs.ResponseKind != (metav1.GroupVersionKind{Kind: "Run"}) {
		t.Errorf("%+v", got)
	}
}

// TestAVersionThatTheServerLeavesOut: it is served, and has no resources; as stale, it
// would keep every namespace from being deleted.
func TestAVersionThatTheServerLeavesOut(t *testing.T) {
	r := &remote{GroupVersion: schema.GroupVersion{Group: "a.test", Version: "v1"}}
	for _, items := range []string{`[]`,
		`[{"metadata": {"name": "a.test"}, "versions": [{"version": "v2"}]}, {"metadata": {"name": "b.test"}, "versions": [{"version": "v1"}]}]`} {
		got, err := fromAggregated(r, []byte(`{"items": `+items+`}`))
		if err != nil || got.Version != "v1" || len(got.Resources) > 0 {
			t.Errorf("%s: %+v, %v", items, got, err)
		}
	}
}

// TestResourcesThatAreNoLongerServed: a server that serves others each time does not fill the memory,
// and what stays is the same to whoever follows it.
func TestResourcesThatAreNoLongerServed(t *testing.T) {
	a := &Aggregator{}
	r := &remote{GroupVersion: schema.GroupVersion{Group: "a.test", Version: "v1"}}
	serve := func(names ...string) []*objects {
		r.documents.discovery = &apidiscoveryv2.APIVersionDiscovery{Version: "v1"}
		for _, name := range names {
			r.documents.discovery.Resources = append(r.documents.discovery.Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: name, ResponseKind: &metav1.GroupVersionKind{Kind: "Job"}, Verbs: []string{"list", "watch", "delete"},
			})
		}
		return a.objectsOf(r)
	}
	before := serve("jobs", "runs")
	after := serve("steps", "jobs")
	if len(before) != 2 || len(after) != 2 || after[1] != before[0] {
		t.Errorf("%v, then %v", before, after)
	}
	if len(r.objects) != 2 {
		t.Errorf("%d resources are remembered", len(r.objects))
	}
	before, after = serve("jobs", "twice", "twice"), serve("jobs", "twice", "twice")
	if !slices.Equal(before, after) {
		t.Errorf("%p, then %p", before, after)
	}
}
