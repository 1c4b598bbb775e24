package service

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"
)

func TestValidate(t *testing.T) {
	strategy := strategy(clock.RealClock{})
	for text, want := range map[string]string{
		"{ports: [{port: 80}]}":                           "",
		"{clusterIP: None}":                               "",
		"{type: ExternalName, externalName: example.org}": "",
		"{type: LoadBalancer, ports: [{port: 80}]}":       "",
		"{}":                                 "spec.ports: Required value",
		"{type: ExternalName}":               "spec.externalName: Required value",
		"{type: Robot, ports: [{port: 80}]}": `spec.type: Unsupported value: "Robot"`,
		"{type: NodePort, clusterIP: None, ports: [{port: 80}]}": `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`,
		"{ports: [{port: 80}, {port: 81, name: a}]}":             "spec.ports[0].name: Required value",
		"{ports: [{port: 80, name: a}, {port: 80, name: b}]}":    `spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}`,
		"{ports: [{port: 0}]}":                                   "spec.ports[0].port: Invalid value: 0",
		"{ports: [{port: 80, targetPort: Not_A_Name}]}":          "spec.ports[0].targetPort: Invalid value",
		"{ports: [{port: 80, protocol: HTTP}]}":                  `spec.ports[0].protocol: Unsupported value: "HTTP"`,
		"{ports: [{port: 80}], sessionAffinity: Cookie}":         `spec.sessionAffinity: Unsupported value: "Cookie"`,
		"{ports: [{port: 80}], externalTrafficPolicy: Local}":    "spec.externalTrafficPolicy: Invalid value",
		"{type: ExternalName, externalName: example.org.}":       "",
		"{type: ExternalName, externalName: a.b, clusterIP: None}": "spec.clusterIPs: Forbidden: may not be " +
			"set for ExternalName services",
		"{ports: [{port: 80, appProtocol: ../x}]}": "spec.ports[0].appProtocol: Invalid " +
			"value: \"../x\": prefix part",
		"{ports: [{port: 80}], externalIPs: [127.0.0.1]}": "spec.externalIPs[0]: Invalid value: " +
			"\"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
		"{ports: [{port: 80}], externalIPs: [0.0.0.0]}": "spec.externalIPs[0]: Invalid value: " +
			"\"0.0.0.0\": may not be unspecified (0.0.0.0)",
		"{ports: [{port: 80}], externalIPs: [224.0.0.1]}": "spec.externalIPs[0]: Invalid value: " +
			"\"224.0.0.1\": may not be in the link-local multicast range",
		"{ports: [{port: 80}], externalIPs: [169.254.1.1]}": "spec.externalIPs[0]: Invalid value: " +
			"\"169.254.1.1\": may not be in the link-local range",
		"{ports: [{port: 80}], externalIPs: [010.1.1.1]}": "spec.externalIPs[0]: Invalid value: " +
			"\"010.1.1.1\": must not have leading 0s",
		"{ports: [{port: 80}], externalIPs: ['::ffff:1.2.3.4']}": "spec.externalIPs[0]: Invalid value: " +
			"\"::ffff:1.2.3.4\": must not be an IPv4-mapped IPv6 address",
		"{ports: [{port: 80}], externalIPs: [x]}": "spec.externalIPs[0]: Invalid value: \"x\": " +
			"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
		"{ports: [{port: 80}], clusterIP: '::ffff:1.2.3.4', clusterIPs: ['::ffff:1.2.3.4']}": "spec.clusterIPs[0]: Invalid value: " +
			"\"::ffff:1.2.3.4\": must not be an IPv4-mapped IPv6 address",
		"{ports: [{port: 80}], internalTrafficPolicy: x}": `spec.internalTrafficPolicy: Unsupported value: "x": supported values: "Cluster", "Local"`,
		"{ports: [{port: 80}], trafficDistribution: x}":   `spec.trafficDistribution: Unsupported value: "x": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"`,
		"{ports: [{port: 80}], ipFamilies: [IPv4, IPv4]}": `spec.ipFamilies[1]: Duplicate value: "IPv4"`,
		"{ports: [{port: 80}], ipFamilies: [IPv5]}":       `spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"`,
		"{ports: [{port: 80}], ipFamilyPolicy: x}":        `spec.ipFamilyPolicy: Unsupported value: "x": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"`,
		"{ports: [{port: 80}], allocateLoadBalancerNodePorts: true}": "spec.allocateLoadBalancerNodePorts: " +
			"Forbidden: may only be used when `type` is 'LoadBalancer'",
		"{ports: [{port: 80}], loadBalancerClass: a/b}": "spec.loadBalancerClass: Forbidden: may only " +
			"be used when `type` is 'LoadBalancer'",
		"{ports: [{port: 80}], loadBalancerSourceRanges: [10.0.0.0/8]}": "spec.LoadBalancerSourceRanges: Forbidden: may " +
			"only be used when `type` is 'LoadBalancer'",
		"{ports: [{port: 80}], healthCheckNodePort: 30000}": "spec.healthCheckNodePort: Invalid value: " +
			"30000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
		"{type: LoadBalancer, ports: [{port: 80}], loadBalancerSourceRanges: [' 10.0.0.0/8 ', 10.0.0.1/8]}": "spec.LoadBalancerSourceRanges[1]: Invalid " +
			"value: \"10.0.0.1/8\": must not have bits set beyond the prefix length",
		"{type: LoadBalancer, ports: [{port: 80}], externalTrafficPolicy: Local, healthCheckNodePort: -1}": "spec.healthCheckNodePort: Invalid value: -1: " +
			"must be between 1 and 65535, inclusive",
		"{ports: [{port: 80}], sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 0}}}": "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400",
		"{ports: [{port: 80}], clusterIP: web}":                              "spec.clusterIPs[0]: Invalid value",
		"{ports: [{port: 80}], clusterIP: 10.0.0.1, clusterIPs: [10.0.0.2]}": "spec.clusterIPs: Invalid value",
	} {
		s := strategy.New()
		if err := yaml.UnmarshalStrict([]byte(text), &s.Spec); err != nil {
			t.Fatal(err)
		}
		strategy.Default(s)
		strategy.Create.Prepare(t.Context(), s)
		got := ""
		if err := validate(s).ToAggregate(); err != nil {
			got = strings.TrimPrefix(err.Error(), "[")
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", text, got, want)
		}
	}
}

