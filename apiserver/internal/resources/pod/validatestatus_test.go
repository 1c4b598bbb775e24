package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

// TestStatusOfPods: a bad status is refused in upstream's words; errors that
// were stored before don't count.
func TestStatusOfPods(t *testing.T) {
	const noIP, twoOfAFamily = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", "may specify no more than one IP for each IP family"
	const noSubdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an " +
		"alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	for status, want := range map[string]string{
		"{podIPs: [{ip: 1.2.3.4}, {ip: '::1'}], hostIP: 1.2.3.4, hostIPs: [{ip: 1.2.3.4}]}": "",
		"{podIPs: [{ip: x}]}":                      `status.podIPs[0]: Invalid value: "x": ` + noIP,
		"{podIPs: [{ip: 01.2.3.4}]}":               `status.podIPs[0]: Invalid value: "01.2.3.4": must not have leading 0s`,
		"{podIPs: [{ip: 1.2.3.4}, {ip: 1.2.3.5}]}": `status.podIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: ` + twoOfAFamily,
		"{podIPs: [{ip: 1.2.3.4}, {ip: x}]}": `[status.podIPs[1]: Invalid value: "x": ` + noIP +
			`, status.podIPs: Internal error: failed to check for dual stack with error:invalid IP[1]: x, status.podIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"x"}]: ` + twoOfAFamily + `]`,
		"{podIPs: [{ip: 2001:DB8::1}]}":               "",
		"{podIPs: [{ip: '::ffff:1.2.3.4'}]}":          `status.podIPs[0]: Invalid value: "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address`,
		"{hostIP: 1.2.3.4, hostIPs: [{ip: 1.2.3.5}]}": "status.hostIPs[0].ip: Invalid value: \"1.2.3.5\": must be equal to `hostIP`",
		"{hostIPs: [{ip: 1.2.3.4}, {ip: 1.2.3.5}]}": "[status.hostIPs[0].ip: Invalid value: \"1.2.3.4\": must be equal to `hostIP`, " +
			`status.hostIPs: Invalid value: [{"IP":"1.2.3.4"},{"IP":"1.2.3.5"}]: ` + twoOfAFamily + `]`,
		"{observedGeneration: -1}": "status.observedGeneration: Invalid value: -1: must be a non-negative integer",
		"{conditions: [{type: Ready, status: 'True', observedGeneration: -1}]}":                                                             "status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer",
		"{resourceClaimStatuses: [{name: c, resourceClaimName: A_b}]}":                                                                      `status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "A_b": ` + noSubdomain,
		"{resourceClaimStatuses: [{name: c}, {name: c}]}":                                                                                   `status.resourceClaimStatuses[1].name: Duplicate value: "c"`,
		"{extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: [{containerName: a, resourceName: a.b/c, requestName: r}]}}": "",
		"{extendedResourceClaimStatus: {}}":                                                                                                 "[status.extendedResourceClaimStatus.requestMappings: Required value: at least one request mapping is required, status.extendedResourceClaimStatus.resourceClaimName: Required value]",
		"{extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: [{containerName: x, resourceName: a.b/c, requestName: r}]}}": `status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: "x": must match the name of an entry in spec.initContainers.name or spec.containers.name`,
		"{extendedResourceClaimStatus: {resourceClaimName: c, requestMappings: [{containerName: a, resourceName: a.b/d, requestName: r}]}}": `status.extendedResourceClaimStatus.requestMappings[0].resourceName: Invalid value: "a.b/d": must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests`,
		"{containerStatuses: [{name: a, allocatedResourcesStatus: [{name: a.b/c, resources: [{resourceID: '1', health: Healthy}]}]}]}":      "",
		"{containerStatuses: [{name: a, allocatedResourcesStatus: [{name: a.b/c, resources: [{health: Ill}, {health: Healthy}]}]}]}":        `[status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health: Unsupported value: "Ill": supported values: "Healthy", "Unhealthy", "Unknown", status.containerStatuses[0].allocatedResourcesStatus[0].resources[1].resourceID: Duplicate value: ""]`,
		"{containerStatuses: [{name: a, allocatedResourcesStatus: [{name: a.b/d}]}]}":                                                       `status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "a.b/d": must match one of the container's resource requests`,
		"{containerStatuses: [{name: a, allocatedResourcesStatus: [{name: 'claim:c'}]}]}":                                                   "",
		"{containerStatuses: [{name: a, allocatedResourcesStatus: [{name: 'claim:c/r'}]}]}":                                                 `status.containerStatuses[0].allocatedResourcesStatus[0].name: Invalid value: "claim:c/r": must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty`,
		"{containerStatuses: [{name: a, user: {linux: {uid: 4294967295, gid: 2147483647, supplementalGroups: [0]}}}]}":                      "",
		"{containerStatuses: [{name: a, user: {linux: {uid: 4294967296, gid: -1, supplementalGroups: [0, -1]}}}]}":                          "[status.containerStatuses[0].user.linux.uid: Invalid value: 4294967296: must be between 0 and 4294967295, inclusive, status.containerStatuses[0].user.linux.gid: Invalid value: -1: must be between 0 and 2147483647, inclusive, status.containerStatuses[0].user.linux.supplementalGroups[1]: Invalid value: -1: must be between 0 and 2147483647, inclusive]",
		"{initContainerStatuses: [{name: i, user: {linux: {uid: -1, gid: 0}}}]}":                                                            "status.initContainerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 4294967295, inclusive",
		"{ephemeralContainerStatuses: [{name: e, user: {linux: {uid: -1, gid: 0}}}]}":                                                       "status.ephemeralContainerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and 4294967295, inclusive",
		"{ephemeralContainerStatuses: [{name: e, allocatedResourcesStatus: [{name: a.b/c}]}]}":                                              "status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in container status",
		"{resourceClaimStatuses: [{name: x}]}":                                                                                              "status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of an entry in `spec.resourceClaims`",
	} {
		now := core.Pod{Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "c"}},
			Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"a.b/c": resource.MustParse("1")}, Claims: []corev1.ResourceClaim{{Name: "c"}},
			}}},
		}}
		var old core.Pod
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
	extended := core.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "a", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"a.b/c": resource.MustParse("1")}}}, {Name: "b"},
		}},
		Status: corev1.PodStatus{ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: "c", RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "a", ResourceName: "a.b/c", RequestName: "r"}},
		}},
	}
	for _, container := range []string{"a", "b"} {
		extended.Status.ContainerStatuses = append(extended.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container, AllocatedResourcesStatus: []corev1.ResourceStatus{{Name: "claim:c/r"}},
		})
	}
	if errs := validateStatus(&extended, &core.Pod{}); len(errs) != 1 || errs[0].Field != "status.containerStatuses[1].allocatedResourcesStatus[0].name" {
		t.Errorf("the claim of container a's extended resources: %v", errs)
	}
	windows := core.Pod{Spec: corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}}
	windows.Status.ContainerStatuses = []corev1.ContainerStatus{{User: &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: -1}}}}
	checkErrors(t, "a Linux user of a pod on Windows", validateStatus(&windows, &core.Pod{}),
		"status.containerStatuses[0].user.linux: Forbidden: cannot be set for a windows pod")
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
		t.Errorf("an error that was stored before: %v", errs)
	}
	stored.Status.HostIP, stored.Status.HostIPs = "010.0.0.1", []corev1.HostIP{{IP: "010.0.0.1"}}
	more := stored.DeepCopy()
	more.Status.PodIPs = append(more.Status.PodIPs, corev1.PodIP{IP: "::1"})
	more.Status.HostIPs = append(more.Status.HostIPs, corev1.HostIP{IP: "::1"})
	if errs := validateStatus(more, &stored); len(errs) > 0 {
		t.Errorf("a second address beside one that was stored before: %v", errs)
	}
}
