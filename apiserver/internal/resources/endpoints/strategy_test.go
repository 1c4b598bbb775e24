package endpoints

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/field"
)

func expect(t *testing.T, what string, errs field.ErrorList, want string) {
	t.Helper()
	got := ""
	if err := errs.ToAggregate(); err != nil {
		got = err.Error()
	}
	if want == "" && got != "" || !strings.HasPrefix(got, want) {
		t.Errorf("%s\n  got: %s\n want: %s", what, got, want)
	}
}

func TestEndpoints(t *testing.T) {
	strategy := Endpoints(clock.RealClock{})
	for text, want := range map[string]string{
		"{metadata: {name: e}, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]}": "",
		"{subsets: [{ports: [{port: 80}]}]}": "subsets[0]: Required value: must specify " +
			"`addresses` or `notReadyAddresses`",
		"{subsets: [{addresses: [{ip: 127.0.0.1}]}]}":                                          `subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range`,
		"{subsets: [{notReadyAddresses: [{ip: web}]}]}":                                        `[subsets[0].notReadyAddresses[0].ip: Invalid value: "web": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff), subsets[0].notReadyAddresses[0].ip: Invalid value: "web": must be a valid IP address]`,
		"{subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}, {port: 81, name: a}]}]}": "subsets[0].ports[0].name: Required value",
		"{subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 0, protocol: X}]}]}":          "[subsets[0].ports[0].port: Invalid value: 0",
		"{subsets: [{addresses: [{ip: 10.0.0.1, nodeName: ''}]}]}":                             "subsets[0].addresses[0].nodeName: Invalid value",
		"{subsets: [{addresses: [{ip: 10.0.0.1, hostname: A_}]}]}":                             "subsets[0].addresses[0].hostname: Invalid value",
		"{subsets: [{addresses: [{ip: 010.0.0.1}]}]}":                                          `subsets[0].addresses[0].ip: Invalid value: "010.0.0.1": must not have leading 0s`,
		"{subsets: [{addresses: [{ip: '::ffff:1.2.3.4'}]}]}":                                   "subsets[0].addresses[0].ip: Invalid value",
		"{subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80, appProtocol: a b}]}]}":    "subsets[0].ports[0].appProtocol: Invalid value",
	} {
		e := strategy.New()
		if err := yaml.UnmarshalStrict([]byte(text), e); err != nil {
			t.Fatal(err)
		}
		strategy.Default(e)
		expect(t, text, strategy.Create.Validate(t.Context(), e), want)
		if want == "" {
			if got := fmt.Sprint(strategy.Read.Row(e)); got != "[e 10.0.0.1:80 <unknown>]" {
				t.Errorf("row is %s", got)
			}
		}
	}
}

func TestEndpointsCell(t *testing.T) {
	for text, want := range map[string]string{
		"[]": "<none>",
		"[{notReadyAddresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]": "",
		"[{addresses: [{ip: 10.0.0.1}]}]":                              "10.0.0.1",
	} {
		var all []corev1.EndpointSubset //nolint:staticcheck // old clients still use it
		if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		if got := subsets(all); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestSlices(t *testing.T) {
	strategy := Slices(clock.RealClock{})
	for text, want := range map[string]string{
		"{metadata: {name: e}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}], ports: [{port: 80}]}": "",
		"{endpoints: []}":                      "addressType: Required value",
		"{addressType: IPv5}":                  `addressType: Unsupported value: "IPv5"`,
		"{addressType: IPv4, endpoints: [{}]}": "endpoints[0].addresses: Required value",
		"{addressType: IPv4, endpoints: [{addresses: [169.254.0.1]}]}":                                         "endpoints[0].addresses[0]: Invalid value",
		"{addressType: FQDN, endpoints: [{addresses: [a_b]}]}":                                                 "endpoints[0].addresses[0]: Invalid value",
		"{addressType: IPv4, ports: [{port: 1, name: a}, {port: 2, name: a}]}":                                 "ports[1].name: Duplicate value",
		"{addressType: IPv4, ports: [{port: 1, name: a, protocol: HTTP}]}":                                     `ports[0].protocol: Unsupported value: "HTTP"`,
		"{addressType: IPv6, endpoints: [{addresses: [10.0.0.1]}]}":                                            `endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address`,
		"{addressType: IPv6, endpoints: [{addresses: ['2001:db8::1']}]}":                                       "",
		"{addressType: IPv6, endpoints: [{addresses: ['2001:0DB8::1']}]}":                                      `endpoints[0].addresses[0]: Invalid value: "2001:0DB8::1": must be in canonical form ("2001:db8::1")`,
		"{addressType: IPv4, endpoints: [{addresses: ['2001:db8::1']}]}":                                       `endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address`,
		"{addressType: IPv4, endpoints: [{addresses: [10.0.0.1], hostname: A_}]}":                              "endpoints[0].hostname: Invalid value",
		"{addressType: IPv4, endpoints: [{addresses: [10.0.0.1], nodeName: ''}]}":                              "endpoints[0].nodeName: Invalid value",
		"{addressType: IPv4, endpoints: [{addresses: [10.0.0.1], hints: {forZones: [{name: a}, {name: a}]}}]}": `endpoints[0].hints.forZones[1].name: Duplicate value: "a"`,
		"{addressType: IPv4, endpoints: [{addresses: [10.0.0.1], hints: {forNodes: [{name: ''}]}}]}":           "endpoints[0].hints.forNodes[0].name: Invalid value",
		"{addressType: IPv4, endpoints: [{addresses: [10.0.0.1], hints: {forZones: [{}, {}, {}, {}, {}, {}, {}, {}, {}]}}]}": "endpoints[0].hints.forZones: Too " +
			"many: 9: must have at most 8 items",
		"{addressType: IPv4, ports: [{appProtocol: a b}]}": "ports[0].appProtocol: Invalid value",
	} {
		e := strategy.New()
		if err := yaml.Unmarshal([]byte(text), e); err != nil {
			t.Fatal(err)
		}
		strategy.Default(e)
		expect(t, text, strategy.Create.Validate(t.Context(), e), want)
	}
	one, two := strategy.New(), strategy.New()
	one.AddressType, two.AddressType = "IPv4", "FQDN"
	expect(t, "another family", strategy.Update.Validate(t.Context(), one, two), "addressType: Invalid value")
}