// TestOrder: errors come in upstream's order, and annotations that are older
// than the fields are checked.
func TestOrder(t *testing.T) {
	strategy := strategy(clock.RealClock{})
	for _, test := range []struct{ text, want string }{
		{`{metadata: {annotations: {service.kubernetes.io/topology-mode: auto, service.kubernetes.io/topology-aware-hints: x}}, spec: {type: x, ports: [{port: 0, nodePort: 1}], sessionAffinity: x, trafficDistribution: x}}`,
			"metadata.annotations[service.kubernetes.io/topology-mode] spec.ports[0].port spec.ports[0].targetPort spec.sessionAffinity " +
				"spec.type spec.trafficDistribution"},
		{`{metadata: {annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: " 10.0.0.0/8, x"}}, spec: {ports: [{port: 80, nodePort: 1}], loadBalancerClass: a/b, allocateLoadBalancerNodePorts: true}}`,
			"spec.ports[0].nodePort metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges] " +
				"metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges] spec.allocateLoadBalancerNodePorts spec.loadBalancerClass"},
		{`{spec: {type: ExternalName, clusterIP: None, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}}`,
			"spec.clusterIPs spec.ipFamilies spec.ipFamilyPolicy spec.externalName"},
		{`{spec: {ports: [{port: 80}], sessionAffinity: x, sessionAffinityConfig: {clientIP: {timeoutSeconds: 0}}}}`, "spec.sessionAffinity"},
		{`{spec: {ports: [{port: 80}], loadBalancerSourceRanges: [x]}}`, "spec.LoadBalancerSourceRanges spec.LoadBalancerSourceRanges[0]"},
	} {
		s := strategy.New()
		if err := yaml.UnmarshalStrict([]byte(test.text), s); err != nil {
			t.Fatal(err)
		}
		strategy.Default(s)
		strategy.Create.Prepare(t.Context(), s)
		var got []string
		for _, err := range validate(s) {
			got = append(got, err.Field)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s\n  got: %s\n want: %s", test.text, strings.Join(got, " "), test.want)
		}
	}
}

// TestWarnings: the warnings come in upstream's order.
func TestWarnings(t *testing.T) {
	s := strategy(clock.RealClock{}).New()
	if err := yaml.UnmarshalStrict([]byte("{type: ClusterIP, clusterIP: None, externalName: a, externalIPs: [1.2.3.4], loadBalancerIP: 1.2.3.4, "+
		"sessionAffinity: ClientIP, trafficDistribution: PreferClose}"), &s.Spec); err != nil {
		t.Fatal(err)
	}
	want := `spec.loadBalancerIP is ignored for headless services|spec.externalIPs is ignored for headless services|spec.SessionAffinity is ignored for headless services|` +
		`spec.externalName is ignored when spec.type is not "ExternalName"|spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`
	if got := strings.Join(warnings(s), "|"); got != want {
		t.Errorf(" got: %s\nwant: %s", got, want)
	}
}

