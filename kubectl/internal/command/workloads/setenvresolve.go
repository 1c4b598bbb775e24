package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/kubectl/internal/command/frame"
	"kctl/kubectl/internal/describe"
	"kctl/kubectl/internal/printer"
	"kctl/proto/core"
)

// envResolver looks up the values of variables that refer to other objects, for
// `kctl set env --list --resolve`.
type envResolver struct {
	*frame.CLI
	object     *unstructured.Unstructured
	secrets    map[string]*core.Secret
	configMaps map[string]*core.ConfigMap
}

func resolver(c *frame.CLI, object *unstructured.Unstructured) *envResolver {
	return &envResolver{c, object, map[string]*core.Secret{}, map[string]*core.ConfigMap{}}
}

// show prints a container's variables with their values. For one without a value it
// prints the reference, and the reason on standard error; as in kubectl, that is not
// an error.
func (r *envResolver) show(ctx context.Context, container *corev1.Container) {
	failed := map[string][]string{}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil {
			value, err := r.value(ctx, variable.ValueFrom, container)
			if err != nil {
				failed[err.Error()] = append(failed[err.Error()], variable.Name)
			} else {
				variable = corev1.EnvVar{Name: variable.Name, Value: value}
			}
		}
		fmt.Fprintln(r.Out, printer.Visible(shownVariable(variable)))
	}
	var lines []string
	for why, names := range failed {
		slices.Sort(names)
		lines = append(lines, fmt.Sprintf("error retrieving reference for %s: %s", strings.Join(names, ", "), why))
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(r.Err, printer.Visible(line))
	}
}

func (r *envResolver) value(ctx context.Context, from *corev1.EnvVarSource, container *corev1.Container) (string, error) {
	switch {
	case from.SecretKeyRef != nil:
		name, key := from.SecretKeyRef.Name, from.SecretKeyRef.Key
		secret, err := read(ctx, r, r.secrets, core.Secrets, name)
		if err != nil {
			return "", err
		}
		if value, there := secret.Data[key]; there {
			return string(value), nil
		}
		return "", fmt.Errorf("key %s not found in secret %s", key, name)
	case from.ConfigMapKeyRef != nil:
		name, key := from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key
		configMap, err := read(ctx, r, r.configMaps, core.ConfigMaps, name)
		if err != nil {
			return "", err
		}
		if value, there := configMap.Data[key]; there {
			return value, nil
		}
		return "", fmt.Errorf("key %s not found in config map %s", key, name)
	case from.FieldRef != nil:
		return fieldOf(r.object, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return describe.AmountOf(container, from.ResourceFieldRef), nil
	}
	return "", errors.New("invalid valueFrom")
}

// read gets an object of the namespace, once.
func read[T any](ctx context.Context, r *envResolver, known map[string]*T, resource core.Resource, name string) (*T, error) {
	if object := known[name]; object != nil {
		return object, nil
	}
	client, err := r.Server()
	if err != nil {
		return nil, err
	}
	object := new(T)
	if err := client.Resource(resource, r.object.GetNamespace()).Get(ctx, name, object); err != nil {
		return nil, err
	}
	known[name] = object
	return object, nil
}

// fieldOf reads a field of an object's metadata, the only part that a template shares
// with its pods.
func fieldOf(object *unstructured.Unstructured, path string) (string, error) {
	if whole, key, ok := strings.Cut(strings.TrimSuffix(path, "']"), "['"); ok && strings.HasSuffix(path, "']") {
		values := map[string]map[string]string{"metadata.annotations": object.GetAnnotations(), "metadata.labels": object.GetLabels()}
		of, there := values[whole]
		if !there {
			return "", fmt.Errorf("fieldPath %q does not support subscript", path)
		}
		if faults := validation.IsQualifiedName(key); len(faults) > 0 {
			return "", fmt.Errorf("invalid key subscript in %s: %s", path, strings.Join(faults, ";"))
		}
		return of[key], nil
	}
	switch path {
	case "metadata.annotations":
		return lines(object.GetAnnotations()), nil
	case "metadata.labels":
		return lines(object.GetLabels()), nil
	case "metadata.name":
		return object.GetName(), nil
	case "metadata.namespace":
		return object.GetNamespace(), nil
	case "metadata.uid":
		return string(object.GetUID()), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %s", path)
}

func lines(values map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all, fmt.Sprintf("%s=%q", key, values[key]))
	}
	return strings.Join(all, "\n")
}
