package generate

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/proto/core"
)

// runPod is run-pod/v1: a pod with one container.
type runPod struct{}

func (runPod) Parameters() []Parameter {
	return []Parameter{
		{Name: "name", Required: true},
		{Name: "image", Required: true},
		{Name: "image-pull-policy"},
		{Name: "port"},
		{Name: "labels", Kind: List},
		{Name: "annotations", Kind: List},
		{Name: "env", Kind: List},
		{Name: "args", Kind: List},
		{Name: "command", Kind: Flag},
		{Name: "stdin", Kind: Flag},
		{Name: "leave-stdin-open", Kind: Flag},
		{Name: "tty", Kind: Flag},
		{Name: "restart"},
		{Name: "serviceaccount"},
		{Name: "privileged", Kind: Flag},
		{Name: "requests"},
		{Name: "limits"},
	}
}

func (runPod) Generate(values Values) (runtime.Object, error) {
	container, err := podContainer(values)
	if err != nil {
		return nil, err
	}
	labels, err := podLabels(values)
	if err != nil {
		return nil, err
	}
	annotations, err := Pairs("annotations", values.list("annotations"))
	if err != nil {
		return nil, err
	}
	restart, err := RestartPolicy(values.text("restart"))
	if err != nil {
		return nil, err
	}
	return &core.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        values.text("name"),
			Labels:      labels,
			Annotations: annotations,
		},
		Spec: core.PodSpec{
			Containers:         []core.Container{container},
			DNSPolicy:          corev1.DNSClusterFirst,
			RestartPolicy:      restart,
			ServiceAccountName: values.text("serviceaccount"),
		},
	}, nil
}

func podContainer(values Values) (core.Container, error) {
	container := core.Container{
		Name:  values.text("name"),
		Image: values.text("image"),
		Stdin: values.flag("stdin"),
		TTY:   values.flag("tty"),
	}
	container.StdinOnce = container.Stdin && !values.flag("leave-stdin-open")
	if err := CheckImage(container.Image); err != nil {
		return container, err
	}
	policy, err := PullPolicy(values.text("image-pull-policy"))
	if err != nil {
		return container, err
	}
	container.ImagePullPolicy = policy
	if container.Env, err = environment(values.list("env")); err != nil {
		return container, err
	}
	if container.Ports, err = ports(values.text("port")); err != nil {
		return container, err
	}
	if container.Resources.Requests, err = amounts("requests", values.text("requests")); err != nil {
		return container, err
	}
	if container.Resources.Limits, err = amounts("limits", values.text("limits")); err != nil {
		return container, err
	}
	if args := values.list("args"); len(args) > 0 {
		if values.flag("command") {
			container.Command = args
		} else {
			container.Args = args
		}
	}
	if values.flag("privileged") {
		privileged := true
		container.SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
	}
	return container, nil
}

// podLabels are the given ones, or run=NAME, which identifies pods made by run.
func podLabels(values Values) (map[string]string, error) {
	given := values.list("labels")
	if len(given) == 0 {
		return map[string]string{"run": values.text("name")}, nil
	}
	labels, err := Pairs("labels", given)
	if err != nil {
		return nil, err
	}
	for key, value := range labels {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("invalid label key %q: %s", key, strings.Join(problems, "; "))
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return nil, fmt.Errorf("invalid label value %q: %s", value, strings.Join(problems, "; "))
		}
	}
	return labels, nil
}

// Pairs reads KEY=VALUE settings; what says in errors what they are for.
func Pairs(what string, settings []string) (map[string]string, error) {
	if len(settings) == 0 {
		return nil, nil
	}
	pairs := make(map[string]string)
	for _, setting := range settings {
		key, value, ok := strings.Cut(setting, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("unexpected %s setting: %q is not KEY=VALUE", what, setting)
		}
		pairs[key] = value
	}
	return pairs, nil
}

func environment(settings []string) ([]corev1.EnvVar, error) {
	var env []corev1.EnvVar
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("invalid env: %q is not NAME=VALUE", setting)
		}
		if problems := validation.IsEnvVarName(name); len(problems) > 0 {
			return nil, fmt.Errorf("invalid env: name %q: %s", name, strings.Join(problems, "; "))
		}
		env = append(env, corev1.EnvVar{Name: name, Value: value})
	}
	return env, nil
}

func ports(port string) ([]corev1.ContainerPort, error) {
	if port == "" {
		return nil, nil
	}
	number, err := strconv.Atoi(port)
	if err != nil || len(validation.IsValidPortNum(number)) > 0 {
		return nil, fmt.Errorf("invalid port %q: must be a number from 1 to 65535", port)
	}
	return []corev1.ContainerPort{{ContainerPort: int32(number)}}, nil
}

func amounts(what, settings string) (corev1.ResourceList, error) {
	if settings == "" {
		return nil, nil
	}
	pairs, err := Pairs(what, strings.Split(settings, ","))
	if err != nil {
		return nil, err
	}
	list := corev1.ResourceList{}
	for name, amount := range pairs {
		quantity, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %q: %w", what, name, amount, err)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

// Resources reads what --requests and --limits say.
func Resources(requests, limits string) (corev1.ResourceRequirements, error) {
	var out corev1.ResourceRequirements
	var err error
	if out.Requests, err = amounts("requests", requests); err != nil {
		return out, err
	}
	out.Limits, err = amounts("limits", limits)
	return out, err
}
