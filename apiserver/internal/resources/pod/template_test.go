package pod

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestTemplate(t *testing.T) {
	strategy := templates()
	template := strategy.New()
	const text = "{metadata: {name: t}, template: {metadata: {labels: {app: web}}, spec: {hostNetwork: true, containers: [{name: a, image: 'x:1', ports: " +
		"[{containerPort: 80}], resources: {limits: {cpu: 1}}}, {name: b, image: image}]}}}"
	if err := yaml.UnmarshalStrict([]byte(text), template); err != nil {
		t.Fatal(err)
	}
	strategy.Default(template)
	checkErrors(t, "whole", strategy.Create.Validate(t.Context(), template), "")
	spec := template.Template.Spec
	if spec.RestartPolicy != corev1.RestartPolicyAlways || spec.Containers[1].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("defaulted to %+v", spec)
	}
	// Defaults that depend on other fields are left to the pods made from it.
	if spec.Containers[0].Ports[0].HostPort != 0 || spec.Containers[0].Resources.Requests != nil || spec.EnableServiceLinks != nil {
		t.Errorf("a template was defaulted as a pod: %+v", spec)
	}
	if got := fmt.Sprint(strategy.Read.Row(template)); got != "[t a,b x:1,image app=web]" {
		t.Errorf("row is %s", got)
	}
	old := template.DeepCopy()
	template.Template.Spec.Containers[0].Image = ""
	checkErrors(t, "no image", strategy.Update.Validate(t.Context(), template, old), "template.spec.containers[0].image: Required value")
}