func TestRow(t *testing.T) {
	strategy := strategy(clock.RealClock{})
	for text, want := range map[string]string{
		"{clusterIP: 10.0.0.1, ports: [{port: 80}, {port: 53, protocol: UDP, nodePort: 30000}], selector: {a: b}}": "[s ClusterIP 10.0.0.1 <none> " +
			"80/TCP,53:30000/UDP <unknown> a=b]",
		"{type: ExternalName, externalName: example.org}":                "[s ExternalName <none> example.org <none> <unknown> <none>]",
		"{type: LoadBalancer, clusterIP: 10.0.0.2, ports: [{port: 80}]}": "[s LoadBalancer 10.0.0.2 <pending> 80/TCP <unknown> <none>]",
	} {
		s := strategy.New()
		s.Name = "s"
		if err := yaml.UnmarshalStrict([]byte(text), &s.Spec); err != nil {
			t.Fatal(err)
		}
		strategy.Default(s)
		if got := fmt.Sprint(strategy.Read.Row(s)); got != want {
			t.Errorf("row is %s\n    want %s", got, want)
		}
	}
}

// TestUpdatesOfABalancer: what is allocated to a service of this type stays,
// and what an update leaves out is kept.
func TestUpdatesOfABalancer(t *testing.T) {
	const balanced = "{type: LoadBalancer, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}], loadBalancerClass: a/b, externalTrafficPolicy: " +
		"Local, healthCheckNodePort: 30000}"
	testUpdates(t, balanced, map[string]string{
		balanced: "",
		strings.Replace(balanced, ", healthCheckNodePort: 30000", "", 1): "",
		strings.Replace(balanced, "30000", "30001", 1):                   "spec.healthCheckNodePort: Forbidden: field is immutable",
		strings.Replace(balanced, "a/b", "a/c", 1):                       `spec.loadBalancerClass: Invalid value: "a/c": may not change once set`,
		strings.Replace(balanced, "loadBalancerClass: a/b, ", "", 1):     "spec.loadBalancerClass: Invalid value: null: may not change once set",
		strings.ReplaceAll(balanced, "10.0.0.1", "10.0.0.2"):             `spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set`,
		strings.ReplaceAll(balanced, "10.0.0.1", "web"):                  `spec.clusterIPs[0]: Invalid value: "web": must be a valid IP address`,
		strings.Replace(balanced, "[10.0.0.1]", "[10.0.0.1, 10.0.0.3]",
			1): `spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.3"]: may specify no more than one IP for each IP family`,
		strings.Replace(balanced, "[10.0.0.1]", "[10.0.0.1, web]", 1): `spec.clusterIPs[1]: Invalid value: "web": must be a valid IP address`,
	})
}

// TestLosingABalancer: a load balancer's fields are dropped when the type
// changes, unless the update sets them.
func TestLosingABalancer(t *testing.T) {
	const balanced = "{type: LoadBalancer, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30080}], allocateLoadBalancerNodePorts: " +
		"true, loadBalancerClass: a/b, externalTrafficPolicy: Local, healthCheckNodePort: 30000}"
	testUpdates(t, balanced, map[string]string{
		strings.Replace(balanced, "LoadBalancer,", "ClusterIP,", 1):                                      "",
		strings.Replace(balanced, "Local", "Cluster", 1):                                                 "",
		strings.Replace(strings.Replace(balanced, "LoadBalancer,", "NodePort,", 1), "a/b", "a/c", 1):     "spec.loadBalancerClass: Forbidden",
		strings.Replace(strings.Replace(balanced, "LoadBalancer,", "NodePort,", 1), "30000", "30001", 1): "spec.healthCheckNodePort: Invalid value: 30001",
		strings.Replace(balanced, "LoadBalancer,", "ExternalName, externalName: a.b,", 1):                "",
	})
}

// testUpdates compares the errors in updates of one service with the expected
// ones.
func testUpdates(t *testing.T, before string, cases map[string]string) {
	t.Helper()
	for text, want := range cases {

		strategy := strategy(clock.RealClock{})
		old, s := strategy.New(), strategy.New()
		for into, text := range map[any]string{&old.Spec: before, &s.Spec: text} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		strategy.Default(old)
		strategy.Default(s)
		prepareForUpdate(t.Context(), s, old)
		got := ""
		if err := validateUpdate(t.Context(), s, old).ToAggregate(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", text, got, want)
		}
	}
}

// TestUpdatesOfInvalidFamilies: what a stored service has wrong in its families does not hide
// that its address changes.
func TestUpdatesOfInvalidFamilies(t *testing.T) {
	const stored = "{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv5], ports: [{port: 80}]}"
	testUpdates(t, stored, map[string]string{
		strings.ReplaceAll(stored, "10.0.0.1", "10.0.0.2"): `[spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set, ` +
			`spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"]`,
	})
}
