package service

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		strategy := strategy(clock.RealClock{})
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
	elsewhere := strategy(clock.RealClock{}).New()
	if err := yaml.UnmarshalStrict([]byte("{type: ExternalName, externalName: a.b, internalTrafficPolicy: Cluster}"), &elsewhere.Spec); err != nil {
		t.Fatal(err)
	}
	prepareForCreate(t.Context(), elsewhere)
	if elsewhere.Spec.InternalTrafficPolicy != nil {
		t.Error("a name of elsewhere keeps its internalTrafficPolicy")
	}
}

// TestManyPorts: what it takes to compare ports with the old ones does not grow with the
// square of their number. It would otherwise take longer than a test may.
func TestManyPorts(t *testing.T) {
	old := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
	for i := range 400_000 {
		old.Spec.Ports = append(old.Spec.Ports, corev1.ServicePort{Name: strconv.Itoa(i), NodePort: int32(i + 1)})
	}
	kept, dropped := old.DeepCopy(), old.DeepCopy()
	for i := range kept.Spec.Ports {
		kept.Spec.Ports[i].NodePort = 0
	}
	if keepNodePorts(kept, old); !slices.Equal(kept.Spec.Ports, old.Spec.Ports) {
		t.Error("node ports are not kept")
	}
	dropped.Spec.Type = corev1.ServiceTypeClusterIP
	if dropNodePorts(dropped, old); len(nodePortsOf(dropped)) != 1 {
		t.Error("node ports are not dropped")
	}
}
