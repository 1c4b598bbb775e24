package generate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/proto/core"
)

// PodOptions are the options of a pod with one container. Empty ones are left to the
// server.
type PodOptions struct {
	Name, Image, PullPolicy, Port string
	Restart, ServiceAccount       string
	Requests, Limits              string   // NAME=AMOUNT, with commas between them
	Labels, Annotations, Env      []string // KEY=VALUE each
	Args                          []string
	Command                       bool // Args begin with the program
	Stdin, LeaveStdinOpen         bool // of one that is not left open, the first attach is the last
	TTY, Privileged               bool
}

// Pod makes a pod.
func Pod(o PodOptions) (*core.Pod, error) {
	if o.Name == "" {
		return nil, errors.New("invalid parameters: parameter name is required")
	}
	container, err := podContainer(o)
	if err != nil {
		return nil, err
	}
	labels, err := podLabels(o)
	if err != nil {
		return nil, err
	}
	annotations, err := Pairs("annotations", o.Annotations)
	if err != nil {
		return nil, err
	}
	restart, err := restartPolicy(o.Restart)
	if err != nil {
		return nil, err
	}
	return &core.Pod{
		TypeMeta: typeMeta("Pod"),
		ObjectMeta: metav1.ObjectMeta{
			Name:        o.Name,
			Labels:      labels,
			Annotations: annotations,
		},
		Spec: core.PodSpec{
			Containers:         []core.Container{container},
			DNSPolicy:          corev1.DNSClusterFirst,
			RestartPolicy:      restart,
			ServiceAccountName: o.ServiceAccount,
		},
	}, nil
}

func podContainer(o PodOptions) (core.Container, error) {
	container := core.Container{
		Name:  o.Name,
		Image: o.Image,
		Stdin: o.Stdin,
		TTY:   o.TTY,
	}
	container.StdinOnce = container.Stdin && !o.LeaveStdinOpen
	if err := CheckImage(container.Image); err != nil {
		return container, err
	}
	policy, err := PullPolicy(o.PullPolicy)
	if err != nil {
		return container, err
	}
	container.ImagePullPolicy = policy
	if container.Env, err = environment(o.Env); err != nil {
		return container, err
	}
	if container.Ports, err = ports(o.Port); err != nil {
		return container, err
	}
	if container.Resources.Requests, err = amounts("requests", o.Requests); err != nil {
		return container, err
	}
	if container.Resources.Limits, err = amounts("limits", o.Limits); err != nil {
		return container, err
	}
	if o.Command {
		container.Command = o.Args
	} else {
		container.Args = o.Args
	}
	if o.Privileged {
		container.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	}
	return container, nil
}

// podLabels are the given ones, or run=NAME, which identifies pods made by run.
func podLabels(o PodOptions) (map[string]string, error) {
	if len(o.Labels) == 0 {
		return map[string]string{"run": o.Name}, nil
	}
	labels, err := Pairs("labels", o.Labels)
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
