package quota

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/informer"
	"kctl/proto/core"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	return into
}

func shown(list corev1.ResourceList) string {
	names := slices.Sorted(maps.Keys(list))
	return formatAmounts(list, names)
}

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

const asking = `spec: {containers: [{name: c, resources: {requests: {cpu: 100m, memory: 1Gi, hugepages-2Mi: 4Mi, example.com/gpu: 2}, limits: {cpu: 1, ephemeral-storage: 1Gi}}}], ` +
	`initContainers: [{name: i, resources: {requests: {cpu: 300m}}}], overhead: {cpu: 10m}}`

func TestUses(t *testing.T) {
	const whole = "count/pods=1,cpu=310m,hugepages-2Mi=4Mi,limits.cpu=1,limits.ephemeral-storage=1Gi,memory=1Gi,pods=1," +
		"requests.cpu=310m,requests.example.com/gpu=2,requests.hugepages-2Mi=4Mi,requests.memory=1Gi"
	for name, c := range map[string]struct {
		of   schema.GroupResource
		obj  core.Object
		want string
	}{
		"pod": {pods, read[core.Pod](t, asking), strings.Replace(whole, "limits.cpu=1,", "limits.cpu=1010m,", 1)},
		"pod that shrinks": {pods, read[core.Pod](t, "spec: {containers: [{name: c, resources: {requests: {memory: 1Mi}, limits: {memory: 1Mi}}}]}\n"+
			"status: {containerStatuses: [{name: c, resources: {requests: {memory: 10Gi}, limits: {memory: 10Gi}}}]}"),
			"count/pods=1,limits.memory=10Gi,memory=10Gi,pods=1,requests.memory=10Gi"},
		"pod that shrinks as a whole": {pods, read[core.Pod](t, "spec: {resources: {requests: {cpu: 1}, limits: {cpu: 1}}, containers: [{name: c}]}\n"+
			"status: {allocatedResources: {cpu: 2}, resources: {requests: {cpu: 2}, limits: {cpu: 2}}}"),
			"count/pods=1,cpu=2,limits.cpu=2,pods=1,requests.cpu=2"},
		"pod that runs, with an overhead": {pods, read[core.Pod](t, "spec: {overhead: {cpu: 1}, "+
			"containers: [{name: c, resources: {requests: {cpu: 1}, limits: {cpu: 1}}}]}\n"+
			"status: {allocatedResources: {cpu: 2}, resources: {requests: {cpu: 2}, limits: {cpu: 2}}, "+
			"containerStatuses: [{name: c, allocatedResources: {cpu: 1}, resources: {requests: {cpu: 1}, limits: {cpu: 1}}}]}"),
			"count/pods=1,cpu=2,limits.cpu=2,pods=1,requests.cpu=2"},
		"pod that runs, with an overhead and resources of its own": {pods, read[core.Pod](t, "spec: {overhead: {cpu: 1}, "+
			"resources: {requests: {cpu: 1}, limits: {cpu: 1}}, containers: [{name: c}]}\n"+
			"status: {allocatedResources: {cpu: 2}, resources: {requests: {cpu: 2}, limits: {cpu: 2}}}"),
			"count/pods=1,cpu=2,limits.cpu=2,pods=1,requests.cpu=2"},
		"pod that can't be made as large as it is to be": {pods, read[core.Pod](t, "spec: "+
			"{containers: [{name: c, resources: {limits: {cpu: 9, ephemeral-storage: 1Gi}}}]}\n"+
			"status: {conditions: [{type: PodResizePending, status: \"True\", reason: Infeasible}], allocatedResources: {cpu: 1}, resources: {limits: {cpu: 1}}, "+
			"containerStatuses: [{name: c, resources: {limits: {cpu: 1, ephemeral-storage: 1Gi}}}]}"),
			"count/pods=1,limits.cpu=1,limits.ephemeral-storage=1Gi,pods=1"},
		"ended pod": {pods, read[core.Pod](t, asking+"\nstatus: {phase: Failed}"), "count/pods=1"},
		"pod that ends": {pods, read[core.Pod](t, "metadata: {deletionTimestamp: 2030-01-01T11:59:50Z, deletionGracePeriodSeconds: 30}\nspec: {}"),
			"count/pods=1,pods=1"},
		"lost pod": {pods, read[core.Pod](t, "metadata: {deletionTimestamp: 2030-01-01T11:59:00Z, deletionGracePeriodSeconds: 30}\nspec: {}"), "count/pods=1"},
		"service":  {services, read[corev1.Service](t, "spec: {type: ClusterIP, ports: [{port: 1}]}"), "count/services=1,services=1"},
		"node port": {services, read[corev1.Service](t, "spec: {type: NodePort, ports: [{port: 1}, {port: 2}]}"),
			"count/services=1,services=1,services.nodeports=2"},
		"load balancer": {services, read[corev1.Service](t, "spec: {type: LoadBalancer, ports: [{port: 1}]}"),
			"count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
		"without ports": {services, read[corev1.Service](t,
			"spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 1}, {port: 2, nodePort: 30000}]}"),
			"count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
		"claim": {claims, read[corev1.PersistentVolumeClaim](t, "spec: {storageClassName: gold, resources: {requests: {storage: 2Gi}}}"),
			"count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=2Gi,persistentvolumeclaims=1,requests.storage=2Gi"},
		"claim that shrinks": {claims, read[corev1.PersistentVolumeClaim](t,
			"spec: {resources: {requests: {storage: 2Gi}}}\nstatus: {allocatedResources: {storage: 3Gi}}"),
			"count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=3Gi"},
		"devices": {deviceClaims, read[resourcev1.ResourceClaim](t,
			`spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gold, allocationMode: ExactCount, count: 2}}, `+
				`{name: b, exactly: {deviceClassName: tin, allocationMode: All}}, {name: c, firstAvailable: [{name: x, deviceClassName: gold, count: 3}, {name: y, deviceClassName: gold, count: 1}, {name: z, deviceClassName: lead, count: 1}]}]}}`),
			"count/resourceclaims.resource.k8s.io=1,gold.deviceclass.resource.k8s.io/devices=5,lead.deviceclass.resource.k8s.io/devices=1,tin.deviceclass.resource.k8s.io/devices=32"},
		"secret": {schema.GroupResource{Resource: "secrets"}, &core.Secret{}, "count/secrets=1,secrets=1"},
		"custom": {schema.GroupResource{Group: "example.com", Resource: "widgets"}, &core.ConfigMap{}, "count/widgets.example.com=1"},
		"podlike": {schema.GroupResource{Group: "apps", Resource: "secrets"}, &core.ConfigMap{},
			"count/secrets.apps=1"},
	} {
		if got := shown(usageOf(c.of, c.obj, now)); got != c.want {
			t.Errorf("%s:\n  got: %s\n want: %s", name, got, c.want)
		}
	}
}

func TestCounted(t *testing.T) {
	for name, want := range map[corev1.ResourceName]string{
		"pods": "pods", "count/pods": "pods", "cpu": "pods", "requests.example.com/gpu": "pods", "hugepages-2Mi": "pods", "limits.memory": "pods",
		"count/jobs.batch": "jobs.batch", "services.nodeports": "services", "services": "services", "requests.storage": "persistentvolumeclaims",
		"gold.storageclass.storage.k8s.io/requests.storage": "persistentvolumeclaims", "configmaps": "configmaps",
		"gpu.deviceclass.resource.k8s.io/devices": "resourceclaims.resource.k8s.io", "example.com/gpu": "",
	} {
		of, ok := resourceCountedBy(name)
		if !ok {
			of = schema.GroupResource{}
		}
		if of.String() != want {
			t.Errorf("%s: %q, want %q", name, of, want)
		}
	}
}

func TestScopes(t *testing.T) {
	pods := map[string]core.Object{
		"plain":   read[core.Pod](t, "spec: {containers: [{name: c}]}"),
		"asking":  read[core.Pod](t, asking),
		"limited": read[core.Pod](t, "spec: {activeDeadlineSeconds: 5, priorityClassName: high, containers: [{name: c}]}"),
		"affinity": read[core.Pod](t,
			"spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{podAffinityTerm: {namespaces: [x]}}]}}, containers: [{name: c}]}"),
		"claim":  read[corev1.PersistentVolumeClaim](t, "spec: {volumeAttributesClassName: gold}"),
		"bare":   read[corev1.PersistentVolumeClaim](t, "spec: {}"),
		"secret": &core.Secret{},
	}
	for spec, want := range map[string]string{
		"{}":                                     "affinity asking bare claim limited plain secret",
		"{scopes: [BestEffort]}":                 "affinity limited plain",
		"{scopes: [NotBestEffort]}":              "asking",
		"{scopes: [Terminating]}":                "limited",
		"{scopes: [NotTerminating]}":             "affinity asking plain",
		"{scopes: [PriorityClass]}":              "limited",
		"{scopes: [CrossNamespacePodAffinity]}":  "affinity",
		"{scopes: [VolumeAttributesClass]}":      "claim",
		"{scopes: [Terminating, NotBestEffort]}": "",
		"{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}}":            "limited",
		"{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [low]}]}}":             "",
		"{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}}":         "affinity asking plain",
		"{scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}}":                  "affinity asking plain",
		"{scopeSelector: {matchExpressions: [{scopeName: VolumeAttributesClass, operator: NotIn, values: [gold]}]}}": "bare",
	} {
		q := &corev1.ResourceQuota{Spec: *read[corev1.ResourceQuotaSpec](t, spec)}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(pods)) {
			if scopesMatch(q, pods[name]) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", spec, strings.Join(got, " "), want)
		}
	}
}

// TestUnsaid: the words are upstream's.
func TestUnsaid(t *testing.T) {
	q := &corev1.ResourceQuota{Spec: *read[corev1.ResourceQuotaSpec](t, `hard: {requests.cpu: 1, memory: 1Gi, limits.cpu: 2, pods: 3}`)}
	pod := read[core.Pod](t, `spec: {initContainers: [{name: i}], containers: [{name: c}, {name: d, resources: {requests: {cpu: 100m}}}]}`)
	if got, want := unspecified(q, pod), "limits.cpu for: c,d,i; memory for: c,d,i; requests.cpu for: c,i"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: read[core.Pod](t, asking).Spec.Containers[0].Resources.Requests}
	if got, want := unspecified(q, pod), "limits.cpu for: c,d,i"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLedger: a reservation lasts until its request has ended.
func TestLedger(t *testing.T) {
	b := NewUsage(Options{})
	key := informer.Key{Namespace: "shop", Name: "q"}
	first := b.reservations.add(key, corev1.ResourceList{"pods": one})
	second := b.reservations.add(key, corev1.ResourceList{"pods": one, "secrets": one})
	closed := 0
	forget := b.OnReservationEnd(func(k informer.Key) {
		if k == key {
			closed++
		}
	})
	if got := shown(b.reservations.sum(key)); got != "pods=2,secrets=1" {
		t.Error(got)
	}
	second()
	if got := shown(b.reservations.sum(key)); got != "pods=1" || closed != 1 {
		t.Errorf("%s, told %d times", got, closed)
	}
	forget()
	first()
	if got := shown(b.reservations.sum(key)); got != "" || closed != 1 || len(b.reservations.byQuota) != 0 {
		t.Errorf("%s, told %d times", got, closed)
	}
}
