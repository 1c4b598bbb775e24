package lookup

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/kubectl/internal/command/frame"
	"kctl/proto/core"
	"kctl/proto/rest"
)

// Matches tells whether an object that a file names has the labels asked for.
func Matches(selector string, object *unstructured.Unstructured) bool {
	if selector == "" {
		return true
	}
	parsed, err := labels.Parse(selector)
	return err == nil && parsed.Matches(labels.Set(object.GetLabels()))
}

// Typed decodes an object into the type of its kind.
func Typed(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("decode %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// EventsAbout lists the events about an object.
func EventsAbout(ctx context.Context, c *frame.CLI, object *unstructured.Unstructured) ([]core.Event, error) {
	client, err := c.Server()
	if err != nil {
		return nil, err
	}
	namespace := cmp.Or(object.GetNamespace(), core.NamespaceDefault)
	selector := "involvedObject.name=" + object.GetName() + ",involvedObject.kind=" + object.GetKind()
	if object.GetKind() != "Node" {
		selector += ",involvedObject.uid=" + string(object.GetUID())
	}
	return TypedList[core.Event](ctx, client.Resource(core.Events, namespace), ChunkSize, rest.FieldSelector(selector))
}

// PodName reads NAME, pod/NAME, pods/NAME or po/NAME, the type in any case.
func PodName(arg string) (string, error) {
	kind, name, ok := strings.Cut(arg, "/")
	if !ok {
		return arg, nil
	}
	switch strings.ToLower(kind) {
	case "pod", "pods", "po":
		if name != "" {
			return name, nil
		}
	}
	return "", fmt.Errorf("%q is not a pod: only pods (NAME or pod/NAME) are supported here", arg)
}

// SelectorOf is the label selector by which an object finds its pods.
func SelectorOf(object *unstructured.Unstructured) (string, error) {
	content, ok, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err == nil && !ok && object.GetKind() == "Service" {
		return "", fmt.Errorf("service %s is defined without a selector", object.GetName())
	}
	if err != nil || !ok {
		return "", fmt.Errorf("selector for %s %s not implemented", object.GetKind(), object.GetName())
	}
	if _, structured := content["matchLabels"]; !structured && content["matchExpressions"] == nil {
		content = map[string]any{"matchLabels": content} // services and replication controllers
	}
	selector := &metav1.LabelSelector{}
	if err := Typed(&unstructured.Unstructured{Object: content}, selector); err != nil {
		return "", err
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", fmt.Errorf("the selector of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return parsed.String(), nil
}
