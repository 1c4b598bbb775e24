package config

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRuntimeConfig(t *testing.T) {
	core, apps := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "apps", Version: "v1"}
	beta, alpha := schema.GroupVersion{Group: "apps", Version: "v1beta2"}, schema.GroupVersion{Group: "apps", Version: "v2alpha1"}
	for _, test := range []struct {
		flags  []string
		serves map[schema.GroupVersion]bool
	}{
		{nil, map[schema.GroupVersion]bool{core: true, apps: true, beta: true, alpha: true}},
		{[]string{"--runtime-config=apps/v1=false"}, map[schema.GroupVersion]bool{core: true, apps: false, beta: true}},
		{[]string{"--runtime-config=api/all=false,v1=true"}, map[schema.GroupVersion]bool{core: true, apps: false, beta: false, alpha: false}},
		{[]string{"--runtime-config=api/all=false", "--runtime-config=api/ga=true,v1=0"},
			map[schema.GroupVersion]bool{core: false, apps: true, beta: false, alpha: false}},
		{[]string{"--runtime-config=api/v1", "--runtime-config="}, map[schema.GroupVersion]bool{core: true, apps: true, beta: true, alpha: true}},
		{[]string{"--runtime-config=api/beta=false,api/alpha=false,apps/v1beta2=true"},
			map[schema.GroupVersion]bool{core: true, apps: true, beta: true, alpha: false}},
	} {
		o := parse(t, test.flags...)
		if err := o.Operation.RuntimeConfig.validate(); err != nil {
			t.Errorf("%q: %v", test.flags, err)
		}
		for version, want := range test.serves {
			if got := o.Operation.RuntimeConfig.Serves(version); got != want {
				t.Errorf("%q: %s is served: %v", test.flags, version, got)
			}
		}
	}
}

func TestVersionsThatAreNotThere(t *testing.T) {
	there := []schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}}
	for flag, want := range map[string]string{
		"apps/v1=true,v1=true,api/all=true":          "",
		"apps/v1beta1=false":                         "",
		"apps/v1beta1=true":                          "--runtime-config=apps/v1beta1=true: not supported: this server has no such API version",
		"nowhere.example.com/v1=true,api/alpha=true": "--runtime-config=nowhere.example.com/v1=true: not supported: this server has no such API version",
	} {
		got := ""
		if err := parse(t, "--runtime-config="+flag).Operation.RuntimeConfig.Missing(there); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", flag, got, want)
		}
	}
}
