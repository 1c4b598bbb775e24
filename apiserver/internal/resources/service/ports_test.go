package service

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"
)

// TestPoliciesAndPorts: which node ports and traffic policies an update keeps,
// drops and allocates, as kube-apiserver.
func TestPoliciesAndPorts(t *testing.T) {
	const (
		balanced = "type: LoadBalancer, allocateLoadBalancerNodePorts: true, ports: [{name: a, port: 80, nodePort: 30080}, {name: b, port: 81, nodePort: 30081}]"
		outer    = "type: ClusterIP, ports: [{port: 80}]"
	)
	for name, test := range map[string]struct{ old, now, has, lacks string }{
		"kept by name":            {balanced, "type: LoadBalancer, ports: [{name: a, port: 90}, {name: b, port: 81}]", `"nodePort":30080`, ""},
		"not where it is another": {balanced, "type: LoadBalancer, ports: [{name: a, port: 90, nodePort: 30081}, {name: b, port: 81}]", `"nodePort":30081`, "30080"},
		"given back":              {balanced, strings.Replace(strings.Replace(balanced, "true", "false", 1), "nodePort: 30080", "nodePort: 0", 1), "30081", "30080"},
		"left with the type":      {balanced, strings.Replace(balanced, "LoadBalancer", "ClusterIP", 1), `"type":"ClusterIP"`, "nodePort"},
		"asked for another":       {balanced, "type: ClusterIP, ports: [{name: a, port: 80, nodePort: 30099}]", "30099", ""},
		"external addresses":      {outer, outer + ", externalIPs: [1.1.1.1]", `"externalTrafficPolicy":"Cluster"`, ""},
		"none any more":           {outer + ", externalIPs: [1.1.1.1]", outer + ", externalTrafficPolicy: Cluster", `"type":"ClusterIP"`, "externalTrafficPolicy"},
		"another policy":          {outer + ", externalIPs: [1.1.1.1]", outer + ", externalTrafficPolicy: Local", `"externalTrafficPolicy":"Local"`, ""},
	} {
		strategy := Strategy(clock.RealClock{})
		old, s := strategy.New(), strategy.New()
		for into, text := range map[any]string{&old.Spec: test.old, &s.Spec: test.now} {
			if err := yaml.UnmarshalStrict([]byte("{"+text+"}"), into); err != nil {
				t.Fatal(err)
			}
		}
		strategy.Default(old)
		strategy.Default(s)
		prepareForUpdate(t.Context(), s, old)
		got, err := json.Marshal(s.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), test.has) || test.lacks != "" && strings.Contains(string(got), test.lacks) {
			t.Errorf("%s: %s", name, got)
		}
	}
	elsewhere := Strategy(clock.RealClock{}).New()
	if err := yaml.UnmarshalStrict([]byte("{type: ExternalName, externalName: a.b, internalTrafficPolicy: Cluster}"), &elsewhere.Spec); err != nil {
		t.Fatal(err)
	}
	prepareForCreate(t.Context(), elsewhere)
	if elsewhere.Spec.InternalTrafficPolicy != nil {
		t.Error("a name of elsewhere keeps its internalTrafficPolicy")
	}
}
