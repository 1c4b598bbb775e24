package discovery

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/proto/core"
)

func resource(group, version, name string) Resource {
	return Resource{Info: registry.Info{Resource: core.Resource{Group: group, Version: version, Name: name, Kind: name}}}
}

func TestCollect(t *testing.T) {
	own := []Resource{resource("", "v1", "pods"), resource("apps", "v1", "deployments"), resource("autoscaling", "v1", "x"), resource("autoscaling", "v2", "x")}
	more := More{
		Resources: []Resource{
			resource("z.example.com", "v1", "b"), resource("z.example.com", "v1", "a"), resource("z.example.com", "v2beta1", "b"),
			resource("apps", "v1", "intruders"), resource("far.example.com", "v1", "intruders"), resource("apps", "v9", "newcomers"),
		},
		Remote:     []Remote{{GroupVersion: schema.GroupVersion{Group: "far.example.com", Version: "v1"}}, {GroupVersion: schema.GroupVersion{Version: "v1"}}},
		Priorities: map[string]Priority{"far.example.com/v1": {17900, 1}},
	}
	got := ""
	for _, gv := range collect(own, more) {
		got += gv.String() + ":"
		for _, r := range gv.resources {
			got += " " + r.Name
		}
		if gv.remote != nil {
			got += " remote"
		}
		got += "\n"
	}
	const want = "v1: pods\nfar.example.com/v1: remote\napps/v1: deployments\napps/v9: newcomers\nautoscaling/v2: x\nautoscaling/v1: x\nz.example.com/v1: a " +
		"b\nz.example.com/v2beta1: b\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
