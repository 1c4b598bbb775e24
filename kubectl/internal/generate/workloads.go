package generate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// fields is a part of an object. Objects of kinds without Go types in kctl are
// made from these.
type fields = map[string]any

// object makes an object of a kind.
func object(apiVersion, kind, name string, rest fields) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: fields{"apiVersion": apiVersion, "kind": kind, "metadata": fields{"name": name}}}
	maps.Copy(out.Object, rest)
	return out
}

func anys[T any](values []T) []any {
	out := make([]any, len(values))
	for i, value := range values {
		out[i] = value
	}
	return out
}

// containers makes a container for each image, named after it. The first has the port.
func containers(images, command []string, port int32) ([]any, error) {
	var all []any
	for _, image := range images {
		if err := CheckImage(image); err != nil {
			return nil, err
		}
		container := fields{"name": imageName(image), "image": image, "resources": fields{}}
		if len(command) > 0 {
			container["command"] = anys(command)
		}
		if port > 0 && len(all) == 0 {
			container["ports"] = []any{fields{"containerPort": int64(port)}}
		}
		all = append(all, container)
	}
	return all, nil
}

// imageName is the last part of an image's name, turned into a valid container name.
func imageName(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	return strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name))
}

// Deployment makes a deployment of pods with a container for each image.
func Deployment(name string, images, command []string, replicas, port int32) (*unstructured.Unstructured, error) {
	if len(images) == 0 {
		return nil, errors.New("at least one image must be specified")
	}
	if len(images) > 1 && len(command) > 0 {
		return nil, errors.New("cannot specify multiple --image options and command")
	}
	all, err := containers(images, command, port)
	if err != nil {
		return nil, err
	}
	made := object("apps/v1", "Deployment", name, fields{
		"spec": fields{
			"replicas": int64(replicas),
			"selector": fields{"matchLabels": fields{"app": name}},
			"strategy": fields{},
			"template": fields{
				"metadata": fields{"labels": fields{"app": name}},
				"spec":     fields{"containers": all},
			},
		},
		"status": fields{},
	})
	made.SetLabels(map[string]string{"app": name})
	return made, nil
}

// Job makes a job whose container has the job's name.
func Job(name, image string, command []string) (*unstructured.Unstructured, error) {
	spec, err := jobSpec(name, image, command, "Never")
	if err != nil {
		return nil, err
	}
	return object("batch/v1", "Job", name, fields{"spec": spec, "status": fields{}}), nil
}

func jobSpec(name, image string, command []string, restart string) (fields, error) {
	all, err := containers([]string{image}, command, 0)
	if err != nil {
		return nil, err
	}
	all[0].(fields)["name"] = name
	return fields{"template": fields{"metadata": fields{}, "spec": fields{"containers": all, "restartPolicy": restart}}}, nil
}

// JobFrom makes a job of a cron job's template, as if its time had come.
func JobFrom(name string, cron *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	template, ok, err := unstructured.NestedMap(cron.Object, "spec", "jobTemplate")
	if err != nil || !ok {
		return nil, fmt.Errorf("cron job %s has no job template", cron.GetName())
	}
	made := object("batch/v1", "Job", name, fields{"spec": template["spec"], "status": fields{}})
	inTemplate := unstructured.Unstructured{Object: template}
	annotations := inTemplate.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["cronjob.kubernetes.io/instantiate"] = "manual"
	made.SetAnnotations(annotations)
	made.SetLabels(inTemplate.GetLabels())
	owner := fields{"apiVersion": "batch/v1", "kind": "CronJob", "name": cron.GetName(), "uid": string(cron.GetUID()), "controller": true}
	return made, unstructured.SetNestedSlice(made.Object, []any{owner}, "metadata", "ownerReferences")
}

// CronJob makes a cron job.
func CronJob(name, image, schedule, restart string, command []string) (*unstructured.Unstructured, error) {
	spec, err := jobSpec(name, image, command, cmp.Or(restart, "OnFailure"))
	if err != nil {
		return nil, err
	}
	return object("batch/v1", "CronJob", name, fields{
		"spec":   fields{"jobTemplate": fields{"metadata": fields{"name": name}, "spec": spec}, "schedule": schedule},
		"status": fields{},
	}), nil
}

// PriorityClass makes a priority class.
func PriorityClass(name string, value int32, isDefault bool, description, preemption string) *unstructured.Unstructured {
	out := object("scheduling.k8s.io/v1", "PriorityClass", name, fields{"value": int64(value), "preemptionPolicy": preemption})
	if isDefault {
		out.Object["globalDefault"] = true
	}
	if description != "" {
		out.Object["description"] = description
	}
	return out
}

// countOrShare is a number of pods, or a percentage.
var countOrShare = regexp.MustCompile(`^[0-9]+%?$`)

// DisruptionBudget makes a pod disruption budget.
func DisruptionBudget(name, selector, minAvailable, maxUnavailable string) (*unstructured.Unstructured, error) {
	switch {
	case selector == "":
		return nil, errors.New("a selector must be specified")
	case minAvailable == "" && maxUnavailable == "":
		return nil, errors.New("one of min-available or max-unavailable must be specified")
	case minAvailable != "" && !countOrShare.MatchString(minAvailable):
		return nil, errors.New("invalid format specified for min-available")
	case maxUnavailable != "" && !countOrShare.MatchString(maxUnavailable):
		return nil, errors.New("invalid format specified for max-unavailable")
	case minAvailable != "" && maxUnavailable != "":
		return nil, errors.New("min-available and max-unavailable cannot be both specified")
	}
	parsed, err := metav1.ParseToLabelSelector(selector)
	if err != nil {
		return nil, err
	}
	matched, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parsed)
	if err != nil {
		return nil, fmt.Errorf("encoding the selector: %w", err)
	}
	spec := fields{"selector": matched}
	if minAvailable != "" {
		spec["minAvailable"] = intOrString(minAvailable)
	}
	if maxUnavailable != "" {
		spec["maxUnavailable"] = intOrString(maxUnavailable)
	}
	status := fields{"currentHealthy": int64(0), "desiredHealthy": int64(0), "disruptionsAllowed": int64(0), "expectedPods": int64(0)}
	return object("policy/v1", "PodDisruptionBudget", name, fields{"spec": spec, "status": status}), nil
}

func intOrString(text string) any {
	if number, err := strconv.ParseInt(text, 10, 32); err == nil {
		return number
	}
	return text
}

// Quota makes a resource quota.
func Quota(name, hard, scopes string) (*unstructured.Unstructured, error) {
	spec := fields{}
	if hard != "" {
		limits, err := amounts("hard", hard)
		if err != nil {
			return nil, err
		}
		plain := fields{}
		for resource, amount := range limits {
			plain[string(resource)] = amount.String()
		}
		spec["hard"] = plain
	}
	if scopes != "" {
		spec["scopes"] = anys(strings.Split(scopes, ","))
	}
	return object("v1", "ResourceQuota", name, fields{"spec": spec, "status": fields{}}), nil
}
