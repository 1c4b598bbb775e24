package autoscaling

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

const wanted = `
spec:
  scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}
  maxReplicas: 3
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}
  - {type: ContainerResource, containerResource: {name: cpu, container: c, target: {type: Utilization, averageUtilization: 60}}}
  - {type: Pods, pods: {metric: {name: p, selector: {matchLabels: {a: b}}}, target: {type: AverageValue, averageValue: "7"}}}
  - {type: Object, object: {describedObject: {kind: Ingress, name: i, apiVersion: networking.k8s.io/v1}, metric: {name: o}, target: {type: Value, value: "8"}}}
  - {type: Object, object: {describedObject: {kind: Ingress, name: i, apiVersion: networking.k8s.io/v1}, metric: {name: o}, target: {type: AverageValue, averageValue: "8"}}}
  - {type: External, external: {metric: {name: e}, target: {type: AverageValue, averageValue: "9"}}}
  behavior:
    scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 5}]}
    scaleDown: {stabilizationWindowSeconds: 5, selectPolicy: Max, tolerance: 100m}
status:
  currentReplicas: 1
  currentMetrics:
  - {type: Resource, resource: {name: cpu, current: {averageUtilization: 80, averageValue: 400m}}}
  - {type: Pods, pods: {metric: {name: p}, current: {averageValue: "6"}}}
  conditions: [{type: AbleToScale, status: "True", reason: R, message: m}]
`

// TestVersion1 compares with what kube-apiserver v1.37.0 shows, and converts it
// back.
func TestVersion1(t *testing.T) {
	stored := new(autoscalingv2.HorizontalPodAutoscaler)
	if err := yaml.UnmarshalStrict([]byte(wanted), stored); err != nil {
		t.Fatal(err)
	}
	shown, err := convertToV1(stored)
	if err != nil {
		t.Fatal(err)
	}
	v1 := shown.(*autoscalingv1.HorizontalPodAutoscaler)
	if c := v1.Spec.TargetCPUUtilizationPercentage; c == nil || *c != 50 {
		t.Errorf("the share aimed at is %v", c)
	}
	if c := v1.Status.CurrentCPUUtilizationPercentage; c == nil || *c != 80 {
		t.Errorf("the share now is %v", c)
	}
	for key, want := range map[string]string{
		metricsAnnotation: `[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},{"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":60,"container":"c"}},` +
			`{"type":"Pods","pods":{"metricName":"p","targetAverageValue":"7","selector":{"matchLabels":{"a":"b"}}}},` +
			`{"type":"Object","object":{"target":{"kind":"Ingress","name":"i","apiVersion":"networking.k8s.io/v1"},"metricName":"o","targetValue":"8"}},` +
			`{"type":"Object","object":{"target":{"kind":"Ingress","name":"i","apiVersion":"networking.k8s.io/v1"},"metricName":"o","targetValue":"0","averageValue":"8"}},` +
			`{"type":"External","external":{"metricName":"e","targetAverageValue":"9"}}]`,
		currentAnnotation: `[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":80,"currentAverageValue":"400m"}},{"type":"Pods","pods":{"metricName":"p","currentAverageValue":"6"}}]`,
		behaviorAnnotation: `{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":null,"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":5}],"Tolerance":null},` +
			`"ScaleDown":{"StabilizationWindowSeconds":5,"SelectPolicy":"Max","Policies":null,"Tolerance":"100m"}}`,
	} {
		if got := v1.Annotations[key]; got != want {
			t.Errorf("%s is\n     %s\nwant %s", key, got, want)
		}
	}
	back := new(autoscalingv2.HorizontalPodAutoscaler)
	if err := FromVersion1(v1, back); err != nil {
		t.Fatal(err)
	}
	if len(back.Annotations) > 0 {
		t.Errorf("annotations of version 1 are left: %v", back.Annotations)
	}
	if !equality.Semantic.DeepEqual(back.Spec, stored.Spec) || !equality.Semantic.DeepEqual(back.Status, stored.Status) {
		now, _ := yaml.Marshal(back)
		t.Errorf("read back it is\n%s", now)
	}
}

// TestStatusOfVersion1: CPU utilization is the only metric for which version 1
// has a field.
func TestStatusOfVersion1(t *testing.T) {
	share := int32(70)
	into := new(autoscalingv2.HorizontalPodAutoscaler)
	status := autoscalingv1.HorizontalPodAutoscalerStatus{CurrentCPUUtilizationPercentage: &share}
	if err := FromVersion1(&autoscalingv1.HorizontalPodAutoscaler{Status: status}, into); err != nil {
		t.Fatal(err)
	}
	if m := into.Status.CurrentMetrics; len(m) != 1 || m[0].Resource == nil || m[0].Resource.Name != "cpu" || *m[0].Resource.Current.AverageUtilization != share {
		t.Errorf("metrics are %+v", m)
	}
}
