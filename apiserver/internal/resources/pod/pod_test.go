package pod

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/field"
	"kctl/proto/core"
)

// fromYAML is a pod as a user writes it.
func fromYAML(t *testing.T, text string) *core.Pod {
	t.Helper()
	pod := new(core.Pod)
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return pod
}

// minimal is the smallest valid pod, defaulted.
func minimal(change ...func(*core.Pod)) *core.Pod {
	pod := &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Generation: 1},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: "nginx"}}},
	}
	for _, c := range change {
		c(pod)
	}
	setAllDefaults(pod)
	return pod
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const bigPod = `
metadata: {name: web, namespace: default}
spec:
  hostNetwork: true
  serviceAccount: old
  initContainers:
  - {name: init, image: "busybox:1.36", resources: {limits: {cpu: 100m}}}
  containers:
  - name: main
    image: registry:5000/a/b
    ports: [{containerPort: 80}]
    env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}
    livenessProbe: {httpGet: {port: 80}}
    readinessProbe: {grpc: {port: 90}, periodSeconds: 3}
    lifecycle: {preStop: {httpGet: {port: 80}}}
  - {name: digest, image: "a@sha256:0123456789012345678901234567890123456789012345678901234567890123"}
  - {name: latest, image: "a:latest"}
  volumes:
  - {name: none}
  - {name: cm, configMap: {name: c}}
  - {name: host, hostPath: {path: /tmp}}
  - {name: sec, secret: {secretName: s}}
  - {name: down, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: proj, projected: {sources: [{serviceAccountToken: {path: token}}]}}
`

const bigPodDefaulted = `
metadata: {name: web, namespace: default}
spec:
  hostNetwork: true
  serviceAccount: old
  serviceAccountName: old
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  terminationGracePeriodSeconds: 30
  enableServiceLinks: true
  securityContext: {}
  initContainers:
  - name: init
    image: "busybox:1.36"
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    resources: {limits: {cpu: 100m}, requests: {cpu: 100m}}
  containers:
  - name: main
    image: registry:5000/a/b
    imagePullPolicy: Always
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]
    env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}]
    resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m, memory: 1Gi}}
    livenessProbe:
      {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    readinessProbe:
      {grpc: {port: 90, service: ""}, timeoutSeconds: 1, periodSeconds: 3, successThreshold: 1, failureThreshold: 3}
    lifecycle: {preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}}
  - name: digest
    image: "a@sha256:0123456789012345678901234567890123456789012345678901234567890123"
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  - name: latest
    image: "a:latest"
    imagePullPolicy: Always
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  volumes:
  - {name: none, emptyDir: {}}
  - {name: cm, configMap: {name: c, defaultMode: 420}}
  - {name: host, hostPath: {path: /tmp, type: ""}}
  - {name: sec, secret: {secretName: s, defaultMode: 420}}
  - {name: down, downwardAPI: {defaultMode: 420, items: [{path: l, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}]}}
  - {name: proj, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: token, expirationSeconds: 3600}}]}}
`

func TestDefaults(t *testing.T) {
	pod, want := fromYAML(t, bigPod), fromYAML(t, bigPodDefaulted)
	setAllDefaults(pod)
	if got, want := asJSON(t, pod), asJSON(t, want); got != want {
		t.Errorf("defaulted pod:\n%s\nwant:\n%s", got, want)
	}
	again := pod.DeepCopy()
	setAllDefaults(again)
	if got, want := asJSON(t, again), asJSON(t, pod); got != want {
		t.Errorf("defaults of defaults differ:\n%s\nwant:\n%s", got, want)
	}
	if errs := validateCreate(pod); len(errs) > 0 {
		t.Errorf("defaulted pod is refused: %v", errs)
	}
}

// Upstream takes a negative grace period for the shortest one.
func TestNegativeGraceIsASecond(t *testing.T) {
	asked := int64(-1)
	pod := minimal(func(p *core.Pod) { p.Spec.TerminationGracePeriodSeconds = &asked })
	setAllDefaults(pod)
	if grace := *pod.Spec.TerminationGracePeriodSeconds; grace != 1 || asked != -1 {
		t.Errorf("grace period %d, asked for %d", grace, asked)
	}
}

