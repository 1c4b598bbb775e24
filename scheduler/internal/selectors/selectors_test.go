package selectors

import (
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
	"kctl/proto/watch"
	"kctl/scheduler/internal/fixture"
)

func add[S any](t *testing.T, store *watch.Store[*object[S]], name, selector string) {
	t.Helper()
	o := &object[S]{}
	text := fmt.Sprintf(`{"metadata":{"namespace":"default","name":%q,"annotations":{"a":"b"}},"spec":{"replicas":3,"selector":%s}}`, name, selector)
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	slim[S]{store}.Apply(watch.Added, o)
	if o.Annotations != nil {
		t.Error("more is kept than is asked for")
	}
}

func TestOf(t *testing.T) {
	s := New()
	add(t, s.services, "web", `{"app":"web"}`)
	add(t, s.services, "tier", `{"tier":"front"}`)
	add(t, s.services, "external", `null`)
	add(t, s.controllers, "rc", `{"rc":"1"}`)
	add(t, s.sets["ReplicaSet"], "rs", `{"matchLabels":{"hash":"1"},"matchExpressions":[{"key":"app","operator":"Exists"}]}`)
	add(t, s.sets["StatefulSet"], "db", `{"matchLabels":{"db":"1"}}`)
	owned := func(version, kind, name string) func(*core.Pod) {
		yes := true
		return func(p *core.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, Controller: &yes}}
		}
	}
	labelled := func(set map[string]string) func(*core.Pod) { return func(p *core.Pod) { p.Labels = set } }
	for name, test := range map[string]struct {
		pod  *core.Pod
		want string // empty: none
	}{
		"of nothing":               {fixture.Pod("p"), ""},
		"of a service":             {fixture.Pod("p", labelled(labels.Set{"app": "web", "x": "y"})), "app=web"},
		"of two services":          {fixture.Pod("p", labelled(labels.Set{"app": "web", "tier": "front"})), "app=web,tier=front"},
		"of a service elsewhere":   {fixture.Pod("p", labelled(labels.Set{"app": "web"}), func(p *core.Pod) { p.Namespace = "other" }), ""},
		"of a controller":          {fixture.Pod("p", owned("v1", "ReplicationController", "rc")), "rc=1"},
		"of a replica set":         {fixture.Pod("p", owned("apps/v1", "ReplicaSet", "rs")), "app,hash=1"},
		"of a stateful set, too":   {fixture.Pod("p", owned("apps/v1", "StatefulSet", "db"), labelled(labels.Set{"app": "web"})), "app=web,db=1"},
		"of one that is not known": {fixture.Pod("p", owned("apps/v1", "ReplicaSet", "gone")), ""},
		"of another kind":          {fixture.Pod("p", owned("example.com/v1", "ReplicaSet", "rs")), ""},
	} {
		got := ""
		if selector := s.Of(test.pod); selector != nil {
			got = selector.String()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
