package autoscaling

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"
)

// TestValidate: kube-apiserver v1.37.0's messages for such specs.
func TestValidate(t *testing.T) {
	const target = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, minReplicas: 1, "
	for text, want := range map[string]string{
		target + "maxReplicas: 3":  "",
		target + "maxReplicas: -1": "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
		"scaleTargetRef: {apiVersion: ABC, kind: Deployment, name: d}, minReplicas: 1, maxReplicas: 3":           `spec.scaleTargetRef.apiVersion: Invalid value: "ABC": apiVersion must specify API group`,
		"scaleTargetRef: {apiVersion: v1, kind: ReplicationController, name: d}, minReplicas: 1, maxReplicas: 3": "",
		target +
			"maxReplicas: 3, metrics: [{type: ContainerResource, containerResource: {name: cpu, container: A, target: {type: Utilization, averageUtilization: 1}}}]": `spec.metrics[0].containerResource.container: Invalid value: "A": a lowercase RFC 1123 label`,
		target +
			"maxReplicas: 3, metrics: [{type: X, resource: {name: cpu, target: {type: Z, averageUtilization: 1}}}]": `[spec.metrics[0].type: Unsupported value: "X": supported values: "ContainerResource", "External", "Object", "Pods", "Resource", spec.metrics[0].resource.target.type: Invalid value: "Z": must be either Utilization, Value, or AverageValue]`,
		target +
			"maxReplicas: 3, metrics: [{type: Pods, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1}}}]": `spec.metrics[0].pods: Required value: must populate information for the given metric source`,
		target +
			"maxReplicas: 3, metrics: [{type: Pods, pods: {metric: {name: p}, target: {type: AverageValue, averageValue: 1}}, external: {metric: {name: e}, " +
			"target: {type: Value, value: 0}}}]": `[spec.metrics[0].external: Forbidden: must populate the given metric source only, spec.metrics[0].external.target.value: Invalid value: "0": must be positive]`,
	} {
		var spec autoscalingv2.HorizontalPodAutoscalerSpec
		if err := yaml.UnmarshalStrict([]byte("{"+text+"}"), &spec); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := validate(&spec).ToAggregate(); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}