func TestAddresses(t *testing.T) {
	ip := func(ips ...string) (out []corev1.PodIP) {
		for _, s := range ips {
			out = append(out, corev1.PodIP{IP: s})
		}
		return out
	}
	for name, c := range map[string]struct{ status, want core.PodStatus }{
		"none":        {core.PodStatus{}, core.PodStatus{}},
		"one":         {core.PodStatus{PodIP: "1.1.1.1"}, core.PodStatus{PodIP: "1.1.1.1", PodIPs: ip("1.1.1.1")}},
		"list":        {core.PodStatus{PodIPs: ip("1.1.1.1", "::1")}, core.PodStatus{PodIP: "1.1.1.1", PodIPs: ip("1.1.1.1", "::1")}},
		"both":        {core.PodStatus{PodIP: "1.1.1.1", PodIPs: ip("1.1.1.1", "::1")}, core.PodStatus{PodIP: "1.1.1.1", PodIPs: ip("1.1.1.1", "::1")}},
		"they differ": {core.PodStatus{PodIP: "2.2.2.2", PodIPs: ip("1.1.1.1", "::1")}, core.PodStatus{PodIP: "2.2.2.2", PodIPs: ip("2.2.2.2")}},
	} {
		got := c.status
		syncPodIPs(&got)
		if asJSON(t, got) != asJSON(t, c.want) {
			t.Errorf("%s: %s, want %s", name, asJSON(t, got), asJSON(t, c.want))
		}
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"nginx":                corev1.PullAlways,
		"nginx:latest":         corev1.PullAlways,
		"localhost:5000/nginx": corev1.PullAlways,
		"nginx:1.27":           corev1.PullIfNotPresent,
		"UPPER:::":             corev1.PullIfNotPresent,
		"":                     corev1.PullIfNotPresent,
		"nginx@sha256:0123456789012345678901234567890123456789012345678901234567890123":        corev1.PullIfNotPresent,
		"nginx:latest@sha256:0123456789012345678901234567890123456789012345678901234567890123": corev1.PullAlways,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("pullPolicy(%q) = %s, want %s", image, got, want)
		}
	}
}

