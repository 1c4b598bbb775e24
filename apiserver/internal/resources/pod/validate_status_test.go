package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

// TestStatusOfPods: what is reported of a pod is refused in upstream's words,
// and what was there before stays.
func TestStatusOfPods(t *testing.T) {
	const noIP, twoOfAFamily = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", "may specify no more than one IP for each IP family"
	for status, want := range map[string]string{
		"{podIPs: [{ip: 1.2.3.4}, {ip: '::1'}], hostIP: 1.2.3.4, hostIPs: [{ip: 1.2.3.4}]}": "",
		"{podIPs: [{ip: x}]}":                                                   `status.podIPs[0]: Invalid value: "x": ` + noIP,
		"{podIPs: [{ip: 01.2.3.4}]}":                                            `status.podIPs[0]: Invalid value: "01.2.3.4": must not have leading 0s`,
		"{podIPs: [{ip: 1.2.3.4}, {ip: 1.2.3.5}]}":                              `status.podIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: ` + twoOfAFamily,
		"{podIPs: [{ip: 1.2.3.4}, {ip: x}]}":                                    `[status.podIPs[1]: Invalid value: "x": ` + noIP + `, status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: x, status.podIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"x"}]: ` + twoOfAFamily + `]`,
		"{hostIP: 1.2.3.4, hostIPs: [{ip: 1.2.3.5}]}":                           "status.hostIPs[0].ip: Invalid value: \"1.2.3.5\": must be equal to `hostIP`",
		"{hostIPs: [{ip: 1.2.3.4}, {ip: 1.2.3.5}]}":                             "[status.hostIPs[0].ip: Invalid value: \"1.2.3.4\": must be equal to `hostIP`, " + `status.hostIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: ` + twoOfAFamily + `]`,
		"{observedGeneration: -1}":                                              "status.observedGeneration: Invalid value: -1: must be a non-negative integer",
		"{conditions: [{type: Ready, status: 'True', observedGeneration: -1}]}": "status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
		"{resourceClaimStatuses: [{name: x}]}":                                  "status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of an entry in `spec.resourceClaims`",
	} {
		var now, old core.Pod
		if err := yaml.UnmarshalStrict([]byte(status), &now.Status); err != nil {
			t.Fatal(err)
		}
		got := ""
		if errs := validateStatus(&now, &old); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != want {
			t.Errorf("%s:\n got: %s\nwant: %s", status, got, want)
		}
	}
	bound := core.Pod{Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{NominatedNodeName: "n2"}}
	const isBound = "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
	if errs := validateStatus(&bound, &core.Pod{Spec: bound.Spec}); len(errs) != 1 || errs[0].Error() != isBound {
		t.Errorf("a node for a pod that has one: %v", errs)
	}
	if errs := validateStatus(&bound, &bound); len(errs) > 0 {
		t.Errorf("a node that was there before: %v", errs)
	}
	stored := core.Pod{Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "01.2.3.4"}}}}
	if errs := validateStatus(&stored, &stored); len(errs) > 0 {
		t.Errorf("what was there before: %v", errs)
	}
}
