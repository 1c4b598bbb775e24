package pod

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

// TestWarnings: the warnings are in upstream's words.
func TestWarnings(t *testing.T) {
	for text, want := range map[string][]string{
		"metadata: {name: a}\nspec: {containers: [{name: c, image: i}]}": nil,
		"metadata: {name: a.b}": {"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is " +
			"recommended: [must not contain dots]"},
		"spec: {nodeSelector: {beta.kubernetes.io/os: linux, a: b}}": {`spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`},
		"spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: " +
			"beta.kubernetes.io/arch, operator: Exists}]}]}}}}": {
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead`,
		},
		"spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a}}]}}}": {
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null " +
				"labelSelector results in matching no pod",
		},
		"spec: {topologySpreadConstraints: [{topologyKey: failure-domain.beta.kubernetes.io/zone, labelSelector: {}}]}": {
			`spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
		},
		"spec: {volumes: [{name: v, gitRepo: {repository: r}}]}": {"spec.volumes[0].gitRepo: deprecated in v1.11, and " +
			"disabled by default in v1.33+"},
		"spec: {volumes: [{name: v, secret: {secretName: s, items: [{path: p/q}, {path: pq}, {path: p}]}}]}": {`volume "v" (Secret "s"): overlapping paths: "p" with "p/q"`},
		"spec: {volumes: [{name: v, projected: {sources: [{configMap: {name: a, items: [{path: p}]}}, {serviceAccountToken: {path: p}}]}}]}": {
			`volume "v" (Projected): overlapping paths: "p" (ServiceAccountToken) with "p" (ConfigMap "a")`,
		},
		"spec: {volumes: [{name: v, projected: {sources: [{}]}}]}": {`volume "v" (Projected) has no sources provided`},
		"spec: {dnsConfig: {nameservers: ['2001:0db8::1']}}":       {`spec.dnsConfig.nameservers[0]: IPv6 address "2001:0db8::1" should be in RFC 5952 canonical format ("2001:db8::1")`},
		"spec: {nodeSelector: {beta.kubernetes.io/os: a}, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}}, volumes: " +
			"[{name: v, projected: {sources: [{}, {}]}}], imagePullSecrets: [{}, {}], overhead: {memory: 1500m}, terminationGracePeriodSeconds: -1, containers: " +
			"[{name: c, resources: {limits: {ephemeral-storage: 1500m, memory: 1500m}}}]}": {
			`spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`,
			`volume "v" (Projected) has no sources provided`, `volume "v" (Projected) has no sources provided`,
			`spec.imagePullSecrets[1].name: duplicate name ""`, `spec.imagePullSecrets[0].name: invalid empty name ""`,
			`spec.imagePullSecrets[1].name: invalid empty name ""`,
			`spec.overhead[memory]: fractional byte value "1500m" is invalid, must be an integer`,
			`spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer`,
			`spec.containers[0].resources.limits[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer`,
			`spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod`,
		},
		"spec: {containers: [{name: c, env: [{name: A, value: a}, {name: A, value: $(A)}]}]}": {`spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`},
		"spec: {containers: [{name: c, ports: [{name: a, containerPort: 80, hostPort: 80}, {name: a, containerPort: 80, hostIP: 1.2.3.4}, {containerPort: 80, " +
			"hostPort: 80, hostIP: 1.2.3.4}, {containerPort: 80, hostPort: 81}]}]}": {
			"spec.containers[0].ports[1]: hostIP set without hostPort: {Name:a HostPort:0 ContainerPort:80 Protocol: HostIP:1.2.3.4}",
			"spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
			"spec.containers[0].ports[2]: dangerously ambiguous port definition with spec.containers[0].ports[0]",
			"spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[1]",
			"spec.containers[0].ports[3]: overlapping port definition with spec.containers[0].ports[1]",
			`spec.containers[0].ports[1]: duplicate port name "a" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]`,
		},
		"spec: {imagePullSecrets: [{name: a}, {name: a}]}":                      {`spec.imagePullSecrets[1].name: duplicate name "a"`},
		"spec: {hostAliases: [{ip: 1.2.3.4}, {ip: 1.2.3.4}]}":                   {`spec.hostAliases[1].ip: duplicate ip "1.2.3.4"`},
		"spec: {containers: [{name: c, resources: {limits: {memory: 1500m}}}]}": {`spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer`},
		"spec: {containers: [{name: c, env: [{name: A, value: a}, {name: A, value: $(A)b}, {name: A}]}]}": {
			`spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply`,
		},
		"spec: {initContainers: [{name: i, ports: [{containerPort: 80}]}], containers: [{name: c, ports: [{containerPort: 80}]}]}": {
			"spec.containers[0].ports[0]: duplicate port definition with spec.initContainers[0].ports[0]",
		},
	} {
		var pod core.Pod
		if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if got := warnings(&pod); !slices.Equal(got, want) {
			t.Errorf("%s\n got %s\nwant %s", text, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
}

// Equal paths make as many pairs as their square.
func TestOverlapsAreBounded(t *testing.T) {
	items := make([]corev1.KeyToPath, 2000)
	for i := range items {
		items[i] = corev1.KeyToPath{Key: "k", Path: "p"}
	}
	v := corev1.Volume{Name: "v"}
	v.ConfigMap = &corev1.ConfigMapVolumeSource{Items: items}
	if got := overlapWarnings(&v); len(got) != maxOverlaps {
		t.Errorf("%d warnings, want %d", len(got), maxOverlaps)
	}
}

// TestTemplateWarnings: only changes cause warnings.
func TestTemplateWarnings(t *testing.T) {
	var pod corev1.PodTemplateSpec
	pod.Spec.NodeSelector = map[string]string{"beta.kubernetes.io/os": "linux"}
	if got := TemplateWarnings(&pod, nil, "spec.template"); len(got) != 1 || !strings.HasPrefix(got[0], "spec.template.spec.nodeSelector[") {
		t.Errorf("a new template is warned of by %v", got)
	}
	pod.Spec.NodeSelector, pod.Annotations = nil, map[string]string{appArmorContainerPrefix + "c": "unconfined", appArmorContainerPrefix + "d": "unconfined"}
	pod.Spec.Containers = []core.Container{{Name: "c"}}
	if got := TemplateWarnings(&pod, nil, "spec.template"); len(got) != 1 ||
		got[0] != `spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead` {
		t.Errorf("a template with a profile in an annotation is warned of by %v", got)
	}
	if got := TemplateWarnings(&pod, pod.DeepCopy(), "spec.template"); got != nil {
		t.Errorf("a template that stays is warned of by %v", got)
	}
}