// TestPodLevelDefaults: pod-level resources that are not set are computed from
// the containers. The answers are kube-apiserver 1.37's.
func TestPodLevelDefaults(t *testing.T) {
	for name, test := range map[string]struct{ pod, limits, requests, class string }{
		"requests of containers": {`resources: {limits: {cpu: 2, memory: 1Gi}}
  containers: [{name: a, image: i, resources: {requests: {cpu: 300m}}}, {name: b, image: i, resources: {requests: {cpu: 200m}}}]`,
			`{"cpu":"2","memory":"1Gi"}`, `{"cpu":"500m","memory":"1Gi"}`, "Burstable"},
		"limits of all containers, and no less than requested": {`resources: {requests: {cpu: 1}}
  containers: [{name: a, image: i, resources: {limits: {cpu: 500m, memory: 1Gi}}}]`,
			`{"cpu":"1","memory":"1Gi"}`, `{"cpu":"1","memory":"1Gi"}`, "Guaranteed"},
		"no limit that one container has not": {`resources: {requests: {cpu: 1}}
  containers: [{name: a, image: i, resources: {limits: {cpu: 2, memory: 1Gi}}}, {name: b, image: i, resources: {limits: {memory: 1Gi}}}]`,
			`{"memory":"2Gi"}`, `{"cpu":"1","memory":"2Gi"}`, "Burstable"},
		"the hungriest moment": {`resources: {limits: {memory: 3Gi}}
  initContainers: [{name: i, image: i, resources: {limits: {cpu: 5}}}, {name: s, image: i, restartPolicy: Always, resources: {limits: {cpu: 1}}}]
  containers: [{name: a, image: i, resources: {limits: {cpu: 1}}}, {name: b, image: i, resources: {limits: {cpu: 1}}}]`,
			`{"cpu":"5","memory":"3Gi"}`, `{"cpu":"5","memory":"3Gi"}`, "Guaranteed"},
		"huge pages": {`resources: {limits: {cpu: 4}}
  containers: [{name: a, image: i, resources: {limits: {memory: 1Gi, hugepages-2Mi: 4Mi}, requests: {cpu: 1}}}]`,
			`{"cpu":"4","hugepages-2Mi":"4Mi","memory":"1Gi"}`, `{"cpu":"1","hugepages-2Mi":"4Mi","memory":"1Gi"}`, "Burstable"},
		"requested huge pages": {`resources: {requests: {cpu: 1, hugepages-2Mi: 4Mi}}
  containers: [{name: a, image: i, resources: {limits: {hugepages-2Mi: 4Mi}, requests: {cpu: 1}}}]`,
			`{"hugepages-2Mi":"4Mi"}`, `{"cpu":"1","hugepages-2Mi":"4Mi"}`, "Burstable"},
	} {
		pod := fromYAML(t, "spec:\n  "+test.pod)
		setAllDefaults(pod)
		prepareForCreate(context.Background(), pod, metav1.Time{})
		r := pod.Spec.Resources
		if limits, requests := asJSON(t, r.Limits), asJSON(t, r.Requests); limits != test.limits || requests != test.requests ||
			string(pod.Status.QOSClass) != test.class {
			t.Errorf("%s: limits %s, requests %s, %s", name, limits, requests, pod.Status.QOSClass)
		}
	}
	huge := fromYAML(t, `
spec:
  resources: {limits: {cpu: 4, hugepages-2Mi: 6Mi}}
  containers: [{name: a, image: i, resources: {limits: {hugepages-2Mi: 4Mi}, requests: {cpu: 1}}}, {name: b, image: i, resources: {limits: {hugepages-2Mi: 4Mi}, requests: {cpu: 1}}}]
`)
	setAllDefaults(huge)
	prepareForCreate(context.Background(), huge, metav1.Time{})
	want := `spec.limits[hugepages-2Mi]: Invalid value: "6Mi": must be greater than or equal to aggregate container limits of 8Mi`
	if got := validatePodResources(&huge.Spec, field.NewPath("spec")).ToAggregate(); got == nil || !strings.Contains(got.Error(), want) {
		t.Errorf("huge pages: %v", got)
	}
	bare := fromYAML(t, "spec: {containers: [{name: a, image: i, resources: {limits: {cpu: 1}}}]}")
	setAllDefaults(bare)
	prepareForCreate(context.Background(), bare, metav1.Time{})
	if bare.Spec.Resources != nil {
		t.Errorf("a pod that says nothing as a whole: %v", bare.Spec.Resources)
	}
	old := fromYAML(t, "spec: {resources: {limits: {cpu: 1}}, containers: [{name: a, image: i}]}")
	if prepareForUpdate(t.Context(), bare, old); asJSON(t, bare.Spec.Resources.Limits) != `{"cpu":"1"}` {
		t.Errorf("an update by who does not know of them: %v", bare.Spec.Resources)
	}
}

func TestQOS(t *testing.T) {
	for _, c := range []struct {
		resources string
		want      corev1.PodQOSClass
	}{
		{`{}`, corev1.PodQOSBestEffort},
		{`{requests: {cpu: 1}}`, corev1.PodQOSBurstable},
		{`{limits: {cpu: 1, memory: 1Gi}}`, corev1.PodQOSGuaranteed},
		{`{limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}`, corev1.PodQOSBurstable},
		{`{limits: {cpu: 1}}`, corev1.PodQOSBurstable},
		{`{requests: {ephemeral-storage: 1Gi}}`, corev1.PodQOSBestEffort},
		{`{requests: {cpu: 0}}`, corev1.PodQOSBestEffort},
	} {
		pod := fromYAML(t, "spec: {containers: [{name: a, image: i, resources: "+c.resources+"}]}")
		setAllDefaults(pod)
		if got := qosClass(&pod.Spec); got != c.want {
			t.Errorf("%s is %s, want %s", c.resources, got, c.want)
		}
	}
}

