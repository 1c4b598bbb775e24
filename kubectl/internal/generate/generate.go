package generate

import "fmt"

// RunPodV1 is the name of the one generator that `run` still has.
const RunPodV1 = "run-pod/v1"

// removed names the generators that `run` once had, with their replacements.
var removed = map[string]string{
	"run/v1":                  "apply a manifest of kind ReplicationController",
	"deployment/v1beta1":      "apply a manifest of kind Deployment (apps/v1)",
	"deployment/apps.v1beta1": "apply a manifest of kind Deployment (apps/v1)",
	"deployment/apps.v1":      "apply a manifest of kind Deployment (apps/v1)",
	"job/v1":                  "apply a manifest of kind Job (batch/v1)",
	"cronjob/v1beta1":         "apply a manifest of kind CronJob (batch/v1)",
	"cronjob/v2alpha1":        "apply a manifest of kind CronJob (batch/v1)",
	"service/v1":              "apply a manifest of kind Service",
	"service/v2":              "apply a manifest of kind Service",
}

// CheckGenerator says why `run` does not have the generator of that name.
func CheckGenerator(name string) error {
	if name == RunPodV1 {
		return nil
	}
	if instead, ok := removed[name]; ok {
		return fmt.Errorf("generator %q was removed: use %s for a pod, or %s", name, RunPodV1, instead)
	}
	return fmt.Errorf("generator %q not found: there is %s", name, RunPodV1)
}
