package service

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"
)

func TestValidate(t *testing.T) {
	strategy := Strategy(clock.RealClock{})
	for text, want := range map[string]string{
		"{ports: [{port: 80}]}":                           "",
		"{clusterIP: None}":                               "",
		"{type: ExternalName, externalName: example.org}": "",
		"{type: LoadBalancer, ports: [{port: 80}]}":       "",
		"{}":                                 "spec.ports: Required value",
		"{type: ExternalName}":               "spec.externalName: Required value",
		"{type: Robot, ports: [{port: 80}]}": `spec.type: Unsupported value: "Robot"`,
		"{type: NodePort, clusterIP: None, ports: [{port: 80}]}":             `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`,
		"{ports: [{port: 80}, {port: 81, name: a}]}":                         "spec.ports[0].name: Required value",
		"{ports: [{port: 80, name: a}, {port: 80, name: b}]}":                `spec.ports[1]: Duplicate value: "TCP/80"`,
		"{ports: [{port: 0}]}":                                               "spec.ports[0].port: Invalid value: 0",
		"{ports: [{port: 80, targetPort: Not_A_Name}]}":                      "spec.ports[0].targetPort: Invalid value",
		"{ports: [{port: 80, protocol: HTTP}]}":                              `spec.ports[0].protocol: Unsupported value: "HTTP"`,
		"{ports: [{port: 80}], sessionAffinity: Cookie}":                     `spec.sessionAffinity: Unsupported value: "Cookie"`,
		"{ports: [{port: 80}], externalTrafficPolicy: Local}":                "spec.externalTrafficPolicy: Invalid value",
		"{ports: [{port: 80}], ipFamilies: [IPv6]}":                          "spec.ipFamilies[0]: Invalid value",
		"{ports: [{port: 80}], clusterIP: web}":                              "spec.clusterIPs[0]: Invalid value",
		"{ports: [{port: 80}], clusterIP: 10.0.0.1, clusterIPs: [10.0.0.2]}": "spec.clusterIPs: Invalid value",
	} {
		s := strategy.New()
		if err := yaml.UnmarshalStrict([]byte(text), &s.Spec); err != nil {
			t.Fatal(err)
		}
		strategy.Default(s)
		strategy.PrepareForCreate(t.Context(), s)
		got := ""
		if err := validate(s).ToAggregate(); err != nil {
			got = strings.TrimPrefix(err.Error(), "[")
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", text, got, want)
		}
	}
}

func TestRow(t *testing.T) {
	strategy := Strategy(clock.RealClock{})
	for text, want := range map[string]string{
		"{clusterIP: 10.0.0.1, ports: [{port: 80}, {port: 53, protocol: UDP, nodePort: 30000}], selector: {a: b}}": "[s ClusterIP 10.0.0.1 <none> 80/TCP,53:30000/UDP <unknown> a=b]",
		"{type: ExternalName, externalName: example.org}":                                                          "[s ExternalName <none> example.org <none> <unknown> <none>]",
		"{type: LoadBalancer, clusterIP: 10.0.0.2, ports: [{port: 80}]}":                                           "[s LoadBalancer 10.0.0.2 <pending> 80/TCP <unknown> <none>]",
	} {
		s := strategy.New()
		s.Name = "s"
		if err := yaml.UnmarshalStrict([]byte(text), &s.Spec); err != nil {
			t.Fatal(err)
		}
		strategy.Default(s)
		if got := fmt.Sprint(strategy.Row(s)); got != want {
			t.Errorf("row is %s\n    want %s", got, want)
		}
	}
}