func TestPrepareForCreate(t *testing.T) {
	now := metav1.Now()
	pod := minimal(func(p *core.Pod) {
		p.Status = core.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		p.Labels = map[string]string{"app": "web"}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"app", "missing"},
			}},
		}}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"app", "missing"}}, {MatchLabelKeys: []string{"app"}},
		}
	})
	prepareForCreate(context.Background(), pod, now)
	if pod.Status.Phase != corev1.PodPending || pod.Status.PodIP != "" || pod.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("status of a new pod is the user's: %+v", pod.Status)
	}
	if c := pod.Status.Conditions; len(c) != 1 || c[0].Reason != corev1.PodReasonSchedulingGated || c[0].ObservedGeneration != 0 {
		t.Errorf("a gated pod's conditions are %+v", c)
	}
	for _, selector := range []*metav1.LabelSelector{
		pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector,
		pod.Spec.TopologySpreadConstraints[0].LabelSelector,
	} {
		if got, want := asJSON(t, selector), `{"matchExpressions":[{"key":"app","operator":"In","values":["web"]}]}`; got != want {
			t.Errorf("selector with matchLabelKeys is %s, want %s", got, want)
		}
	}
	if s := pod.Spec.TopologySpreadConstraints[1].LabelSelector; s != nil {
		t.Errorf("a selector of nothing has become %v", s)
	}
}

// TestKeepUnknown: a client that does not know a part of the status does not
// remove it by leaving it out.
func TestKeepUnknown(t *testing.T) {
	claims := []corev1.PodResourceClaimStatus{{Name: "c"}}
	allocated := []corev1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "c"}}
	generations := func(ready ...int64) (out []corev1.PodCondition) {
		for _, n := range ready {
			out = append(out, corev1.PodCondition{Type: corev1.PodReady, ObservedGeneration: n})
		}
		return out
	}
	old := corev1.PodStatus{
		ObservedGeneration: 4, Conditions: generations(2, 3), ResourceClaimStatuses: claims, NodeAllocatableResourceClaimStatuses: allocated,
		ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "e"},
	}
	for name, test := range map[string]struct{ status, want corev1.PodStatus }{
		"nothing known": {corev1.PodStatus{Conditions: generations(0, 0, 0)}, corev1.PodStatus{
			ObservedGeneration: 4, Conditions: generations(2, 3, 0), ResourceClaimStatuses: claims, NodeAllocatableResourceClaimStatuses: allocated,
			ExtendedResourceClaimStatus: old.ExtendedResourceClaimStatus,
		}},
		"all known": {
			corev1.PodStatus{
				ObservedGeneration: 5, Conditions: generations(5, 0), ResourceClaimStatuses: []corev1.PodResourceClaimStatus{},
				NodeAllocatableResourceClaimStatuses: []corev1.NodeAllocatableResourceClaimStatus{},
				ExtendedResourceClaimStatus:          &corev1.PodExtendedResourceClaimStatus{},
			},
			corev1.PodStatus{
				ObservedGeneration: 5, Conditions: generations(5, 3), ResourceClaimStatuses: []corev1.PodResourceClaimStatus{},
				NodeAllocatableResourceClaimStatuses: []corev1.NodeAllocatableResourceClaimStatus{},
				ExtendedResourceClaimStatus:          &corev1.PodExtendedResourceClaimStatus{},
			},
		},
	} {
		keepUnknown(&test.status, &old)
		if !reflect.DeepEqual(test.status, test.want) {
			t.Errorf("%s: %+v", name, test.status)
		}
	}
}

// TestAlphaStatus: what belongs to alpha features is dropped, unless the pod has some of it already.
func TestAlphaStatus(t *testing.T) {
	mounts := func() []core.ContainerStatus {
		return []core.ContainerStatus{{Name: "main", VolumeMounts: []corev1.VolumeMountStatus{{
			Name: "v", VolumeStatus: &corev1.VolumeStatus{Image: &corev1.ImageVolumeStatus{ImageRef: "i@sha256:1"}},
		}}}}
	}
	reported := func(p *core.Pod) {
		p.Status.VolumeHealth = []corev1.PodVolumeHealth{{Name: "v"}}
		p.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "c"}}
		p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = mounts(), mounts(), mounts()
	}
	pod := minimal(reported)
	prepareStatus(t.Context(), pod, minimal())
	if pod.Status.VolumeHealth != nil || pod.Status.NodeAllocatableResourceClaimStatuses != nil || tellsOfImages(&pod.Status) {
		t.Errorf("what no pod has is kept: %+v", pod.Status)
	}
	pod, had := minimal(reported), minimal(reported)
	prepareStatus(t.Context(), pod, had)
	if !reflect.DeepEqual(pod.Status, had.Status) {
		t.Errorf("what the pod had is dropped: %+v", pod.Status)
	}
}
